/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whole lives of jobs, and what is said of them, word by word, as tests/golden/detect/NAME.txt has it.
 * Where a rule changes on purpose, NT_GOLDEN_UPDATE=1 writes the files anew: read the difference.
 * Each life is led twice, the second time saved and loaded again and again.
 */
#include "detect_frames.h"

#include <stdio.h>

#include "detect/core.h"

struct life {
	const char *name;
	uint32_t frames;
	void (*begin)(struct sim *sim);
	/* Before each frame. */
	void (*turn)(struct sim *sim, struct nt_detect *detect, uint32_t frame);
};

static void slow(struct sim *sim, uint32_t rank, double factor)
{
	sim->rank[rank].device *= factor;
}

/* ---- lives ------------------------------------------------------------------------------------- */

static void begin_data(struct sim *sim)
{
	sim_init(sim, 8, 201);
	sim->jitter = 0.02;
}

/* Two healthy ranks by nature slow and fast; one falls back, recovers, and another's host stalls. */
static void turn_data(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 0) {
		slow(sim, 0, 1.06);
		slow(sim, 1, 0.95);
	}
	if (frame == 30)
		slow(sim, 4, 1.4);
	if (frame == 50)
		slow(sim, 0, 1.15);
	if (frame == 65)
		slow(sim, 4, 1.0 / 1.4);
	if (frame == 90) {
		sim->rank[6].host += 35.0 * SIM_MS;
		sim->rank[6].io = 30.0 * SIM_MS;
		sim->rank[6].read = 5 << 20;
	}
	if (frame == 110)
		sim->rank[6].host -= 35.0 * SIM_MS;
}

/* Culprits of two classes in one incident; the class follows the worst. */
static void turn_classes(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30) {
		slow(sim, 2, 1.5);
		sim->rank[5].host += 30.0 * SIM_MS;
		sim->rank[5].gc = 25.0 * SIM_MS;
	}
	if (frame == 45)
		sim->rank[5].host += 40.0 * SIM_MS;
	if (frame == 60)
		slow(sim, 2, 2.0);
	if (frame == 75)
		sim->rank[5].host -= 70.0 * SIM_MS;
	if (frame == 100)
		slow(sim, 2, 1.0 / 3.0);
}

static void begin_t1(struct sim *sim)
{
	begin_data(sim);
	for (uint32_t i = 0; i < 8; i++)
		sim->rank[i].tier = NT_FRAME_T1;
}

static void turn_t1(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30)
		slow(sim, 1, 2.0);
	if (frame == 45)
		slow(sim, 1, 0.5);
	if (frame == 55) {
		sim->rank[3].host += 30.0 * SIM_MS;
		sim->rank[3].run_queue = 28.0 * SIM_MS;
	}
	if (frame == 75)
		sim->rank[3].host -= 30.0 * SIM_MS;
	/* A device that is nearly never awaited. */
	if (frame == 110)
		for (uint32_t i = 0; i < 8; i++)
			sim->rank[i].device = 0.5 * SIM_MS;
	if (frame == 130)
		sim->rank[2].host += 8.0 * SIM_MS;
}

static void begin_layout(struct sim *sim)
{
	sim_init_layout(sim, 2, 2, 4, 202);
	sim->jitter = 0.015;
	for (uint32_t i = 0; i < 16; i++)
		sim->rank[i].node = i / 4;
}

/* A rank, then the rest of its node; the last stage becomes longer; ranks change their tier. */
static void turn_layout(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 25)
		slow(sim, 5, 1.5);
	if (frame == 40)
		for (uint32_t i = 4; i < 8; i++)
			slow(sim, i, i == 5 ? 1.0 : 1.5);
	if (frame == 70)
		for (uint32_t i = 4; i < 8; i++)
			slow(sim, i, 1.0 / 1.5);
	if (frame == 80)
		for (uint32_t i = 8; i < 16; i++)
			slow(sim, i, 1.4);
	if (frame == 115)
		for (uint32_t i = 0; i < 16; i++)
			sim->rank[i].tier = NT_FRAME_T3;
	if (frame == 140)
		slow(sim, 9, 1.3);
}

