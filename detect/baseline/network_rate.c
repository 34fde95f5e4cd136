/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rate of slow rounds of a communicator. */
#include "detect/baseline/network_rate.h"

#include <math.h>

#include "detect/baseline/peer_deviation.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* The step at which it ended, of the job. */
static double place_of(const struct nt_detect *detect, uint64_t frame)
{
	const struct nt_history *history = &detect->step.history;

	return history->steps + 1.0 -
	       (double)(detect->frames - frame) * nt_history_last_steps(history);
}

void nt_network_count_far(const struct nt_detect *detect, struct nt_network *network,
			  const struct nt_cusum_window *window)
{
	const bool is_far = window->z > NT_FAR_WIDTHS && window->cost >= detect->rules.size_floor;
	const double ratio = is_far ? NT_FAR_RATE_FAULTY / NT_NETWORK_FAR
				    : (1.0 - NT_FAR_RATE_FAULTY) / (1.0 - NT_NETWORK_FAR);

	if (is_far)
		nt_far_rhythm_add(&network->rhythm, place_of(detect, window->frame),
				  nt_history_last_steps(&detect->step.history), window->cost);
	nt_cusum_grow(&network->rate, &detect->rules, window, log(ratio) / nt_cusum_exponent());
}

/* The longest step about that frame, ns; the rounds of a communicator and of the job do not coincide. */
static double step_about(const struct nt_detect *detect, uint64_t frame)
{
	const struct nt_lesson *lesson = &detect->step.lesson;
	double longest = 0.0;

	for (uint32_t i = 0; i < NT_PAST_WINDOWS; i++)
		if (lesson->frame[i] + 1 >= frame && lesson->frame[i] <= frame + 1)
			longest = fmax(longest, lesson->value[i]);
	return longest;
}

void nt_network_count_far_before(const struct nt_detect *detect, struct nt_network *network)
{
	const struct nt_lesson *lesson = &network->lesson;
	const double usual = nt_network_usual(network);

	if (!detect->step.past.ready)
		return;
	for (uint32_t i = 0; i + 1 < NT_PAST_WINDOWS; i++) {
		const double step = step_about(detect, lesson->frame[i]);
		const double base = nt_peer_deviation_base(&detect->rules, usual, step);
		const double growth = (lesson->value[i] * network->calls - usual) / base;
		const struct nt_cusum_window window = {
			.start_ns = nt_detect_began_ns(detect, lesson->frame[i]),
			.frame = lesson->frame[i],
			.z = growth /
			     fmax(NT_TRANSFER_WIDTH, network->past.value_width * usual / base),
			.peer_deviation = growth,
			.cost = fmin(growth * base, step - detect->step.past.value_centre) /
				fmax(1.0, step),
			.ceiling = NT_CUSUM_CEILING * detect->threshold,
		};

		nt_network_count_far(detect, network, &window);
	}
}

bool nt_network_is_often_far(const struct nt_detect *detect, const struct nt_network *network)
{
	return network->rate.sum >= detect->threshold &&
	       nt_cusum_cost(&network->rate) >= detect->rules.size_floor &&
	       !nt_far_rhythm_is_regular(&network->rhythm,
					 nt_history_last_steps(&detect->step.history));
}
