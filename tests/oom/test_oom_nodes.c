/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scores of nodes without memory: what fails, fails whole. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "aggregator/group/node_incident.h"
#include "common/system/clock.h"
#include "engine/nodes/fleet.h"
#include "engine/nodes/node_cause.h"
#include "tests/oom/oom.h"

enum {
	NODES = 5,
	MINUTES = 4,
};

static int take_minutes(struct nt_fleet *fleet)
{
	int r = 0;

	for (uint64_t i = 0; i < 2 * MINUTES && r == 0; i++)
		for (uint64_t n = 0; n < NODES && r == 0; n++) {
			struct nt_metric_value metric[] = {{"cpu_busy", 0.5},
							   {"tcp_retransmits", 3.0 * (double)i}};
			const char *job[] = {"one", "two"};
			char name[16];
			const struct nt_message message = {
				.agent = name,
				.boot = 1,
				.seq = i + 1,
				.real_ns = 1700000040 * NT_SECOND + i * NT_MINUTE / 2,
				.boot_ns = NT_HOUR + i * NT_MINUTE / 2,
				.body = NT_BODY_NODE,
				.node = {.node = name,
					 .metric = metric,
					 .metrics = 2,
					 .job = job,
					 .jobs = 1 + n % 2,
					 .boot_id = "boot",
					 .kernel = "kernel"},
			};

			(void)snprintf(name, sizeof(name), "node-%d", (int)n);
			r = nt_fleet_take(fleet, &message, 0);
			if (r == 0)
				r = nt_fleet_turn(fleet, SIZE_MAX);
		}
	return r;
}

static int move_fleet(struct nt_fleet *from, struct nt_fleet *to)
{
	int r = 0;

	for (uint32_t i = 0; i <= NT_FLEET_PORTIONS && r >= 0; i++) {
		nt_autobuf struct nt_buf buf = {0};

		r = i < NT_FLEET_PORTIONS ? nt_fleet_save_portion(from, 0, i, &buf)
					  : nt_fleet_save(from, 0, &buf);
		if (r >= 0)
			r = i < NT_FLEET_PORTIONS ? nt_fleet_load_portion(to, 0, buf.data, buf.len)
						  : nt_fleet_load(to, 0, buf.data, buf.len);
	}
	return r;
}

static int run_fleet(void *data)
{
	const struct nt_fleet_options options = nt_fleet_options_default();
	nt_auto(nt_fleet) struct nt_fleet *fleet = NULL, *other = NULL;
	int r = nt_fleet_new(&options, NULL, &fleet);

	(void)data;
	if (r == 0)
		r = take_minutes(fleet);
	if (r == 0)
		r = nt_fleet_new(&options, NULL, &other);
	if (r == 0)
		r = move_fleet(fleet, other);
	if (r == 0)
		assert_non_null(nt_fleet_find(other, "node-1")->scorer);
	return r;
}

static void a_fleet_scores_and_moves(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(run_fleet, NULL) > 100);
}

static int join_alarm(void *data)
{
	const struct nt_fleet_options options = nt_fleet_options_default();
	struct nt_wire_evidence evidence = {
		.what = "tcp_retransmits", .unit = "segments/s", .value = 40, .peers = 1};
	struct nt_culprit culprit = {.kind = "node", .node = "node-1"};
	struct nt_wire_incident incident = {
		.id = "1",
		.state = "firing",
		.class = "node",
		.cause = "",
		.summary = "it is late",
		.culprit = &culprit,
		.culprits = 1,
		.evidence = &evidence,
		.evidences = 1,
	};
	const struct nt_node_job job = {.name = "job", .namespace = "", .key = "one"};
	nt_auto(nt_fleet) struct nt_fleet *fleet = NULL;
	nt_autoarena struct nt_arena arena = {0};
	struct nt_wire_incident described;
	int r = nt_fleet_new(&options, NULL, &fleet);

	(void)data;
	if (r == 0)
		r = take_minutes(fleet);
	if (r < 0)
		return r;
	nt_fleet_release_shard(fleet, 0);
	r = nt_fleet_note_alarm(fleet, &incident);
	if (r == 0)
		r = nt_node_incident_describe(fleet, nt_fleet_find(fleet, "node-1"), &job,
					      NT_FLEET_ALARM_RAISED, NT_HOUR, &arena, &described);
	incident.class = "host";
	if (r == 0)
		r = nt_node_cause_join(fleet, &incident, &arena);
	if (r >= 0)
		assert_int_equal(incident.evidences, 2);
	return r < 0 ? r : 0;
}

static void an_alarm_joins_a_verdict(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(join_alarm, NULL) > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fleet_scores_and_moves),
		cmocka_unit_test(an_alarm_joins_a_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
