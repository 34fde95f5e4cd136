/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures transfer times of communicators. */
#include "detect/rules/network_measure.h"

#include <math.h>

#include "common/base/search.h"
#include "detect/baseline/network_alike.h"
#include "detect/baseline/network_rate.h"
#include "detect/baseline/peer_deviation.h"
#include "detect/incidents/incident_raise.h"
#include "detect/incidents/network_loss.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* One round of one communicator: calls of one operation. */
struct round {
	enum nt_network_method method;
	uint8_t op, tier;
	uint64_t start_ns, frame; /* of its first frame */
	double bytes, calls; /* bytes per call; calls per step */
	double transfer; /* ns per call */
	double step_ns, steps; /* steps: per member */
};

/*
 * The operation that moves most bytes: its calls per step, and its shortest call over all members.
 * False if a live member is missing, as it may be the one that came last.
 */
static bool add_members(const struct nt_detect_comm *comm, struct round *round)
{
	const struct nt_collective_round *said = &comm->collective_round;
	const struct nt_collective_round_op *most = nt_collective_round_most(said);

	if (!most || said->reporters < comm->members || said->reporters < comm->size)
		return false;
	round->op = most->op;
	round->tier = said->tier;
	round->start_ns = said->start_ns;
	round->frame = said->frame;
	round->bytes = most->bytes / most->calls;
	round->calls = most->calls / said->steps;
	round->step_ns = said->step_ns / said->steps;
	round->steps = said->steps / said->reporters;
	/* Host and device times of a call are not comparable. */
	if (most->timed[NT_COLLECTIVE_ROUND_BY_GPU] == said->reporters) {
		round->method = NT_NETWORK_BY_GPU;
		round->transfer = most->shortest_ns[NT_COLLECTIVE_ROUND_BY_GPU];
	} else if (most->timed[NT_COLLECTIVE_ROUND_BY_HOST] == said->reporters &&
		   !most->timed[NT_COLLECTIVE_ROUND_BY_GPU]) {
		round->method = NT_NETWORK_SHORTEST;
		round->transfer = most->shortest_ns[NT_COLLECTIVE_ROUND_BY_HOST];
	}
	return true;
}

/*
 * The first sample of the communicator; samples are sorted by it. Frames are similar, so the search
 * starts at the index in the last frame.
 */
static size_t find_samples(const struct nt_frame *frame, uint64_t comm, size_t likely)
{
	size_t low = likely < frame->samples ? likely : frame->samples, high = low;

	for (size_t reach = 1; low && frame->sample[low - 1].comm >= comm; reach *= 2) {
		high = low - 1;
		low -= low < reach ? low : reach;
	}
	for (size_t reach = 1; high < frame->samples && frame->sample[high].comm < comm;
	     reach *= 2) {
		low = high + 1;
		high += frame->samples - high < reach ? frame->samples - high : reach;
	}
	return nt_search_first(low, high, i, frame->sample[i].comm >= comm);
}

/*
 * Uses calls that every member sampled, timed by hosts: exact for each call. Their mean, as a network
 * that loses packets delays some calls only.
 */
static void add_samples(const struct nt_frame *frame, struct nt_detect_comm *comm,
			struct round *round)
{
	const struct nt_frame_sample *sample = frame->sample;
	const size_t n = frame->samples;
	double sum = 0.0;
	uint32_t calls = 0;

	comm->samples_at = find_samples(frame, comm->id, comm->samples_at);
	for (size_t i = comm->samples_at, end; i < n && sample[i].comm == comm->id; i = end) {
		double shortest = INFINITY;
		bool whole = true;

		for (end = i;
		     end < n && sample[end].comm == comm->id &&
		     sample[end].epoch == sample[i].epoch && sample[end].number == sample[i].number;
		     end++) {
			const struct nt_frame_sample *at = &sample[end];

			whole = whole && at->release_ns > at->arrive_ns && at->op == round->op &&
				!at->by_gpu &&
				fabs((double)at->bytes - round->bytes) <=
					NT_NETWORK_BYTES * round->bytes;
			shortest = fmin(shortest, (double)at->release_ns - (double)at->arrive_ns);
		}
		if (!whole || end - i != comm->size)
			continue;
		sum += shortest;
		calls++;
	}
	if (!calls)
		return;
	round->method = NT_NETWORK_SAMPLES;
	round->transfer = sum / calls;
}

static double bytes_a_step(const struct nt_detect_comm *comm)
{
	return comm->steps > 0.0 ? comm->sync_bytes / comm->steps : comm->sync_bytes;
}

