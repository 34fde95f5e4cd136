/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Wall time is used for three things only: when to draw a picture, when to save, and when to stop
 * waiting for agents that no longer say anything. What is decided depends on event time alone.
 */
#include "aggregator/service.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/ingest.h"
#include "aggregator/meter.h"
#include "aggregator/outlet.h"
#include "aggregator/picture.h"
#include "aggregator/place.h"
#include "aggregator/state.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"

enum {
	TURN_MS = 200, /* a stop is noticed after so long */
	TURN_RECORDS = 4096, /* of one turn, so that pictures and saving get their time */
	MAX_REQUESTS = 16,
};

#define PICTURE_NS       (500 * NT_MILLISECOND)
#define SWEEP_NS         NT_SECOND
#define SAVE_NS          (30 * NT_SECOND)
#define CLOCK_AHEAD_NS   (60 * NT_SECOND) /* a message from further in the future is turned down */
#define STREAM_FORGET_NS NT_HOUR

struct nt_service {
	struct nt_service_options options;
	struct nt_board *board;
	struct nt_engine *engine;
	struct nt_ingest *ingest;
	struct nt_places *places;
	struct nt_bus_reader *reader;
	struct nt_outlet *outlet; /* NULL: the bus cannot be written */
	uint64_t picture_ns, sweep_ns, saved_ns; /* when it was done last */
	uint64_t waited_ns; /* since the last sweep, with nothing to read */
	uint64_t sink_errors, save_errors;

	atomic_bool stopping, caught_up;
	_Atomic uint64_t turned_ns;
	pthread_mutex_t lock; /* covers requests */
	uint64_t request[MAX_REQUESTS];
	size_t requests;
};

/* ---- what comes out ----------------------------------------------------------------------------- */

static void take_incident(void *data, const struct nt_incident *incident)
{
	struct nt_service *service = data;
	const struct nt_sink *sink = service->options.sink;
	int r;

	if (service->outlet) {
		uint64_t boot_ns, real_ns;

		nt_clock_pair(&boot_ns, &real_ns);
		nt_outlet_incident(service->outlet, incident, boot_ns, real_ns);
	}
	if (strcmp(incident->state, "pending") != 0)
		nt_debug("incident %s %s: %s", incident->id, incident->state, incident->summary);
	if (!sink)
		return;
	r = sink->incident(sink->data, incident);
	if (r < 0 && service->sink_errors++ == 0)
		(void)nt_err(r, "keep incident %s; later failures are only counted", incident->id);
}

static void pass_refused(void *data, const struct nt_bus_record *record, const char *reason)
{
	struct nt_service *service = data;

	if (service->outlet)
		nt_outlet_refused(service->outlet, record, reason, nt_clock_real_ns());
}

/* ---- state -------------------------------------------------------------------------------------- */

static int save(struct nt_service *service)
{
	const struct nt_state_store *states = service->options.states;
	int r;

	if (!states)
		return 0;
	r = nt_state_save(states, service->engine, service->ingest, service->places);
	if (r < 0 && service->save_errors++ == 0)
		(void)nt_err(r, "save the state; later failures are only counted");
	return r;
}

/* Where to read from: behind all that was taken, but for the windows that still wait. */
static int seek(struct nt_service *service, bool loaded)
{
	uint64_t from_ns = 0;

	if (loaded)
		return nt_places_seek(service->places, service->reader);
	if (service->options.rewind_ns)
		from_ns = nt_clock_real_ns() - service->options.rewind_ns;
	return from_ns ? nt_bus_reader_seek_time(service->reader, from_ns) : 0;
}

/* ---- new and free ------------------------------------------------------------------------------- */

/* The parts whose state is stored, empty. */
static int make_parts(struct nt_service *service)
{
	const struct nt_engine_handler handler = {.incident = take_incident, .data = service};
	int r;

	nt_engine_free(nt_take(service->engine));
	nt_ingest_free(nt_take(service->ingest));
	nt_places_free(nt_take(service->places));
	r = nt_engine_new(&service->options.engine, &handler, &service->engine);
	if (r < 0)
		return r;
	r = nt_ingest_new(pass_refused, service, &service->ingest);
	if (r < 0)
		return r;
	return nt_places_new(&service->places);
}

