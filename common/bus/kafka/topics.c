/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/topics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/parse_number.h"
#include "common/bus/kafka/cause.h"
#include "common/bus/kafka/client.h"
#include "common/system/clock.h"

enum {
	QUERY_MS = 500,
	ASK_TIMES = 20,
	PAUSE_NS = 200000000,
	MADE_TIMES = 100,
	DO_MS = 30000,
	ERROR_BYTES = 512, /* of the library */
	MAX_CONFIGS = 8,
	VALUE_BYTES = 24,
};

#define DEFAULT_RETENTION_NS NT_DAY
#define MESSAGE_BYTES        (NT_BUS_MAX_VALUE + (64 << 10))

struct admin {
	struct nt_kafka_client client;
	rd_kafka_t *rk;
	rd_kafka_queue_t *queue; /* of replies */
	rd_kafka_topic_t *topic[NT_TOPIC_END];
	uint32_t brokers;
};

/* A setting of a topic. */
struct topic_config {
	const char *name;
	char value[VALUE_BYTES];
	bool is_needed; /* needed by the programs; otherwise another value is the owner's choice */
};

static void note(struct nt_kafka_topic_state *state, enum nt_kafka_topic_status status,
		 const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void note(struct nt_kafka_topic_state *state, enum nt_kafka_topic_status status,
		 const char *fmt, ...)
{
	va_list args;

	if (state->status < status)
		state->status = status;
	if (state->notes >= NT_KAFKA_TOPIC_NOTES)
		return;
	va_start(args, fmt);
	(void)vsnprintf(state->note[state->notes], NT_BUS_TEXT, fmt, args);
	va_end(args);
	nt_kafka_make_printable(state->note[state->notes++]);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void close_admin(struct admin *admin)
{
	for (int i = 0; i < NT_TOPIC_END; i++)
		if (admin->topic[i])
			rd_kafka_topic_destroy(admin->topic[i]);
	if (admin->queue)
		rd_kafka_queue_destroy(admin->queue);
	if (admin->rk)
		nt_kafka_end(admin->rk, false);
	nt_kafka_client_release(&admin->client);
}

static int open_admin(struct admin *admin, const char *url, const struct nt_bus_options *options,
		      struct nt_bus_error *error)
{
	struct nt_bus_options ours = *options;
	int r;

	memset(admin, 0, sizeof(*admin));
	ours.error = error;
	error->text[0] = '\0';
	r = nt_kafka_client_init(&admin->client, url, &ours);
	if (r == 0)
		r = nt_kafka_client_make(&admin->client, RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_ERROR,
					 NULL, 0, error, &admin->rk);
	if (r < 0)
		return r;
	admin->queue = rd_kafka_queue_new(admin->rk);
	for (int i = 0; i < NT_TOPIC_END; i++) {
		char name[NT_KAFKA_TOPIC_BYTES];

		nt_kafka_topic_name(&admin->client.url, (enum nt_topic)i, name);
		admin->topic[i] = rd_kafka_topic_new(admin->rk, name, NULL);
		if (!admin->topic[i])
			return nt_kafka_errno(rd_kafka_last_error());
	}
	return 0;
}

static void serve_errors(struct admin *admin)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_get_main(admin->rk);
	rd_kafka_event_t *event;

	while ((event = rd_kafka_queue_poll(queue, 0))) {
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR)
			(void)nt_kafka_client_note(&admin->client, rd_kafka_event_error(event),
						   rd_kafka_event_error_string(event), NULL);
		rd_kafka_event_destroy(event);
	}
	rd_kafka_queue_destroy(queue);
}

