/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single calls of ranks at level L1 become records with the tags of their rank. */
#include <errno.h>

#include "agent/tracker/detail_log.h"
#include "tests/unit/agent/agent_job.h"

enum {
	OTHER = 101,
	RECORDS = 1 << 16,
	COMM = 0x5000,
};

static struct {
	struct nt_detail_call record[RECORDS];
	char name[RECORDS][32];
	uint64_t word[RECORDS][NT_DETAIL_LOG_WORDS];
	size_t records, messages;
	char key[128], job[128], pod[64], node[32];
	struct nt_rank_id rank;
	uint64_t seen[NT_DETAIL_KIND_END], lost[NT_DETAIL_KIND_END];
	uint32_t level;
	double granted;
} got;

static void take(const char *key, const struct nt_detail *detail)
{
	uint64_t before = 0;

	got.messages++;
	got.rank = detail->rank;
	got.level = detail->level;
	got.granted = detail->granted;
	(void)snprintf(got.key, sizeof(got.key), "%s", key);
	(void)snprintf(got.job, sizeof(got.job), "%s", detail->rank.job);
	(void)snprintf(got.pod, sizeof(got.pod), "%s", detail->rank.pod);
	(void)snprintf(got.node, sizeof(got.node), "%s", detail->rank.node);
	assert_true(detail->records <= NT_DETAIL_LOG_RECORDS);
	assert_true(detail->start_boot_ns <= detail->end_boot_ns);
	for (size_t i = 0; i < detail->records && got.records < RECORDS; i++) {
		assert_true(detail->record[i].entry_boot_ns >= before);
		before = detail->record[i].entry_boot_ns;
		got.record[got.records] = detail->record[i];
		for (size_t j = 0; j < detail->record[i].words; j++)
			got.word[got.records][j] = detail->record[i].word[j];
		(void)snprintf(got.name[got.records++], sizeof(got.name[0]), "%s",
			       detail->record[i].call);
	}
	for (size_t i = 0; i < detail->counts; i++) {
		got.seen[detail->count[i].kind] += detail->count[i].seen;
		got.lost[detail->count[i].kind] += detail->count[i].lost;
	}
}

static size_t count_of(const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < got.records; i++)
		count += strcmp(got.name[i], name) == 0;
	return count;
}

static struct nt_tracker_detail_stats stats_of(const struct node *node)
{
	struct nt_tracker_stats stats;

	nt_tracker_stats(node->tracker, &stats);
	return stats.detail;
}

/* A rank of NCCL that has sent a window, and so has a key. */
static void start(struct node *node)
{
	memset(&got, 0, sizeof(got));
	node_start(node);
	node->take_detail = take;
	ENVIRON(node, PID, "RANK=1\0WORLD_SIZE=2\0MASTER_ADDR=h\0MASTER_PORT=1\0");
	node_map(node, PID, "/usr/lib/libnccl.so.2.28.9", NT_LIBRARY_NCCL, false);
	node_map(node, PID, "/usr/lib/libcudart.so.13", NT_LIBRARY_CUDART, false);
	nccl_init(node, PID, PID, COMM, 1, 2, 9);
	nccl_steps(node, PID, COMM, true, 40, 5 * MS);
	nt_tracker_tick(node->tracker, node->now_ns);
	assert_true(node->windows > 0);
}

static uint64_t start_ns_of(const struct node *node)
{
	return node->window[0].window.rank.start_boot_ns;
}

static int level(struct node *node, uint32_t to, uint32_t rate)
{
	int r = nt_tracker_set_level(node->tracker, PID, start_ns_of(node), to);

	nt_tracker_set_detail_rate(node->tracker, PID, rate, 0.5);
	return r;
}

static struct nt_event_detail launch(const struct node *node, uint32_t threshold)
{
	uint16_t row = 0;

