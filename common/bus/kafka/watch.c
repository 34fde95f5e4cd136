/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/watch.h"

#include <errno.h>
#include <string.h>

#include "common/system/clock.h"
#include "common/system/thread.h"

enum {
	TICK_MS = 1000,
	METADATA_MS = 2000,
	ENDS_MS = 3000,
};

#define LOOK_NS       (5 * NT_SECOND)
#define LOOK_AGAIN_NS NT_SECOND /* while a topic is missing, or brokers are unreachable */

static void wake(const struct nt_kafka_watch *watch)
{
	static const uint64_t one = 1;

	/* Fails only if it is readable already. */
	if (write(watch->event_fd, &one, sizeof(one)) < 0)
		return;
}

static const struct rd_kafka_metadata_topic *find(const struct rd_kafka_metadata *metadata,
						  const char *name)
{
	for (int i = 0; i < metadata->topic_cnt; i++)
		if (strcmp(metadata->topics[i].topic, name) == 0)
			return &metadata->topics[i];
	return NULL;
}

/* Applies metadata. Returns whether all topics exist. */
static bool learn(struct nt_kafka_watch *watch, const struct rd_kafka_metadata *metadata)
{
	bool is_complete = true, is_new = false;

	(void)pthread_mutex_lock(&watch->lock);
	for (int i = 0; i < NT_TOPIC_END; i++) {
		const struct rd_kafka_metadata_topic *topic;
		uint32_t count;

		if (!watch->topics[i])
			continue;
		topic = find(metadata, rd_kafka_topic_name(watch->topics[i]));
		/* A topic without a leader keeps its partitions. */
		if (!topic || topic->err != RD_KAFKA_RESP_ERR_NO_ERROR ||
		    topic->partition_cnt <= 0) {
			is_complete = false;
			continue;
		}
		count = (uint32_t)topic->partition_cnt;
		is_new |= count != watch->partitions[i];
		watch->partitions[i] = count;
	}
	if (is_new || watch->generation == 0) {
		watch->generation++;
		wake(watch);
		(void)pthread_cond_broadcast(&watch->changed);
	}
	(void)pthread_mutex_unlock(&watch->lock);
	return is_complete;
}

static void note_topics(struct nt_kafka_watch *watch, const struct rd_kafka_metadata *metadata)
{
	bool is_well = true;

	for (int i = 0; i < metadata->topic_cnt; i++) {
		const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];
		char what[NT_KAFKA_TOPIC_BYTES + 16];

		if (topic->err != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART &&
		    topic->err != RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
			continue;
		is_well = false;
		(void)snprintf(what, sizeof(what), "topic '%.160s'", topic->topic);
		(void)nt_kafka_client_note(watch->client, topic->err, NULL, what);
	}
	if (is_well)
		nt_kafka_health_succeed(&watch->client->health);
}

/* All known partitions, by name. */
static rd_kafka_topic_partition_list_t *list_all(const struct nt_kafka_watch *watch)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);

	for (uintptr_t i = 0; i < NT_TOPIC_END; i++) {
		for (uint32_t j = 0; j < watch->partitions[i]; j++) {
			rd_kafka_topic_partition_t *one = rd_kafka_topic_partition_list_add(
				list, rd_kafka_topic_name(watch->topics[i]), (int32_t)j);

			one->offset = RD_KAFKA_OFFSET_END;
			one->opaque = (void *)i;
		}
	}
	return list;
}

static bool says_anything(const rd_kafka_topic_partition_list_t *ends)
{
	for (int i = 0; i < ends->cnt; i++)
		if (!ends->elems[i].err && ends->elems[i].offset >= 0)
			return true;
	return false;
}

/* Not before the last ones were taken: so the new ones are later than that. */
static void request_ends(struct nt_kafka_watch *watch)
{
	rd_kafka_topic_partition_list_t *list;
	bool is_wanted;

	(void)pthread_mutex_lock(&watch->lock);
	is_wanted = !watch->ends;
	watch->wants_look = false;
	(void)pthread_mutex_unlock(&watch->lock);
	if (!is_wanted)
		return;
	list = list_all(watch);
	if (!list->cnt ||
	    rd_kafka_offsets_for_times(watch->rk, list, ENDS_MS) != RD_KAFKA_RESP_ERR_NO_ERROR ||
	    !says_anything(list))
		rd_kafka_topic_partition_list_destroy(nt_take(list));
	(void)pthread_mutex_lock(&watch->lock);
	watch->ends = list;
	if (list)
		watch->without_ends_mono_ns = 0;
	else if (!watch->without_ends_mono_ns)
		watch->without_ends_mono_ns = nt_clock_mono_ns();
	wake(watch);
	(void)pthread_mutex_unlock(&watch->lock);
}

/* Returns the time of the next look. */
static uint64_t look(struct nt_kafka_watch *watch)
{
	const struct rd_kafka_metadata *metadata;
	rd_kafka_resp_err_t error = rd_kafka_metadata(watch->rk, 0, NULL, &metadata, METADATA_MS);
	bool is_complete;

	if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
		return nt_clock_mono_ns() + LOOK_AGAIN_NS;
	note_topics(watch, metadata);
	is_complete = learn(watch, metadata);
	rd_kafka_metadata_destroy(metadata);
	if (is_complete)
		request_ends(watch);
	return nt_clock_mono_ns() + (is_complete ? LOOK_NS : LOOK_AGAIN_NS);
}