/* Whether its transfers are too small to matter: barriers, a loss, a flag. */
static bool is_negligible(const struct nt_detect_comm *comm, const struct nt_detect_comm *beside)
{
	if (nt_detect_comm_use(comm) == NT_DETECT_COMM_IDLE)
		return true;
	return nt_detect_comm_use(comm) == NT_DETECT_COMM_REDUCING && comm->p2p_calls <= 0.0 &&
	       bytes_a_step(comm) < NT_NETWORK_LEAST * bytes_a_step(beside);
}

/*
 * Sum of the growth of the members' own work, as the others may have waited for each in turn. Noise
 * cancels out with many members; within one step only one was awaited.
 */
static double uneven_growth(struct nt_detect *detect, const struct nt_detect_comm *comm,
			    double steps)
{
	double *growth = detect->scratch.a;
	double noise = 0.0, grown = 0.0, slowest = 0.0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);
		const struct nt_track *track = &rank->track[NT_SERIES_OWN];
		const struct nt_past *past = &track->past;
		const double more = track->value - past->value_centre;

		if (!past->ready)
			continue;
		growth[n++] = more;
		if (fabs(more) <= fmax(NT_NETWORK_NOISE, NT_NETWORK_WIDTHS * past->value_width) *
					  past->value_centre)
			noise += more;
		else
			grown += fmax(0.0, more);
	}
	nt_stats_sort(growth, n);
	/* Windows of two members may begin with different steps. */
	for (uint32_t i = n; i-- > 0 && n - i <= ceil(steps) + 1.0;)
		slowest += fmax(0.0, growth[i]);
	return fmin(grown + fmax(0.0, noise), slowest);
}

/*
 * If calls do not block, the host's waits beyond its own work contain the transfers. The member
 * that waited least came last most often. Uneven work also causes waits, so growth of the members'
 * own work must not explain it.
 */
static void add_waits(struct nt_detect *detect, const struct nt_detect_comm *comm,
		      struct round *round)
{
	double least = INFINITY;
	/* Within one common step the member that all others waited for did not wait. */
	bool is_one = round->steps == 1.0;

	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);
		uint32_t others = 0;

		/* If steps are about as long as frames, some rounds are older. */
		if (!rank || !rank->round_frame || rank->tier != NT_FRAME_T2 ||
		    rank->round_frame + NT_COLLECTIVE_ROUND_FRAMES <= round->frame)
			return;
		is_one = is_one && rank->round_frame == detect->frames;
		for (uint32_t j = 0; j < rank->links; j++)
			others += rank->link[j].comm != comm && rank->link[j].comm->members > 1 &&
				  !is_negligible(rank->link[j].comm, comm);
		if (others)
			return;
		least = fmin(least, rank->step_metric[NT_STEP_METRIC_BLOCKED] +
					    rank->step_metric[NT_STEP_METRIC_COMM] -
					    rank->step_metric[NT_STEP_METRIC_OWN_BLOCKED]);
	}
	round->method = NT_NETWORK_LEAST_WAIT;
	round->calls = 1.0;
	round->transfer = least;
	if (!is_one)
		round->transfer = fmax(
			0.0, least - NT_NETWORK_UNEVEN * uneven_growth(detect, comm, round->steps));
}

/* The member that waited longest in the run queue, ns per step. */
struct starving {
	double queued; /* in the run queue */
	double waited; /* in calls and for its device, that included */
};

/*
 * A thread that does not run moves no bytes, and all others wait in the call. That is a host fault,
 * not a network fault.
 */
static struct starving longest_starving(const struct nt_detect *detect,
					const struct nt_detect_comm *comm)
{
	struct starving longest = {0};

	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);
		double queued;

		if (!rank)
			continue;
		queued = detect->scratch.run_queue[rank - detect->rank];
		if (queued > longest.queued)
			longest = (struct starving){
				.queued = queued,
				.waited = rank->step_metric[NT_STEP_METRIC_BLOCKED] +
					  rank->step_metric[NT_STEP_METRIC_COMM],
			};
	}
	return longest;
}

/*
 * The time in the run queue that is not usual, ns per step. Ranks that poll share processors: each
 * yields to the others while it waits, so it is queued for a part of any wait, however long.
 */
static double starved(struct nt_network *network, const struct starving *longest)
{
	if (!network->past.ready && longest->waited > 0.0) {
		network->starved_rounds++;
		network->starved_part +=
			(fmin(1.0, longest->queued / longest->waited) - network->starved_part) /
			network->starved_rounds;
	}
	return fmax(0.0, longest->queued - network->starved_part * longest->waited);
}

