/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What each program costs: its instructions as compiled, and those that the verifier of this kernel
 * walked through, against tests/bpf/budget.txt. A change must be meant: NT_BUDGET=write records it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "agent/probes/link.h"
#include "call.skel.h"
#include "session.skel.h"

static const char budget_path[] = "tests/bpf/budget.txt";

enum {
	PROGRAMS_MAX = 32,
	NAME_BYTES = 64,
	LINE_BYTES = 256,
	INSN_BYTES = 8,
	/* Another compiler or kernel of the same make differs by a little. */
	COMPILED_PERCENT = 5,
	VERIFIED_PERCENT = 25,
	EXIT_SKIP = 77,
};

struct cost {
	char name[NAME_BYTES];
	unsigned int compiled, verified;
};

static struct cost measured[PROGRAMS_MAX], budget[PROGRAMS_MAX];
static size_t measured_count, budget_count;

static void measure(struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		struct bpf_prog_info info = {0};
		uint32_t len = sizeof(info);
		struct cost *cost = &measured[measured_count];

		assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len), 0);
		assert_true(measured_count++ < PROGRAMS_MAX);
		(void)snprintf(cost->name, sizeof(cost->name), "%s", bpf_program__name(program));
		cost->compiled = (unsigned int)bpf_program__insn_cnt(program);
		cost->verified = info.verified_insns;
	}
}

static void set_type(struct bpf_object *object, int type)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object) assert_int_equal(
		bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)type), 0);
}

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* False: not even the plain programs load, as without root. */
static bool measure_all(void)
{
	struct call_bpf *call = call_bpf__open_and_load();
	struct session_bpf *session;

	if (!call)
		return false;
	measure(call->obj);
	call_bpf__destroy(call);
	session = session_bpf__open();
	assert_non_null(session);
	set_type(session->obj, NT_UPROBE_SESSION);
	if (session_bpf__load(session) == 0)
		measure(session->obj);
	session_bpf__destroy(session);
	return true;
}

/* "name compiled verified", and comments. */
static void read_budget(void)
{
	FILE *file = fopen(budget_path, "re");
	char line[LINE_BYTES];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && budget_count < PROGRAMS_MAX) {
		struct cost *cost = &budget[budget_count];
		unsigned int *number[] = {&cost->compiled, &cost->verified};
		size_t at = strcspn(line, " \n");

		if (line[0] == '#' || at == 0 || at >= sizeof(cost->name))
			continue;
		memcpy(cost->name, line, at);
		for (int i = 0; i < 2; i++)
			for (at += strspn(line + at, " "); line[at] >= '0' && line[at] <= '9'; at++)
				*number[i] = *number[i] * 10 + (unsigned int)(line[at] - '0');
		budget_count++;
	}
	(void)fclose(file);
}

static int write_budget(void)
{
	FILE *file = fopen(budget_path, "we");

	if (!file)
		return 1;
	(void)fputs(
		"# SPDX-License-Identifier: GPL-3.0-or-later\n"
		"# Instructions per program: as compiled, and as walked through by the verifier.\n"
		"# Written by NT_BUDGET=write; compared by tests/bpf/test_budget.c.\n",
		file);
	for (size_t i = 0; i < measured_count; i++)
		(void)fprintf(file, "%s %u %u\n", measured[i].name, measured[i].compiled,
			      measured[i].verified);
	return fclose(file) == 0 ? 0 : 1;
}

static const struct cost *budget_of(const char *name)
{
	for (size_t i = 0; i < budget_count; i++)
		if (strcmp(budget[i].name, name) == 0)
			return &budget[i];
	fail_msg("%s has no budget: NT_BUDGET=write", name);
	return NULL;
}

static void no_program_is_longer_than_its_budget(void **state)
{
	(void)state;
	for (size_t i = 0; i < measured_count; i++) {
		const struct cost *cost = &measured[i], *limit = budget_of(cost->name);

		print_message("# %s: %u compiled (%u), %u verified (%u)\n", cost->name,
			      cost->compiled, limit->compiled, cost->verified, limit->verified);
		assert_in_range(cost->compiled, 1,
				limit->compiled * (100 + COMPILED_PERCENT) / 100);
		assert_in_range(cost->verified, 0,
				limit->verified * (100 + VERIFIED_PERCENT) / 100);
	}
}

/* A budget that is much too large bounds nothing. */
static void no_budget_is_far_from_its_program(void **state)
{
	(void)state;
	for (size_t i = 0; i < measured_count; i++) {
		const struct cost *cost = &measured[i], *limit = budget_of(cost->name);

		assert_true(cost->compiled >= limit->compiled * (100 - COMPILED_PERCENT) / 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_program_is_longer_than_its_budget),
		cmocka_unit_test(no_budget_is_far_from_its_program),
	};

	(void)libbpf_set_print(silent);
	if (!measure_all()) {
		printf("skip: bpf: programs cannot be loaded here\n");
		return EXIT_SKIP;
	}
	if (getenv("NT_BUDGET"))
		return write_budget();
	read_budget();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