static void begin_network(struct sim *sim)
{
	sim_init(sim, 8, 203);
	sim->jitter = 0.02;
	sim->blocking = true;
	sim->comm[0].timed = true;
	sim->lateness = 0.3 * SIM_MS;
}

static void turn_network(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30)
		sim->comm[0].transfer *= 2.5;
	if (frame == 50)
		sim->comm[0].transfer /= 2.5;
	if (frame == 70)
		sim->comm[0].timed = sim->blocking = false;
	if (frame == 100)
		sim->comm[0].transfer *= 3.0;
	if (frame == 120)
		sim->comm[0].transfer /= 3.0;
}

static void begin_stall(struct sim *sim)
{
	sim_init_layout(sim, 2, 1, 4, 204);
	sim->jitter = 0.02;
	sim->blocking = true;
}

/* A checkpoint on rank 0 that turns into a hang; a mismatch; a rank that is gone; the end. */
static void turn_stall(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	const uint64_t data = sim->comm[4].id;

	(void)detect;
	if (frame == 25) {
		sim_stick(sim, data, 0);
		for (uint32_t i = 1; i < 8; i += 2) {
			/* The other half meets in the second group; its rank 1 waits for rank 0. */
			sim->rank[i].inside_comm = i == 1 ? sim->comm[0].id : sim->comm[5].id;
			sim->rank[i].inside_number =
				i == 1 ? sim->comm[0].last + 1 : sim->comm[5].last + 1;
		}
		sim->rank[0].behind = 1;
		sim->rank[0].write = 64 << 20;
	}
	if (frame == 120) {
		sim_unstick(sim);
		sim->rank[0].write = 0;
	}
	if (frame == 140) {
		sim_stick(sim, data, UINT32_MAX);
		for (uint32_t i = 1; i < 8; i += 2) {
			sim->rank[i].inside_comm = sim->comm[5].id;
			sim->rank[i].inside_number = sim->comm[5].last;
		}
		sim->rank[4].inside_op = 5;
		sim->rank[4].inside_count = 12;
		sim->rank[4].inside_type = 3;
	}
	if (frame == 155)
		sim_unstick(sim);
	if (frame == 165) {
		sim_stick(sim, data, 2);
		sim->rank[2].ended = true;
		sim->rank[2].ended_ns = sim->now_ns;
	}
	if (frame == 190)
		for (uint32_t i = 0; i < 8; i++)
			sim->rank[i].ended = true;
}

/* T1: who sits in a synchronising call is inside what it enqueued last. */
static void turn_stall_t1(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 0)
		for (uint32_t i = 0; i < 8; i++)
			sim->rank[i].tier = NT_FRAME_T1;
	if (frame != 25 && frame != 90 && frame != 120)
		return;
	sim_unstick(sim);
	if (frame == 90)
		return;
	sim_stick(sim, 0xa11, frame == 25 ? 6 : UINT32_MAX);
	for (uint32_t i = 0; i < 8; i++) {
		sim->rank[i].synchronising = sim->rank[i].in_call;
		sim->rank[i].in_call = false;
	}
	if (frame == 25)
		sim->rank[6].behind = 2;
}

/* All ranks change: garbage collection, then twice the work, which becomes normal; then a pause. */
static void turn_wide(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	for (uint32_t i = 0; i < 8; i++) {
		struct sim_rank *rank = &sim->rank[i];

		if (frame == 50) {
			rank->host += 25.0 * SIM_MS;
			rank->gc = 20.0 * SIM_MS;
		}
		if (frame == 75) {
			rank->host -= 25.0 * SIM_MS;
			rank->gc = 0.0;
		}
		if (frame == 100) {
			rank->host *= 2.0;
			rank->device *= 2.0;
		}
		if (frame == 230)
			rank->stuck = true;
		if (frame == 380)
			rank->stuck = false;
	}
	if (frame == 200)
		slow(sim, 3, 1.4);
	if (frame == 215)
		nt_detect_rebaseline(detect);
}

