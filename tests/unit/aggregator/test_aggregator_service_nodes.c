/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Node vectors on a spool become scores, incidents and a state that survives kill -9. */
#include "aggregator/service.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "aggregator/group/node_desk.h"
#include "aggregator/store/store.h"
#include "tests/unit/engine/nodes/fleet_feed.h"
#include "tests/unit/scratch.h"

enum {
	LEARNED = FEED_LEARN + 60, /* minutes */
	MOST_TOLD = 64,
	SAVES = 40, /* sets: two rounds of the shared one and all portions in use */
};

struct told {
	char id[32], state[16], severity[16], class[16], cause[64], job[64], node[64];
	char summary[NT_WIRE_MAX_TEXT], first[64];
	size_t evidences;
};

static char dir[SCRATCH_BYTES], url[SCRATCH_BYTES + 16], path[SCRATCH_BYTES + 16];
static struct nt_bus *bus;
static struct nt_board *board;
static struct nt_store *store;
static struct nt_state_store states;
static struct nt_service *service;
static struct feed feed;
static struct told told[MOST_TOLD];
static size_t tolds;

static int take_incident(void *data, const struct nt_wire_incident *incident)
{
	struct told *one = &told[tolds];

	(void)data;
	assert_true(tolds < MOST_TOLD && incident->culprits == 1);
	(void)snprintf(one->id, sizeof(one->id), "%s", incident->id);
	(void)snprintf(one->state, sizeof(one->state), "%s", incident->state);
	(void)snprintf(one->severity, sizeof(one->severity), "%s", incident->severity);
	(void)snprintf(one->class, sizeof(one->class), "%s", incident->class);
	(void)snprintf(one->cause, sizeof(one->cause), "%s", incident->cause);
	(void)snprintf(one->job, sizeof(one->job), "%s", incident->job);
	(void)snprintf(one->node, sizeof(one->node), "%s", incident->culprit[0].node);
	(void)snprintf(one->summary, sizeof(one->summary), "%s", incident->summary);
	one->evidences = incident->evidences;
	if (incident->evidences)
		(void)snprintf(one->first, sizeof(one->first), "%s", incident->evidence[0].what);
	tolds++;
	return 0;
}

static const struct nt_sink sink = {.incident = take_incident};

static void start_service(void)
{
	struct nt_service_options options = {
		.bus_url = url,
		.engine = nt_engine_options_default(),
		.fleet = nt_fleet_options_default(),
		.sink = &sink,
		.states = &states,
		.save_every_ns = 100 * NT_MILLISECOND,
	};

	options.fleet.learn_rows = FEED_LEARN;
	options.fleet.max_nodes = 0;
	assert_int_equal(nt_service_new(&options, board, &service), 0);
}

static int set_up(void **state)
{
	struct nt_store_error error;

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(url, sizeof(url), "spool:%s/spool", dir);
	(void)snprintf(path, sizeof(path), "%s/store.db", dir);
	assert_int_equal(nt_bus_open(url, NULL, &bus), 0);
	assert_int_equal(nt_board_new(&board), 0);
	assert_int_equal(nt_store_open(&(struct nt_store_options){.path = path}, &store, &error),
			 0);
	states = nt_store_states(store);
	tolds = 0;
	feed_open(&feed, FEED_NODES);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_service_free(service);
	service = NULL;
	nt_store_close(store);
	nt_board_free(board);
	nt_bus_close(bus);
	nt_fleet_free(feed.fleet);
	scratch_remove(dir);
	return 0;
}

static void publish(struct feed_node *node, struct nt_metric_value *metric)
{
	nt_autobuf struct nt_buf buf = {0};
	const struct nt_message message = {
		.agent = node->name,
		.key = node->name,
		.boot = node->run,
		.seq = ++node->seq,
		.real_ns = feed.now_ns,
		.boot_ns = feed.now_ns - node->booted_ns,
		.watermark_boot_ns = feed.now_ns - node->booted_ns,
		.body = NT_BODY_NODE,
		.node = {.node = node->name,
			 .metric = metric,
			 .metrics = FEED_METRICS,
			 .job = node->job,
			 .jobs = node->jobs,
			 .boot_id = node->boot_id,
			 .kernel = node->kernel},
	};
	struct nt_bus_record record = {
		.topic = NT_TOPIC_NODE, .key = node->name, .key_len = strlen(node->name)};

	assert_int_equal(nt_message_encode(&message, &buf), 0);
	record.real_ns = feed.now_ns;
	record.value = buf.data;
	record.value_len = buf.len;
	assert_int_equal(nt_bus_publish(bus, &record), 0);
}

static void turn(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	do
		assert_int_equal(nt_service_turn(service, 0), 0);
	while (!nt_service_caught_up(service));
	/* The thread of the refits has its turn. */
	(void)nanosleep(&pause, NULL);
	assert_int_equal(nt_service_turn(service, 0), 0);
}

static void run(size_t minutes)
{
	struct nt_metric_value metric[FEED_METRICS];
	char text[FEED_METRICS][16];

	for (size_t i = 0; i < minutes * FEED_VECTORS; i++) {
		feed.now_ns += FEED_VECTOR_NS;
		for (size_t n = 0; n < feed.nodes; n++) {
			feed_fill(&feed, &feed.node[n], text, metric);
			publish(&feed.node[n], metric);
		}
		if (i % 150 == 149 || i + 1 == minutes * FEED_VECTORS) {
			assert_int_equal(nt_bus_flush(bus), 0);
			turn();
		}
	}
}

