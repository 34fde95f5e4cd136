/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Group membership: which partitions are ours. It has a handle of its own with an empty assignment.
 * So there is one way of fetching, with or without a group, and every member can read further
 * topics whole.
 *
 * The assignor is "range" with static membership: releases of the library before 2.10 lose
 * partitions in cooperative rebalances, and Debian 12 has 2.0.2.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/bus/kafka/cause.h"
#include "common/bus/kafka/reader_impl.h"
#include "common/system/clock.h"

enum {
	COMMITTED_MS = 5000,
	HEARTBEATS = 4, /* in a session */
	MAX_REJOINS = 3,
};

#define DEFAULT_SESSION_NS (10 * NT_SECOND)
#define LASTING_NS         NT_MINUTE /* an assignment this old is confirmed */
#define FIRST_PATIENCE_NS  (15 * NT_SECOND) /* with an assignment that is due; doubles */
#define MAX_PATIENCE_NS    (5 * NT_MINUTE)

int nt_kafka_group_new(const struct nt_bus_group *options, struct nt_kafka_group **ret_group)
{
	struct nt_kafka_group *group = calloc(1, sizeof(*group));

	if (!group)
		return -ENOMEM;
	group->name = strdup(options->name);
	group->member = options->member ? strdup(options->member) : NULL;
	if (!group->name || (options->member && !group->member)) {
		nt_kafka_group_free(group);
		return -ENOMEM;
	}
	group->grouped = options->grouped;
	group->session_ns = options->session_ns ? options->session_ns : DEFAULT_SESSION_NS;
	group->patience_ns = FIRST_PATIENCE_NS;
	group->assigned = options->assigned;
	group->revoked = options->revoked;
	group->data = options->data;
	*ret_group = group;
	return 0;
}

void nt_kafka_group_free(struct nt_kafka_group *group)
{
	if (!group)
		return;
	free(group->name);
	free(group->member);
	free(group);
}

/* The partition of this entry, or NULL. */
static struct nt_kafka_partition *find(struct nt_kafka_reader *reader,
				       const rd_kafka_topic_partition_t *one)
{
	for (int i = 0; i < NT_TOPIC_END; i++) {
		if (!(reader->group->grouped >> i & 1) || !reader->topic[i] ||
		    strcmp(rd_kafka_topic_name(reader->topic[i]), one->topic) != 0)
			continue;
		if (one->partition < 0 ||
		    nt_kafka_partitions_grow(&reader->partitions[i], (enum nt_topic)i,
					     (uint32_t)one->partition + 1, false,
					     reader->from_real_ns) < 0)
			return NULL;
		return &reader->partitions[i].partition[one->partition];
	}
	return NULL;
}

static void assign_one(struct nt_kafka_reader *reader, const rd_kafka_topic_partition_t *one)
{
	struct nt_kafka_group *group = reader->group;
	struct nt_kafka_partition *partition = find(reader, one);
	struct nt_bus_position position;

	if (!partition)
		return;
	position = (struct nt_bus_position){
		.topic = partition->topic,
		.partition = partition->id,
		.offset = one->offset >= 0 && !one->err ? (uint64_t)one->offset : NT_BUS_OLDEST,
	};
	if (group->assigned)
		group->assigned(group->data, &position);
	/* The callback may have called seek, which may move the array. */
	partition = find(reader, one);
	nt_kafka_fetch_stop(reader, partition);
	partition->is_known = true;
	partition->is_owned = true;
	partition->last_real_ns = 0;
	partition->from_real_ns = 0;
	if (position.offset <= INT64_MAX) {
		partition->start = NT_KAFKA_FROM_OFFSET;
		partition->next = position.offset;
	} else if (reader->from_real_ns) {
		partition->start = NT_KAFKA_FROM_TIME;
		partition->from_real_ns = reader->from_real_ns;
	} else {
		partition->start = NT_KAFKA_FROM_OLDEST;
	}
	reader->must_start = true;
}