static void begin_halves(struct sim *sim)
{
	sim_init(sim, 6, 205);
	sim->jitter = 0.01;
	for (uint32_t i = 0; i < 3; i++)
		slow(sim, i, 1.3);
}

static void turn_halves(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 45)
		for (uint32_t i = 0; i < 3; i++)
			slow(sim, i, 1.0 / 1.3);
	if (frame == 90)
		for (uint32_t i = 2; i < 5; i++)
			slow(sim, i, 1.4);
	if (frame == 110)
		for (uint32_t i = 2; i < 5; i++)
			slow(sim, i, 1.0 / 1.4);
}

static void begin_pair(struct sim *sim)
{
	sim_init(sim, 2, 206);
	sim->jitter = 0.01;
	slow(sim, 1, 1.25);
}

static void turn_pair(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 50)
		slow(sim, 0, 1.3);
	if (frame == 70)
		slow(sim, 0, 1.0 / 1.3);
}

static void begin_four(struct sim *sim)
{
	sim_init(sim, 4, 207);
	sim->jitter = 0.01;
	slow(sim, 2, 1.2);
}

static void turn_four(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30)
		slow(sim, 2, 1.0 / 1.2);
	if (frame == 70)
		slow(sim, 1, 1.15);
	if (frame == 90)
		slow(sim, 1, 1.0 / 1.15);
}

static void begin_uneven(struct sim *sim)
{
	sim_init(sim, 8, 208);
	sim->jitter = 0.01;
}

static void turn_uneven(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	static const uint8_t order[] = {3, 1, 6, 0, 5, 2, 7, 4, 1, 5};

	(void)detect;
	for (uint32_t i = 0; i < 8; i++)
		sim->rank[i].device = 70.0 * SIM_MS;
	if (frame < 70)
		slow(sim, order[frame % 10], 1.5);
}

/* Messages get lost, a rank comes late, an agent falls silent, a rank's number is a guess. */
static void turn_lossy(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	for (uint32_t i = 0; i < 8; i++) {
		sim->rank[i].absent = sim_uniform(sim) < 0.05;
		sim->rank[i].known = i != 6;
	}
	sim->rank[7].absent = frame < 10;
	sim->rank[1].silent = frame >= 70 && frame < 90;
	sim->completeness = 0.95;
	if (frame == 40)
		slow(sim, 3, 1.4);
	if (frame == 60)
		slow(sim, 6, 1.6);
	if (frame == 100)
		slow(sim, 3, 1.0 / 1.4);
}

/* No GPU: the thread's time tells; a library that spins while it waits. */
static void begin_cpu(struct sim *sim)
{
	sim_init(sim, 6, 209);
	sim->jitter = 0.02;
	sim->blocking = true;
	for (uint32_t i = 0; i < 6; i++) {
		sim->rank[i].no_gpu = true;
		sim->rank[i].host = 80.0 * SIM_MS;
		sim->rank[i].device = 0.0;
		sim->rank[i].on_cpu = 78.0 * SIM_MS;
	}
}

static void turn_cpu(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 30) {
		sim->rank[1].host *= 1.3;
		sim->rank[1].on_cpu *= 1.3;
	}
	if (frame == 45) {
		sim->rank[1].host /= 1.3;
		sim->rank[1].on_cpu /= 1.3;
	}
	if (frame == 70)
		sim->rank[4].host *= 1.4;
	if (frame == 90)
		sim->rank[4].faults = 1000;
}

/* Three ranks of a pipeline: each is held against its own past alone. */
static void begin_pipeline(struct sim *sim)
{
	sim_init_layout(sim, 1, 3, 1, 210);
	sim->jitter = 0.02;
	slow(sim, 2, 1.3);
}

static void turn_pipeline(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 40)
		slow(sim, 1, 1.25);
	if (frame == 60)
		slow(sim, 1, 0.8);
	if (frame == 90)
		for (uint32_t i = 0; i < 3; i++)
			slow(sim, i, 1.5);
}

