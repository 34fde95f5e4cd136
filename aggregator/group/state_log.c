/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/state_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/codec.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"

enum {
	SET_VERSION = 1,
	MAX_ITEMS = 1 << 20,
	MAX_POSITIONS = 1 << 16,
};

static const char prefix[] = "state/", manifest_name[] = "manifest";

/* ---- serialization --------------------------------------------------------------------------- */

static int pack_set(const struct nt_state_set *set, struct nt_buf *buf)
{
	struct nt_codec codec = {.out = buf};

	nt_codec_put_u32(&codec, SET_VERSION);
	nt_codec_put_u64(&codec, set->real_ns);
	nt_codec_put_u32(&codec, (uint32_t)set->positions);
	for (size_t i = 0; i < set->positions; i++) {
		nt_codec_put_text(&codec, nt_topic_name(set->position[i].topic));
		nt_codec_put_u32(&codec, set->position[i].partition);
		nt_codec_put_u64(&codec, set->position[i].offset);
	}
	nt_codec_put_u32(&codec, (uint32_t)set->items);
	for (size_t i = 0; i < set->items; i++) {
		nt_codec_put_text(&codec, set->item[i].name);
		nt_codec_put_bytes(&codec, set->item[i].bytes, set->item[i].size);
	}
	return codec.error;
}

/* A set that owns its arrays and names and borrows the bytes. */
struct own_set {
	struct nt_state_item *item;
	struct nt_bus_position *position;
	size_t items, positions;
	uint64_t real_ns;
};

static void release_set(struct own_set *set)
{
	for (size_t i = 0; i < set->items; i++)
		free((char *)set->item[i].name);
	free(set->item);
	free(set->position);
}

static int find_topic(const char *name, enum nt_topic *ret_topic)
{
	for (enum nt_topic topic = 0; topic < NT_TOPIC_END; topic++)
		if (!strcmp(name, nt_topic_name(topic))) {
			*ret_topic = topic;
			return 0;
		}
	return -ENOENT;
}

static void unpack_position(struct nt_codec *codec, struct own_set *set)
{
	nt_autofree char *name = nt_codec_get_text(codec);
	struct nt_bus_position position;

	position.partition = nt_codec_get_u32(codec);
	position.offset = nt_codec_get_u64(codec);
	/* Unknown topics of another version are skipped. */
	if (!codec->error && find_topic(name, &position.topic) == 0)
		set->position[set->positions++] = position;
}

/* Each entry has a minimum size: a larger count means damage. */
static uint32_t unpack_entries(struct nt_codec *codec, uint32_t most)
{
	uint32_t count = nt_codec_get_count(codec, most);

	if (!codec->error && count > codec->in_size - codec->at)
		codec->error = -EBADMSG;
	return codec->error ? 0 : count;
}

static int unpack_set(const struct nt_buf *buf, struct own_set *set)
{
	struct nt_codec codec = {.loads = true, .in = buf->data, .in_size = buf->len};
	uint32_t count;

	if (nt_codec_get_u32(&codec) != SET_VERSION)
		return -EBADMSG;
	set->real_ns = nt_codec_get_u64(&codec);
	count = unpack_entries(&codec, MAX_POSITIONS);
	set->position = calloc(count ? count : 1, sizeof(*set->position));
	if (!set->position)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && !codec.error; i++)
		unpack_position(&codec, set);
	count = unpack_entries(&codec, MAX_ITEMS);
	set->item = calloc(count ? count : 1, sizeof(*set->item));
	if (!set->item)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && !codec.error; i++) {
		struct nt_state_item *item = &set->item[set->items];

		item->name = nt_codec_get_text(&codec);
		set->items += item->name != NULL;
		item->bytes = nt_codec_get_bytes(&codec, &item->size);
	}
	return codec.error;
}

uint64_t nt_state_set_offset(const struct nt_state_set *set)
{
	for (size_t i = 0; i < set->positions; i++)
		if (set->position[i].topic == NT_TOPIC_WINDOW &&
		    set->position[i].partition + 1 == set->shard)
			return set->position[i].offset;
	return 0;
}

/* ---- publishing ------------------------------------------------------------------------------ */

static void write_key(char key[NT_STATE_LOG_MAX_KEY], uint32_t shard, unsigned int slot,
		      uint32_t chunk)
{
	(void)snprintf(key, NT_STATE_LOG_MAX_KEY, "%s%" PRIu32 "/%u/%" PRIu32, prefix, shard, slot,
		       chunk);
}

