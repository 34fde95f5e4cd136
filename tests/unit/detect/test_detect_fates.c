/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fates of jobs that dice decide: their shape, what befalls them, and when. What is told of each is in
 * tests/golden/detect/fates.txt, a line for each finding; the last line of a fate sums up every
 * number that was told or shown. No fate is likely; together they go where a written test does not.
 * Every other one has neither noise nor odd numbers, so that values meet borders and each other.
 * Where a rule changes on purpose, NT_GOLDEN_UPDATE=1 writes the file anew: read the difference.
 */
#include "tests/unit/detect/detect_frames.h"

#include <stdio.h>

#include "common/base/hash.h"
#include "detect/model/detector_state.h"

enum {
	FATES = 160,
	FRAMES = 150,
	CALM = 22, /* frames at first, for a past to be learned */
};

static const char *const golden = "tests/golden/detect/fates.txt";

/* What is told of one fate: the short of it, and a sum over the whole of it. */
struct story {
	FILE *out;
	char *text;
	size_t size;
	uint64_t sum;
};

/* Of an even fate any number from low to low + span, of an odd one few of them. */
static double draw_part(struct sim *sim, double low, double span)
{
	const double part = sim_uniform(sim);

	return low + span * (sim->jitter > 0.0 ? part : floor(4.0 * part) / 4.0);
}

static uint32_t draw(struct sim *sim, uint32_t below)
{
	return (uint32_t)(sim_uniform(sim) * below);
}

static bool chance(struct sim *sim, double part)
{
	return sim_uniform(sim) < part;
}

/* ---- shapes ------------------------------------------------------------------------------------ */

/* Experts: replicas that send each other tokens, within halves of the job. */
static void add_experts(struct sim *sim)
{
	for (uint32_t half = 0; half < 2; half++) {
		struct sim_comm *comm = sim_comm_add(sim, 0xe8e0 + half, NT_FRAME_ALL_TO_ALL, 8,
						     1e6, 0.05 * SIM_MS);

		for (uint32_t i = 0; i < sim->ranks / 2; i++)
			comm->member[comm->members++] = half * (sim->ranks / 2) + i;
	}
}

static void shape(struct sim *sim, uint32_t fate)
{
	static const uint8_t layout[][3] = {
		{1, 1, 8}, {2, 1, 4}, {1, 2, 4}, {2, 2, 2}, {1, 1, 3},  {1, 3, 1},
		{1, 1, 2}, {4, 1, 3}, {1, 4, 3}, {2, 1, 1}, {1, 1, 12}, {2, 2, 4},
	};
	static const double jitters[] = {0.005, 0.01, 0.02, 0.04};
	const uint8_t *size = layout[fate % (sizeof(layout) / sizeof(layout[0]))];
	const uint64_t seed = 1000 + fate;
	uint32_t ranks_per_node, kind;

	if (size[0] * size[1] == 1 && fate % 8 < 4)
		sim_init(sim, size[2], seed);
	else
		sim_init_layout(sim, size[0], size[1], size[2], seed);
	sim->jitter = fate % 2 ? 0.0 : jitters[draw(sim, 4)];
	sim->steps = 2 + draw(sim, 8);
	sim->blocking = chance(sim, 0.5);
	sim->outliers = sim->jitter > 0.0 && chance(sim, 0.2) ? 0.01 : 0.0;
	sim->lateness = sim->jitter > 0.0 && chance(sim, 0.5) ? 0.2 * SIM_MS : 0.0;
	sim->completeness = chance(sim, 0.2) ? 0.9 : 1.0;
	for (uint32_t i = 0; i < sim->comms; i++)
		sim->comm[i].timed = sim->blocking && sim->comm[i].kind == NT_FRAME_SYNCHRONISING;
	if (sim->ranks >= 8 && chance(sim, 0.3))
		add_experts(sim);
	ranks_per_node = 2 + 2 * draw(sim, 3);
	kind = draw(sim, 8);
	for (uint32_t i = 0; i < sim->ranks; i++) {
		struct sim_rank *rank = &sim->rank[i];

		rank->node = i / ranks_per_node;
		rank->device *= 1.0 + (sim->jitter > 0.0 ? 0.01 * sim_gauss(sim) : 0.0);
		rank->on_cpu = rank->host + 2.0 * SIM_MS;
		rank->run_queue = kind == 1 ? draw_part(sim, 0.0, 20.0) * SIM_MS : 0.1 * SIM_MS;
		if (kind == 2)
			rank->tier = NT_FRAME_T1;
		else if (kind == 3)
			rank->tier = NT_FRAME_T3;
		else if (kind == 4)
			rank->tier = (uint8_t)(NT_FRAME_T1 + draw(sim, 3));
		if (kind == 5) {
			rank->no_gpu = true;
			rank->host = 80.0 * SIM_MS;
			rank->device = 0.0;
			rank->on_cpu = 75.0 * SIM_MS;
		}
		if (kind == 6 && i % 4 != 3) {
			rank->stage = (int32_t)(i % 2);
			rank->replica = (int32_t)(i / 2);
		}
		if (kind == 7 && i == 0)
			rank->device *= 1.3;
	}
}