/* Hashes part for good; a second job-mate parts with them and comes back. */
static void turn_hashes(struct sim *sim, struct nt_detect *detect, uint32_t frame)
{
	(void)detect;
	if (frame == 20) {
		sim->rank[2].salt = 9;
		sim->rank[2].odd_count = 77;
	}
	if (frame == 22)
		sim->rank[2].odd_count = 0;
	if (frame == 35)
		sim->rank[2].salt = 0;
	if (frame == 40) {
		sim->rank[5].salt = sim->rank[6].salt = 4;
		sim->rank[5].odd_op = sim->rank[6].odd_op = 2;
	}
	if (frame == 50)
		sim->rank[5].salt = sim->rank[6].salt = 0;
}

static const struct life lives[] = {
	{"data", 150, begin_data, turn_data},
	{"classes", 150, begin_data, turn_classes},
	{"t1", 160, begin_t1, turn_t1},
	{"layout", 180, begin_layout, turn_layout},
	{"network", 160, begin_network, turn_network},
	{"stall", 195, begin_stall, turn_stall},
	{"stall-t1", 180, begin_stall, turn_stall_t1},
	{"wide", 400, begin_data, turn_wide},
	{"halves", 160, begin_halves, turn_halves},
	{"pair", 110, begin_pair, turn_pair},
	{"four", 130, begin_four, turn_four},
	{"uneven", 120, begin_uneven, turn_uneven},
	{"lossy", 160, begin_data, turn_lossy},
	{"cpu", 110, begin_cpu, turn_cpu},
	{"pipeline", 130, begin_pipeline, turn_pipeline},
	{"hashes", 70, begin_data, turn_hashes},
};

/* ---- what is said ------------------------------------------------------------------------------ */

static double since(const struct sim *sim, uint64_t ns)
{
	(void)sim;
	return ns ? (double)(ns - 1700000000ull * SIM_SECOND) / 1e9 : 0.0;
}

static void tell_culprit(FILE *out, const struct nt_finding_culprit *culprit)
{
	(void)fprintf(out, "    %s rank %u node %d comm %llx peers",
		      nt_culprit_kind_name(culprit->kind), culprit->rank, (int)culprit->node,
		      (unsigned long long)culprit->comm);
	for (size_t i = 0; i < culprit->peer_count; i++)
		(void)fprintf(out, " %u", culprit->peers[i]);
	(void)fprintf(out, " ranks");
	for (size_t i = 0; i < culprit->rank_count; i++)
		(void)fprintf(out, " %u", culprit->ranks[i]);
	(void)fprintf(out, "\n");
}

static void tell_finding(FILE *out, const struct sim *sim, uint32_t frame,
			 const struct nt_finding *finding)
{
	(void)fprintf(out, "%3u %s %s %s: %s, %016llx version %llu\n", frame,
		      nt_incident_state_name(finding->state), nt_severity_name(finding->severity),
		      nt_class_name(finding->class), finding->cause ? finding->cause : "-",
		      (unsigned long long)finding->id, (unsigned long long)finding->version);
	(void)fprintf(out,
		      "    since %.3f until %.3f seen %.3f, x%.3f, %.4g GPU hours, T%d, sure %.3f, "
		      "complete %.2f\n",
		      since(sim, finding->since_ns), since(sim, finding->until_ns),
		      since(sim, finding->seen_ns), finding->slowdown, finding->gpu_hours,
		      finding->tier - 1, finding->confidence, finding->completeness);
	for (size_t i = 0; i < finding->culprits; i++)
		tell_culprit(out, &finding->culprit[i]);
	for (size_t i = 0; i < finding->evidences; i++) {
		const struct nt_finding_evidence *row = &finding->evidence[i];

		(void)fprintf(out, "    %s: %.4g %s, else %.4g, +-%.3g, by %s in %u\n", row->what,
			      row->value, row->unit, row->peers, row->width, row->method,
			      row->windows);
	}
}