static int publish_chunk(const struct nt_state_log_port *port, uint32_t shard, uint64_t generation,
			 uint32_t chunk, const struct nt_buf *buf)
{
	const size_t at = (size_t)chunk * NT_STATE_LOG_CHUNK_BYTES, left = buf->len - at;
	char key[NT_STATE_LOG_MAX_KEY];
	const struct nt_message message = {
		.key = key,
		.body = NT_BODY_STATE,
		.state =
			{
				.shard = shard,
				.version = SET_VERSION,
				.generation = generation,
				.chunk = chunk,
				.data = buf->data + at,
				.size = left < NT_STATE_LOG_CHUNK_BYTES ? left
									: NT_STATE_LOG_CHUNK_BYTES,
			},
	};

	write_key(key, shard, generation % NT_STATE_LOG_SLOTS, chunk);
	return port->publish(port->data, &message);
}

/* Removes keys that this generation does not use; compaction would keep them forever. */
static int remove_rest(const struct nt_state_log_port *port, uint32_t shard, unsigned int slot,
		       uint32_t from, uint32_t to)
{
	int r = 0;

	for (uint32_t i = from; i < to && r == 0; i++) {
		char key[NT_STATE_LOG_MAX_KEY];

		write_key(key, shard, slot, i);
		r = port->remove(port->data, key);
	}
	return r;
}

int nt_state_log_begin(const struct nt_state_log_port *port, const struct nt_state_set *set,
		       struct nt_state_log_mark *mark, struct nt_state_log_draft *ret_draft)
{
	nt_autobuf struct nt_buf buf = {.max = (size_t)NT_STATE_LOG_MAX_CHUNKS *
					       NT_STATE_LOG_CHUNK_BYTES};
	struct nt_state_log_draft draft = {.shard = set->shard, .generation = mark->generation + 1};
	const unsigned int slot = draft.generation % NT_STATE_LOG_SLOTS;
	int r;

	r = pack_set(set, &buf);
	if (r < 0)
		return r == -ENOBUFS ? -EFBIG : r;
	draft.total = buf.len;
	draft.hash = nt_hash_bytes(NT_HASH_SEED, buf.data, buf.len);
	draft.chunks =
		(uint32_t)((buf.len + NT_STATE_LOG_CHUNK_BYTES - 1) / NT_STATE_LOG_CHUNK_BYTES);
	draft.before = mark->chunks[slot];
	draft.position = (struct nt_bus_position){
		.topic = NT_TOPIC_WINDOW,
		.partition = set->shard ? set->shard - 1 : 0,
		.offset = nt_state_set_offset(set),
	};
	if (draft.chunks > draft.before)
		mark->chunks[slot] = draft.chunks;
	for (uint32_t i = 0; i < draft.chunks && r == 0; i++)
		r = publish_chunk(port, set->shard, draft.generation, i, &buf);
	if (r == 0)
		*ret_draft = draft;
	return r;
}

int nt_state_log_end(const struct nt_state_log_port *port, const char *owner,
		     const struct nt_state_log_draft *draft)
{
	const unsigned int slot = draft->generation % NT_STATE_LOG_SLOTS;
	char key[NT_STATE_LOG_MAX_KEY];
	/* For users and tools; a loader uses the positions in the chunks. */
	struct nt_position position = {
		.topic = nt_topic_name(draft->position.topic),
		.partition = draft->position.partition,
		.offset = draft->position.offset,
	};
	const struct nt_message message = {
		.key = key,
		.body = NT_BODY_STATE,
		.state =
			{
				.shard = draft->shard,
				.version = SET_VERSION,
				.generation = draft->generation,
				.chunks = draft->chunks,
				.total = draft->total,
				.hash = draft->hash,
				.owner = owner,
				.position = &position,
				.positions = 1,
			},
	};
	int r;

	(void)snprintf(key, sizeof(key), "%s%" PRIu32 "/%u/%s", prefix, draft->shard, slot,
		       manifest_name);
	r = port->publish(port->data, &message);
	return r < 0 ? r : remove_rest(port, draft->shard, slot, draft->chunks, draft->before);
}

