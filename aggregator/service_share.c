/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Assignment and revocation of shards, and data exchanged with the other aggregators of the group.
 *
 * Assignment: reads the others' records to the end, loads the shard's newest state and adopts
 * unsent messages. Revocation: waits for messages in flight, publishes delivery results, and saves
 * the state for the next owner.
 */
#include <errno.h>
#include <string.h>

#include "aggregator/service_impl.h"
#include "common/system/clock.h"
#include "common/system/log.h"

enum {
	NEXT_MS = 100,
	NEWS_RECORDS = 1024, /* per turn */
	IDLE_ROUNDS = 4, /* rounds without a record after which the end is assumed */
};

#define CATCH_UP_NS (30 * NT_SECOND)

uint32_t nt_service_number(uint32_t partition)
{
	return partition == NT_BUS_EVERY_PARTITION ? NT_SHARD_WHOLE : partition + 1;
}

struct nt_shard *nt_service_find(struct nt_service *service, uint32_t number)
{
	struct nt_shard *shard;

	HASH_FIND(hh, service->shard, &number, sizeof(number), shard);
	return shard;
}

/* ---- reading to the end ---------------------------------------------------------------------- */

/* Whether the end is reached; *sure: the bus confirmed it, otherwise just no record arrived. */
static bool is_at_end(struct nt_bus_reader *reader, const enum nt_topic *topic, size_t topics,
		      bool *ret_sure)
{
	for (size_t i = 0; i < topics; i++) {
		struct nt_bus_lag lag;

		*ret_sure = nt_bus_reader_lag(reader, 1U << topic[i], 0, &lag) < 0;
		if (*ret_sure)
			return true;
		if (!lag.partitions || lag.records)
			return false;
	}
	return true;
}

/* Passes every record to `take`; some may have been read by another reader before. */
static int read_to_end(struct nt_bus_reader *reader, const enum nt_topic *topic, size_t topics,
		       int (*take)(void *data, const struct nt_bus_record *record), void *data)
{
	const uint64_t until_ns = nt_clock_mono_ns() + CATCH_UP_NS;
	struct nt_bus_record record;
	int idle = 0, r;

	for (;;) {
		bool sure = false;

		r = nt_bus_reader_next(reader, idle ? NEXT_MS : 0, &record);
		if (r < 0 && r != -EINTR)
			return r;
		if (r > 0) {
			idle = 0;
			r = take(data, &record);
			if (r < 0)
				return r;
			continue;
		}
		/* Partitions report their ends one by one, so a few idle rounds are needed. */
		if (is_at_end(reader, topic, topics, &sure) && (sure || ++idle > IDLE_ROUNDS))
			return 0;
		idle += !idle;
		if (nt_clock_mono_ns() > until_ns)
			return -ETIMEDOUT;
	}
}

/* ---- records of others ----------------------------------------------------------------------- */

/*
 * Holds others' incidents until the store can write again, so none is skipped. Job summaries, on
 * another topic, continue. If the reader cannot seek back, the program ends, and the next run reads
 * all of it.
 */
static int hold_incidents(struct nt_service *service, const struct nt_bus_record *record)
{
	const struct nt_bus_position position = {
		.topic = record->topic,
		.partition = record->partition,
		.offset = record->offset,
	};
	int r = nt_bus_reader_seek(service->news, &position);

	if (r == 0)
		r = nt_bus_reader_pause(service->news, 1U << NT_TOPIC_INCIDENT);
	if (r < 0) {
		service->error = r;
		return nt_err(r, "queue the incidents of other aggregators");
	}
	service->held_until_ns = nt_clock_mono_ns() + service->options.retry_after_ns;
	return 0;
}

static void resume_incidents(struct nt_service *service)
{
	if (service->held_until_ns &&
	    nt_bus_reader_resume(service->news, 1U << NT_TOPIC_INCIDENT) == 0)
		service->held_until_ns = 0;
}

