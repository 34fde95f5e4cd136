/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Wall time is used for three things only: when to build a snapshot, when to save, and when to stop
 * waiting for silent agents. Decisions depend on event time alone.
 */
#include "aggregator/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/service_impl.h"
#include "aggregator/snapshot_builder.h"
#include "common/base/hash.h"
#include "common/system/clock.h"
#include "common/system/log.h"

enum {
	TURN_MS = 200, /* maximum delay of a stop */
	TURN_RECORDS = 4096, /* per turn, so that snapshots and saves are not delayed */
	SNAPSHOT_SHARE = 10, /* building a snapshot may take 1 / this of the time */
};

#define SNAPSHOT_NS      (500 * NT_MILLISECOND)
#define SWEEP_NS         NT_SECOND
#define SAVE_NS          (30 * NT_SECOND)
#define SUMMARIES_NS     (5 * NT_SECOND)
#define RETRY_NS         (5 * NT_SECOND)
#define STREAM_FORGET_NS NT_HOUR

static const char client_name[] = "neutracer-aggregator";

/* ---- output ---------------------------------------------------------------------------------- */

static int take_message(void *data, const struct nt_message *message)
{
	const struct nt_service *service = data;

	return nt_profile_desk_take(service->profile_desk, message);
}

static void take_incident(void *data, const struct nt_shard *shard,
			  const struct nt_wire_incident *decided)
{
	struct nt_service *service = data;
	const struct nt_sink *sink = service->options.sink;
	const bool pending = strcmp(decided->state, "pending") == 0;
	struct nt_wire_incident incident = *decided;
	int r = 0;

	incident.shard = shard->number;
	service->is_snapshot_urgent |= !pending;
	if (!pending)
		nt_debug("incident %s %s: %s", incident.id, incident.state, incident.summary);
	if (sink)
		r = sink->incident(sink->data, &incident);
	if (r < 0 && service->sink_errors++ == 0)
		(void)nt_err(r, "store incident %s; later failures are only counted", incident.id);
	/* Stored incidents are published from the store, with their deliveries and retries. */
	if (service->bus_producer && (pending || !sink || !sink->publish || r < 0))
		(void)nt_bus_producer_incident(service->bus_producer, &incident);
}

static void pass_refused(void *data, const struct nt_bus_record *record, const char *reason)
{
	struct nt_service *service = data;

	if (service->bus_producer)
		nt_bus_producer_refused(service->bus_producer, record, reason, nt_clock_real_ns());
}

/* ---- new and free ---------------------------------------------------------------------------- */

/* Members of a group read the same topics, so the group is named after the URL's topic prefix. */
static void name_group(const char *url, char name[NT_SERVICE_MAX_GROUP])
{
	const char *hosts = strstr(url, "://"), *slash = hosts ? strchr(hosts + 3, '/') : NULL;

	(void)snprintf(name, NT_SERVICE_MAX_GROUP, "%.200s-aggregator",
		       slash && slash[1] ? slash + 1 : "neutracer");
}

static int join(struct nt_service *service)
{
	char name[NT_SERVICE_MAX_GROUP];
	const struct nt_service_options *options = &service->options;
	const struct nt_bus_group group = {
		.name = name,
		.member = options->member,
		.grouped = 1U << NT_TOPIC_WINDOW,
		.assigned = nt_service_assigned,
		.revoked = nt_service_revoked,
		.data = service,
	};
	/* On a shared bus node vectors have their own reader: see node_feed.h. */
	const uint32_t topics = 1U << NT_TOPIC_WINDOW | (options->shared ? 0 : 1U << NT_TOPIC_NODE);
	int r;

	name_group(options->bus_url, name);
	r = (options->join ? options->join : nt_bus_reader_join)(
		options->bus_url, topics, &service->bus, &group, &service->reader);
	if (r < 0 || !options->rewind_ns)
		return r;
	return nt_bus_reader_seek_time(service->reader, nt_clock_real_ns() - options->rewind_ns);
}

