/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The real REST interface over an invented snapshot, for tests that speak HTTP:
 * `api-server DIR [TIMEOUT]` prints its port and serves until its standard input ends. DIR takes the
 * store and the token file; where it has cert.pem and key.pem, it is https, and with client-ca.pem
 * clients need certificates. With NT_WEBHOOK_URL it also delivers what it stores, and with
 * NT_RECEIVERS_FILE to the receivers of that file. A line "firing ID", "hostile ID" (with long and
 * hostile names), "attacking ID" (with names that are HTML) or "resolved ID" on its input puts an
 * incident, and is repeated on its output when that is in the store; otherwise that says "refused ID".
 * "cells N" gives the timeline of the first job N cells. NT_TEST_RANKS is the number of its ranks.
 */
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/receivers.h"
#include "common/base/parse_number.h"
#include "tests/api/snapshot_scene.h"

static int rebaseline(void *data, const char *job_id)
{
	(void)data;
	return strcmp(job_id, "00000000000000a1") ? -2 : 0;
}

/* What ends markup, and characters of one to four bytes at every place. */
static void make_hostile(struct nt_wire_incident *incident)
{
	static const char piece[] = "a\u00e9\u20ac\U0001f4a5<!channel>*_`[x](y)&\"\\";
	static char text[4 * 1024];
	static struct nt_culprit culprit[8];

	text[0] = '\0';
	for (size_t len = 0; len + sizeof(piece) < sizeof(text); len += sizeof(piece) - 1)
		memcpy(text + len, piece, sizeof(piece));
	for (size_t i = 0; i < sizeof(culprit) / sizeof(culprit[0]); i++) {
		culprit[i] = nt_test_rank_5;
		culprit[i].node = text + i;
		culprit[i].pod = culprit[i].gpu = culprit[i].container = text;
	}
	incident->job = incident->namespace = incident->summary = incident->cause = text;
	incident->culprit = culprit;
	incident->culprits = sizeof(culprit) / sizeof(culprit[0]);
}

/* What a page that trusted its data would run. */
static void make_attacking(struct nt_wire_incident *incident)
{
	static const char script[] = "</script><script>document.title='got'</script>";
	static const char image[] = "<img src=x onerror=\"document.title='got'\">";
	static struct nt_wire_evidence evidence[] = {
		{.what = image, .unit = script, .method = image}};
	static struct nt_wire_stack_frame frame[] = {
		{.function = image, .file = script, .line = 7}};
	static struct nt_wire_incident_stack stack[] = {{.rank = 5,
							 .is_culprit = true,
							 .real_ns = NT_TEST_TIME_NS,
							 .stack = {.name = image,
								   .state = script,
								   .wait = image,
								   .interpreter = script,
								   .frame = frame,
								   .frames = 1,
								   .python_reason = image,
								   .native_reason = script}}};
	static struct nt_culprit culprit;

	culprit = nt_test_rank_5;
	culprit.node = culprit.pod = image;
	culprit.gpu = culprit.container = script;
	incident->job = incident->cause = script;
	incident->namespace = incident->summary = image;
	incident->culprit = &culprit;
	incident->evidence = evidence;
	incident->stack = stack;
	incident->stacks = 1;
}

static int put(struct nt_store *store, const char *id, const char *state)
{
	bool hostile = !strcmp(state, "hostile"), attacking = !strcmp(state, "attacking");
	struct nt_wire_incident incident =
		nt_test_incident(id, hostile || attacking ? "firing" : state, &nt_test_rank_5, 1);
	const struct nt_sink sink = nt_store_sink(store);
	int r;

	if (hostile)
		make_hostile(&incident);
	if (attacking)
		make_attacking(&incident);
	r = sink.incident(sink.data, &incident);

	if (r < 0)
		(void)fprintf(stderr, "the store refuses incident %s\n", id);
	return r;
}

static void fill(struct nt_store *store)
{
	char id[32];

	for (unsigned int i = 0; i < 250; i++) {
		(void)snprintf(id, sizeof(id), "%016x", 0x1000 + i);
		(void)put(store, id, "resolved");
	}
	(void)put(store, "00000000000000f1", "firing");
	(void)put(store, "00000000000000f2", "firing");
}

static struct nt_snapshot *make_snapshot(uint64_t cells)
{
	const char *text = getenv("NT_TEST_RANKS");
	uint64_t ranks = NT_TEST_RANKS;

	if (text && nt_parse_u64(text, strlen(text), NT_TEST_RANKS, 1 << 17, &ranks) < 0)
		(void)fprintf(stderr, "NT_TEST_RANKS is not a number of ranks\n");
	return nt_test_snapshot_of(ranks, cells,
				   NT_TEST_TIME_NS + (cells - NT_TEST_CELLS) * NT_TIMELINE_CELL_NS);
}

