/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A reader of the spool: the cursors of all its topics' partitions, merged by time. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/bus/bus_impl.h"
#include "common/bus/bus_spool.h"
#include "common/bus/spool/cursor.h"
#include "common/bus/spool/watch.h"
#include "common/system/clock.h"

enum {
	BLIND_MS = 100, /* polling interval if not all can be watched */
	DRAIN_EVERY = 64, /* records, so that a long backlog does not block other work */
};

struct read_topic {
	bool is_wanted;
	struct nt_spool_cursor *cursor[NT_SPOOL_MAX_PARTITIONS];
};

struct spool_reader {
	struct nt_bus_reader bus;
	char *path;
	struct read_topic topic[NT_TOPIC_END];
	struct nt_spool_watch watch;
	uint64_t generation;
	bool names_changed;
	unsigned int since_drain;
	struct nt_spool_cursor *head; /* whose record was returned last */
	uint64_t from_real_ns; /* also for partitions added later */
};

static void close_reader(struct nt_bus_reader *bus)
{
	struct spool_reader *reader = (struct spool_reader *)bus;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		for (int j = 0; j < NT_SPOOL_MAX_PARTITIONS; j++) {
			if (!reader->topic[i].cursor[j])
				continue;
			nt_spool_cursor_release(reader->topic[i].cursor[j]);
			free(reader->topic[i].cursor[j]);
		}
	}
	nt_spool_watch_close(&reader->watch);
	free(reader->path);
	free(reader);
}

/* Created if missing; NULL: no memory. */
static struct nt_spool_cursor *find_cursor(struct spool_reader *reader, enum nt_topic topic,
					   uint32_t partition)
{
	struct nt_spool_cursor *cursor = reader->topic[topic].cursor[partition];

	if (cursor)
		return cursor;
	cursor = malloc(sizeof(*cursor));
	if (!cursor)
		return NULL;
	nt_spool_cursor_init(cursor, partition);
	if (reader->from_real_ns)
		nt_spool_cursor_seek_time(cursor, reader->from_real_ns);
	reader->topic[topic].cursor[partition] = cursor;
	return cursor;
}

static int look_at_partition(struct spool_reader *reader, enum nt_topic topic, int topic_fd,
			     uint32_t i)
{
	char name[NT_SPOOL_NAME_BYTES], path[PATH_MAX];
	struct nt_spool_cursor *cursor;
	int fd, r;

	nt_spool_partition_name(i, name);
	(void)snprintf(path, sizeof(path), "%s/%s/%s", reader->path, nt_topic_name(topic), name);
	nt_spool_watch_dir(&reader->watch, path);
	r = nt_spool_open_dir(topic_fd, name, &fd);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	cursor = find_cursor(reader, topic, i);
	if (!cursor) {
		(void)close(fd);
		return -ENOMEM;
	}
	cursor->is_found = true;
	return nt_spool_cursor_place(cursor, fd);
}

static int look_at_topic(struct spool_reader *reader, enum nt_topic topic, int root)
{
	char path[PATH_MAX];
	nt_autoclose int fd = -1;
	uint64_t partitions;
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", reader->path, nt_topic_name(topic));
	nt_spool_watch_dir(&reader->watch, path);
	r = nt_spool_open_dir(root, nt_topic_name(topic), &fd);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = nt_spool_list_partitions(fd, &partitions);
	for (uint32_t i = 0; i < NT_SPOOL_MAX_PARTITIONS && r == 0; i++)
		if (partitions >> i & 1)
			r = look_at_partition(reader, topic, fd, i);
	return r;
}

/*
 * Releases removed partitions. An open file in a removed directory would also keep the kernel from
 * reporting the removal of the directories above.
 */
static void forget_missing(struct spool_reader *reader)
{
	for (int i = 0; i < NT_TOPIC_END; i++) {
		for (int j = 0; j < NT_SPOOL_MAX_PARTITIONS; j++) {
			struct nt_spool_cursor *cursor = reader->topic[i].cursor[j];

			if (cursor && !cursor->is_found)
				nt_spool_cursor_displace(cursor);
			if (cursor)
				cursor->is_found = false;
		}
	}
}

/* Every directory is watched before it is listed, so that nothing can appear in between. */
static int look_at_all(struct spool_reader *reader)
{
	nt_autoclose int root = -1;
	int r;

	nt_spool_watch_dir(&reader->watch, reader->path);
	r = nt_spool_open_root(reader->path, &root);
	if (r == -ENOENT) {
		nt_spool_watch_missing(&reader->watch, reader->path);
		r = nt_spool_open_root(reader->path, &root);
		if (r == 0) /* new */
			reader->names_changed = true;
		return r == -ENOENT ? 0 : r;
	}
	if (r < 0)
		return r;
	nt_spool_watch_found(&reader->watch);
	for (int i = 0; i < NT_TOPIC_END && r == 0; i++)
		if (reader->topic[i].is_wanted)
			r = look_at_topic(reader, (enum nt_topic)i, root);
	return r;
}