static int open_news(struct nt_service *service)
{
	const struct nt_node_feed_options nodes = {
		.bus_url = service->options.bus_url,
		.bus = &service->bus,
		.signatures = service->options.signatures,
		.vector = nt_service_take_fed_vector,
		.data = service,
		.max_nodes = service->options.engine.limits.nodes
				     ? service->options.engine.limits.nodes
				     : NT_JOBS_MAX_NODES,
	};
	int r;

	r = nt_job_summaries_new(&service->summaries);
	if (r == 0)
		r = nt_node_feed_open(&nodes, &service->nodes);
	if (r < 0)
		return r;
	return nt_bus_reader_open_with(service->options.bus_url,
				       1U << NT_TOPIC_INCIDENT | 1U << NT_TOPIC_STATE,
				       &service->bus, &service->news);
}

static int open_bus(struct nt_service *service)
{
	const struct nt_service_options *options = &service->options;
	uint64_t boot;
	int r;

	boot = nt_hash_mix(
		nt_hash_u64(nt_hash_u64(NT_HASH_SEED, nt_clock_real_ns()), (uint64_t)getpid()));
	r = nt_bus_producer_open(options->bus_url, &service->bus, boot, &service->bus_producer);
	if (r == -EINVAL)
		return r;
	if (r < 0)
		(void)nt_warn(r, "write to bus '%s': incidents are not published on it",
			      options->bus_url);
	service->bus_error = (struct nt_bus_error){0};
	r = nt_level_desk_open(&(struct nt_level_desk_options){options->bus_url, &service->bus,
							       options->auto_level,
							       options->auto_level_ns},
			       &service->level_desk);
	if (r == 0)
		r = nt_profile_desk_new(&service->profile_desk);
	if (r == 0 && options->shared)
		r = open_news(service);
	return r < 0 ? r : join(service);
}

int nt_service_new(const struct nt_service_options *options, struct nt_board *board,
		   struct nt_service **ret_service)
{
	nt_auto(nt_service) struct nt_service *service = calloc(1, sizeof(*service));
	int r;

	if (!service)
		return -ENOMEM;
	r = pthread_mutex_init(&service->lock, NULL);
	if (r) {
		free(nt_take(service));
		return -r;
	}
	service->options = *options;
	if (!service->options.save_every_ns)
		service->options.save_every_ns = SAVE_NS;
	if (!service->options.snapshot_every_ns)
		service->options.snapshot_every_ns = SNAPSHOT_NS;
	if (!service->options.summaries_every_ns)
		service->options.summaries_every_ns = SUMMARIES_NS;
	if (!service->options.retry_after_ns)
		service->options.retry_after_ns = RETRY_NS;
	service->handler = (struct nt_shard_handler){
		.incident = take_incident,
		.message = take_message,
		.joined = nt_service_join_nodes,
		.vector = nt_service_take_vector,
		.refused = pass_refused,
		.signatures = options->signatures,
		.data = service,
	};
	service->board = board;
	service->bus = (struct nt_bus_options){
		.client = client_name,
		.flush_ns = 5 * NT_SECOND,
		.error = &service->bus_error,
	};
	if (options->bus_security)
		service->bus.security = *options->bus_security;
	r = nt_service_open_nodes(service);
	if (r == 0)
		r = open_bus(service);
	if (r < 0 && *service->bus_error.text)
		return nt_err(r, "%s", service->bus_error.text);
	if (r < 0)
		return r;
	service->saved_ns = nt_clock_mono_ns();
	*ret_service = nt_take(service);
	return 0;
}