static int load(struct nt_service *service)
{
	const struct nt_state_store *states = service->options.states;
	int r;

	r = make_parts(service);
	if (r < 0)
		return r;
	if (!states)
		return seek(service, false);
	r = nt_state_load(states, service->engine, service->ingest, service->places);
	if (r == -ENOMEM)
		return r;
	if (r >= 0)
		return seek(service, true);
	if (r == -ENOENT) {
		nt_info("no stored state: starting afresh");
	} else {
		(void)nt_warn(r, "the stored state cannot be used: starting afresh");
		r = make_parts(service);
		if (r < 0)
			return r;
	}
	return seek(service, false);
}

int nt_service_new(const struct nt_service_options *options, struct nt_board *board,
		   struct nt_service **ret_service)
{
	nt_auto(nt_service) struct nt_service *service = calloc(1, sizeof(*service));
	struct nt_bus_error error = {0};
	struct nt_bus_options bus = {
		.client = "neutracer-aggregator",
		.flush_ns = 100 * NT_MILLISECOND,
		.error = &error,
	};
	uint64_t boot;
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
	service->board = board;
	if (options->bus_security)
		bus.security = *options->bus_security;
	r = nt_bus_reader_open_with(options->bus_url, 1U << NT_TOPIC_WINDOW | 1U << NT_TOPIC_NODE,
				    &bus, &service->reader);
	if (r < 0 && *error.text)
		return nt_err(r, "%s", error.text);
	if (r < 0)
		return r;
	boot = nt_hash_mix(
		nt_hash_u64(nt_hash_u64(NT_HASH_SEED, nt_clock_real_ns()), (uint64_t)getpid()));
	r = nt_outlet_open(options->bus_url, &bus, boot, &service->outlet);
	if (r < 0)
		(void)nt_warn(r, "write to bus '%s': incidents are not published on it",
			      options->bus_url);
	r = load(service);
	if (r < 0)
		return r;
	service->saved_ns = nt_clock_mono_ns();
	*ret_service = nt_take(service);
	return 0;
}

void nt_service_free(struct nt_service *service)
{
	if (!service)
		return;
	nt_engine_free(service->engine);
	nt_ingest_free(service->ingest);
	nt_places_free(service->places);
	nt_bus_reader_close(service->reader);
	nt_outlet_close(service->outlet);
	(void)pthread_mutex_destroy(&service->lock);
	free(service);
}

/* ---- the loop ----------------------------------------------------------------------------------- */

static int draw(struct nt_service *service)
{
	struct nt_meter meter = {
		.engine = service->engine,
		.ingest = nt_ingest_counters(service->ingest),
		.outlet = service->outlet ? nt_outlet_counters(service->outlet) : NULL,
		.bus_missed = nt_bus_reader_missed(service->reader),
		.sink_errors = service->sink_errors,
		.save_errors = service->save_errors,
	};
	struct nt_snapshot *snapshot;
	struct nt_bus_stats bus;
	int r;

	nt_bus_reader_stats(service->reader, &bus);
	meter.bus_corrupt = bus.corrupt_frames;
	r = nt_picture_draw(service->engine, &snapshot);
	if (r < 0)
		return r;
	r = nt_meter_read(&meter, snapshot);
	if (r < 0) {
		nt_snapshot_release(snapshot);
		return r;
	}
	nt_board_post(service->board, snapshot);
	return 0;
}

static void take_requests(struct nt_service *service)
{
	uint64_t request[MAX_REQUESTS];
	size_t requests;

	(void)pthread_mutex_lock(&service->lock);
	requests = service->requests;
	memcpy(request, service->request, sizeof(request));
	service->requests = 0;
	(void)pthread_mutex_unlock(&service->lock);
	for (size_t i = 0; i < requests; i++) {
		if (nt_engine_rebaseline(service->engine, request[i]) < 0)
			continue;
		nt_info("job %016" PRIx64 " takes what it does now as normal", request[i]);
	}
}