void nt_state_log_commit(const struct nt_state_log_draft *draft, struct nt_state_log_mark *mark)
{
	mark->generation = draft->generation;
	mark->chunks[draft->generation % NT_STATE_LOG_SLOTS] = draft->chunks;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct chunk {
	uint64_t generation, boot;
	uint8_t *data; /* NULL: none */
	size_t size;
};

struct slot {
	struct chunk *chunk;
	uint32_t chunks; /* index of the last chunk + 1 */
	/* The manifest; generation 0: none. */
	uint64_t generation, boot, total, hash;
	uint32_t wanted;
};

struct nt_state_log {
	uint32_t shard;
	struct slot slot[NT_STATE_LOG_SLOTS];
	int whole; /* slot of the set that was loaded; -1: none */
	struct nt_state_log_counters counters;
};

int nt_state_log_new(uint32_t shard, struct nt_state_log **ret_state_log)
{
	struct nt_state_log *state_log = calloc(1, sizeof(*state_log));

	if (!state_log)
		return -ENOMEM;
	state_log->shard = shard;
	state_log->whole = -1;
	*ret_state_log = state_log;
	return 0;
}

void nt_state_log_free(struct nt_state_log *state_log)
{
	if (!state_log)
		return;
	for (size_t i = 0; i < NT_STATE_LOG_SLOTS; i++) {
		for (uint32_t j = 0; j < state_log->slot[i].chunks; j++)
			free(state_log->slot[i].chunk[j].data);
		free(state_log->slot[i].chunk);
	}
	free(state_log);
}

/* "state/SHARD/SLOT/CHUNK"; a manifest has chunk UINT32_MAX. False: a key of something else. */
static bool parse_key(const struct nt_bus_record *record, uint32_t *ret_shard, uint32_t *ret_slot,
		      uint32_t *ret_chunk)
{
	const size_t skip = sizeof(prefix) - 1;
	const char *at = record->key, *end = at + record->key_len, *slash[2];
	uint64_t number[3] = {0, 0, UINT32_MAX};

	if (record->key_len <= skip || memcmp(at, prefix, skip) != 0)
		return false;
	at += skip;
	slash[0] = memchr(at, '/', (size_t)(end - at));
	slash[1] = slash[0] ? memchr(slash[0] + 1, '/', (size_t)(end - slash[0] - 1)) : NULL;
	if (!slash[1] || nt_parse_u64(at, (size_t)(slash[0] - at), 0, UINT32_MAX, &number[0]) < 0 ||
	    nt_parse_u64(slash[0] + 1, (size_t)(slash[1] - slash[0] - 1), 0, NT_STATE_LOG_SLOTS - 1,
			 &number[1]) < 0)
		return false;
	at = slash[1] + 1;
	if ((size_t)(end - at) != strlen(manifest_name) ||
	    memcmp(at, manifest_name, (size_t)(end - at)) != 0) {
		if (nt_parse_u64(at, (size_t)(end - at), 0, UINT32_MAX - 1, &number[2]) < 0)
			return false;
	}
	*ret_shard = (uint32_t)number[0];
	*ret_slot = (uint32_t)number[1];
	*ret_chunk = (uint32_t)number[2];
	return true;
}

bool nt_state_log_owns(const struct nt_bus_record *record, uint32_t *ret_shard)
{
	uint32_t slot, chunk;

	return record->topic == NT_TOPIC_STATE && parse_key(record, ret_shard, &slot, &chunk);
}

static int grow(struct slot *slot, uint32_t chunks)
{
	struct chunk *grown;

	if (chunks <= slot->chunks)
		return 0;
	grown = reallocarray(slot->chunk, chunks, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + slot->chunks, 0, (chunks - slot->chunks) * sizeof(*grown));
	slot->chunk = grown;
	slot->chunks = chunks;
	return 0;
}

static int put_chunk(struct nt_state_log *state_log, struct slot *slot, uint32_t number,
		     const struct nt_message *message)
{
	nt_autofree uint8_t *data = NULL;
	struct chunk *chunk;
	int r;

	if (number >= NT_STATE_LOG_MAX_CHUNKS) {
		state_log->counters.over_cap++;
		return 0;
	}
	r = grow(slot, number + 1);
	if (r < 0)
		return r;
	data = malloc(message->state.size ? message->state.size : 1);
	if (!data)
		return -ENOMEM;
	if (message->state.size)
		memcpy(data, message->state.data, message->state.size);
	chunk = &slot->chunk[number];
	free(chunk->data);
	*chunk = (struct chunk){
		.generation = message->state.generation,
		.boot = message->boot,
		.data = nt_take(data),
		.size = message->state.size,
	};
	return 0;
}

/* Handles a tombstone. */
static void remove_key(struct slot *slot, uint32_t number)
{
	if (number == UINT32_MAX) {
		slot->generation = 0;
		return;
	}
	if (number >= slot->chunks)
		return;
	free(slot->chunk[number].data);
	slot->chunk[number] = (struct chunk){0};
	while (slot->chunks && !slot->chunk[slot->chunks - 1].data)
		slot->chunks--;
}

static int put(struct nt_state_log *state_log, uint32_t slot_number, uint32_t number,
	       const struct nt_message *message)
{
	struct slot *slot = &state_log->slot[slot_number];
	const struct nt_state *state = &message->state;

	if (message->body != NT_BODY_STATE || state->shard != state_log->shard ||
	    !state->generation || state->generation % NT_STATE_LOG_SLOTS != slot_number) {
		state_log->counters.refused++;
		return 0;
	}
	if (number != UINT32_MAX)
		return put_chunk(state_log, slot, number, message);
	slot->generation = state->generation;
	slot->boot = message->boot;
	slot->total = state->total;
	slot->hash = state->hash;
	slot->wanted = state->chunks;
	return 0;
}

int nt_state_log_take(struct nt_state_log *state_log, const struct nt_bus_record *record)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	uint32_t shard, slot, number;
	int r;

	if (record->topic != NT_TOPIC_STATE || !parse_key(record, &shard, &slot, &number) ||
	    shard != state_log->shard)
		return 0;
	state_log->counters.records++;
	if (!record->value_len) {
		remove_key(&state_log->slot[slot], number);
		return 0;
	}
	r = nt_message_decode(record->value, record->value_len, &message);
	if (r == -EBADMSG) {
		state_log->counters.refused++;
		return 0;
	}
	if (r < 0)
		return r;
	return put(state_log, slot, number, message);
}