static int look(struct spool_reader *reader)
{
	int r;

	reader->names_changed = false;
	reader->generation++;
	r = look_at_all(reader);
	if (r < 0)
		reader->names_changed = true;
	else
		forget_missing(reader);
	return r;
}

static void drain(struct spool_reader *reader)
{
	enum nt_spool_change change = nt_spool_watch_drain(&reader->watch);

	reader->since_drain = 0;
	if (!reader->watch.is_open)
		change = NT_SPOOL_NAMES; /* unknown */
	if (change == NT_SPOOL_NOTHING)
		return;
	reader->generation++;
	reader->names_changed |= change == NT_SPOOL_NAMES;
}

static void release_head(struct spool_reader *reader)
{
	if (reader->head)
		nt_spool_cursor_pass(reader->head);
	reader->head = NULL;
}

/* Selects the earliest of the partitions' next records: 1, or 0 if there is none. */
static int choose(struct spool_reader *reader, enum nt_topic *ret_topic)
{
	struct nt_spool_cursor *best = NULL;

	for (int i = 0; i < NT_TOPIC_END; i++) {
		for (int j = 0; j < NT_SPOOL_MAX_PARTITIONS; j++) {
			struct nt_spool_cursor *cursor = reader->topic[i].cursor[j];
			int r;

			if (!cursor || reader->bus.paused >> i & 1)
				continue;
			r = nt_spool_cursor_peek(cursor, reader->generation);
			reader->bus.missed += cursor->missed;
			reader->bus.stats.corrupt_frames += cursor->damaged;
			cursor->missed = 0;
			cursor->damaged = 0;
			if (r < 0)
				return r;
			if (r == 0 || (best && best->head.real_ns <= cursor->head.real_ns))
				continue;
			best = cursor;
			*ret_topic = (enum nt_topic)i;
		}
	}
	reader->head = best;
	return best != NULL;
}

static void describe(const struct spool_reader *reader, enum nt_topic topic,
		     struct nt_bus_record *ret_record)
{
	const struct nt_spool_frame *frame = &reader->head->head;

	*ret_record = (struct nt_bus_record){
		.topic = topic,
		.key = frame->key,
		.key_len = frame->key_len,
		.value = frame->value,
		.value_len = frame->value_len,
		.real_ns = frame->real_ns,
		.partition = reader->head->partition,
		.offset = frame->offset,
	};
}

/* 0 when the time is up. */
static int wait_for_change(struct spool_reader *reader, int timeout_ms, uint64_t deadline_ns)
{
	uint64_t now_ns = nt_clock_mono_ns();
	int left_ms = -1;

	if (timeout_ms >= 0) {
		if (now_ns >= deadline_ns)
			return 0;
		/* Rounded up: not to spin in the last millisecond. */
		left_ms = (int)((deadline_ns - now_ns + NT_MILLISECOND - 1) / NT_MILLISECOND);
	}
	if (reader->watch.is_partial && (left_ms < 0 || left_ms > BLIND_MS))
		left_ms = BLIND_MS;
	if (nt_spool_watch_wait(&reader->watch, left_ms) == -EINTR)
		return -EINTR;
	if (reader->watch.is_partial)
		reader->names_changed = true;
	return 1;
}

static int next_record(struct nt_bus_reader *bus, int timeout_ms, struct nt_bus_record *ret_record)
{
	struct spool_reader *reader = (struct spool_reader *)bus;
	uint64_t deadline_ns = 0;
	enum nt_topic topic;
	int r;

	if (timeout_ms > 0)
		deadline_ns = nt_clock_mono_ns() + (uint64_t)timeout_ms * NT_MILLISECOND;
	release_head(reader);
	if (++reader->since_drain >= DRAIN_EVERY)
		drain(reader);
	for (bool is_fresh = false;;) {
		uint64_t generation;

		if (reader->names_changed) {
			r = look(reader);
			if (r < 0)
				return r;
		}
		r = choose(reader, &topic);
		if (r < 0)
			return r;
		if (r > 0) {
			describe(reader, topic, ret_record);
			return 1;
		}
		if (!reader->watch.is_open) {
			/*
			 * Watching begins with the first wait: a reader that never waits needs
			 * none.
			 */
			if (timeout_ms == 0 && is_fresh)
				return 0;
			if (timeout_ms != 0)
				nt_spool_watch_open(&reader->watch);
			reader->names_changed = true;
			is_fresh = true;
			continue;
		}
		generation = reader->generation;
		drain(reader);
		if (generation != reader->generation || reader->names_changed)
			continue;
		r = wait_for_change(reader, timeout_ms, deadline_ns);
		if (r <= 0)
			return r;
	}
}