static int take_record(struct nt_service *service, const struct nt_bus_record *record,
		       uint64_t latest_ns)
{
	struct nt_message *message;
	bool again;
	int r;

	r = nt_places_take(service->places, record, &again);
	if (r < 0)
		return r;
	r = nt_ingest_take(service->ingest, record, latest_ns, again, &message);
	if (r <= 0)
		return r;
	return nt_engine_push(service->engine, message, again);
}

/* Everything that has its hour. */
static int do_due(struct nt_service *service)
{
	const uint64_t now_ns = nt_clock_mono_ns();
	int r;

	take_requests(service);
	if (now_ns - service->sweep_ns >= SWEEP_NS) {
		service->sweep_ns = now_ns;
		r = nt_engine_sweep(service->engine, service->waited_ns);
		service->waited_ns = 0;
		if (r < 0)
			return r;
		nt_ingest_sweep(service->ingest, nt_clock_real_ns() - STREAM_FORGET_NS);
	}
	if (service->outlet)
		nt_outlet_flush(service->outlet);
	if (now_ns - service->picture_ns >= PICTURE_NS) {
		service->picture_ns = now_ns;
		r = draw(service);
		if (r < 0)
			return r;
	}
	if (now_ns - service->saved_ns >= service->options.save_every_ns) {
		service->saved_ns = now_ns;
		(void)save(service);
	}
	return 0;
}

int nt_service_turn(struct nt_service *service, int timeout_ms)
{
	const uint64_t latest_ns = nt_clock_real_ns() + CLOCK_AHEAD_NS;
	const uint64_t started_ns = nt_clock_mono_ns();
	struct nt_bus_record record;
	int r = 0;

	atomic_store(&service->turned_ns, started_ns);
	for (int i = 0; i < TURN_RECORDS; i++) {
		r = nt_bus_reader_next(service->reader, i ? 0 : timeout_ms, &record);
		if (r <= 0)
			break;
		r = take_record(service, &record, latest_ns);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	/* Time that went by with nothing left to read; a backlog makes none. */
	if (r == 0)
		service->waited_ns += nt_clock_mono_ns() - started_ns;
	if (r == 0 && !atomic_load(&service->caught_up)) {
		/* The bus has been read to its end once. */
		nt_ingest_caught_up(service->ingest);
		atomic_store(&service->caught_up, true);
		service->picture_ns = 0;
	}
	return do_due(service);
}

int nt_service_run(struct nt_service *service)
{
	int r = 0;

	while (!atomic_load(&service->stopping) && r >= 0)
		r = nt_service_turn(service, TURN_MS);
	if (r < 0)
		return r;
	(void)save(service);
	if (service->outlet)
		nt_outlet_flush(service->outlet);
	return 0;
}

/* ---- from other threads ------------------------------------------------------------------------- */

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

static bool parse_id(const char *text, uint64_t *ret_id)
{
	uint64_t id = 0;
	size_t i;

	for (i = 0; text[i]; i++) {
		const char *digits = "0123456789abcdef", *digit = strchr(digits, text[i]);

		if (!digit || i == NT_JOB_ID_LEN)
			return false;
		id = id << 4 | (uint64_t)(digit - digits);
	}
	*ret_id = id;
	return i == NT_JOB_ID_LEN;
}

/* Under the lock. Asking twice is asking once. */
static int add_request(struct nt_service *service, uint64_t id)
{
	for (size_t i = 0; i < service->requests; i++)
		if (service->request[i] == id)
			return 0;
	if (service->requests == MAX_REQUESTS)
		return -EBUSY;
	service->request[service->requests++] = id;
	return 0;
}

int nt_service_rebaseline(struct nt_service *service, const char *job_id)
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(service->board);
	bool known = snapshot && nt_snapshot_find(snapshot, job_id);
	uint64_t id;
	int r;

	nt_snapshot_release(snapshot);
	if (!known || !parse_id(job_id, &id))
		return -ENOENT;
	(void)pthread_mutex_lock(&service->lock);
	r = add_request(service, id);
	(void)pthread_mutex_unlock(&service->lock);
	return r;
}