	while (strcmp(nt_probe_row(row)->symbol, "cudaLaunchKernel") != 0)
		row++;
	return (struct nt_event_detail){
		.h = {.type = NT_EVENT_DETAIL,
		      .row = row,
		      .pid = PID,
		      .tid = PID,
		      .entry_ns = node->now_ns},
		.value = 0xf00,
		.threshold = threshold,
		.class = NT_DETAIL_LAUNCHES,
	};
}

static void there_are_no_records_at_level_0(void **state)
{
	struct node node;
	struct nt_event_detail event;

	(void)state;
	start(&node);
	assert_int_equal(got.messages, 0);
	event = launch(&node, NT_DETAIL_EACH);
	nt_tracker_detail_event(node.tracker, &event);
	assert_int_equal(stats_of(&node).unowned, 1);
	assert_int_equal(nt_tracker_set_level(node.tracker, PID, 1, 1), -ESRCH); /* another one */
	assert_int_equal(nt_tracker_set_level(node.tracker, OTHER, 1, 1), -ESRCH);
	nccl_steps(&node, PID, COMM, true, 10, 5 * MS);
	nt_tracker_drain(node.tracker, node.now_ns);
	assert_int_equal(got.messages, 0);
	node_stop(&node);
}

static void each_collective_is_one_record_with_the_tags_of_its_rank(void **state)
{
	struct node node;
	uint64_t number = 0;

	(void)state;
	start(&node);
	assert_int_equal(level(&node, 1, 4000), 0);
	nccl_steps(&node, PID, COMM, true, 60, 5 * MS);
	nt_tracker_tick(node.tracker, node.now_ns);
	assert_int_equal(got.messages, 1); /* a full one; the rest is younger than a second */
	nt_tracker_tick(node.tracker, node.now_ns + SECOND);
	assert_int_equal(got.messages, 2);
	assert_int_equal(count_of("ncclAllReduce"), 60);
	assert_int_equal(count_of("cudaStreamSynchronize"), 120);
	assert_int_equal(got.records, 180);
	for (size_t i = 0; i < got.records; i++) {
		const struct nt_detail_call *record = &got.record[i];

		assert_true(record->probability == 1);
		assert_int_equal(record->thread, PID);
		if (record->kind == NT_DETAIL_KIND_SYNC) {
			assert_true(record->return_boot_ns >= record->entry_boot_ns + 5 * MS);
			continue;
		}
		assert_int_equal(record->kind, NT_DETAIL_KIND_COMM);
		assert_int_equal(record->op, NT_OP_ALL_REDUCE);
		assert_int_equal(record->bytes, 4 << 20);
		assert_int_equal(record->return_boot_ns, 0);
		assert_true(record->comm != 0);
		assert_true(!number || record->number == number + 1);
		number = record->number;
	}
	assert_int_equal(number, 100);
	assert_string_equal(got.key, node.window[0].key);
	assert_string_equal(got.job, node.window[0].job);
	assert_string_equal(got.node, "n1");
	assert_int_equal(got.rank.rank, 1);
	assert_int_equal(got.rank.size, 2);
	assert_true(got.rank.rank_known);
	assert_int_equal(got.rank.pid, PID);
	assert_int_equal(got.level, 1);
	assert_true(got.granted == 0.5);
	assert_int_equal(got.seen[NT_DETAIL_KIND_COMM], 60);
	assert_int_equal(got.lost[NT_DETAIL_KIND_COMM], 0);
	node_stop(&node);
}