static int take_incident(struct nt_service *service, const struct nt_bus_record *record)
{
	const struct nt_sink *sink = service->options.sink;
	nt_auto(nt_message) struct nt_message *message = NULL;
	const struct nt_wire_incident *incident;
	int r;

	if (!sink || !sink->take || !record->value_len)
		return 0;
	r = nt_message_decode(record->value, record->value_len, &message);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || message->body != NT_BODY_INCIDENT) {
		service->foreign_refused++;
		return 0;
	}
	if (service->bus_producer && message->boot == nt_bus_producer_boot(service->bus_producer))
		return 0;
	incident = &message->incident;
	service->foreign_incidents++;
	r = nt_node_desk_note(service->node_desk, incident);
	if (r < 0)
		return r;
	r = sink->take(sink->data, incident, nt_service_find(service, incident->shard) != NULL);
	if (r < 0 && service->sink_errors++ == 0)
		(void)nt_err(r,
			     "store incident %s of another aggregator; later failures are only "
			     "counted",
			     incident->id);
	if (r < 0 && r != -EINVAL && r != -EMSGSIZE && r != -ENOMEM)
		return hold_incidents(service, record);
	return r == -ENOMEM ? r : 0;
}

static int take_news(void *data, const struct nt_bus_record *record)
{
	struct nt_service *service = data;

	if (record->topic == NT_TOPIC_INCIDENT)
		return take_incident(service, record);
	return nt_job_summaries_take(
		service->summaries, record,
		service->bus_producer ? nt_bus_producer_boot(service->bus_producer) : 0);
}

/* While the store fails, the end cannot be reached. */
static int take_all_news(void *data, const struct nt_bus_record *record)
{
	const struct nt_service *service = data;
	int r = take_news(data, record);

	return r == 0 && service->held_until_ns ? -EAGAIN : r;
}

int nt_service_take_news(struct nt_service *service)
{
	struct nt_bus_record record;
	int r;

	if (!service->news)
		return 0;
	if (nt_clock_mono_ns() >= service->held_until_ns)
		resume_incidents(service);
	for (int i = 0; i < NEWS_RECORDS; i++) {
		r = nt_bus_reader_next(service->news, 0, &record);
		if (r <= 0)
			return r == -EINTR ? 0 : r;
		r = take_news(service, &record);
		if (r < 0)
			return r;
	}
	return 0;
}

int nt_service_catch_up(struct nt_service *service)
{
	static const enum nt_topic topics[] = {NT_TOPIC_INCIDENT, NT_TOPIC_STATE};

	if (!service->news)
		return 0;
	resume_incidents(service);
	return read_to_end(service->news, topics, 2, take_all_news, service);
}

/* ---- states of an assignment ----------------------------------------------------------------- */

/*
 * State logs of all shards, read once per assignment of several shards. Freed afterwards, as they
 * may be large.
 */
struct state_log_entry {
	uint32_t number;
	struct nt_state_log *state_log;
	UT_hash_handle hh;
};

struct nt_state_logs {
	struct state_log_entry *entry;
};

static void free_state_logs(struct nt_state_logs *state_logs)
{
	struct state_log_entry *entry, *next;

	if (!state_logs)
		return;
	HASH_ITER(hh, state_logs->entry, entry, next)
	{
		HASH_DEL(state_logs->entry, entry);
		nt_state_log_free(entry->state_log);
		free(entry);
	}
	free(state_logs);
}
NT_DEFINE_AUTO(nt_state_logs, free_state_logs)

/* data: of the assignment. */
static int find_state_log(void *data, uint32_t number, struct nt_state_log **ret_state_log)
{
	struct nt_state_logs *state_logs = data;
	struct state_log_entry *entry;
	int r;

	HASH_FIND(hh, state_logs->entry, &number, sizeof(number), entry);
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->number = number;
		r = nt_state_log_new(number, &entry->state_log);
		if (r == 0)
			HASH_ADD(hh, state_logs->entry, number, sizeof(entry->number), entry);
		if (r < 0 || !nt_table_has(entry)) {
			nt_state_log_free(entry->state_log);
			free(entry);
			return -ENOMEM;
		}
	}
	*ret_state_log = entry->state_log;
	return 0;
}