static void assign(struct nt_kafka_reader *reader, rd_kafka_topic_partition_list_t *list)
{
	/* Without a committed offset, the owner's store and the oldest record decide. */
	if (list->cnt &&
	    rd_kafka_committed(reader->group->rk, list, COMMITTED_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
		for (int i = 0; i < list->cnt; i++)
			list->elems[i].offset = RD_KAFKA_OFFSET_INVALID;
	for (int i = 0; i < list->cnt; i++)
		assign_one(reader, &list->elems[i]);
}

static void revoke_one(struct nt_kafka_reader *reader, struct nt_kafka_partition *partition,
		       bool is_lost)
{
	struct nt_kafka_group *group = reader->group;
	struct nt_bus_position position = {
		.topic = partition->topic,
		.partition = partition->id,
		.offset =
			partition->start == NT_KAFKA_FROM_OFFSET ? partition->next : NT_BUS_OLDEST,
	};

	if (!partition->is_owned)
		return;
	nt_kafka_fetch_stop(reader, partition);
	partition->is_owned = false;
	if (group->revoked)
		group->revoked(group->data, &position, is_lost);
}

static void revoke_all(struct nt_kafka_reader *reader, bool is_lost)
{
	for (int i = 0; i < NT_TOPIC_END; i++)
		for (uint32_t j = 0; j < reader->partitions[i].count; j++)
			if (reader->group->grouped >> i & 1)
				revoke_one(reader, &reader->partitions[i].partition[j], is_lost);
}

static void rebalance(struct nt_kafka_reader *reader, rd_kafka_event_t *event)
{
	struct nt_kafka_group *group = reader->group;
	rd_kafka_t *rk = group->rk;
	rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(0);

	if (rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
		rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(
			rd_kafka_event_topic_partition_list(event));

		revoke_all(reader, false);
		assign(reader, list);
		group->share_mono_ns = nt_clock_mono_ns();
		group->patience_ns = FIRST_PATIENCE_NS;
		nt_kafka_health_share(&reader->client.health);
		rd_kafka_topic_partition_list_destroy(list);
		(void)rd_kafka_assign(rk, none);
	} else {
		group->share_mono_ns = 0;
		nt_kafka_health_wait(&reader->client.health);
		revoke_all(reader, rd_kafka_assignment_lost(rk));
		(void)rd_kafka_assign(rk, NULL);
	}
	rd_kafka_topic_partition_list_destroy(none);
}

/* A confirmed assignment is revoked by a duplicate member only. */
static bool has_lasted(const struct nt_kafka_group *group)
{
	return group->share_mono_ns && nt_clock_mono_ns() - group->share_mono_ns >= LASTING_NS;
}

static void fence(struct nt_kafka_group *group)
{
	if (has_lasted(group) || group->rejoins >= MAX_REJOINS || group->rejoin_mono_ns)
		return;
	group->rejoins++;
	group->rejoin_mono_ns = nt_clock_mono_ns() + group->session_ns;
}

static const char *name_grouped(const struct nt_kafka_reader *reader)
{
	for (int i = 0; i < NT_TOPIC_END; i++)
		if ((reader->group->grouped >> i & 1) && reader->topic[i])
			return rd_kafka_topic_name(reader->topic[i]);
	return "";
}

static void note(struct nt_kafka_reader *reader, rd_kafka_event_t *event)
{
	rd_kafka_resp_err_t error = rd_kafka_event_error(event);
	char text[NT_BUS_TEXT] = "", what[NT_BUS_TEXT];

	if (error == RD_KAFKA_RESP_ERR__FATAL)
		error = rd_kafka_fatal_error(reader->group->rk, text, sizeof(text));
	/* The library names the topic only in its text; there is one. */
	if (nt_kafka_cause(error, NULL) == NT_BUS_NO_TOPIC)
		(void)snprintf(what, sizeof(what), "topic '%.200s'", name_grouped(reader));
	else
		(void)snprintf(what, sizeof(what), "group '%.200s'", reader->group->name);
	(void)nt_kafka_client_note(&reader->client, error,
				   *text ? text : rd_kafka_event_error_string(event), what);
	if (error == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
		fence(reader->group);
	else if (reader->group->share_mono_ns)
		reader->group->share_mono_ns = nt_clock_mono_ns(); /* to be confirmed again */
}

static void rejoin(struct nt_kafka_reader *reader)
{
	struct nt_kafka_group *group = reader->group;
	struct nt_bus_error error = {0};

	group->rejoin_mono_ns = 0;
	nt_kafka_group_leave(reader);
	if (nt_kafka_group_join(reader, &error) == 0)
		return;
	nt_kafka_health_fail(&reader->client.health, NT_BUS_FAILED, "join the group: %s",
			     error.text);
	group->rejoin_mono_ns = nt_clock_mono_ns() + group->session_ns;
}

/*
 * The library may not rejoin: from 2.1 on, if its topics were deleted and recreated. A needless new
 * client is harmless, as a static member keeps its identity.
 */
static bool must_rejoin(struct nt_kafka_reader *reader)
{
	struct nt_kafka_group *group = reader->group;

	if (group->rejoin_mono_ns)
		return nt_clock_mono_ns() >= group->rejoin_mono_ns;
	if (nt_kafka_health_waits_ns(&reader->client.health) < group->patience_ns)
		return false;
	group->patience_ns *= 2;
	if (group->patience_ns > MAX_PATIENCE_NS)
		group->patience_ns = MAX_PATIENCE_NS;
	return true;
}

void nt_kafka_group_serve(struct nt_kafka_reader *reader)
{
	struct nt_kafka_group *group = reader->group;
	rd_kafka_event_t *event;

	group->since_poll = 0;
	if (has_lasted(group))
		group->rejoins = 0;
	if (must_rejoin(reader))
		rejoin(reader);
	while (group->rk && (event = rd_kafka_queue_poll(group->queue, 0))) {
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
			rebalance(reader, event);
		else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR)
			note(reader, event);
		rd_kafka_event_destroy(event);
	}
}

static int subscribe(struct nt_kafka_reader *reader)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
	rd_kafka_resp_err_t error;

	for (int i = 0; i < NT_TOPIC_END; i++)
		if (reader->group->grouped >> i & 1)
			rd_kafka_topic_partition_list_add(
				list, rd_kafka_topic_name(reader->topic[i]), RD_KAFKA_PARTITION_UA);
	error = rd_kafka_subscribe(reader->group->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	return nt_kafka_errno(error);
}

int nt_kafka_group_join(struct nt_kafka_reader *reader, struct nt_bus_error *error)
{
	static const uint64_t one = 1;
	struct nt_kafka_group *group = reader->group;
	const uint64_t session_ms = group->session_ns / NT_MILLISECOND;
	const struct nt_kafka_setting settings[] = {
		{"group.id", group->name},
		{"enable.auto.commit", "false"},
		{"enable.auto.offset.store", "false"},
		{"partition.assignment.strategy", "range"},
		{"topic.metadata.refresh.interval.ms", "5000"}, /* for new topics and partitions */
		/*
		 * max.poll.interval.ms stays at five minutes. A joining member waits that long too
		 * if the coordinator stalls. A shorter one would repeatedly evict members that are
		 * loading the states of many shards.
		 */
		{"session.timeout.ms", NULL, session_ms},
		{"heartbeat.interval.ms", NULL, session_ms / HEARTBEATS},
		{"group.instance.id", group->member},
	};
	size_t count = sizeof(settings) / sizeof(settings[0]);
	int r = nt_kafka_client_make(
		&reader->client, RD_KAFKA_CONSUMER,
		RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_OFFSET_COMMIT,
		settings, group->member ? count : count - 1, error, &group->rk);

	if (r < 0)
		return r;
	group->share_mono_ns = 0;
	nt_kafka_health_wait(&reader->client.health);
	(void)rd_kafka_poll_set_consumer(group->rk);
	group->queue = rd_kafka_queue_get_consumer(group->rk);
	rd_kafka_queue_io_event_enable(group->queue, reader->event_fd, &one, sizeof(one));
	return subscribe(reader);
}

/* A static member does not leave the group: it may be back before its session ends. */
void nt_kafka_group_leave(struct nt_kafka_reader *reader)
{
	struct nt_kafka_group *group = reader->group;

	if (!group->rk)
		return;
	revoke_all(reader, rd_kafka_assignment_lost(group->rk));
	nt_kafka_end_queue(group->queue);
	nt_kafka_end(group->rk, true);
	group->rk = NULL;
	group->queue = NULL;
}

int nt_kafka_group_commit(struct nt_bus_reader *bus, const struct nt_bus_position *positions,
			  size_t count)
{
	struct nt_kafka_reader *reader = (struct nt_kafka_reader *)bus;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
	rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;

	for (size_t i = 0; i < count; i++) {
		const struct nt_bus_position *position = &positions[i];

		if ((unsigned int)position->topic >= NT_TOPIC_END ||
		    !(reader->group->grouped >> position->topic & 1) ||
		    position->offset > INT64_MAX ||
		    position->partition >= reader->partitions[position->topic].count ||
		    !reader->partitions[position->topic].partition[position->partition].is_owned)
			continue;
		rd_kafka_topic_partition_list_add(
			list, rd_kafka_topic_name(reader->topic[position->topic]),
			(int32_t)position->partition)
			->offset = (int64_t)position->offset;
	}
	if (list->cnt)
		error = rd_kafka_commit(reader->group->rk, list, 1);
	rd_kafka_topic_partition_list_destroy(list);
	return nt_kafka_errno(error);
}