static void sampled_launches_keep_their_probability(void **state)
{
	struct node node;
	struct nt_detail_rates rates = {.of = {[NT_DETAIL_LAUNCHES] = {.seen = 1000, .lost = 7}}};

	(void)state;
	start(&node);
	assert_int_equal(level(&node, 1, 4000), 0);
	for (int i = 0; i < 300; i++) {
		struct nt_event_detail event = launch(&node, 0x3fffffff);

		nt_tracker_detail_event(node.tracker, &event);
		node.now_ns += MS;
	}
	nt_tracker_detail_rates(node.tracker, PID, &rates);
	rates.of[NT_DETAIL_LAUNCHES].seen = 1200;
	nt_tracker_detail_rates(node.tracker, PID, &rates);
	nt_tracker_drain(node.tracker, node.now_ns);
	assert_int_equal(count_of("cudaLaunchKernel"), 300);
	assert_true(got.record[0].probability == 0.25);
	assert_int_equal(got.record[0].kind, NT_DETAIL_KIND_LAUNCH);
	assert_int_equal(got.word[0][0], 0xf00);
	assert_int_equal(got.seen[NT_DETAIL_KIND_LAUNCH], 1200);
	assert_int_equal(got.lost[NT_DETAIL_KIND_LAUNCH], 7);
	assert_int_equal(stats_of(&node).lost, 7);
	node_stop(&node);
}