static int take_state(void *data, const struct nt_bus_record *record)
{
	struct nt_state_log *state_log;
	uint32_t number;
	int r;

	if (!nt_state_log_owns(record, &number))
		return 0;
	r = find_state_log(data, number, &state_log);
	return r < 0 ? r : nt_state_log_take(state_log, record);
}

static int read_state_logs(struct nt_service *service)
{
	static const enum nt_topic topic = NT_TOPIC_STATE;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_state_logs) struct nt_state_logs *state_logs = calloc(1, sizeof(*state_logs));
	int r;

	if (!state_logs)
		return -ENOMEM;
	r = nt_bus_reader_open_with(service->options.bus_url, 1U << NT_TOPIC_STATE, &service->bus,
				    &reader);
	if (r == 0)
		r = read_to_end(reader, &topic, 1, take_state, state_logs);
	if (r == -ENOMEM)
		return r;
	/* The store may still have a state. */
	if (r < 0)
		(void)nt_warn(r, "read the states of shards from the bus");
	service->state_logs = nt_take(state_logs);
	return 0;
}

void nt_service_settle(struct nt_service *service)
{
	free_state_logs(nt_take(service->state_logs));
}

/* ---- assignment ------------------------------------------------------------------------------ */

static int load(struct nt_service *service, struct nt_shard *shard)
{
	struct nt_state_log *state_log = NULL;
	int r = 0;

	if (shard->number != NT_SHARD_WHOLE && !service->state_logs)
		r = read_state_logs(service);
	if (r == 0 && service->state_logs)
		r = find_state_log(service->state_logs, shard->number, &state_log);
	if (r == 0)
		r = nt_shard_load(shard, service->options.states, state_log);
	if (r < 0)
		return r;
	return nt_service_load_nodes(service, shard, service->state_logs ? find_state_log : NULL,
				     service->state_logs);
}

/* Starts after the records taken, or earlier at the windows that still wait. */
static int start(struct nt_service *service, struct nt_shard *shard,
		 struct nt_bus_position *position)
{
	if (shard->number == NT_SHARD_WHOLE)
		return shard->loaded ? nt_offsets_seek(shard->offsets, service->reader) : 0;
	/* Offsets committed by the group are useless without a state. */
	if (!shard->loaded || nt_offsets_start(shard->offsets, position->topic, position->partition,
					       &position->offset) < 0)
		position->offset = NT_BUS_OLDEST;
	return 0;
}

/* Retried on failure: no other aggregator sends the previous owner's unsent messages. */
static int adopt(struct nt_service *service, struct nt_shard *shard)
{
	const struct nt_sink *sink = service->options.sink;
	int r;

	if (shard->number == NT_SHARD_WHOLE || !sink || !sink->adopt)
		return 0;
	r = sink->adopt(sink->data, shard->number, nt_clock_real_ns());
	if (r < 0 && !shard->must_adopt)
		(void)nt_err(r,
			     "take over the messages of shard %u; will be "
			     "retried",
			     shard->number);
	shard->must_adopt = r < 0;
	service->adopt_after_ns = nt_clock_mono_ns() + service->options.retry_after_ns;
	return r == -ENOMEM ? r : 0;
}

