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
	const double steps = nt_history_last_steps(&detect->step.history);
	struct nt_cusum_window counted = *window;
	const bool is_far = window->z > NT_FAR_WIDTHS && window->cost >= detect->rules.size_floor;
	const double ratio = is_far ? NT_FAR_RATE_FAULTY / NT_NETWORK_FAR
				    : (1.0 - NT_FAR_RATE_FAULTY) / (1.0 - NT_NETWORK_FAR);

	/* The second of two rounds in a row is no new beat. */
	if (is_far && network->far_fresh != nt_default_pending_windows)
		nt_far_rhythm_add(&network->rhythm, place_of(detect, window->frame), steps,
				  window->cost);
	if (is_far)
		network->far_fresh = nt_default_pending_windows;
	else
		network->far_fresh -= network->far_fresh > 0;
	if (!is_far)
		counted.cost = 0.0;
	nt_cusum_grow(&network->rate, &detect->rules, &counted, log(ratio) / nt_cusum_exponent());
	if (network->rate.sum >= detect->threshold &&
	    nt_far_rhythm_is_regular(&network->rhythm, steps))
		nt_cusum_clear(&network->rate);
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
	for (uint32_t i = 0; i < NT_PAST_WINDOWS; i++) {
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

		if (step > 0.0)
			nt_network_count_far(detect, network, &window);
	}
}

bool nt_network_is_often_far(const struct nt_detect *detect, const struct nt_network *network)
{
	return network->rate.sum >= detect->threshold &&
	       nt_cusum_cost(&network->rate) >= detect->rules.size_floor;
}

bool nt_network_is_level_high(const struct nt_detect *detect, const struct nt_network *network)
{
	return network->level.sum >= detect->threshold && nt_cusum_lasts(&network->level) &&
	       nt_cusum_cost(&network->level) >= detect->rules.size_floor;
}

const struct nt_cusum *nt_network_sum(const struct nt_detect *detect,
				      const struct nt_network *network)
{
	return !nt_network_is_level_high(detect, network) &&
			       nt_network_is_often_far(detect, network)
		       ? &network->rate
		       : &network->level;
}

bool nt_network_began_at(const struct nt_detect *detect, const struct nt_network *network,
			 uint64_t onset_ns)
{
	const struct nt_cusum *sum[] = {&network->level, &network->rate};

	for (size_t i = 0; i < sizeof(sum) / sizeof(sum[0]); i++)
		if (sum[i]->sum > 0.0 &&
		    nt_incidents_are_together(onset_ns, sum[i]->onset_ns, detect->window_ns))
			return true;
	return false;
}

double nt_network_shown(const struct nt_detect *detect, const struct nt_network *network)
{
	const double usual = nt_network_usual(network);
	const double base = nt_peer_deviation_base(&detect->rules, usual, network->step_ns);

	return fmax(network->transfer,
		    usual + nt_cusum_peer_deviation(nt_network_sum(detect, network)) * base);
}
