/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/shard.h"

#include <errno.h>

#include "aggregator/group/state.h"
#include "common/system/log.h"

static void forward_incident(void *data, const struct nt_wire_incident *incident)
{
	const struct nt_shard *shard = data;

	shard->handler->incident(shard->handler->data, shard, incident);
}

static void forward_joined(void *data, const struct nt_wire_incident *incident)
{
	const struct nt_shard *shard = data;

	if (shard->handler->joined)
		shard->handler->joined(shard->handler->data, incident);
}

static int forward_vector(void *data, const struct nt_message *message)
{
	const struct nt_shard *shard = data;

	return shard->handler->vector ? shard->handler->vector(shard->handler->data, shard, message)
				      : 0;
}

static int make_parts(struct nt_shard *shard)
{
	const struct nt_engine_handler handler = {.incident = forward_incident,
						  .joined = forward_joined,
						  .vector = forward_vector,
						  .data = shard};
	int r;

	nt_engine_free(nt_take(shard->engine));
	nt_ingest_free(nt_take(shard->ingest));
	nt_offsets_free(nt_take(shard->offsets));
	shard->loaded = false;
	r = nt_engine_new(shard->options, &handler, &shard->engine);
	if (r < 0)
		return r;
	r = nt_ingest_new(shard->handler->refused, shard->handler->data, &shard->ingest);
	if (r < 0)
		return r;
	nt_ingest_set_signatures(shard->ingest, shard->handler->signatures);
	return nt_offsets_new(&shard->offsets);
}

int nt_shard_new(uint32_t number, const struct nt_engine_options *options,
		 const struct nt_shard_handler *handler, struct nt_shard **ret_shard)
{
	nt_auto(nt_shard) struct nt_shard *shard = calloc(1, sizeof(*shard));
	int r;

	if (!shard)
		return -ENOMEM;
	shard->number = number;
	shard->options = options;
	shard->handler = handler;
	r = make_parts(shard);
	if (r < 0)
		return r;
	*ret_shard = nt_take(shard);
	return 0;
}

void nt_shard_free(struct nt_shard *shard)
{
	if (!shard)
		return;
	nt_engine_free(shard->engine);
	nt_ingest_free(shard->ingest);
	nt_offsets_free(shard->offsets);
	free(shard);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* A source of saved states. */
struct state_source {
	const char *name;
	const struct nt_state_store *states;
	struct nt_state_log *state_log;
	uint64_t offset; /* position of its state */
	bool holds; /* it has a state */
};

static int load_from(const struct state_source *source, uint32_t shard,
		     int (*loaded)(void *loader, const struct nt_state_set *set), void *loader)
{
	if (source->state_log)
		return nt_state_log_load(source->state_log, loaded, loader);
	if (!source->states)
		return -ENOENT;
	return source->states->load(source->states->data, shard, loaded, loader);
}

static int note_offset(void *loader, const struct nt_state_set *set)
{
	struct state_source *source = loader;

	source->offset = nt_state_set_offset(set);
	source->holds = true;
	return 0;
}

static int take_set(void *loader, const struct nt_state_set *set)
{
	struct nt_shard *shard = loader;

	return nt_state_take(set, shard->engine, shard->ingest, shard->offsets);
}

/* 1: loaded; 0: no usable state. */
static int try_source(struct nt_shard *shard, const struct state_source *source)
{
	int r;

	if (!source->holds)
		return 0;
	r = load_from(source, shard->number, take_set, shard);
	if (r >= 0) {
		shard->loaded = true;
		return 1;
	}
	if (r == -ENOMEM)
		return r;
	(void)nt_warn(r, "the state in %s cannot be used", source->name);
	return make_parts(shard);
}

int nt_shard_load(struct nt_shard *shard, const struct nt_state_store *states,
		  struct nt_state_log *state_log)
{
	struct state_source sources[] = {
		{.name = "the store", .states = states},
		{.name = "the bus", .state_log = state_log},
	};
	size_t first;
	int r;

	for (size_t i = 0; i < 2; i++) {
		if (!sources[i].states && !sources[i].state_log)
			continue;
		r = load_from(&sources[i], shard->number, note_offset, &sources[i]);
		if (r == -ENOMEM)
			return r;
		if (r < 0 && r != -ENOENT)
			(void)nt_warn(r, "the state in %s cannot be read", sources[i].name);
	}
	first = sources[1].holds && (!sources[0].holds || sources[1].offset > sources[0].offset);
	r = try_source(shard, &sources[first]);
	if (r == 0)
		r = try_source(shard, &sources[!first]);
	if (r < 0)
		return r;
	if (state_log)
		shard->mark = nt_state_log_mark(state_log);
	if (r == 0 && shard->number == NT_SHARD_WHOLE)
		nt_info("no stored state: starting afresh");
	else if (r == 0)
		nt_info("no stored state of shard %u: starting afresh", shard->number);
	return 0;
}

/* ---- saving ---------------------------------------------------------------------------------- */

struct saving {
	struct nt_shard *shard;
	const struct nt_state_store *states;
	const struct nt_state_log_port *port;
};

/* The store first: it also holds the incidents and their messages. */
static int save_set(void *data, const struct nt_state_set *set)
{
	const struct saving *saving = data;
	struct nt_shard *shard = saving->shard;
	int stored = 0, published = 0;

	if (saving->states)
		stored = saving->states->save(saving->states->data, set);
	if (saving->port) {
		published = nt_state_log_begin(saving->port, set, &shard->mark, &shard->draft);
		shard->drafted = published == 0;
	}
	return stored < 0 ? stored : published;
}

int nt_shard_save(struct nt_shard *shard, const struct nt_state_store *states,
		  const struct nt_state_log_port *port)
{
	struct saving saving = {.shard = shard, .states = states, .port = port};
	const struct nt_state_store both = {.save = save_set, .data = &saving};

	shard->drafted = false;
	if (!states && !port)
		return 0;
	return nt_state_save(&both, shard->number, shard->engine, shard->ingest, shard->offsets);
}

int nt_shard_take(struct nt_shard *shard, const struct nt_bus_record *record, uint64_t latest_ns)
{
	struct nt_message *message;
	bool again;
	int r;

	shard->saved = false;
	r = nt_offsets_take(shard->offsets, record, &again);
	if (r < 0)
		return r;
	r = nt_ingest_take(shard->ingest, record, latest_ns, again, &message);
	if (r <= 0)
		return r;
	if (!again && shard->handler->message &&
	    shard->handler->message(shard->handler->data, message) < 0) {
		nt_message_free(message);
		return -ENOMEM;
	}
	return nt_engine_push(shard->engine, message, again);
}