/* Of system events: the sum of 1 / probability and the lost ones are all that happened. */
static void events_without_room_are_counted_as_seen_and_lost(void **state)
{
	const struct nt_detail_call event = {.kind = NT_DETAIL_KIND_SCHED,
					     .call = "sched_out",
					     .thread = PID,
					     .probability = 0.5};
	struct node node;

	(void)state;
	start(&node);
	nt_tracker_detail_lost(node.tracker, PID, NT_DETAIL_KIND_SCHED, 1000); /* at level 0 */
	assert_int_equal(level(&node, 1, 4000), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(nt_tracker_detail(node.tracker, PID, &event, node.now_ns), 0);
	nt_tracker_detail_lost(node.tracker, PID, NT_DETAIL_KIND_SCHED, 40);
	nt_tracker_detail_lost(node.tracker, PID, NT_DETAIL_KIND_NET, 3);
	nt_tracker_detail_lost(node.tracker, PID + 1, NT_DETAIL_KIND_NET, 5);
	nt_tracker_drain(node.tracker, node.now_ns);
	assert_int_equal(count_of("sched_out"), 10);
	assert_int_equal(got.seen[NT_DETAIL_KIND_SCHED], 60);
	assert_int_equal(got.lost[NT_DETAIL_KIND_SCHED], 40);
	assert_int_equal(got.seen[NT_DETAIL_KIND_NET], 3);
	assert_int_equal(got.lost[NT_DETAIL_KIND_NET], 3);
	assert_int_equal(stats_of(&node).lost, 43);
	node_stop(&node);
}

static void a_post_has_its_queue_pair_opcode_and_requests(void **state)
{
	struct nt_event_detail event;
	struct node node;
	uint16_t row = 0;

	(void)state;
	start(&node);
	assert_int_equal(level(&node, 1, 4000), 0);
	while (nt_probe_row(row)->role != NT_ROLE_TRAFFIC)
		row++;
	event = launch(&node, NT_DETAIL_EACH);
	event.h.row = row;
	event.class = NT_DETAIL_POSTS;
	event.bytes = 4096;
	event.value = NT_DETAIL_POST(0xffffff, 0x1234, 64);
	nt_tracker_detail_event(node.tracker, &event);
	nt_tracker_drain(node.tracker, node.now_ns);
	assert_int_equal(count_of("ibv_post_send"), 1);
	assert_int_equal(got.record[0].kind, NT_DETAIL_KIND_RDMA);
	assert_int_equal(got.record[0].bytes, 4096);
	assert_int_equal(got.record[0].words, 3);
	assert_int_equal(got.word[0][0], 0xffffff);
	assert_int_equal(got.word[0][1], 0x1234);
	assert_int_equal(got.word[0][2], 64);
	node_stop(&node);
}

static void a_flood_of_collectives_is_sampled_at_the_rate(void **state)
{
	struct node node;
	double estimate = 0;

	(void)state;
	start(&node);
	assert_int_equal(level(&node, 1, 4000), 0);
	for (int i = 0; i < 100000; i++) { /* 20,000 a second; their part is 1,000 */
		nccl_reduce(&node, PID, PID, COMM, 1, STREAM + 1);
		node.now_ns += 50000;
		if (i % 2000 == 0)
			nt_tracker_tick(node.tracker, node.now_ns);
	}
	nt_tracker_drain(node.tracker, node.now_ns);
	assert_true(got.records > 4500 && got.records < 7500);
	for (size_t i = 0; i < got.records; i++)
		estimate += 1 / got.record[i].probability;
	estimate += (double)got.lost[NT_DETAIL_KIND_COMM];
	assert_int_equal(got.seen[NT_DETAIL_KIND_COMM], 100000);
	assert_true(estimate > 90000 && estimate < 110000);
	node_stop(&node);
}

static void other_sources_hand_in_calls_by_thread(void **state)
{
	uint64_t words[] = {0x51, 7};
	struct nt_detail_call call = {
		.kind = NT_DETAIL_KIND_RDMA,
		.call = "ibv_post_send",
		.thread = PID,
		.bytes = 65536,
		.probability = 0.5,
		.word = words,
		.words = 2,
	};
	struct node node;

	(void)state;
	start(&node);
	call.entry_boot_ns = call.return_boot_ns = node.now_ns;
	assert_int_equal(nt_tracker_detail(node.tracker, PID, &call, node.now_ns), -ESRCH);
	assert_int_equal(level(&node, 1, 4000), 0);
	assert_int_equal(nt_tracker_detail(node.tracker, OTHER, &call, node.now_ns), -ESRCH);
	assert_int_equal(nt_tracker_detail(node.tracker, PID, &call, node.now_ns), 0);
	nt_tracker_drain(node.tracker, node.now_ns);
	assert_int_equal(count_of("ibv_post_send"), 1);
	assert_true(got.record[0].probability == 0.5);
	assert_int_equal(got.record[0].bytes, 65536);
	assert_int_equal(got.record[0].words, 2);
	assert_int_equal(got.word[0][0], 0x51);
	node_stop(&node);
}

static void the_end_of_the_level_and_of_the_process_send_what_is_left(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	assert_int_equal(level(&node, 1, 4000), 0);
	nccl_reduce(&node, PID, PID, COMM, 1, STREAM);
	assert_int_equal(got.records, 0);
	assert_int_equal(level(&node, 0, 0), 0);
	assert_int_equal(got.records, 1);
	nccl_reduce(&node, PID, PID, COMM, 1, STREAM);
	assert_int_equal(level(&node, 2, 4000), 0);
	nccl_reduce(&node, PID, PID, COMM, 1, STREAM);
	nt_tracker_exited(node.tracker, PID, start_ns_of(&node), node.now_ns);
	assert_int_equal(got.records, 2);
	assert_int_equal(got.level, 2);
	node_stop(&node);
}

static void without_a_rate_calls_are_lost_and_counted(void **state)
{
	struct node node;

	(void)state;
	start(&node);
	assert_int_equal(level(&node, 1, 0), 0);
	nccl_reduce(&node, PID, PID, COMM, 1, STREAM);
	nt_tracker_drain(node.tracker, node.now_ns);
	assert_int_equal(got.records, 0);
	assert_int_equal(got.lost[NT_DETAIL_KIND_COMM], 1);
	assert_int_equal(stats_of(&node).lost, 1);
	node_stop(&node);
}

/* As many ranks as there is memory for, and some more: 16 in a process. */
static void logs_have_a_cap_on_their_memory(void **state)
{
	const uint32_t logs = (uint32_t)(NT_TRACKER_DETAIL_BYTES / nt_detail_log_bytes());
	const uint32_t processes = logs / NT_PROCESS_RANKS + 1;
	struct node node;

	(void)state;
	memset(&got, 0, sizeof(got));
	node_start(&node);
	node.take_detail = take;
	assert_true(logs > 256 && processes < NODE_PROCESSES);
	for (uint32_t pid = PID; pid < PID + processes; pid++) {
		ENVIRON(&node, pid, "RANK=1\0WORLD_SIZE=2\0MASTER_ADDR=h\0MASTER_PORT=1\0");
		node_map(&node, pid, "/usr/lib/libnccl.so.2.28.9", NT_LIBRARY_NCCL, false);
		for (uint32_t rank = 0; rank < NT_PROCESS_RANKS; rank++) {
			nccl_init(&node, pid, pid + 1000 * rank, COMM + 64 * rank, rank,
				  NT_PROCESS_RANKS, (uint8_t)pid);
			nccl_reduce(&node, pid, pid + 1000 * rank, COMM + 64 * rank, 1, STREAM);
		}
	}
	node.now_ns += 2 * SECOND;
	nt_tracker_tick(node.tracker, node.now_ns);
	for (uint32_t pid = PID; pid < PID + processes; pid++) {
		assert_int_equal(nt_tracker_set_level(node.tracker, pid, pid, 1), 0);
		nt_tracker_set_detail_rate(node.tracker, pid, 64000, 1);
		for (uint32_t rank = 0; rank < NT_PROCESS_RANKS; rank++)
			nccl_reduce(&node, pid, pid + 1000 * rank, COMM + 64 * rank, 1, STREAM);
	}
	assert_int_equal(stats_of(&node).over_cap, processes * NT_PROCESS_RANKS - logs);
	/* One that ends makes room. */
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	assert_int_equal(got.records, NT_PROCESS_RANKS);
	nccl_reduce(&node, PID + processes - 1, PID + processes - 1 + 15000, COMM + 64 * 15, 1,
		    STREAM);
	assert_int_equal(stats_of(&node).over_cap, processes * NT_PROCESS_RANKS - logs);
	node_stop(&node);
}

static void a_rank_without_a_key_has_no_records(void **state)
{
	struct node node;

	(void)state;
	memset(&got, 0, sizeof(got));
	node_start(&node);
	node.take_detail = take;
	node_map(&node, PID, "/usr/lib/libnccl.so.2.28.9", NT_LIBRARY_NCCL, false);
	nccl_reduce(&node, PID, PID, COMM, 1, STREAM);
	assert_int_equal(nt_tracker_set_level(node.tracker, PID, PID, 1), 0);
	nccl_reduce(&node, PID, PID, COMM, 1, STREAM);
	assert_int_equal(stats_of(&node).unowned, 1);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	assert_int_equal(got.messages, 0);
	node_stop(&node);
}

static void a_row_that_is_not_in_the_table_is_malformed(void **state)
{
	struct nt_event_detail event;
	struct nt_tracker_stats stats;
	struct node node;

	(void)state;
	start(&node);
	assert_int_equal(level(&node, 1, 4000), 0);
	event = launch(&node, 0);
	event.h.row = NT_ROWS_MAX;
	nt_tracker_detail_event(node.tracker, &event);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.malformed_events, 1);
	assert_int_equal(stats.detail.records, 0);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_no_records_at_level_0),
		cmocka_unit_test(each_collective_is_one_record_with_the_tags_of_its_rank),
		cmocka_unit_test(sampled_launches_keep_their_probability),
		cmocka_unit_test(events_without_room_are_counted_as_seen_and_lost),
		cmocka_unit_test(a_post_has_its_queue_pair_opcode_and_requests),
		cmocka_unit_test(a_flood_of_collectives_is_sampled_at_the_rate),
		cmocka_unit_test(other_sources_hand_in_calls_by_thread),
		cmocka_unit_test(the_end_of_the_level_and_of_the_process_send_what_is_left),
		cmocka_unit_test(without_a_rate_calls_are_lost_and_counted),
		cmocka_unit_test(logs_have_a_cap_on_their_memory),
		cmocka_unit_test(a_rank_without_a_key_has_no_records),
		cmocka_unit_test(a_row_that_is_not_in_the_table_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