/* The usual run queue time: median of the members. */
static double usual_starving(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	double *waited = detect->scratch.a;
	uint32_t n = 0;

	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);

		if (rank)
			waited[n++] = detect->scratch.run_queue[rank - detect->rank];
	}
	return n ? nt_stats_median_of(waited, n) : 0.0;
}

/* The part of the step in which no member works: transfers beside work lengthen nothing. */
static double exposed(const struct nt_detect *detect, const struct nt_detect_comm *comm,
		      const struct round *round)
{
	double longest = 0.0;

	for (uint32_t i = 0; i < comm->members; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);

		if (rank)
			longest = fmax(longest, rank->step_metric[NT_STEP_METRIC_OWN]);
	}
	return (round->step_ns - longest) / fmax(1.0, round->step_ns);
}

/* Transfers overlap with computation: only the part that lengthens the step counts. */
static double felt(const struct nt_detect *detect, const struct nt_detect_comm *comm,
		   const struct round *round)
{
	/* The past of a network that was always slow has that step, too. */
	if (comm->network.reference > 0.0)
		return exposed(detect, comm, round);
	if (!detect->step.past.ready)
		return INFINITY;
	return (round->step_ns - detect->step.past.value_centre) / fmax(1.0, round->step_ns);
}

static bool has_history_of(const struct nt_network *network, const struct round *round)
{
	return network->method == round->method && network->op == round->op &&
	       fabs(network->bytes - round->bytes) <= NT_NETWORK_BYTES * network->bytes;
}

/*
 * Makes the history of these calls the current one. False: such calls are neither in it nor in the
 * other one, and too few so far to begin a new one. An example is an evaluation among the steps of
 * a window.
 */
static bool choose_history(struct nt_detect_comm *comm, const struct round *round)
{
	const struct nt_network current = comm->network;

	if (has_history_of(&comm->network, round)) {
		comm->strange_rounds = 0;
		return true;
	}
	if (!has_history_of(&comm->other_network, round)) {
		if (current.method && ++comm->strange_rounds < NT_NETWORK_STRANGE)
			return false;
		comm->other_network = (struct nt_network){
			.method = (uint8_t)round->method, .op = round->op, .bytes = round->bytes};
	}
	comm->network = comm->other_network;
	comm->other_network = current;
	comm->strange_rounds = 0;
	return true;
}

/* Compares a window's transfer with the past. `starving`: of its hosts, ns per step. */
static void add_window(const struct nt_detect *detect, struct nt_detect_comm *comm,
		       const struct round *round, double transfer, double starving,
		       struct nt_cusum_window *window)
{
	const struct nt_rules *rules = &detect->rules;
	struct nt_network *network = &comm->network;
	const double usual = nt_network_usual(network);
	const double base = nt_peer_deviation_base(rules, usual, round->step_ns);
	const double growth = (transfer - usual) / base;
	double width = fmax(NT_TRANSFER_WIDTH, network->past.value_width * usual / base);

	width = fmax(width, NT_STARVED_NOISE * starving / base);
	window->z = growth / width;
	window->peer_deviation = growth;
	window->cost = growth * base / fmax(1.0, round->step_ns);
	window->ceiling = NT_CUSUM_CEILING * detect->threshold;
	if (round->method == NT_NETWORK_BY_GPU)
		window->cost = fmin(window->cost, felt(detect, comm, round));
	nt_cusum_add(&network->level, rules, window);
}

/* The windows since the step up that is left out of the past; the present one follows. */
static void add_stepped(const struct nt_detect *detect, struct nt_detect_comm *comm,
			const struct round *round, uint64_t stepped, double starving)
{
	const struct nt_lesson *lesson = &comm->network.lesson;

	for (uint32_t i = 0; i < NT_PAST_WINDOWS - 1; i++) {
		struct nt_cusum_window window = {
			.start_ns = nt_detect_began_ns(detect, lesson->frame[i]),
			.frame = lesson->frame[i]};

		if (lesson->frame[i] >= stepped)
			add_window(detect, comm, round, lesson->value[i] * comm->network.calls,
				   starving, &window);
	}
}

/* At T3, or by the profiler. Hosts alone may have waited for something else, too. */
static bool is_of_devices(const struct round *round)
{
	return round->method == NT_NETWORK_BY_GPU ||
	       (round->method != NT_NETWORK_LEAST_WAIT && round->tier == NT_FRAME_T3);
}