/* ---- what befalls them ------------------------------------------------------------------------- */

static void befall_host(struct sim *sim, struct sim_rank *rank)
{
	const double excess = draw_part(sim, 10.0, 40.0) * SIM_MS;

	rank->host += excess;
	switch (draw(sim, 6)) {
	case 0:
		rank->gc = 0.8 * excess;
		break;
	case 1:
		rank->run_queue += 0.8 * excess;
		break;
	case 2:
		rank->io = 0.8 * excess;
		rank->read = 50 << 20;
		break;
	case 3:
		rank->io = 0.8 * excess;
		rank->write = 50 << 20;
		break;
	case 4:
		rank->faults = 400;
		break;
	default:
		rank->on_cpu += excess;
		break;
	}
}

/* One of several ways to stand still; `calm` ends it. */
static void befall_stall(struct sim *sim)
{
	const struct sim_comm *comm = &sim->comm[draw(sim, sim->comms)];
	const uint32_t late = draw(sim, sim->ranks + 2);
	const uint32_t kind = draw(sim, 6);

	sim_stick(sim, comm->id, late);
	for (uint32_t i = 0; i < sim->ranks; i++) {
		uint32_t place;

		/* Who is no member of it goes on, or waits in the job's own. */
		if (kind == 5 && !sim_is_member(sim, comm, i, &place)) {
			sim->rank[i].stuck = sim->rank[i].in_call = false;
			continue;
		}
		if (sim->rank[i].in_call && !sim_is_member(sim, comm, i, &place)) {
			sim->rank[i].inside_comm = sim->comm[sim->comms - 1].id;
			sim->rank[i].inside_number = sim->comm[sim->comms - 1].last + 1;
		}
		sim->rank[i].inside_kind = comm->kind;
		if (kind == 0) {
			sim->rank[i].synchronising = sim->rank[i].in_call;
			sim->rank[i].in_call = false;
		}
	}
	if (late >= sim->ranks)
		return;
	sim->rank[late].behind = 1;
	if (kind == 1)
		sim->rank[late].state = 'D';
	if (kind == 2)
		sim->rank[late].busy = 0.5;
	if (kind == 3) {
		sim->rank[late].behind = 0;
		sim->rank[late].in_call = true;
		sim->rank[late].inside_comm = comm->id;
		sim->rank[late].inside_number = comm->last;
		sim->rank[late].inside_since = sim->now_ns;
		sim->rank[late].inside_op = 3;
		sim->rank[late].inside_count = 5;
	}
	if (kind == 4) {
		sim->rank[late].ended = true;
		sim->rank[late].ended_ns = sim->now_ns;
		sim->rank[late].finalized = chance(sim, 0.5);
	}
}

static void befall_all(struct sim *sim, double factor)
{
	for (uint32_t i = 0; i < sim->ranks; i++) {
		sim->rank[i].device *= factor;
		sim->rank[i].host *= factor;
	}
}