/* "firing ID", "resolved ID", "cells N" … */
static void obey(struct nt_store *store, struct nt_board *board, char *line)
{
	char *id = strchr(line, ' ');
	uint64_t cells;

	line[strcspn(line, "\n")] = '\0';
	if (!id)
		return;
	*id++ = '\0';
	if (!strcmp(line, "cells")) {
		if (nt_parse_u64(id, strlen(id), 1, NT_TIMELINE_CELLS, &cells) == 0)
			nt_board_post(board, make_snapshot(cells));
		(void)printf("%s %s\n", line, id);
		(void)fflush(stdout);
		return;
	}
	(void)printf("%s %s\n", put(store, id, line) < 0 ? "refused" : line, id);
	(void)fflush(stdout);
}

/* The levels of a rank are set; others are accepted, and wait. */
static int open_levels(const char *dir, struct nt_bus_producer **ret_bus_producer,
		       struct nt_level_desk **ret_desk)
{
	const struct nt_level_target target = {NT_LEVEL_RANK, "10.0.0.1:29500/run", 5};
	struct nt_level_entry entry;
	char url[4096];

	(void)snprintf(url, sizeof(url), "spool:%s/spool", dir);
	if (nt_bus_producer_open(url, NULL, 1, ret_bus_producer) < 0 ||
	    nt_level_desk_open(&(struct nt_level_desk_options){.bus_url = url}, ret_desk) < 0)
		return -1;
	nt_level_desk_turn(*ret_desk, *ret_bus_producer);
	if (nt_level_desk_set(*ret_desk, &target, 1, NT_HOUR, &entry) < 0)
		return -1;
	nt_level_desk_turn(*ret_desk, *ret_bus_producer);
	return 0;
}

static void ignore_alarm(void *data, const struct nt_fleet *fleet, const struct nt_fleet_node *node,
			 enum nt_fleet_change change, uint64_t real_ns)
{
	(void)data;
	(void)fleet;
	(void)node;
	(void)change;
	(void)real_ns;
}

/*
 * The first node is learned since a few minutes, or long enough to have a score where NT_SCORES is
 * set; the other one is not scored.
 */
static int open_nodes(struct nt_node_desk **ret_desk)
{
	const struct nt_node_desk_handler handler = {.alarm = ignore_alarm};
	const uint64_t minutes = getenv("NT_SCORES") ? 240 : 10;
	struct nt_fleet_options options = nt_fleet_options_default();

	options.learn_rows = getenv("NT_SCORES") ? 60 : 0;
	if (nt_node_desk_new(&options, &handler, ret_desk) < 0)
		return -1;
	for (uint64_t i = 0; i < minutes; i++) {
		struct nt_metric_value metric[] = {{"cpu_busy", 0.25 + 0.01 * (double)(i % 7)},
						   {"tcp_retransmits", 10.0 * (double)i}};
		const struct nt_message message = {
			.agent = "gpu-01",
			.boot = 1,
			.seq = i + 1,
			.real_ns = NT_TEST_TIME_NS - (minutes - i) * NT_MINUTE,
			.boot_ns = NT_HOUR + i * NT_MINUTE,
			.body = NT_BODY_NODE,
			.node = {.node = "gpu-01", .metric = metric, .metrics = 2},
		};

		if (nt_node_desk_take(*ret_desk, &message, 0) < 0 ||
		    nt_node_desk_turn(*ret_desk) < 0)
			return -1;
	}
	return 0;
}

/* For the webhook, if there is a URL, or else for the receivers. */
static int open_store(const char *dir, const struct nt_receivers *receivers, const char *url,
		      struct nt_store **ret_store)
{
	const char *names[NT_STORE_MAX_RECEIVERS] = {"webhook"};
	struct nt_store_options options = {
		.receiver = names,
		.receivers = url ? 1 : nt_receivers_list(receivers, names),
		.accepts = nt_receiver_configs_accept,
		.accepts_data = receivers->configs,
	};
	struct nt_store_error error;
	char path[4096];
	int r;

	(void)snprintf(path, sizeof(path), "%s/store.db", dir);
	options.path = path;
	r = nt_store_open(&options, ret_store, &error);
	if (r < 0)
		(void)fprintf(stderr, "%s\n", error.text);
	return r;
}

static int start_webhook(struct nt_store *store, const char *url, struct nt_notify **ret_notify)
{
	const struct nt_notify_receiver receiver = {"webhook", url, getenv("NT_WEBHOOK_SECRET")};
	const struct nt_notify_options options = {
		.store = store,
		.receiver = &receiver,
		.receivers = 1,
		.first_retry_ns = 100 * NT_MILLISECOND,
	};
	int r = nt_notify_start(&options, ret_notify);

	if (r == 0)
		nt_store_on_queued(store, nt_notify_wake, *ret_notify);
	return r;
}

/* The past of the invented jobs, in which nothing changes. */
static int open_series(struct nt_series_desk **ret_desk)
{
	if (nt_series_desk_new(0, ret_desk) < 0)
		return -1;
	for (uint64_t i = 1; i <= 4; i++) {
		struct nt_snapshot *snapshot = nt_test_snapshot();

		for (size_t k = 0; k < snapshot->jobs; k++)
			((struct nt_snapshot_job *)snapshot->job[k])->frames += i;
		nt_series_desk_look(*ret_desk, snapshot);
		nt_snapshot_release(snapshot);
	}
	return 0;
}