static void tell_ranks(FILE *out, const struct nt_detect *detect, const struct sim *sim)
{
	for (uint32_t i = 0; i < sim->ranks && i < 8; i++) {
		struct nt_rank_view view;

		if (!nt_detect_rank(detect, i, &view))
			continue;
		(void)fprintf(
			out,
			"    rank %u T%d own %.4g/%.4g host %.4g/%.4g kpi %.3f +-%.4f sum %.2f "
			"of %.2f\n",
			i, view.tier - 1, view.own_ns / 1e6, view.own_peers_ns / 1e6,
			view.host_ns / 1e6, view.host_peers_ns / 1e6, view.kpi, view.width,
			view.cusum, view.threshold);
	}
}

static struct nt_rules hasty_rules(void)
{
	struct nt_rules rules = nt_rules_default();

	rules.resolve_min_ns = 6ull * SIM_SECOND;
	rules.new_normal_ns = 40ull * SIM_SECOND;
	rules.silence_floor_ns = 50ull * SIM_SECOND;
	rules.slow_host_ns = 30ull * SIM_SECOND;
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

static char *lead(const struct life *life, bool saved)
{
	const struct nt_rules rules = hasty_rules();
	struct nt_detect *detect = NULL;
	char *text = NULL;
	size_t size = 0;
	struct sim sim;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(nt_detect_new(&rules, 7, 3, &detect), 0);
	life->begin(&sim);
	for (uint32_t frame = 0; frame < life->frames; frame++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		life->turn(&sim, detect, frame);
		if (saved && frame % 3 == 0)
			detect = reload(&rules, detect);
		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		for (size_t i = 0; i < findings; i++)
			tell_finding(out, &sim, frame, &finding[i]);
		if (frame % 25 != 24)
			continue;
		(void)fprintf(out, "%3u step %.4g ms\n", frame, nt_detect_step_ns(detect) / 1e6);
		tell_ranks(out, detect, &sim);
		nt_detect_open(detect, &finding, &findings);
		for (size_t i = 0; i < findings; i++)
			tell_finding(out, &sim, frame, &finding[i]);
	}
	nt_detect_free(detect);
	sim_free(&sim);
	assert_int_equal(fclose(out), 0);
	return text;
}

static char *read_all(const char *path)
{
	FILE *in = fopen(path, "r");
	char *text = NULL;
	long size;

	if (!in)
		return NULL;
	assert_int_equal(fseek(in, 0, SEEK_END), 0);
	size = ftell(in);
	assert_true(size >= 0);
	rewind(in);
	text = calloc(1, (size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)size, in), size);
	assert_int_equal(fclose(in), 0);
	return text;
}

/* Says where two texts part, as nobody finds it in two pages. */
static void assert_same_text(const char *name, const char *got, const char *want)
{
	const char *got_line = got, *want_line = want;
	size_t line = 1;

	for (; *got && *got == *want; got++, want++) {
		if (*got != '\n')
			continue;
		got_line = got + 1;
		want_line = want + 1;
		line++;
	}
	if (*got == *want)
		return;
	print_error("%s: line %zu\ngot:  %.*s\nwant: %.*s\n", name, line,
		    (int)strcspn(got_line, "\n"), got_line, (int)strcspn(want_line, "\n"),
		    want_line);
	fail();
}

static void the_lives_of_jobs_are_told_as_written_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
		char path[128];
		char *got = lead(&lives[i], false), *want;

		(void)snprintf(path, sizeof(path), "tests/golden/detect/%s.txt", lives[i].name);
		if (getenv("NT_GOLDEN_UPDATE")) {
			FILE *out = fopen(path, "w");

			assert_non_null(out);
			assert_true(fputs(got, out) >= 0);
			assert_int_equal(fclose(out), 0);
		}
		want = read_all(path);
		assert_non_null(want);
		assert_same_text(lives[i].name, got, want);
		free(got);
		free(want);
	}
}