void nt_service_free(struct nt_service *service)
{
	struct nt_shard *shard, *next;

	if (!service)
		return;
	service->closing = true;
	nt_bus_reader_close(service->reader);
	HASH_ITER(hh, service->shard, shard, next)
	{
		HASH_DEL(service->shard, shard);
		nt_shard_free(shard);
	}
	nt_service_settle(service);
	nt_bus_reader_close(service->news);
	nt_level_desk_close(service->level_desk);
	nt_profile_desk_free(service->profile_desk);
	nt_node_desk_free(service->node_desk);
	nt_node_feed_close(service->nodes);
	nt_job_summaries_free(service->summaries);
	nt_bus_producer_close(service->bus_producer);
	(void)pthread_mutex_destroy(&service->lock);
	free(service);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int build_snapshot(struct nt_service *service, struct nt_snapshot **ret_snapshot)
{
	nt_autofree struct nt_engine **engine = NULL;
	struct nt_snapshot_builder from = {0};
	int r;

	engine = calloc(HASH_COUNT(service->shard) + 1, sizeof(struct nt_engine *));
	if (!engine)
		return -ENOMEM;
	for (struct nt_shard *shard = service->shard; shard; shard = shard->hh.next)
		engine[from.engines++] = shard->engine;
	from.engine = engine;
	from.fleet = nt_node_desk_fleet(service->node_desk);
	if (service->nodes)
		from.shortages = nt_node_feed_shortages(service->nodes);
	if (service->summaries) {
		const struct nt_snapshot_job **summary;

		r = nt_job_summaries_list(service->summaries, &summary, &from.summaries);
		if (r < 0)
			return r;
		from.summary = summary;
	}
	return nt_snapshot_builder_build(&from, ret_snapshot);
}

static void read_lag(struct nt_service *service)
{
	service->lag_known = nt_bus_reader_lag(service->reader, 1U << NT_TOPIC_WINDOW,
					       nt_clock_real_ns(), &service->lag) == 0;
}

static void fill_metrics(struct nt_service *service, struct nt_self_metrics *ret_metrics)
{
	struct nt_bus_health health;
	struct nt_bus_stats bus;

	read_lag(service);
	nt_bus_reader_stats(service->reader, &bus);
	nt_service_bus_health(service, &health);
	*ret_metrics = (struct nt_self_metrics){
		.shards = service->gone,
		.bus_producer = service->bus_producer
					? nt_bus_producer_counters(service->bus_producer)
					: NULL,
		.summaries =
			service->summaries ? nt_job_summaries_counters(service->summaries) : NULL,
		.bus_missed = nt_bus_reader_missed(service->reader),
		.bus_corrupt = bus.corrupt_frames,
		.bus_reconnected = bus.reconnected,
		.bus_left_behind = bus.left_behind_now,
		.sink_errors = service->sink_errors,
		.save_errors = service->save_errors,
		.shards_now = HASH_COUNT(service->shard),
		.assigned = service->assigned,
		.revoked = service->revoked,
		.lost = service->lost,
		.foreign_incidents = service->foreign_incidents,
		.foreign_refused = service->foreign_refused,
		.lag_known = service->lag_known,
		.lag_records = service->lag.records,
		.lag_ns = service->lag.ns,
		.bus_well = health.cause == NT_BUS_WELL,
	};
	nt_level_desk_stats(service->level_desk, &ret_metrics->level_desk);
	nt_profile_desk_stats(service->profile_desk, &ret_metrics->profile_desk);
	ret_metrics->unprofiled = service->level_profiles.left_out;
	nt_node_desk_stats(service->node_desk, &ret_metrics->node_desk);
	if (service->options.engine.timelines)
		nt_job_timelines_stats(service->options.engine.timelines, &ret_metrics->timelines);
	memcpy(ret_metrics->bus_errors, bus.errors, sizeof(ret_metrics->bus_errors));
	for (struct nt_shard *shard = service->shard; shard; shard = shard->hh.next)
		nt_self_metrics_add(&ret_metrics->shards, shard->engine,
				    nt_ingest_counters(shard->ingest));
	if (service->nodes)
		nt_self_metrics_add_nodes(&ret_metrics->shards,
					  nt_node_feed_shortages(service->nodes),
					  nt_node_feed_counters(service->nodes));
}

static int update_snapshot(struct nt_service *service)
{
	struct nt_snapshot *snapshot;
	struct nt_self_metrics metrics;
	int r;

	fill_metrics(service, &metrics);
	r = build_snapshot(service, &snapshot);
	if (r < 0)
		return r;
	r = nt_self_metrics_read(&metrics, snapshot);
	if (r < 0) {
		nt_snapshot_release(snapshot);
		return r;
	}
	nt_level_desk_look(service->level_desk, snapshot);
	r = nt_level_profiles_look(&service->level_profiles, service->level_desk,
				   service->profile_desk, snapshot, nt_clock_mono_ns());
	nt_service_post_events(service, snapshot);
	nt_series_desk_look(service->options.series_desk, snapshot);
	nt_board_post(service->board, snapshot);
	return r;
}

static int take_record(struct nt_service *service, const struct nt_bus_record *record,
		       uint64_t latest_ns)
{
	const bool is_whole = !service->options.shared;
	struct nt_shard *shard = nt_service_find(
		service, is_whole ? NT_SHARD_WHOLE : nt_service_number(record->partition));

	/* The shard was revoked while this record was in transit. */
	if (!shard || (!is_whole && record->topic != NT_TOPIC_WINDOW))
		return 0;
	return nt_shard_take(shard, record, latest_ns);
}

static int sweep(struct nt_service *service)
{
	const uint64_t before_ns = nt_clock_real_ns() - STREAM_FORGET_NS;

	for (struct nt_shard *shard = service->shard; shard; shard = shard->hh.next) {
		int r = nt_engine_sweep(shard->engine, service->waited_ns);

		if (r < 0)
			return r;
		shard->saved = false;
		nt_ingest_sweep(shard->ingest, before_ns);
	}
	if (service->nodes)
		nt_node_feed_sweep(service->nodes, service->waited_ns, before_ns);
	nt_node_desk_wait(service->node_desk, service->waited_ns);
	service->waited_ns = 0;
	return 0;
}

static bool is_said(const struct nt_service *service, const struct nt_bus_damage *damage)
{
	for (size_t i = 0; i < service->damages; i++)
		if (strcmp(service->damaged[i], damage->segment) == 0)
			return true;
	return service->damages == NT_SERVICE_MAX_DAMAGE;
}

/*
 * Logged once per segment. A torn tail may still be written; it counts once the reader is past it.
 */
static void say_damage(struct nt_service *service)
{
	struct nt_bus_damage damage[NT_SERVICE_MAX_DAMAGE];
	struct nt_bus_stats stats;
	size_t count;

	nt_bus_reader_stats(service->reader, &stats);
	if (stats.corrupt_frames == service->corrupt)
		return;
	service->corrupt = stats.corrupt_frames;
	count = nt_bus_reader_damage(service->reader, damage, NT_SERVICE_MAX_DAMAGE);
	for (size_t i = 0; i < count; i++) {
		if (!damage[i].places || is_said(service, &damage[i]))
			continue;
		memcpy(service->damaged[service->damages++], damage[i].segment,
		       NT_BUS_SEGMENT_TEXT);
		(void)nt_warn(0,
			      "bus '%s': segment '%s' is damaged: %" PRIu64
			      " bytes were skipped; further damage of it is only counted%s",
			      service->options.bus_url, damage[i].segment, damage[i].bytes,
			      service->damages == NT_SERVICE_MAX_DAMAGE
				      ? ", and so are further segments"
				      : "");
	}
}

/*
 * Snapshots of 100,000 ranks take long to build, so they get at most a tenth of the time. After an
 * incident up to half, once the backlog is read, so that users find what an alarm refers to.
 */
static bool is_snapshot_due(const struct nt_service *service, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns - service->snapshot_ns;

	if (service->is_snapshot_urgent && atomic_load(&service->caught_up))
		return since_ns >= service->snapshot_took_ns;
	return since_ns >= service->options.snapshot_every_ns &&
	       since_ns >= SNAPSHOT_SHARE * service->snapshot_took_ns;
}

static int update_snapshot_if_due(struct nt_service *service)
{
	const uint64_t now_ns = nt_clock_mono_ns();
	int r;

	if (!is_snapshot_due(service, now_ns))
		return 0;
	service->snapshot_ns = now_ns;
	service->is_snapshot_urgent = false;
	say_damage(service);
	r = update_snapshot(service);
	service->snapshot_took_ns = nt_clock_mono_ns() - now_ns;
	return r;
}

/* Runs all periodic work. What waits for brokers comes last. */
static int do_due(struct nt_service *service)
{
	const uint64_t now_ns = nt_clock_mono_ns();
	int r;

	nt_service_take_requests(service);
	if (now_ns - service->sweep_ns >= SWEEP_NS) {
		service->sweep_ns = now_ns;
		r = sweep(service);
		if (r < 0)
			return r;
	}
	r = nt_service_adopt(service);
	if (r == 0)
		r = update_snapshot_if_due(service);
	if (r < 0)
		return r;
	nt_service_publish(service);
	nt_level_desk_turn(service->level_desk, service->bus_producer);
	/* Publishing blocks on the brokers: after a failure it is not retried in every turn. */
	if (service->bus_producer && now_ns >= service->publish_after_ns &&
	    nt_bus_producer_flush(service->bus_producer) < 0)
		service->publish_after_ns = nt_clock_mono_ns() + service->options.retry_after_ns;
	if (now_ns - service->summaries_ns >= service->options.summaries_every_ns) {
		service->summaries_ns = now_ns;
		nt_service_publish_summaries(service);
	}
	if (now_ns - service->saved_ns >= service->options.save_every_ns) {
		service->saved_ns = now_ns;
		(void)nt_service_save(service);
	}
	return 0;
}

/* No record was read: checks whether the end of the bus is reached. */
static void look_around(struct nt_service *service)
{
	read_lag(service);
	if (service->lag_known &&
	    (service->lag.records || service->lag.partitions < HASH_COUNT(service->shard)))
		return;
	if (atomic_load(&service->caught_up))
		return;
	for (struct nt_shard *shard = service->shard; shard; shard = shard->hh.next) {
		nt_ingest_caught_up(shard->ingest);
		nt_offsets_caught_up(shard->offsets);
	}
	atomic_store(&service->caught_up, true);
	service->snapshot_ns = 0;
}

static int read_records(struct nt_service *service, int timeout_ms)
{
	const uint64_t latest_ns = nt_clock_real_ns() + NT_INGEST_AHEAD_NS;
	struct nt_bus_record record;
	int r = 0;

	for (int i = 0; i < TURN_RECORDS; i++) {
		r = nt_bus_reader_next(service->reader, i ? 0 : timeout_ms, &record);
		if (service->error < 0)
			return service->error;
		if (r <= 0)
			break;
		r = take_record(service, &record, latest_ns);
		if (r < 0)
			return r;
		r = 1;
	}
	return r;
}

int nt_service_turn(struct nt_service *service, int timeout_ms)
{
	const uint64_t started_ns = nt_clock_mono_ns();
	int r;

	atomic_store(&service->turned_ns, started_ns);
	r = read_records(service, timeout_ms);
	nt_service_settle(service);
	if (r < 0)
		return r;
	/* Idle time counts only while there is no backlog; not that in which this process did not run. */
	if (r == 0) {
		const uint64_t took_ns = nt_clock_mono_ns() - started_ns;
		const uint64_t asked_ns = (uint64_t)timeout_ms * NT_MILLISECOND;

		service->waited_ns += took_ns < asked_ns ? took_ns : asked_ns;
		look_around(service);
	}
	r = nt_service_take_news(service);
	if (r == 0 && service->nodes)
		r = nt_node_feed_turn(service->nodes);
	if (r == 0)
		r = nt_node_desk_turn(service->node_desk);
	if (r < 0)
		return r;
	return do_due(service);
}

/* Orderly exit: saves and releases the shards while the bus is still open. */
static void leave(struct nt_service *service)
{
	struct nt_shard *shard, *next;

	if (service->bus_producer)
		nt_bus_producer_leave(service->bus_producer);
	if (!service->options.shared) {
		(void)nt_service_save(service);
		(void)nt_service_save_nodes(service, true);
		service->publish_after_ns = 0;
		nt_service_publish(service);
	}
	HASH_ITER(hh, service->shard, shard, next)
	{
		const struct nt_bus_position position = {
			.topic = NT_TOPIC_WINDOW,
			.partition = shard->number - 1,
		};

		if (service->options.shared)
			nt_service_revoked(service, &position, false);
	}
	if (service->bus_producer)
		(void)nt_bus_producer_flush(service->bus_producer);
	service->closing = true;
}

int nt_service_run(struct nt_service *service)
{
	int r = 0;

	while (!atomic_load(&service->stopping) && r >= 0)
		r = nt_service_turn(service, TURN_MS);
	if (r < 0)
		return r;
	leave(service);
	return 0;
}

/* ---- from other threads ---------------------------------------------------------------------- */

void nt_service_stop(struct nt_service *service)
{
	atomic_store(&service->stopping, true);
}

uint64_t nt_service_turned_ns(const struct nt_service *service)
{
	return atomic_load(&service->turned_ns);
}

bool nt_service_caught_up(const struct nt_service *service)
{
	return atomic_load(&service->caught_up);
}

void nt_service_bus_health(const struct nt_service *service, struct nt_bus_health *ret_health)
{
	nt_bus_reader_health(service->reader, ret_health);
	if (ret_health->cause == NT_BUS_WELL && service->bus_producer)
		nt_bus_producer_health(service->bus_producer, ret_health);
}
