/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whole lives of jobs, and what is said of them, word by word, as tests/golden/detect/NAME.txt has it.
 * Where a rule changes on purpose, NT_GOLDEN_UPDATE=1 writes the files anew: read the difference.
 * Each life is led twice, the second time saved and loaded again and again.
 */
#include "tests/unit/detect/detect_lives.h"

#include <stdio.h>

static double since(const struct sim *sim, uint64_t ns)
{
	(void)sim;
	return ns ? (double)(ns - 1700000000ull * SIM_SECOND) / 1e9 : 0.0;
}

static void print_culprit(FILE *out, const struct nt_finding_culprit *culprit)
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

static void print_finding(FILE *out, const struct sim *sim, uint32_t frame,
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
		print_culprit(out, &finding->culprit[i]);
	for (size_t i = 0; i < finding->evidences; i++) {
		const struct nt_finding_evidence *row = &finding->evidence[i];

		(void)fprintf(out, "    %s: %.4g %s, else %.4g, +-%.3g, by %s in %u\n", row->what,
			      row->value, row->unit, row->peers, row->width, row->method,
			      row->windows);
	}
}

static void print_ranks(FILE *out, const struct nt_detect *detect, const struct sim *sim)
{
	for (uint32_t i = 0; i < sim->ranks && i < 8; i++) {
		struct nt_detect_rank_view view;

		if (!nt_detect_rank(detect, i, &view))
			continue;
		(void)fprintf(
			out,
			"    rank %u T%d own %.4g/%.4g host %.4g/%.4g kpi %.3f +-%.4f sum %.2f "
			"of %.2f\n",
			i, view.tier - 1, view.own_ns / 1e6, view.own_peers_ns / 1e6,
			view.host_ns / 1e6, view.host_peers_ns / 1e6, view.peer_deviation,
			view.width, view.cusum, view.threshold);
	}
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
			print_finding(out, &sim, frame, &finding[i]);
		if (frame % 25 != 24)
			continue;
		(void)fprintf(out, "%3u step %.4g ms\n", frame, nt_detect_step_ns(detect) / 1e6);
		print_ranks(out, detect, &sim);
		nt_detect_open(detect, &finding, &findings);
		for (size_t i = 0; i < findings; i++)
			print_finding(out, &sim, frame, &finding[i]);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lives_of_jobs_are_told_as_written_down),
		cmocka_unit_test(a_life_that_is_saved_and_loaded_all_the_time_is_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