static void befall(struct sim *sim, struct nt_detect *detect)
{
	struct sim_rank *rank = &sim->rank[draw(sim, sim->ranks)];
	struct sim_comm *comm = &sim->comm[draw(sim, sim->comms)];

	switch (draw(sim, 18)) {
	case 0:
	case 1:
	case 2:
		rank->device *= draw_part(sim, 1.1, 0.8);
		rank->on_cpu *= rank->no_gpu ? 1.5 : 1.0;
		break;
	case 3:
	case 4:
		befall_host(sim, rank);
		break;
	case 5:
		for (uint32_t i = 0; i < sim->ranks; i++)
			sim->rank[i].device *= sim->rank[i].node == rank->node ? 1.4 : 1.0;
		break;
	case 6:
	case 7:
		comm->transfer = comm->transfer * 3.0 + 2.0 * SIM_MS / comm->calls;
		break;
	case 8:
		befall_all(sim, chance(sim, 0.5) ? 1.3 : 0.7);
		break;
	case 9:
	case 10:
	case 11:
		befall_stall(sim);
		break;
	case 12:
		rank->salt = 1 + draw(sim, 3);
		rank->odd_count = chance(sim, 0.5) ? 7 : 0;
		rank->odd_op = chance(sim, 0.5) ? 4 : 0;
		break;
	case 13:
		rank->silent = true;
		break;
	case 14:
		rank->absent = true;
		break;
	case 15:
		rank->tier = (uint8_t)(NT_FRAME_T1 + draw(sim, 3));
		rank->known = chance(sim, 0.7);
		break;
	case 16:
		comm->bytes *= 2.0;
		comm->epoch++;
		rank->epoch += chance(sim, 0.5);
		break;
	default:
		if (chance(sim, 0.3))
			nt_detect_rebaseline(detect);
		sim->extra_ns = 4ull * SIM_SECOND;
		rank->parts = chance(sim, 0.5) ? 2.0 : 0.0;
		break;
	}
}

/* All is as it was. */
static void calm(struct sim *sim, const struct sim *was)
{
	memcpy(sim->rank, was->rank, sim->ranks * sizeof(*sim->rank));
	for (uint32_t i = 0; i < sim->comms; i++)
		sim->comm[i].transfer = was->comm[i].transfer;
}

/* Every call of the first communicator that all its members watched. */
static void add_samples(struct sim *sim, bool whole)
{
	const struct sim_comm *comm = &sim->comm[0];
	const uint32_t members = sim_comm_size(sim, comm);
	const double step = (double)(sim->frame.end_ns - sim->frame.start_ns) / sim->steps;
	uint32_t n = 0;

	for (uint32_t call = 0; call < 2; call++)
		for (uint32_t i = 0; i < members - !whole; i++) {
			const uint32_t at = comm->world ? i : comm->member[i];
			const double early =
				comm->world || i ? draw_part(sim, 0.0, 0.2) * step : 0.0;
			const uint64_t end_ns = sim->frame.end_ns - call * (uint64_t)step;

			sim->out_sample[n++] = (struct nt_frame_sample){
				.comm = comm->id,
				.epoch = comm->epoch,
				.number = comm->last - 1 + call,
				.bytes = (uint64_t)comm->bytes,
				.op = 1,
				.kind = comm->kind,
				.rank = sim->rank[at].rank,
				.arrive_ns = end_ns - (uint64_t)(comm->transfer + early),
				.release_ns = end_ns,
			};
		}
	sim->frame.samples = n;
}

/* ---- what is told ------------------------------------------------------------------------------ */

static void add(struct story *story, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	story->sum = nt_hash_bytes(story->sum, text, strlen(text));
}

static double since(uint64_t ns)
{
	return ns ? (double)(ns - 1700000000ull * SIM_SECOND) / 1e9 : 0.0;
}

static void add_finding(struct story *story, const struct nt_finding *finding)
{
	add(story, "%d %d %d %d %s %016llx %llu", finding->state, finding->severity, finding->class,
	    finding->tier, finding->cause ? finding->cause : "-", (unsigned long long)finding->id,
	    (unsigned long long)finding->version);
	add(story, " %.3f %.3f %.3f %.3f %.4g %.3f %.2f", since(finding->since_ns),
	    since(finding->until_ns), since(finding->seen_ns), finding->slowdown,
	    finding->gpu_hours, finding->confidence, finding->completeness);
	for (size_t i = 0; i < finding->culprits; i++) {
		const struct nt_finding_culprit *culprit = &finding->culprit[i];

		add(story, " %d %u %d %llx", culprit->kind, culprit->rank, (int)culprit->node,
		    (unsigned long long)culprit->comm);
		for (size_t j = 0; j < culprit->peer_count; j++)
			add(story, " p%u", culprit->peers[j]);
		for (size_t j = 0; j < culprit->rank_count; j++)
			add(story, " r%u", culprit->ranks[j]);
	}
	for (size_t i = 0; i < finding->evidences; i++) {
		const struct nt_finding_evidence *row = &finding->evidence[i];

		add(story, " %s %.4g %s %.4g %.3g %s %u", row->what, row->value, row->unit,
		    row->peers, row->width, row->method, row->windows);
	}
}