int nt_service_adopt(struct nt_service *service)
{
	if (nt_clock_mono_ns() < service->adopt_after_ns)
		return 0;
	for (struct nt_shard *shard = service->shard; shard; shard = shard->hh.next) {
		int r = shard->must_adopt ? adopt(service, shard) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int assign(struct nt_service *service, struct nt_bus_position *position)
{
	const uint32_t number = nt_service_number(position->partition);
	nt_auto(nt_shard) struct nt_shard *shard = NULL;
	int r;

	if (nt_service_find(service, number))
		return 0;
	/* The previous owner's incidents and deliveries must be read first; once per assignment. */
	r = service->state_logs ? 0 : nt_service_catch_up(service);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		(void)nt_warn(r, "read the incidents of other aggregators from the bus");
	r = nt_shard_new(number, &service->options.engine, &service->handler, &shard);
	if (r == 0)
		r = load(service, shard);
	if (r == 0)
		r = start(service, shard, position);
	if (r == 0)
		r = adopt(service, shard);
	if (r < 0)
		return r;
	HASH_ADD(hh, service->shard, number, sizeof(shard->number), shard);
	if (!nt_table_has(shard))
		return -ENOMEM;
	(void)nt_take(shard);
	service->assigned++;
	if (number != NT_SHARD_WHOLE)
		nt_info("shard %u assigned", number);
	return 0;
}

void nt_service_assigned(void *data, struct nt_bus_position *position)
{
	struct nt_service *service = data;
	int r;

	if (position->topic != NT_TOPIC_WINDOW || service->error < 0)
		return;
	r = assign(service, position);
	if (r < 0)
		service->error = r;
	else
		atomic_store(&service->caught_up, false);
}

/* ---- revocation ------------------------------------------------------------------------------ */

/* Commits offsets for tools that show the group's lag; recovery uses the saved state. */
static void commit(struct nt_service *service, const struct nt_shard *shard)
{
	nt_autofree struct nt_bus_position *position = NULL;
	size_t positions;

	if (shard->number == NT_SHARD_WHOLE ||
	    nt_offsets_list(shard->offsets, &position, &positions) < 0)
		return;
	for (size_t i = 0; i < positions; i++)
		position[i].offset++;
	(void)!nt_bus_reader_commit(service->reader, position, positions);
}

/* Ends the publications of all shards together, to share flushes, which may be slow. */
static int end_drafts(struct nt_service *service, const struct nt_state_log_port *port)
{
	const char *address = service->options.address ? service->options.address : "";
	int r = port->flush(port->data);

	for (struct nt_shard *shard = service->shard; shard && r == 0; shard = shard->hh.next)
		if (shard->drafted)
			r = nt_state_log_end(port, address, &shard->draft);
	if (r == 0)
		r = port->flush(port->data);
	for (struct nt_shard *shard = service->shard; shard && r == 0; shard = shard->hh.next)
		if (shard->drafted)
			nt_state_log_commit(&shard->draft, &shard->mark);
	return r;
}

int nt_service_save(struct nt_service *service)
{
	const bool shares = service->bus_producer && service->options.shared;
	struct nt_state_log_port port = {0};
	int first = 0, r;

	if (shares)
		port = nt_bus_producer_port(service->bus_producer);
	for (struct nt_shard *shard = service->shard; shard; shard = shard->hh.next) {
		r = nt_shard_save(shard, service->options.states, shares ? &port : NULL);

		if (r < 0 && first == 0)
			first = r;
	}
	if (shares) {
		r = end_drafts(service, &port);
		if (r < 0 && first == 0)
			first = r;
	}
	if (first < 0 && service->save_errors++ == 0)
		(void)nt_err(first, "save the state; later failures are only counted");
	for (struct nt_shard *shard = service->shard; shard && first == 0; shard = shard->hh.next) {
		shard->saved = true;
		commit(service, shard);
	}
	r = nt_service_save_nodes(service, false);
	return first < 0 ? first : r;
}

static void release(struct nt_service *service, struct nt_shard *shard, bool is_lost)
{
	const struct nt_sink *sink = service->options.sink;
	int r = 0;

	if (shard->number != NT_SHARD_WHOLE && sink && sink->release)
		r = sink->release(sink->data, shard->number);
	if (r < 0)
		(void)nt_err(r, "release the messages of shard %u", shard->number);
	/*
	 * Delivery results go to the next owner, unless the shard was lost: then its data are
	 * newer.
	 */
	if (!is_lost) {
		service->publish_after_ns = 0;
		nt_service_publish(service);
		/* Shards are revoked together: the first save covers all of them. */
		if (!shard->saved) {
			(void)nt_service_save(service);
			(void)nt_service_save_nodes(service, true);
		}
	} else if (nt_shard_save(shard, service->options.states, NULL) < 0) {
		/*
		 * For our own restart: if only the brokers were unreachable, no other owner took
		 * over.
		 */
		service->save_errors++;
	}
	if (service->summaries)
		nt_job_summaries_drop(service->summaries, shard->number);
}

void nt_service_revoked(void *data, const struct nt_bus_position *position, bool is_lost)
{
	struct nt_service *service = data;
	struct nt_shard *shard;

	if (position->topic != NT_TOPIC_WINDOW)
		return;
	shard = nt_service_find(service, nt_service_number(position->partition));
	if (!shard)
		return;
	if (!service->closing)
		release(service, shard, is_lost);
	nt_self_metrics_add(&service->gone, shard->engine, nt_ingest_counters(shard->ingest));
	HASH_DEL(service->shard, shard);
	nt_node_desk_release_shard(service->node_desk, shard->number);
	service->revoked++;
	service->lost += is_lost;
	if (!service->closing && shard->number != NT_SHARD_WHOLE)
		nt_info("shard %u %s", shard->number, is_lost ? "lost" : "released");
	nt_shard_free(shard);
}

/* ---- publishing ------------------------------------------------------------------------------ */

static int publish_incident(void *data, const struct nt_wire_incident *incident)
{
	struct nt_service *service = data;

	return nt_bus_producer_incident(service->bus_producer, incident);
}

static int flush(void *data)
{
	struct nt_service *service = data;

	return nt_bus_producer_flush(service->bus_producer);
}

void nt_service_publish(struct nt_service *service)
{
	const struct nt_sink *sink = service->options.sink;
	const struct nt_sink_bus_producer bus_producer = {
		.incident = publish_incident,
		.flush = flush,
		.data = service,
	};
	int r;

	if (!service->bus_producer || !sink || !sink->publish ||
	    nt_clock_mono_ns() < service->publish_after_ns)
		return;
	/* Failures are counted by the bus producer or the store, and retried. */
	do
		r = sink->publish(sink->data, &bus_producer);
	while (r > 0);
	if (r < 0)
		service->publish_after_ns = nt_clock_mono_ns() + service->options.retry_after_ns;
}

static int publish_shard_summaries(struct nt_service *service, const struct nt_state_log_port *port,
				   struct nt_shard *shard)
{
	nt_autofree const struct nt_snapshot_job **job = NULL;
	struct nt_jobs *jobs = nt_engine_jobs(shard->engine);
	size_t most = 0, count = 0;

	for (struct nt_job_key *key = nt_jobs_keys(jobs); key; key = key->hh.next)
		most += key->jobs;
	job = calloc(most ? most : 1, sizeof(const struct nt_snapshot_job *));
	if (!job)
		return -ENOMEM;
	for (struct nt_job_key *key = nt_jobs_keys(jobs); key; key = key->hh.next)
		for (struct nt_job *one = key->job; one; one = one->next) {
			const struct nt_job_view *view = nt_engine_view(one);

			if (view && view->snapshot)
				job[count++] = view->snapshot;
		}
	return nt_job_summaries_publish(service->summaries, port,
					service->options.address ? service->options.address : "",
					shard->number, job, count);
}

void nt_service_publish_summaries(struct nt_service *service)
{
	struct nt_state_log_port port;

	if (!service->summaries || !service->bus_producer)
		return;
	port = nt_bus_producer_port(service->bus_producer);
	/* Failures of the bus are counted and retried the next time. */
	for (struct nt_shard *shard = service->shard; shard; shard = shard->hh.next)
		(void)!publish_shard_summaries(service, &port, shard);
}