/* Joins the chunks of the manifest. -ENOENT if one is missing or of another generation. */
static int join(struct nt_state_log *state_log, const struct slot *slot, struct nt_buf *buf)
{
	int r;

	if (!slot->generation)
		return -ENOENT;
	for (uint32_t i = 0; i < slot->wanted; i++) {
		const struct chunk *chunk = i < slot->chunks ? &slot->chunk[i] : NULL;

		if (!chunk || !chunk->data || chunk->generation != slot->generation ||
		    chunk->boot != slot->boot) {
			state_log->counters.torn++;
			return -ENOENT;
		}
		r = nt_buf_append(buf, chunk->data, chunk->size);
		if (r < 0)
			return r;
	}
	if (buf->len != slot->total ||
	    nt_hash_bytes(NT_HASH_SEED, buf->data, buf->len) != slot->hash) {
		state_log->counters.torn++;
		return -ENOENT;
	}
	return 0;
}

/* A complete set; generation 0: none. */
struct state_candidate {
	struct own_set own;
	struct nt_state_set set;
	struct nt_buf buf;
	uint64_t generation;
};

static void release_candidates(struct state_candidate (*candidate)[NT_STATE_LOG_SLOTS])
{
	for (size_t i = 0; i < NT_STATE_LOG_SLOTS; i++) {
		release_set(&(*candidate)[i].own);
		nt_buf_release(&(*candidate)[i].buf);
	}
}

static int read_slot(struct nt_state_log *state_log, const struct slot *slot,
		     struct state_candidate *candidate)
{
	int r;

	candidate->buf.max = (size_t)NT_STATE_LOG_MAX_CHUNKS * NT_STATE_LOG_CHUNK_BYTES;
	r = join(state_log, slot, &candidate->buf);
	if (r == 0)
		r = unpack_set(&candidate->buf, &candidate->own);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return 0;
	candidate->generation = slot->generation;
	candidate->set = (struct nt_state_set){
		.real_ns = candidate->own.real_ns,
		.item = candidate->own.item,
		.items = candidate->own.items,
		.position = candidate->own.position,
		.positions = candidate->own.positions,
		.shard = state_log->shard,
	};
	return 0;
}

static bool is_newer(const struct state_candidate *one, const struct state_candidate *other)
{
	const uint64_t offset = nt_state_set_offset(&one->set);
	const uint64_t other_offset = nt_state_set_offset(&other->set);

	if (!one->generation || !other->generation)
		return one->generation != 0;
	return offset != other_offset ? offset > other_offset : one->generation > other->generation;
}

int nt_state_log_load(struct nt_state_log *state_log,
		      int (*loaded)(void *loader, const struct nt_state_set *set), void *loader)
{
	__attribute__((cleanup(
		release_candidates))) struct state_candidate candidate[NT_STATE_LOG_SLOTS] = {0};
	int first, r;

	for (size_t i = 0; i < NT_STATE_LOG_SLOTS; i++) {
		r = read_slot(state_log, &state_log->slot[i], &candidate[i]);
		if (r < 0)
			return r;
	}
	first = is_newer(&candidate[0], &candidate[1]) ? 0 : 1;
	if (!candidate[first].generation)
		return -ENOENT;
	state_log->whole = first;
	r = loaded(loader, &candidate[first].set);
	if (r != -EBADMSG || !candidate[!first].generation)
		return r;
	state_log->whole = !first;
	return loaded(loader, &candidate[!first].set);
}

struct nt_state_log_mark nt_state_log_mark(const struct nt_state_log *state_log)
{
	struct nt_state_log_mark mark = {0};

	for (size_t i = 0; i < NT_STATE_LOG_SLOTS; i++) {
		mark.chunks[i] = state_log->slot[i].chunks;
		if (state_log->slot[i].generation > mark.generation)
			mark.generation = state_log->slot[i].generation;
	}
	/* The next generation must not overwrite the only complete set. */
	if (state_log->whole >= 0 &&
	    mark.generation % NT_STATE_LOG_SLOTS != (unsigned int)state_log->whole)
		mark.generation++;
	return mark;
}

const struct nt_state_log_counters *nt_state_log_counters(const struct nt_state_log *state_log)
{
	return &state_log->counters;
}