static void wait_for_saves(void)
{
	struct nt_store_stats before, stats;

	nt_store_stats(store, &before);
	do {
		assert_int_equal(nt_service_turn(service, 20), 0);
		nt_store_stats(store, &stats);
	} while (stats.states_written < before.states_written + SAVES);
}

static struct nt_node_desk_score score_of(size_t i)
{
	struct nt_node_desk_score score;

	assert_true(nt_node_desk_find(nt_service_node_desk(service), feed.node[i].name, &score));
	return score;
}

static void a_node_that_differs_is_an_incident_that_survives_kill_9(void **state)
{
	const struct nt_snapshot *snapshot;
	struct nt_node_desk_point *point;
	struct nt_node_desk_part part;
	size_t points;
	char id[32];

	(void)state;
	start_service();
	run(LEARNED);
	for (size_t i = 0; i < FEED_NODES; i++)
		assert_int_equal(score_of(i).state, NT_FLEET_QUIET);
	assert_int_equal(score_of(0).peers, FEED_NODES);
	feed_break(&feed.node[3], true);
	run(4);
	assert_int_equal(tolds, 1);
	assert_string_equal(told[0].state, "firing");
	assert_string_equal(told[0].class, "node");
	assert_string_equal(told[0].severity, "warning");
	assert_string_equal(told[0].job, "job");
	assert_string_equal(told[0].node, "node-3");
	assert_string_equal(told[0].cause, told[0].first);
	assert_int_equal(told[0].evidences, NT_FLEET_TOLD);
	assert_non_null(strstr(told[0].summary, "node node-3 behaves unlike its 9 peers: "));
	assert_non_null(strstr(told[0].summary, "times its peers'"));
	memcpy(id, told[0].id, sizeof(id));
	/* All nodes are shown, and their minutes. */
	snapshot = nt_snapshot_acquire(board);
	assert_int_equal(snapshot->nodes, FEED_NODES);
	nt_snapshot_release(snapshot);
	assert_int_equal(nt_node_desk_series(nt_service_node_desk(service), "node-3",
					     FEED_RETRANSMIT, &part, &point, &points),
			 0);
	assert_int_equal(points, NT_SCORE_HISTORY_ROWS);
	assert_true(part.is_rate && point[points - 1].value > 30.0 && point[0].value < 5.0);
	assert_string_equal(part.unit, "segments");
	free(point);
	assert_int_equal(
		nt_node_desk_scores(nt_service_node_desk(service), "node-3", &point, &points), 0);
	assert_int_equal(points, NT_SCORE_HISTORY_SCORES);
	assert_int_equal(point[points - 1].state, NT_FLEET_ALARM);
	free(point);
	assert_int_equal(nt_node_desk_series(nt_service_node_desk(service), "node-3", "nothing",
					     &part, &point, &points),
			 -ESRCH);
	wait_for_saves();
	nt_service_free(service);
	start_service();
	run(3);
	for (size_t i = 0; i < FEED_NODES; i++)
		assert_int_not_equal(score_of(i).state, NT_FLEET_LEARNING);
	for (size_t i = 0; i < tolds; i++)
		assert_string_equal(told[i].id, id);
	feed_break(&feed.node[3], false);
	run(240);
	assert_string_equal(told[tolds - 1].id, id);
	assert_string_equal(told[tolds - 1].state, "resolved");
	assert_true(told[tolds - 1].evidences > 0);
}

/* How often the log says this. */
static size_t count_log(int log, const char *what)
{
	char text[16384];
	const ssize_t n = pread(log, text, sizeof(text) - 1, 0);
	size_t lines = 0;

	assert_true(n >= 0);
	text[n] = '\0';
	for (const char *at = text; (at = strstr(at, what)); at++)
		lines++;
	return lines;
}

static void nodes_that_are_learned_anew_are_shown_counted_and_logged_up_to_a_limit(void **state)
{
	char log_path[SCRATCH_BYTES + 16];
	struct nt_node_desk_stats stats;
	int log, terminal;

	(void)state;
	(void)snprintf(log_path, sizeof(log_path), "%s/log", dir);
	log = open(log_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	terminal = dup(STDERR_FILENO);
	assert_true(log >= 0 && terminal >= 0);
	start_service();
	run(2);
	assert_int_equal(score_of(0).reason, NT_FLEET_NEW);
	assert_true(dup2(log, STDERR_FILENO) >= 0);
	for (int boot = 0; boot < 2; boot++) {
		for (size_t i = 0; i < FEED_NODES; i++) {
			feed_reboot(&feed, &feed.node[i]);
			feed.node[i].boot_id = boot ? "boot-3" : "boot-2";
		}
		feed.node[5].kernel = boot ? "6.12.0-1" : "6.1.0-1";
		run(2);
	}
	assert_true(dup2(terminal, STDERR_FILENO) >= 0);
	assert_int_equal(count_log(log, "node 'node-3' is learned anew (rebooted)"), 1);
	assert_int_equal(count_log(log, "is learned anew"), 10);
	assert_int_equal(count_log(log, "more of this minute are only counted"), 1);
	assert_int_equal(score_of(3).reason, NT_FLEET_REBOOTED);
	assert_int_equal(score_of(5).reason, NT_FLEET_OTHER_KERNEL);
	assert_int_equal(score_of(3).state, NT_FLEET_LEARNING);
	nt_node_desk_stats(nt_service_node_desk(service), &stats);
	assert_int_equal(stats.counters.restarts, 2 * FEED_NODES);
	assert_int_equal(close(log) | close(terminal), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_node_that_differs_is_an_incident_that_survives_kill_9, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			nodes_that_are_learned_anew_are_shown_counted_and_logged_up_to_a_limit,
			set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