/* Waits until the brokers reply, or are known to be unreachable. */
static int request_metadata(struct admin *admin, struct nt_bus_error *error,
			    const struct rd_kafka_metadata **ret_metadata)
{
	struct nt_bus_health health;
	rd_kafka_resp_err_t result = RD_KAFKA_RESP_ERR__TRANSPORT;

	for (int i = 0; i < ASK_TIMES; i++) {
		result = rd_kafka_metadata(admin->rk, 0, NULL, ret_metadata, QUERY_MS);
		if (result == RD_KAFKA_RESP_ERR_NO_ERROR)
			return 0;
		serve_errors(admin);
		nt_kafka_health_get(&admin->client.health, &health);
		if (health.cause == NT_BUS_REFUSED || health.cause == NT_BUS_CERTIFICATE)
			break;
	}
	nt_kafka_health_get(&admin->client.health, &health);
	if (health.cause > NT_BUS_CONNECTING)
		(void)snprintf(error->text, sizeof(error->text), "%s", health.text);
	else
		(void)snprintf(error->text, sizeof(error->text), "no answer from %.200s: %s",
			       admin->client.url.servers, rd_kafka_err2str(result));
	switch (health.cause) {
	case NT_BUS_REFUSED:
		return -ECONNREFUSED;
	case NT_BUS_CERTIFICATE:
		return -EKEYREJECTED;
	default:
		return -EHOSTUNREACH;
	}
}

/* The reply to an administrative request, or NULL. */
static rd_kafka_event_t *wait_for_answer(struct admin *admin, struct nt_bus_error *error)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(admin->queue, DO_MS);

	if (event && !rd_kafka_event_error(event))
		return event;
	(void)snprintf(error->text, sizeof(error->text), "%.300s",
		       event ? rd_kafka_event_error_string(event) : "no answer in time");
	nt_kafka_make_printable(error->text);
	rd_kafka_event_destroy(event);
	return NULL;
}

static void describe_topic(struct admin *admin, const struct rd_kafka_metadata *metadata,
			   struct nt_kafka_topic_state *state)
{
	for (int i = 0; i < metadata->topic_cnt; i++) {
		const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];

		if (strcmp(topic->topic, state->name) != 0)
			continue;
		if (topic->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
			break;
		if (topic->err != RD_KAFKA_RESP_ERR_NO_ERROR || topic->partition_cnt <= 0) {
			note(state, NT_KAFKA_TOPIC_FAILED, "%s", rd_kafka_err2str(topic->err));
			return;
		}
		state->partitions = (uint32_t)topic->partition_cnt;
		state->replication = (uint32_t)topic->partitions[0].replica_cnt;
		return;
	}
	(void)admin;
	note(state, NT_KAFKA_TOPIC_MISSING, "it is missing: 'neutracer topics create' makes it");
}

/* A topic that was just created has no leaders for a moment. */
static bool is_settled(const struct rd_kafka_metadata *metadata)
{
	for (int i = 0; i < metadata->topic_cnt; i++)
		if (metadata->topics[i].err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
			return false;
	return true;
}

/* Brokers learn of a new topic one after the other. */
static bool is_known(const struct rd_kafka_metadata *metadata, const char *name)
{
	for (int i = 0; i < metadata->topic_cnt; i++)
		if (strcmp(metadata->topics[i].topic, name) == 0)
			return metadata->topics[i].err == RD_KAFKA_RESP_ERR_NO_ERROR;
	return false;
}

static int describe_topics(struct admin *admin, struct nt_kafka_topic_state states[NT_TOPIC_END],
			   struct nt_bus_error *error)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	const struct rd_kafka_metadata *metadata;
	int r = request_metadata(admin, error, &metadata);

	for (int i = 0; i < ASK_TIMES && r == 0 && !is_settled(metadata); i++) {
		rd_kafka_metadata_destroy(metadata);
		(void)nanosleep(&pause, NULL);
		r = request_metadata(admin, error, &metadata);
	}
	if (r < 0)
		return r;
	admin->brokers = (uint32_t)metadata->broker_cnt;
	for (int i = 0; i < NT_TOPIC_END; i++) {
		memset(&states[i], 0, sizeof(states[i]));
		states[i].topic = (enum nt_topic)i;
		states[i].retention_ms = UINT64_MAX;
		(void)nt_kafka_topic_name(&admin->client.url, (enum nt_topic)i, states[i].name);
		describe_topic(admin, metadata, &states[i]);
	}
	rd_kafka_metadata_destroy(metadata);
	return 0;
}

/* ---- required settings ----------------------------------------------------------------------- */

