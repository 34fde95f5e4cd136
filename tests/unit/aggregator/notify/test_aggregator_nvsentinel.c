/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NVSentinel's health events: their bytes, and what the answers of its platform connector mean. */
#include "tests/unit/aggregator/notify/format/format_case.h"
#include "tests/unit/aggregator/webhook_receiver.h"
#include "tests/unit/grpc_server.h"

static struct grpc_server connector;
static char socket_url[SCRATCH_BYTES + 64];

static int set_up_connector(void **state)
{
	if (set_up(state))
		return -1;
	connector = (struct grpc_server){.lock = PTHREAD_MUTEX_INITIALIZER, .reply = {.max = 64}};
	(void)snprintf(connector.path, sizeof(connector.path), "%s/nvsentinel.sock", dir);
	(void)snprintf(socket_url, sizeof(socket_url), "unix://%s", connector.path);
	grpc_set_reply(&connector, "", 0, 0, "0");
	grpc_begin(&connector);
	return 0;
}

static int tear_down_connector(void **state)
{
	int r = tear_down(state);

	grpc_end(&connector);
	return r;
}

static void start_sentinel(bool remediate)
{
	const struct nt_notify_receiver one = {
		.name = "webhook",
		.kind = NT_RECEIVER_NVSENTINEL,
		.url = socket_url,
		.remediate = remediate,
	};
	const struct nt_notify_options options = {
		.store = store,
		.receiver = &one,
		.receivers = 1,
		.first_retry_ns = NT_MILLISECOND,
	};

	assert_int_equal(nt_notify_start(&options, &notify), 0);
	nt_store_on_queued(store, nt_notify_wake, notify);
}

/* A field with its tag and length. */
static bool has(const char *bytes, size_t len)
{
	bool found;

	(void)pthread_mutex_lock(&connector.lock);
	found = memmem(connector.request, connector.request_len, bytes, len) != NULL;
	(void)pthread_mutex_unlock(&connector.lock);
	return found;
}

#define HAS(bytes) has(bytes, sizeof(bytes) - 1)

static void an_incident_is_an_event_of_its_node_and_its_end_heals_it(void **state)
{
	(void)state;
	start_sentinel(false);
	put("a1", "firing", 1);
	await_empty();
	assert_int_equal(atomic_load(&connector.calls), 1);
	/* An uncompressed frame, and version 1 of the events. */
	assert_int_equal(connector.request[0], 0);
	assert_int_equal((size_t)(uint8_t)connector.request[3] << 8 | (uint8_t)connector.request[4],
			 connector.request_len - 5);
	assert_memory_equal(connector.request + 5, "\x08\x01\x12", 3);
	assert_true(HAS("\x12\x09neutracer"));
	assert_true(HAS("\x22\x11NeuTracerDegraded"));
	assert_true(HAS("\x6a\x06gpu-07"));
	assert_true(HAS("\x28\x01:,rank 5 computes 31 % slower than its 3 peers"));
	assert_true(HAS("\x40\x05\x80\x01\x02")); /* contact support; for storage alone */
	assert_true(HAS("\x52\x18\x0a\x12NEUTRACER_INCIDENT\x12\x02"
			"a1"));
	assert_true(HAS("\x5a\x0e\x0a\x05"
			"class\x12\x07"
			"compute"
			"\x5a") ||
		    HAS("\x5a\x10\x0a\x05"
			"class\x12\x07"
			"compute"));
	put("a1", "resolved", 2);
	await_empty();
	assert_int_equal(atomic_load(&connector.calls), 2);
	assert_true(HAS("\x30\x01:")); /* healthy, and not fatal */
	assert_false(HAS("\x28\x01"));
	assert_false(HAS("\x40\x05"));
}

static void only_if_asked_for_the_cluster_may_be_changed(void **state)
{
	(void)state;
	start_sentinel(true);
	put("a1", "firing", 1);
	await_empty();
	assert_true(HAS("\x40\x05\x80\x01\x01"));
}

/* The outcome of the first call, whose gRPC status is `status`. */
static void expect_first(const char *status, uint64_t failed, uint64_t retried)
{
	struct nt_notify_stats stats;

	grpc_set_reply(&connector, "", 0, 0, status);
	start_sentinel(false);
	put("a1", "firing", 1);
	for (int i = 0; i < PATIENCE_S * 500; i++) {
		nt_notify_stats(notify, &stats);
		if (stats.failed || stats.retried)
			break;
		(void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	assert_int_equal(stats.failed, failed);
	assert_int_equal(stats.retried > 0, retried > 0);
	assert_int_equal(stats.sent, 0);
}

static void an_event_that_is_not_valid_is_refused(void **state)
{
	(void)state;
	expect_first("3", 1, 0);
}

static void a_connector_that_is_unavailable_gets_it_later(void **state)
{
	(void)state;
	expect_first("14", 0, 1);
	grpc_set_reply(&connector, "", 0, 0, "0");
	await_empty();
}

static void without_a_grpc_status_nothing_was_taken(void **state)
{
	(void)state;
	expect_first("x", 0, 1);
}

/* A communicator, for example. */
static void an_incident_that_names_no_node_is_no_event(void **state)
{
	static const struct nt_culprit communicator = {.kind = "communicator", .name = "c"};
	struct nt_wire_incident incident = nt_test_incident("a1", "firing", &communicator, 1);
	const struct nt_sink sink = nt_store_sink(store);
	struct nt_notify_stats stats;

	(void)state;
	start_sentinel(false);
	assert_int_equal(sink.incident(sink.data, &incident), 0);
	await_empty();
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.sent, 1);
	assert_int_equal(atomic_load(&connector.calls), 0);
}

#define CONNECTOR(fn) cmocka_unit_test_setup_teardown(fn, set_up_connector, tear_down_connector)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONNECTOR(an_incident_is_an_event_of_its_node_and_its_end_heals_it),
		CONNECTOR(only_if_asked_for_the_cluster_may_be_changed),
		CONNECTOR(an_event_that_is_not_valid_is_refused),
		CONNECTOR(a_connector_that_is_unavailable_gets_it_later),
		CONNECTOR(without_a_grpc_status_nothing_was_taken),
		CONNECTOR(an_incident_that_names_no_node_is_no_event),
	};

	return cmocka_run_group_tests(tests, set_up_curl, tear_down_curl);
}