static void print_finding(struct story *story, uint32_t frame, const struct nt_finding *finding)
{
	(void)fprintf(story->out, "  %3u %s %s%s%s x%.2f", frame,
		      nt_incident_state_name(finding->state), nt_class_name(finding->class),
		      finding->cause ? ", " : "", finding->cause ? finding->cause : "",
		      finding->slowdown);
	for (size_t i = 0; i < finding->culprits; i++) {
		const struct nt_finding_culprit *culprit = &finding->culprit[i];

		(void)fprintf(story->out, "%s %s ", i ? "," : ":",
			      nt_culprit_kind_name(culprit->kind));
		if (culprit->kind == NT_CULPRIT_COMMUNICATOR)
			(void)fprintf(story->out, "%llx", (unsigned long long)culprit->comm);
		else
			(void)fprintf(story->out, "%u",
				      culprit->kind == NT_CULPRIT_NODE ? culprit->node
								       : culprit->rank);
	}
	(void)fprintf(story->out, "\n");
	add_finding(story, finding);
}

static void add_ranks(struct story *story, const struct sim *sim, const struct nt_detect *detect)
{
	add(story, "step %.4g ms", nt_detect_step_ns(detect) / 1e6);
	for (uint32_t i = 0; i < sim->ranks; i++) {
		struct nt_detect_rank_view view;

		if (!nt_detect_rank(detect, sim->rank[i].rank, &view))
			continue;
		add(story, " %u %d %.4g %.4g %.4g %.4g %.3f %.4f %.2f %.2f", i, view.tier,
		    view.own_ns / 1e6, view.own_peers_ns / 1e6, view.host_ns / 1e6,
		    view.host_peers_ns / 1e6, view.peer_deviation, view.width, view.cusum,
		    view.threshold);
		for (size_t j = 0; j < view.peer_count; j++)
			add(story, " p%u", view.peers[j]);
	}
}

static struct nt_rules hasty_rules(void)
{
	struct nt_rules rules = nt_rules_default();

	rules.resolve_min_ns = 5ull * SIM_SECOND;
	rules.new_normal_ns = 30ull * SIM_SECOND;
	rules.silence_floor_ns = 8ull * SIM_SECOND;
	rules.hang_min_ns = 5ull * SIM_SECOND;
	rules.checkpoint_note_ns = 3ull * SIM_SECOND;
	rules.slow_host_ns = 9ull * SIM_SECOND;
	rules.young_ns = rules.slow_host_ns;
	return rules;
}

static struct nt_detect *reload(const struct nt_rules *rules, struct nt_detect *detect)
{
	struct nt_detect *loaded = NULL;
	uint8_t *data = NULL;
	size_t size = 0;

	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_int_equal(nt_detect_load(rules, data, size, &loaded), 0);
	free(data);
	nt_detect_free(detect);
	return loaded;
}

/* How many of those bytes may be one more without being refused: what a state may not say. */
static uint32_t count_harmless(const struct nt_rules *rules, uint8_t *data, size_t size)
{
	uint32_t harmless = 0;

	for (size_t i = 0; i < size - 8; i++) {
		struct nt_detect *loaded = NULL;
		uint64_t sum;

		data[i]++;
		sum = nt_hash_bytes(NT_HASH_SEED, data, size - 8);
		for (size_t j = 0; j < 8; j++)
			data[size - 8 + j] = (uint8_t)(sum >> (8 * j));
		harmless += nt_detect_load(rules, data, size, &loaded) == 0;
		nt_detect_free(loaded);
		data[i]--;
	}
	return harmless;
}