static void judge(struct nt_detect *detect, struct nt_detect_comm *comm, const struct round *round)
{
	struct nt_network *network = &comm->network;
	struct nt_past *past = &network->past;
	struct nt_cusum_window window = {.start_ns = round->start_ns, .frame = round->frame};
	/* A device continues without its host. */
	const bool by_gpu = round->method == NT_NETWORK_BY_GPU;
	struct starving longest = {0};
	uint64_t stepped = 0;
	double starving, value;

	if (!choose_history(comm, round))
		return;
	if (!by_gpu)
		longest = longest_starving(detect, comm);
	starving = starved(network, &longest);
	network->tier = by_gpu ? NT_FRAME_T3 : round->tier;
	network->frame = detect->frames;
	network->step_ns = round->step_ns;
	value = by_gpu ? round->transfer : fmax(0.0, round->transfer * round->calls - starving);
	if (!past->ready) {
		/* A host that alone waits for a CPU has a fault, and the remainder is not usual. */
		if (longest.queued - usual_starving(detect, comm) >
		    NT_NETWORK_STARVED * round->transfer * round->calls) {
			network->cost = 0.0;
			return;
		}
		stepped = nt_past_learn_first(past, &network->lesson, round->calls, value,
					      detect->frames);
		network->calls = by_gpu ? past->peer_deviation_centre : 1.0;
		network->transfer = value * network->calls;
		network->cost = 0.0;
		if (past->ready && is_of_devices(round) && !stepped)
			nt_network_count_far_before(detect, network);
		if (!stepped)
			return;
	}
	if (nt_network_compare(detect, comm)) {
		window.start_ns = nt_detect_began_ns(detect, network->lesson.frame[0]);
		window.frame = network->lesson.frame[0];
	} else if (stepped) {
		add_stepped(detect, comm, round, stepped, starving);
	}
	/*
	 * Hosts run ahead of their devices: a window ends with a device step and holds calls of
	 * later steps. The two do not match in one round, but on average.
	 */
	if (by_gpu)
		network->calls += NT_NETWORK_PART * (round->calls - network->calls);
	network->transfer = value * network->calls;
	add_window(detect, comm, round, network->transfer, starving, &window);
	if (is_of_devices(round)) {
		struct nt_cusum_window far = window;

		far.cost = fmin(far.cost, felt(detect, comm, round));
		nt_network_count_far(detect, network, &far);
	}
	network->cost = window.cost;
	nt_incidents_judge(detect, NT_FAMILY_NETWORK, comm->id, window.cost);
}

bool nt_network_is_fresh(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	return comm->network.frame &&
	       detect->frames - comm->network.frame < NT_COLLECTIVE_ROUND_FRAMES;
}

bool nt_network_was_slow(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	const struct nt_network *network = &comm->network;

	return network->past.ready && nt_network_is_fresh(detect, comm) &&
	       (nt_network_is_level_high(detect, network) ||
		(network->far_fresh && nt_network_is_often_far(detect, network)));
}

bool nt_network_is_slow(const struct nt_detect *detect, const struct nt_detect_comm *comm)
{
	return comm->network.frame == detect->frames && nt_network_was_slow(detect, comm);
}

/* Whether the round measured the watched operation by a usable method. */
static bool is_measured(const struct nt_detect_comm *comm, const struct round *round)
{
	/* The method is kept: a window without samples is skipped. */
	if (comm->network.method == NT_NETWORK_SAMPLES && round->method != NT_NETWORK_SAMPLES &&
	    round->method != NT_NETWORK_BY_GPU)
		return false;
	/* So is one without times of all devices. */
	return comm->network.method != NT_NETWORK_BY_GPU || round->method != NT_NETWORK_NONE;
}

int nt_network_measure(struct nt_detect *detect, const struct nt_frame *frame)
{
	detect->links.slow = 0;
	for (uint32_t i = 0; i < detect->comm_count; i++) {
		struct nt_detect_comm *comm = detect->comm[i];
		struct round round = {0};
		enum nt_collective_round_end end;
		bool is_known;

		if (comm->members < 2 || comm->first_frame != detect->frames)
			continue;
		end = nt_collective_round_ends(&comm->collective_round, detect->frames,
					       comm->members > comm->size ? comm->members
									  : comm->size);
		if (end == NT_COLLECTIVE_ROUND_GOES_ON)
			continue;
		nt_network_loss_learn(detect, comm);
		is_known = add_members(comm, &round);
		detect->lapsed_collective_rounds +=
			end == NT_COLLECTIVE_ROUND_LAPSED && comm->collective_round.reporters;
		nt_collective_round_clear(&comm->collective_round);
		if (!is_known)
			continue;
		add_samples(frame, comm, &round);
		if (!is_measured(comm, &round))
			continue;
		if (round.method == NT_NETWORK_NONE)
			add_waits(detect, comm, &round);
		if (round.method == NT_NETWORK_NONE)
			continue;
		judge(detect, comm, &round);
		detect->links.slow += nt_network_is_slow(detect, comm);
	}
	return 0;
}
