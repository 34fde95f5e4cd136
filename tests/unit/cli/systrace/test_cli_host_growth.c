/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stalls of the host that are the smaller part of a gap. */
#include "tests/unit/cli/systrace_files.h"

#include "cli/replay/replay.h"
#include "cli/systrace/read_systrace_impl.h"
#include "common/base/buf.h"

enum {
	RANKS = 8,
	STEPS = 80,
	SLOW = 5,
	FROM = 40,
};

static const uint64_t ms = 1000000;

/* The growth of the part before the launch is the host's if it exceeds that of the rest. */
static void the_part_that_grew_gives_the_class(void **state)
{
	static const struct {
		double early_ms, rest_ms;
		uint64_t host_ms;
	} row[] = {
		{42, 50, 40}, /* the host stalls */
		{20, 75, 0}, /* the device is slow, and the host follows it */
		{30, 65, 28}, /* both */
		{3, 50, 0}, /* jitter of the host */
		{0, 50, 0}, /* it launches sooner */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct nt_frame_rank rank[4] = {0};
		struct nt_systrace_part part[4];

		for (size_t j = 0; j < 4; j++) {
			part[j] = (struct nt_systrace_part){.at = j,
							    .steps = 2,
							    .early_ns = (double)(2 * ms),
							    .rest_ns = (double)(50 * ms)};
			rank[j].own_ns = rank[j].own_blocked_ns = 300 * ms;
		}
		part[2].early_ns = row[i].early_ms * (double)ms;
		part[2].rest_ns = row[i].rest_ms * (double)ms;
		assert_int_equal(nt_systrace_name_growth(part, 4, rank), 0);
		assert_int_equal(rank[2].host_ns, 2 * row[i].host_ms * ms);
		assert_int_equal(rank[2].own_blocked_ns + rank[2].host_ns, rank[2].own_ns);
		assert_int_equal(rank[0].host_ns, 0);
		/* Two ranks are no majority. */
		rank[2].host_ns = 0;
		assert_int_equal(nt_systrace_name_growth(part, 2, rank), 0);
		assert_int_equal(rank[2].host_ns, 0);
	}
}

static void put_call(struct nt_buf *buf, int id, const char *name, uint64_t launched,
		     uint64_t start, uint64_t end)
{
	const unsigned long long time[] = {launched - 5000, launched, start, end};

	for (int i = 0; i < 4; i++)
		assert_int_equal(nt_buf_printf(buf, "1,%d,1,%s,%d,%llu,0,0,1,1\n", id,
					       i ? "" : name, i / 2, time[i]),
				 0);
}

/*
 * Steps of two sums, 48 ms and 60 ms of work before them. The second work goes on during the first
 * sum. From one step on, rank SLOW's work begins later by `device` (its device is slow) or by `host`
 * (it is launched later): the others wait in the first sum, and less of their second work shows.
 */
static void put_rank(int rank, uint64_t host, uint64_t device)
{
	nt_autobuf struct nt_buf buf = {0};
	uint64_t at = 1749084000000 * ms;

	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < STEPS; i++) {
		const uint64_t late = i < FROM ? 0 : host + device;
		const uint64_t first = 48 * ms + (uint64_t)(i * i % 13) * ms / 10;
		const uint64_t met = at + first + late * ms, done = met + 66 * ms;
		const bool slow = rank == SLOW && late;

		put_call(&buf, 2 * i + 1, "comm:HcclAllReduce!world!fp32!1000000",
			 slow && host ? at + host * ms : at - ms, slow ? met : at + first,
			 met + 3 * ms);
		put_call(&buf, 2 * i + 2, "comm:HcclAllReduce!world!fp32!1000", at - ms / 2,
			 slow || !late ? met + 63 * ms : at + first + 63 * ms, done);
		at = done;
	}
	put_bytes(rank, buf.data, buf.len);
}

static void judge(uint64_t host, uint64_t device, const char *class)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	struct nt_trace_error error = {0};
	const char *paths[RANKS];

	for (int rank = 0; rank < RANKS; rank++) {
		put_rank(rank, host, device);
		paths[rank] = path[rank];
	}
	assert_int_equal(nt_trace_read_systrace(paths, RANKS, &trace, &error), 0);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, class);
	assert_int_equal(judgement->judged[0].incident.culprit[0].rank, SLOW);
}

static void a_stall_below_half_of_the_gap_is_the_hosts(void **state)
{
	(void)state;
	judge(30, 0, "host");
	judge(0, 30, "compute");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_part_that_grew_gives_the_class),
		cmocka_unit_test_teardown(a_stall_below_half_of_the_gap_is_the_hosts, remove_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