static int seek(struct nt_bus_reader *bus, const struct nt_bus_position *position)
{
	struct spool_reader *reader = (struct spool_reader *)bus;
	struct nt_spool_cursor *cursor;

	if (!reader->topic[position->topic].is_wanted ||
	    position->partition >= NT_SPOOL_MAX_PARTITIONS)
		return -EINVAL;
	cursor = find_cursor(reader, position->topic, position->partition);
	if (!cursor)
		return -ENOMEM;
	nt_spool_cursor_seek(cursor, position->offset);
	reader->names_changed = true;
	return 0;
}

static int seek_all(struct spool_reader *reader, bool to_end)
{
	int r = look(reader);

	for (int i = 0; i < NT_TOPIC_END && r == 0; i++) {
		for (int j = 0; j < NT_SPOOL_MAX_PARTITIONS && r == 0; j++) {
			struct nt_spool_cursor *cursor = reader->topic[i].cursor[j];

			if (cursor && to_end)
				r = nt_spool_cursor_seek_end(cursor);
			else if (cursor)
				nt_spool_cursor_seek_time(cursor, reader->from_real_ns);
		}
	}
	return r;
}

static int seek_time(struct nt_bus_reader *bus, uint64_t real_ns)
{
	struct spool_reader *reader = (struct spool_reader *)bus;

	reader->from_real_ns = real_ns;
	return seek_all(reader, false);
}

static int seek_end(struct nt_bus_reader *bus)
{
	struct spool_reader *reader = (struct spool_reader *)bus;

	reader->from_real_ns = 0;
	return seek_all(reader, true);
}

/* Const for the caller: the reader is logically unchanged. */
static int reader_fd(const struct nt_bus_reader *bus)
{
	struct spool_reader *reader = (struct spool_reader *)bus;

	if (!reader->watch.is_open) {
		nt_spool_watch_open(&reader->watch);
		/* The next read repeats a failed check and returns the error. */
		(void)look(reader);
	}
	return reader->watch.is_partial ? -1 : reader->watch.fd;
}

static void describe_damage(enum nt_topic topic, uint32_t partition,
			    const struct nt_spool_damage *damage, uint64_t tail_bytes,
			    struct nt_bus_damage *ret_damage)
{
	char name[NT_SPOOL_NAME_BYTES];

	*ret_damage = (struct nt_bus_damage){
		.places = damage->places,
		.bytes = damage->bytes,
		.tail_bytes = tail_bytes,
	};
	nt_spool_segment_name(damage->base, name);
	(void)snprintf(ret_damage->segment, sizeof(ret_damage->segment), "%s/%u/%s",
		       nt_topic_name(topic), partition, name);
}

static size_t list_damage(const struct nt_bus_reader *bus, struct nt_bus_damage *ret_damage,
			  size_t most)
{
	const struct spool_reader *reader = (const struct spool_reader *)bus;
	size_t count = 0;

	for (uint32_t i = 0; i < NT_TOPIC_END * NT_SPOOL_MAX_PARTITIONS; i++) {
		const enum nt_topic topic = (enum nt_topic)(i / NT_SPOOL_MAX_PARTITIONS);
		const uint32_t partition = i % NT_SPOOL_MAX_PARTITIONS;
		const struct nt_spool_cursor *cursor = reader->topic[topic].cursor[partition];
		struct nt_spool_damage last;
		uint64_t tail;

		if (!cursor)
			continue;
		last = (struct nt_spool_damage){.base = cursor->base};
		tail = nt_spool_cursor_tail(cursor);
		for (size_t j = 0; j < cursor->damages && count < most; j++) {
			const bool is_last = cursor->damage[j].base == cursor->base;

			describe_damage(topic, partition, &cursor->damage[j], is_last ? tail : 0,
					&ret_damage[count++]);
			tail = is_last ? 0 : tail;
		}
		if (tail && count < most)
			describe_damage(topic, partition, &last, tail, &ret_damage[count++]);
	}
	return count;
}

int nt_spool_reader_open(const char *dir, uint32_t topics, struct nt_bus_reader **ret_reader)
{
	struct spool_reader *reader;
	int r;

	if (!*dir)
		return -EINVAL;
	if (strlen(dir) >= PATH_MAX - 64)
		return -ENAMETOOLONG;
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	reader->bus.close = close_reader;
	reader->bus.seek = seek;
	reader->bus.seek_time = seek_time;
	reader->bus.seek_end = seek_end;
	reader->bus.next = next_record;
	reader->bus.fd = reader_fd;
	reader->bus.damage = list_damage;
	nt_spool_watch_init(&reader->watch);
	for (int i = 0; i < NT_TOPIC_END; i++)
		reader->topic[i].is_wanted = topics >> i & 1;
	reader->path = strdup(dir);
	r = reader->path ? look(reader) : -ENOMEM;
	if (r < 0) {
		close_reader(&reader->bus);
		return r;
	}
	*ret_reader = &reader->bus;
	return 0;
}