static void add(struct topic_config configs[MAX_CONFIGS], size_t *count, bool is_needed,
		const char *name, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void add(struct topic_config configs[MAX_CONFIGS], size_t *count, bool is_needed,
		const char *name, const char *fmt, ...)
{
	struct topic_config *config = &configs[(*count)++];
	va_list args;

	config->name = name;
	config->is_needed = is_needed;
	va_start(args, fmt);
	(void)vsnprintf(config->value, sizeof(config->value), fmt, args);
	va_end(args);
}

static size_t list_configs(enum nt_topic topic, const struct nt_kafka_topics_options *wanted,
			   uint32_t replication, struct topic_config configs[MAX_CONFIGS])
{
	uint64_t retention_ns = wanted->retention_ns ? wanted->retention_ns : DEFAULT_RETENTION_NS;
	bool is_compacted = nt_topic_is_compacted(topic);
	size_t count = 0;

	add(configs, &count, true, "cleanup.policy", "%s", is_compacted ? "compact" : "delete");
	add(configs, &count, true, "max.message.bytes", "%d", MESSAGE_BYTES);
	add(configs, &count, false, "min.insync.replicas", "%d", replication >= 3 ? 2 : 1);
	if (is_compacted) {
		/* Only closed segments are compacted: small ones, so that it happens soon. */
		add(configs, &count, false, "segment.bytes", "%d", 64 << 20);
		add(configs, &count, false, "segment.ms", "%d", 3600 * 1000);
	} else if (retention_ns == UINT64_MAX) {
		add(configs, &count, wanted->retention_ns, "retention.ms", "-1");
	} else {
		add(configs, &count, wanted->retention_ns, "retention.ms", "%" PRIu64,
		    (uint64_t)(retention_ns / NT_MILLISECOND));
	}
	return count;
}

/* ---- creating -------------------------------------------------------------------------------- */

static rd_kafka_NewTopic_t *plan(const struct admin *admin, struct nt_kafka_topic_state *state,
				 const struct nt_kafka_topics_options *wanted)
{
	uint32_t partitions = wanted->partitions ? wanted->partitions : NT_KAFKA_PARTITIONS;
	uint32_t replication = wanted->replication;
	struct topic_config configs[MAX_CONFIGS];
	rd_kafka_NewTopic_t *topic;
	char text[ERROR_BYTES];
	size_t count;

	if (!replication)
		replication = admin->brokers < NT_KAFKA_REPLICATION ? admin->brokers
								    : NT_KAFKA_REPLICATION;
	topic = rd_kafka_NewTopic_new(state->name, (int)partitions, (int)replication, text,
				      sizeof(text));
	if (!topic) {
		note(state, NT_KAFKA_TOPIC_FAILED, "%.300s", text);
		return NULL;
	}
	count = list_configs(state->topic, wanted, replication, configs);
	for (size_t i = 0; i < count; i++)
		(void)rd_kafka_NewTopic_set_config(topic, configs[i].name, configs[i].value);
	state->partitions = partitions;
	state->replication = replication;
	if (!nt_topic_is_compacted(state->topic) && wanted->retention_ns != UINT64_MAX)
		state->retention_ms =
			(wanted->retention_ns ? wanted->retention_ns : DEFAULT_RETENTION_NS) /
			NT_MILLISECOND;
	return topic;
}

static struct nt_kafka_topic_state *find(struct nt_kafka_topic_state states[NT_TOPIC_END],
					 const char *name)
{
	for (int i = 0; i < NT_TOPIC_END; i++)
		if (strcmp(states[i].name, name) == 0)
			return &states[i];
	return NULL;
}

static void take_results(struct nt_kafka_topic_state states[NT_TOPIC_END], rd_kafka_event_t *event)
{
	const rd_kafka_topic_result_t **results;
	size_t count;

	results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event),
						      &count);
	for (size_t i = 0; i < count; i++) {
		struct nt_kafka_topic_state *state =
			find(states, rd_kafka_topic_result_name(results[i]));
		rd_kafka_resp_err_t error = rd_kafka_topic_result_error(results[i]);
		const char *text = rd_kafka_topic_result_error_string(results[i]);

		if (!state)
			continue;
		if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
			state->status = NT_KAFKA_TOPIC_MADE;
		} else if (error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
			state->status = NT_KAFKA_TOPIC_FINE; /* created concurrently */
		} else {
			note(state, NT_KAFKA_TOPIC_FAILED, "%.300s",
			     text ? text : rd_kafka_err2str(error));
		}
	}
}