/* While there is a fault, looks are more frequent. */
static bool is_due(struct nt_kafka_watch *watch, uint64_t look_ns, uint64_t looked_ns)
{
	uint64_t now_ns = nt_clock_mono_ns();
	struct nt_bus_health health;
	bool wants_look;

	if (now_ns >= look_ns || now_ns < looked_ns + LOOK_AGAIN_NS)
		return now_ns >= look_ns;
	(void)pthread_mutex_lock(&watch->lock);
	wants_look = watch->wants_look;
	(void)pthread_mutex_unlock(&watch->lock);
	nt_kafka_health_get(&watch->client->health, &health);
	return wants_look || health.cause != NT_BUS_WELL;
}

static bool must_end(struct nt_kafka_watch *watch, bool is_stale)
{
	bool yes;

	(void)pthread_mutex_lock(&watch->lock);
	if (watch->wants_call || (is_stale && !watch->is_stale))
		wake(watch);
	watch->wants_call = false;
	watch->is_stale |= is_stale;
	yes = watch->must_end;
	(void)pthread_mutex_unlock(&watch->lock);
	return yes;
}

static void serve_one(struct nt_kafka_watch *watch)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(watch->queue, TICK_MS);

	if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR)
		(void)nt_kafka_client_note(watch->client, rd_kafka_event_error(event),
					   rd_kafka_event_error_string(event), NULL);
	rd_kafka_event_destroy(event);
}

static void *observe(void *data)
{
	struct nt_kafka_watch *watch = data;
	uint64_t look_ns = 0, looked_ns = 0;

	while (!must_end(watch, nt_kafka_client_is_stale(watch->client))) {
		if (is_due(watch, look_ns, looked_ns)) {
			look_ns = look(watch);
			looked_ns = nt_clock_mono_ns();
		}
		serve_one(watch);
	}
	return NULL;
}

int nt_kafka_watch_start(struct nt_kafka_watch *watch, struct nt_kafka_client *client,
			 rd_kafka_t *rk, rd_kafka_topic_t *const *topics, int event_fd)
{
	int r;

	memset(watch, 0, sizeof(*watch));
	watch->client = client;
	watch->rk = rk;
	watch->topics = topics;
	watch->event_fd = event_fd;
	watch->queue = rd_kafka_queue_get_main(rk);
	(void)pthread_mutex_init(&watch->lock, NULL);
	nt_thread_condition_init(&watch->changed);
	r = nt_thread_start(&watch->thread, observe, watch);
	if (r < 0) {
		rd_kafka_queue_destroy(watch->queue);
		watch->queue = NULL;
	}
	return r;
}

void nt_kafka_watch_end(struct nt_kafka_watch *watch)
{
	if (!watch->queue)
		return;
	(void)pthread_mutex_lock(&watch->lock);
	watch->must_end = true;
	(void)pthread_mutex_unlock(&watch->lock);
	rd_kafka_queue_yield(watch->queue);
	(void)pthread_join(watch->thread, NULL);
	rd_kafka_queue_destroy(watch->queue);
	watch->queue = NULL;
	if (watch->ends)
		rd_kafka_topic_partition_list_destroy(watch->ends);
	watch->ends = NULL;
	(void)pthread_cond_destroy(&watch->changed);
	(void)pthread_mutex_destroy(&watch->lock);
}

void nt_kafka_watch_get(struct nt_kafka_watch *watch, struct nt_kafka_news *ret_news)
{
	(void)pthread_mutex_lock(&watch->lock);
	memcpy(ret_news->partitions, watch->partitions, sizeof(ret_news->partitions));
	ret_news->generation = watch->generation;
	ret_news->is_stale = watch->is_stale;
	ret_news->without_ends_ns =
		watch->without_ends_mono_ns ? nt_clock_mono_ns() - watch->without_ends_mono_ns : 0;
	(void)pthread_mutex_unlock(&watch->lock);
}

int nt_kafka_watch_wait(struct nt_kafka_watch *watch, int timeout_ms)
{
	uint64_t until_ns = nt_clock_mono_ns() + (uint64_t)timeout_ms * NT_MILLISECOND;
	bool is_known;

	(void)pthread_mutex_lock(&watch->lock);
	while (!watch->generation && nt_thread_wait(&watch->changed, &watch->lock, until_ns))
		;
	is_known = watch->generation != 0;
	(void)pthread_mutex_unlock(&watch->lock);
	return is_known ? 0 : -ETIMEDOUT;
}

rd_kafka_topic_partition_list_t *nt_kafka_watch_take_ends(struct nt_kafka_watch *watch)
{
	rd_kafka_topic_partition_list_t *ends;

	(void)pthread_mutex_lock(&watch->lock);
	ends = nt_take(watch->ends);
	(void)pthread_mutex_unlock(&watch->lock);
	return ends;
}

void nt_kafka_watch_hurry(struct nt_kafka_watch *watch)
{
	(void)pthread_mutex_lock(&watch->lock);
	watch->wants_look = true;
	(void)pthread_mutex_unlock(&watch->lock);
}

void nt_kafka_watch_call(struct nt_kafka_watch *watch)
{
	(void)pthread_mutex_lock(&watch->lock);
	watch->wants_call = true;
	(void)pthread_mutex_unlock(&watch->lock);
}