/* What is not saved is forgotten, what is saved for nothing is never noticed: its size is told. */
static void add_state(struct story *story, const struct nt_rules *rules,
		      const struct nt_detect *detect, bool forge)
{
	uint8_t *data = NULL;
	size_t size = 0;

	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	add(story, "%zu bytes", size);
	if (forge)
		(void)fprintf(story->out, "  %zu bytes, of which %u may be one more\n", size,
			      count_harmless(rules, data, size));
	free(data);
}

static void lead(uint32_t fate, bool saved, struct story *story)
{
	const struct nt_rules rules = hasty_rules();
	struct nt_detect *detect = NULL;
	bool samples, is_calm = true;
	uint32_t until = CALM;
	struct sim sim, was;

	*story = (struct story){.sum = NT_HASH_SEED};
	story->out = open_memstream(&story->text, &story->size);
	assert_non_null(story->out);
	assert_int_equal(nt_detect_new(&rules, fate, 1, &detect), 0);
	shape(&sim, fate);
	samples = chance(&sim, 0.3);
	was = sim;
	was.rank = malloc(sim.ranks * sizeof(*was.rank));
	assert_non_null(was.rank);
	memcpy(was.rank, sim.rank, sim.ranks * sizeof(*was.rank));
	(void)fprintf(story->out, "fate %u: %u ranks, %u communicators\n", fate, sim.ranks,
		      sim.comms);
	for (uint32_t frame = 0; frame < FRAMES; frame++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		if (frame == until) {
			is_calm = !is_calm && chance(&sim, 0.7);
			if (is_calm)
				calm(&sim, &was);
			else
				befall(&sim, detect);
			until += 6 + draw(&sim, 22);
		}
		if (saved && frame % 5 == 0)
			detect = reload(&rules, detect);
		(void)sim_next(&sim);
		if (samples)
			add_samples(&sim, frame % 16 != 9);
		assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings), 0);
		for (size_t i = 0; i < findings; i++)
			print_finding(story, frame, &finding[i]);
		add_ranks(story, &sim, detect);
		if (frame % 8 == 7)
			add_state(story, &rules, detect,
				  fate < 12 && (fate == 3 || sim.ranks <= 4) && frame == 79);
		nt_detect_open(detect, &finding, &findings);
		for (size_t i = 0; i < findings; i++)
			add_finding(story, &finding[i]);
	}
	(void)fprintf(story->out, "  all in all %016llx\n", (unsigned long long)story->sum);
	nt_detect_free(detect);
	free(was.rank);
	sim_free(&sim);
	assert_int_equal(fclose(story->out), 0);
}

static void the_fates_of_jobs_are_told_as_written_down(void **state)
{
	const bool update = getenv("NT_GOLDEN_UPDATE");
	FILE *file = fopen(golden, update ? "w" : "r");
	char line[1024];

	(void)state;
	assert_non_null(file);
#ifdef __FP_FAST_FMA
	/* Where products are not rounded before they are added, the last digits are others. */
	assert_int_equal(fclose(file), 0);
	skip();
#endif
	for (uint32_t fate = 0; fate < FATES; fate++) {
		struct story story;

		lead(fate, false, &story);
		if (update)
			assert_true(fputs(story.text, file) >= 0);
		for (char *at = story.text, *end; !update && *at; at = end) {
			end = at + strcspn(at, "\n") + 1;
			assert_non_null(fgets(line, sizeof(line), file));
			if (strncmp(line, at, (size_t)(end - at)) == 0)
				continue;
			print_error("fate %u\ngot:  %.*swant: %s", fate, (int)(end - at), at, line);
			fail();
		}
		free(story.text);
	}
	assert_int_equal(fclose(file), 0);
}

static void a_fate_is_the_same_if_the_job_is_put_down_and_taken_up_again(void **state)
{
	(void)state;
	for (uint32_t fate = 0; fate < FATES; fate += 5) {
		struct story plain, saved;

		lead(fate, false, &plain);
		lead(fate, true, &saved);
		assert_string_equal(saved.text, plain.text);
		free(plain.text);
		free(saved.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fates_of_jobs_are_told_as_written_down),
		cmocka_unit_test(a_fate_is_the_same_if_the_job_is_put_down_and_taken_up_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