static int make_missing(struct admin *admin, const struct nt_kafka_topics_options *wanted,
			struct nt_kafka_topic_state states[NT_TOPIC_END],
			struct nt_bus_error *error)
{
	rd_kafka_NewTopic_t *topics[NT_TOPIC_END];
	rd_kafka_AdminOptions_t *options;
	rd_kafka_event_t *event = NULL;
	char text[ERROR_BYTES];
	size_t count = 0;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		if (states[i].status != NT_KAFKA_TOPIC_MISSING)
			continue;
		states[i].notes = 0;
		topics[count] = plan(admin, &states[i], wanted);
		count += topics[count] != NULL;
	}
	if (!count)
		return 0;
	options = rd_kafka_AdminOptions_new(admin->rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
	(void)rd_kafka_AdminOptions_set_request_timeout(options, DO_MS / 2, text, sizeof(text));
	/* Until all brokers have the new metadata. */
	(void)rd_kafka_AdminOptions_set_operation_timeout(options, DO_MS / 2, text, sizeof(text));
	rd_kafka_CreateTopics(admin->rk, topics, count, options, admin->queue);
	event = wait_for_answer(admin, error);
	if (event)
		take_results(states, event);
	rd_kafka_NewTopic_destroy_array(topics, count);
	rd_kafka_AdminOptions_destroy(options);
	if (!event)
		return -EIO;
	rd_kafka_event_destroy(event);
	return 0;
}

/* ---- checking -------------------------------------------------------------------------------- */

/* The value of a setting, or NULL. */
static const char *value_of(const rd_kafka_ConfigResource_t *resource, const char *name)
{
	const rd_kafka_ConfigEntry_t **entries;
	size_t count;

	entries = rd_kafka_ConfigResource_configs(resource, &count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0)
			return rd_kafka_ConfigEntry_value(entries[i]);
	return NULL;
}

static bool is_enough(const struct topic_config *config, const char *value)
{
	uint64_t have, want;

	if (strcmp(config->name, "max.message.bytes") != 0)
		return strcmp(config->value, value) == 0;
	return nt_parse_u64(value, strlen(value), 0, UINT64_MAX, &have) == 0 &&
	       nt_parse_u64(config->value, strlen(config->value), 0, UINT64_MAX, &want) == 0 &&
	       have >= want;
}

static void compare_configs(const struct admin *admin, const struct nt_kafka_topics_options *wanted,
			    const rd_kafka_ConfigResource_t *resource,
			    struct nt_kafka_topic_state *state)
{
	struct topic_config configs[MAX_CONFIGS];
	size_t count = list_configs(state->topic, wanted, state->replication, configs);
	const char *retention = value_of(resource, "retention.ms");

	if (rd_kafka_ConfigResource_error(resource) != RD_KAFKA_RESP_ERR_NO_ERROR) {
		const char *text = rd_kafka_ConfigResource_error_string(resource);

		note(state, NT_KAFKA_TOPIC_FAILED, "%.300s",
		     text ? text : "its settings are hidden");
		return;
	}
	if (retention && !nt_topic_is_compacted(state->topic))
		(void)!nt_parse_u64(retention, strlen(retention), 0, UINT64_MAX,
				    &state->retention_ms);
	for (size_t i = 0; i < count; i++) {
		const char *value = value_of(resource, configs[i].name);

		if (!configs[i].is_needed || !value || is_enough(&configs[i], value))
			continue;
		note(state, NT_KAFKA_TOPIC_DIFFERS,
		     "%s is %.24s, it should be %s: kafka-configs.sh --bootstrap-server %.60s --alter "
		     "--entity-type topics --entity-name %.80s --add-config %s=%s",
		     configs[i].name, value, configs[i].value, admin->client.url.servers,
		     state->name, configs[i].name, configs[i].value);
	}
}