/* A test that reads each stream to its end makes them short. */
static uint64_t stream_life_ns(void)
{
	const char *text = getenv("NT_STREAM_LIFE");
	uint64_t life_ns = 0;

	if (text && nt_parse_duration(text, strlen(text), 0, NT_HOUR, &life_ns) < 0)
		(void)fprintf(stderr, "NT_STREAM_LIFE is no duration\n");
	return life_ns;
}

static int serve(const char *dir, uint64_t timeout_ns)
{
	const char *url = getenv("NT_WEBHOOK_URL");
	const struct nt_aggregator_config config = {.receivers_file = getenv("NT_RECEIVERS_FILE")};
	struct nt_receivers receivers = {0};
	nt_auto(nt_board) struct nt_board *board = NULL;
	nt_auto(nt_store) struct nt_store *store = NULL;
	nt_auto(nt_notify) struct nt_notify *notify = NULL;
	nt_auto(nt_bus_producer) struct nt_bus_producer *bus_producer = NULL;
	nt_auto(nt_level_desk) struct nt_level_desk *level_desk = NULL;
	nt_auto(nt_profile_desk) struct nt_profile_desk *profile_desk = NULL;
	nt_auto(nt_node_desk) struct nt_node_desk *node_desk = NULL;
	nt_auto(nt_event_desk) struct nt_event_desk *event_desk = NULL;
	nt_auto(nt_series_desk) struct nt_series_desk *series_desk = NULL;
	nt_auto(nt_api) struct nt_api *api = NULL;
	struct nt_api_error api_error;
	char token_path[4096], cert_path[4096], key_path[4096], client_ca_path[4096],
		audit_path[4096], line[128];
	bool secure, mutual;

	(void)snprintf(token_path, sizeof(token_path), "%s/token", dir);
	(void)snprintf(cert_path, sizeof(cert_path), "%s/cert.pem", dir);
	(void)snprintf(key_path, sizeof(key_path), "%s/key.pem", dir);
	(void)snprintf(client_ca_path, sizeof(client_ca_path), "%s/client-ca.pem", dir);
	(void)snprintf(audit_path, sizeof(audit_path), "%s/audit", dir);
	secure = access(cert_path, R_OK) == 0;
	mutual = access(client_ca_path, R_OK) == 0;
	if (nt_board_new(&board) < 0)
		return 1;
	nt_board_post(board, make_snapshot(NT_TEST_CELLS));
	if (open_levels(dir, &bus_producer, &level_desk) < 0 || open_nodes(&node_desk) < 0 ||
	    nt_profile_desk_new(&profile_desk) < 0 || nt_event_desk_new(board, &event_desk) < 0 ||
	    open_series(&series_desk) < 0)
		return 1;
	if (nt_receivers_read(&receivers, &config) != NT_EXIT_OK ||
	    open_store(dir, &receivers, url, &store) < 0)
		return 1;
	if (url ? start_webhook(store, url, &notify) < 0
		: nt_receivers_start(&receivers, store) != NT_EXIT_OK)
		return 1;
	nt_store_on_stored(store, nt_event_desk_stored, event_desk);
	if (!config.receivers_file)
		fill(store);
	if (nt_api_start(
		    &(struct nt_api_options){.listen = "127.0.0.1:0",
					     .token_file = token_path,
					     .tls_cert_file = secure ? cert_path : NULL,
					     .tls_key_file = secure ? key_path : NULL,
					     .tls_client_ca_file = mutual ? client_ca_path : NULL,
					     .audit_file = audit_path,
					     .board = board,
					     .store = store,
					     .notify = url ? notify : receivers.notify,
					     .level_desk = level_desk,
					     .profile_desk = profile_desk,
					     .node_desk = node_desk,
					     .event_desk = event_desk,
					     .series_desk = series_desk,
					     .stream_life_ns = stream_life_ns(),
					     .rebaseline = rebaseline,
					     .request_timeout_ns = timeout_ns,
					     .max_auth_failures = 1000000},
		    &api, &api_error) < 0) {
		(void)fprintf(stderr, "%s\n", api_error.text);
		return 1;
	}
	(void)printf("%u\n", nt_api_port(api));
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(store, board, line);
	nt_api_stop(nt_take(api));
	nt_receivers_stop(&receivers);
	nt_store_close(nt_take(store));
	nt_receivers_release(&receivers);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t timeout_ns = 0;

	if (argc < 2 || (argc > 2 && nt_parse_duration(argv[2], strlen(argv[2]), 0, UINT64_MAX,
						       &timeout_ns) < 0)) {
		(void)fprintf(stderr, "usage: api-server DIR [TIMEOUT]\n");
		return 2;
	}
	return serve(argv[1], timeout_ns);
}
