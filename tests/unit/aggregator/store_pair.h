/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two stores that exchange their publications, as two aggregators do over the bus. */
#ifndef NT_TESTS_UNIT_AGGREGATOR_STORE_PAIR_H
#define NT_TESTS_UNIT_AGGREGATOR_STORE_PAIR_H

#include "tests/unit/aggregator/store.h"

#include "common/base/buf.h"

enum {
	SHARD = 3,
};

static struct nt_store *other;
static struct nt_wire_incident seen; /* the last one published; texts are constants */
static struct nt_message *seen_message;
static unsigned int published, flushed;
static int flush_result;

static inline int open_other(void)
{
	char name[SCRATCH_BYTES + 16];
	const struct nt_store_options options = {
		.path = name,
		.receiver = receivers,
		.receivers = 1,
		.shared = true,
	};
	struct nt_store_error error;

	(void)snprintf(name, sizeof(name), "%s/other.db", dir);
	return nt_store_open(&options, &other, &error);
}

static inline int open_shared(void)
{
	return open_with(&(struct nt_store_options){
		.path = path, .receiver = receivers, .receivers = 1, .shared = true});
}

static inline int set_up_two(void **state)
{
	published = flushed = 0;
	flush_result = 0;
	return set_up_files(state) || open_shared() || open_other();
}

static inline int tear_down_two(void **state)
{
	nt_store_close(other);
	other = NULL;
	nt_message_free(seen_message);
	seen_message = NULL;
	return tear_down(state);
}

static inline struct nt_wire_incident make(const char *id, const char *state, uint64_t version)
{
	struct nt_wire_incident incident = nt_test_incident(id, state, &nt_test_rank_5, 1);

	incident.shard = SHARD;
	incident.version = version;
	incident.since_real_ns = incident.seen_real_ns = nt_clock_real_ns();
	if (incident.until_real_ns)
		incident.until_real_ns = incident.since_real_ns;
	return incident;
}

static inline void decide(struct nt_store *by, const char *id, const char *state, uint64_t version)
{
	const struct nt_wire_incident incident = make(id, state, version);
	const struct nt_sink sink = nt_store_sink(by);

	assert_int_equal(sink.incident(sink.data, &incident), 0);
}

/* As over the wire. */
static inline int see(void *data, const struct nt_wire_incident *incident)
{
	const struct nt_message message = {
		.agent = "a",
		.key = incident->id,
		.body = NT_BODY_INCIDENT,
		.incident = *incident,
	};
	nt_autobuf struct nt_buf buf = {0};

	(void)data;
	nt_message_free(nt_take(seen_message));
	assert_int_equal(nt_message_encode(&message, &buf), 0);
	assert_int_equal(nt_message_decode(buf.data, buf.len, &seen_message), 0);
	seen = seen_message->incident;
	published++;
	return 0;
}

static inline int flush(void *data)
{
	(void)data;
	flushed++;
	return flush_result;
}

static const struct nt_sink_bus_producer bus_producer = {.incident = see, .flush = flush};

static inline int publish(struct nt_store *from)
{
	const struct nt_sink sink = nt_store_sink(from);

	return sink.publish(sink.data, &bus_producer);
}

static inline void take(struct nt_store *to, bool is_ours)
{
	const struct nt_sink sink = nt_store_sink(to);

	assert_int_equal(sink.take(sink.data, &seen, is_ours), 0);
}

static inline void adopt(struct nt_store *by)
{
	const struct nt_sink sink = nt_store_sink(by);

	assert_int_equal(sink.adopt(sink.data, SHARD, nt_clock_real_ns()), 0);
}

/* Sends the due delivery and returns it: "" for none. */
static inline const char *send_from(struct nt_store *by, enum nt_outbox_result result)
{
	static char id[160];
	struct nt_outbox_message message = {0};
	uint64_t next_ns;

	id[0] = '\0';
	if (nt_store_outbox_next(by, "webhook", nt_clock_real_ns(), &message, &next_ns) <= 0)
		return id;
	(void)snprintf(id, sizeof(id), "%s", message.id);
	assert_non_null(
		strstr(message.body, message.resolved ? "incident.resolved" : "incident.firing"));
	assert_non_null(strstr(message.body, message.resolved ? "\"state\":\"resolved\""
							      : "\"state\":\"firing\""));
	assert_int_equal(nt_store_outbox_done(by, message.number, result, nt_clock_real_ns(),
					      nt_clock_real_ns()),
			 0);
	nt_outbox_message_release(&message);
	return id;
}

static inline struct nt_store_stats stats_of(struct nt_store *of)
{
	struct nt_store_stats stats;

	nt_store_stats(of, &stats);
	return stats;
}

#define TEST_TWO(fn) cmocka_unit_test_setup_teardown(fn, set_up_two, tear_down_two)

#endif