static void compare_shape(const struct admin *admin, const struct nt_kafka_topics_options *wanted,
			  struct nt_kafka_topic_state *state)
{
	if (wanted->partitions && state->partitions != wanted->partitions)
		note(state, NT_KAFKA_TOPIC_DIFFERS,
		     "it has %u partitions, it should have %u: that cannot be changed while it is used, "
		     "because keys would move; stop everything, delete it, and create it again",
		     state->partitions, wanted->partitions);
	if (wanted->replication && state->replication != wanted->replication)
		note(state, NT_KAFKA_TOPIC_DIFFERS,
		     "it has %u replicas, it should have %u: kafka-reassign-partitions.sh moves them",
		     state->replication, wanted->replication);
	else if (state->replication == 1 && admin->brokers >= 3)
		note(state, NT_KAFKA_TOPIC_DIFFERS,
		     "it has one replica on %u brokers, and stops with that broker: "
		     "kafka-reassign-partitions.sh adds some",
		     admin->brokers);
}

static int compare_all(struct admin *admin, const struct nt_kafka_topics_options *wanted,
		       struct nt_kafka_topic_state states[NT_TOPIC_END], struct nt_bus_error *error)
{
	rd_kafka_ConfigResource_t *described[NT_TOPIC_END];
	const rd_kafka_ConfigResource_t **resources;
	rd_kafka_event_t *event;
	size_t count = 0;

	for (int i = 0; i < NT_TOPIC_END; i++)
		if (states[i].status == NT_KAFKA_TOPIC_FINE)
			described[count++] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC,
									 states[i].name);
	if (!count)
		return 0;
	rd_kafka_DescribeConfigs(admin->rk, described, count, NULL, admin->queue);
	event = wait_for_answer(admin, error);
	rd_kafka_ConfigResource_destroy_array(described, count);
	if (!event)
		return -EIO;
	resources = rd_kafka_DescribeConfigs_result_resources(
		rd_kafka_event_DescribeConfigs_result(event), &count);
	for (size_t i = 0; i < count; i++) {
		struct nt_kafka_topic_state *state =
			find(states, rd_kafka_ConfigResource_name(resources[i]));

		if (!state)
			continue;
		compare_shape(admin, wanted, state);
		compare_configs(admin, wanted, resources[i], state);
	}
	rd_kafka_event_destroy(event);
	return 0;
}

/* New topics must be usable on return: the programs may be started next. */
static int wait_for_made(struct admin *admin,
			 const struct nt_kafka_topic_state states[NT_TOPIC_END],
			 struct nt_bus_error *error)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	for (int tries = 0; tries < MADE_TIMES; tries++) {
		const struct rd_kafka_metadata *metadata;
		bool is_complete = true;
		int r = request_metadata(admin, error, &metadata);

		if (r < 0)
			return r;
		for (int i = 0; i < NT_TOPIC_END; i++)
			if (states[i].status == NT_KAFKA_TOPIC_MADE)
				is_complete &= is_known(metadata, states[i].name);
		rd_kafka_metadata_destroy(metadata);
		if (is_complete)
			return 0;
		(void)nanosleep(&pause, NULL);
	}
	(void)snprintf(error->text, sizeof(error->text),
		       "the topics are made, but the brokers do not show them yet: try 'check'");
	return -ETIMEDOUT;
}

static int check_topics(const char *url, const struct nt_bus_options *options,
			const struct nt_kafka_topics_options *wanted, bool creates,
			struct nt_kafka_topic_state ret_states[NT_TOPIC_END],
			struct nt_bus_error *error)
{
	struct admin admin;
	int r = open_admin(&admin, url, options, error);

	if (r == 0)
		r = describe_topics(&admin, ret_states, error);
	if (r == 0 && creates)
		r = make_missing(&admin, wanted, ret_states, error);
	if (r == 0 && creates)
		r = wait_for_made(&admin, ret_states, error);
	if (r == 0)
		r = compare_all(&admin, wanted, ret_states, error);
	close_admin(&admin);
	return r;
}

int nt_kafka_topics_create(const char *url, const struct nt_bus_options *options,
			   const struct nt_kafka_topics_options *wanted,
			   struct nt_kafka_topic_state ret_states[NT_TOPIC_END],
			   struct nt_bus_error *error)
{
	return check_topics(url, options, wanted, true, ret_states, error);
}

int nt_kafka_topics_check(const char *url, const struct nt_bus_options *options,
			  const struct nt_kafka_topics_options *wanted,
			  struct nt_kafka_topic_state ret_states[NT_TOPIC_END],
			  struct nt_bus_error *error)
{
	return check_topics(url, options, wanted, false, ret_states, error);
}