static void a_life_that_is_saved_and_loaded_all_the_time_is_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
		char *plain = lead(&lives[i], false), *saved = lead(&lives[i], true);

		assert_same_text(lives[i].name, saved, plain);
		free(plain);
		free(saved);
	}
}

/* Leads eight ranks until what `turn` does to them, from frame 30 to frame 70, has resolved. */
static void lead_until_resolved(void (*begin)(struct sim *sim),
				void (*turn)(struct sim *sim, bool on),
				struct nt_finding *ret_fault, struct nt_finding *ret_resolved,
				bool saved)
{
	const struct nt_rules rules = hasty_rules();
	struct nt_detect *detect = NULL;
	bool resolved = false;
	struct sim sim;

	assert_int_equal(nt_detect_new(&rules, 7, 3, &detect), 0);
	begin(&sim);
	for (uint32_t frame = 0; frame < 200 && !resolved; frame++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		if (frame == 30 || frame == 70)
			turn(&sim, frame == 30);
		if (saved)
			detect = reload(&rules, detect);
		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		for (size_t i = 0; i < findings && !resolved; i++) {
			resolved = finding[i].state == NT_INCIDENT_RESOLVED;
			*ret_resolved = finding[i];
		}
		if (resolved)
			assert_in_range(frame, 75, 199);
		if (frame != 69)
			continue;
		nt_detect_open(detect, &finding, &findings);
		assert_int_equal(findings, 1);
		*ret_fault = finding[0];
	}
	assert_true(resolved);
	/* Only what lies in them is looked at, not what they point to. */
	ret_fault->culprit = ret_resolved->culprit = NULL;
	nt_detect_free(detect);
	sim_free(&sim);
}

static void assert_near(double got, double want, double part)
{
	if (got >= want * (1.0 - part) && got <= want * (1.0 + part))
		return;
	print_error("got %g, want %g\n", got, want);
	fail();
}

static void slow_down_a_rank(struct sim *sim, bool on)
{
	slow(sim, 3, on ? 1.5 : 1.0 / 1.5);
}

static void slow_down_the_network(struct sim *sim, bool on)
{
	sim->comm[0].transfer *= on ? 3.0 : 1.0 / 3.0;
}

static void slow_down_all(struct sim *sim, bool on)
{
	for (uint32_t i = 0; i < sim->ranks; i++)
		slow(sim, i, on ? 1.5 : 1.0 / 1.5);
}

static void what_has_resolved_is_told_as_it_was_while_it_lasted(void **state)
{
	static const struct {
		void (*begin)(struct sim *sim);
		void (*turn)(struct sim *sim, bool on);
		enum nt_class class;
	} cases[] = {
		{begin_data, slow_down_a_rank, NT_CLASS_COMPUTE},
		{begin_network, slow_down_the_network, NT_CLASS_NETWORK},
		{begin_data, slow_down_all, NT_CLASS_JOB_WIDE},
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_finding fault, resolved;

		lead_until_resolved(cases[i / 2].begin, cases[i / 2].turn, &fault, &resolved,
				    i % 2);
		assert_int_equal(fault.class, cases[i / 2].class);
		assert_int_equal(resolved.class, fault.class);
		assert_int_equal(resolved.id, fault.id);
		assert_true(fault.slowdown > 1.1);
		assert_near(resolved.slowdown, fault.slowdown, 0.02);
		/* The time of the recovery is not charged. */
		assert_near(resolved.gpu_hours, fault.gpu_hours, 0.05);
		assert_int_equal(resolved.evidences, fault.evidences);
		for (size_t j = 0; j < fault.evidences; j++) {
			assert_ptr_equal(resolved.evidence[j].what, fault.evidence[j].what);
			assert_near(resolved.evidence[j].value, fault.evidence[j].value, 0.03);
			assert_near(resolved.evidence[j].peers, fault.evidence[j].peers, 0.03);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lives_of_jobs_are_told_as_written_down),
		cmocka_unit_test(a_life_that_is_saved_and_loaded_all_the_time_is_the_same),
		cmocka_unit_test(what_has_resolved_is_told_as_it_was_while_it_lasted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
