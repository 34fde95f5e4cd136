/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/offsets.h"

#include <errno.h>

#include "common/base/codec.h"
#include "common/base/table.h"

enum {
	SAVE_VERSION = 2,
	FIRST_VERSION = 1, /* without `start` */
	MAX_PARTITIONS = 65536,
	MARKS = 64, /* per partition */
};

/* Records of a partition are ordered by time within this tolerance. */
#define SLACK_NS (2ULL * 1000000000)

#define MARK_NS (1000000000ULL / 2) /* minimum distance of marks */

/* A time index entry: all records before the offset are of this time or earlier. */
struct time_mark {
	uint64_t real_ns, offset;
};

struct partition_offsets {
	uint64_t id; /* topic << 32 | partition */
	uint64_t offset; /* last record taken */
	uint64_t real_ns; /* of that record */
	bool loaded; /* `saved` is valid */
	uint64_t saved, saved_ns; /* offset and time when the state was saved */
	uint64_t start; /* where reading began, as loaded */
	bool rereads; /* replays up to `saved`; `reread`: last one so far, at reread_ns */
	uint64_t reread, reread_ns;
	/* Time index, oldest first; older marks are further apart. */
	struct time_mark mark[MARKS];
	size_t marks;
	uint64_t high_ns; /* latest time of all records read */
	UT_hash_handle hh;
};

struct nt_offsets {
	struct partition_offsets *entry;
	uint64_t waiting_ns; /* as loaded */
};

int nt_offsets_new(struct nt_offsets **ret_offsets)
{
	struct nt_offsets *offsets = calloc(1, sizeof(*offsets));

	if (!offsets)
		return -ENOMEM;
	offsets->waiting_ns = UINT64_MAX;
	*ret_offsets = offsets;
	return 0;
}

static void free_all(struct partition_offsets **offsets)
{
	struct partition_offsets *entry, *next;

	HASH_ITER(hh, *offsets, entry, next)
	{
		HASH_DEL(*offsets, entry);
		free(entry);
	}
}

void nt_offsets_free(struct nt_offsets *offsets)
{
	if (!offsets)
		return;
	free_all(&offsets->entry);
	free(offsets);
}

/*
 * Removes the mark that leaves the narrowest gap relative to its age, so that rewinding never goes
 * much further back than needed. The first mark stays.
 */
static void thin(struct partition_offsets *entry)
{
	double narrowest = 0;
	size_t at = 0;

	for (size_t i = 1; i + 1 < entry->marks; i++) {
		const struct time_mark *mark = &entry->mark[i];
		const double gap = (double)(mark[1].real_ns - mark[-1].real_ns) /
				   ((double)(entry->high_ns - mark[0].real_ns) + 1);

		if (!at || gap < narrowest) {
			narrowest = gap;
			at = i;
		}
	}
	for (size_t i = at; i + 1 < entry->marks; i++)
		entry->mark[i] = entry->mark[i + 1];
	entry->marks--;
}

static void set_mark(struct partition_offsets *entry, const struct nt_bus_record *record)
{
	const struct time_mark *last = entry->marks ? &entry->mark[entry->marks - 1] : NULL;

	if (!last ||
	    (entry->high_ns > last->real_ns && entry->high_ns - last->real_ns >= MARK_NS)) {
		if (entry->marks == MARKS)
			thin(entry);
		entry->mark[entry->marks++] = (struct time_mark){
			.real_ns = entry->high_ns,
			.offset = record->offset,
		};
	}
	if (record->real_ns > entry->high_ns)
		entry->high_ns = record->real_ns;
}

/* The last known offset with no record of from_ns or later before it, or the oldest one. */
static uint64_t find_mark(const struct partition_offsets *entry, uint64_t from_ns)
{
	uint64_t offset = entry->marks ? entry->mark[0].offset : entry->start;

	for (size_t i = 1; i < entry->marks && entry->mark[i].real_ns < from_ns; i++)
		offset = entry->mark[i].offset;
	return offset;
}

int nt_offsets_take(struct nt_offsets *offsets, const struct nt_bus_record *record, bool *ret_again)
{
	const uint64_t id = (uint64_t)record->topic << 32 | record->partition;
	struct partition_offsets *entry;

	HASH_FIND(hh, offsets->entry, &id, sizeof(id), entry);
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->id = id;
		HASH_ADD(hh, offsets->entry, id, sizeof(entry->id), entry);
		if (!nt_table_has(entry)) {
			free(entry);
			return -ENOMEM;
		}
	}
	/* A later time at an earlier offset: the log was recreated. */
	if (entry->loaded && record->real_ns > entry->saved_ns + SLACK_NS)
		entry->loaded = false;
	set_mark(entry, record);
	*ret_again = entry->loaded && record->offset <= entry->saved;
	entry->rereads = *ret_again && record->offset < entry->saved;
	if (*ret_again) {
		entry->reread = record->offset;
		entry->reread_ns = record->real_ns;
		return 0;
	}
	entry->offset = record->offset;
	entry->real_ns = record->real_ns;
	return 0;
}

void nt_offsets_caught_up(struct nt_offsets *offsets)
{
	for (struct partition_offsets *entry = offsets->entry; entry; entry = entry->hh.next)
		entry->rereads = false;
}

int nt_offsets_start(const struct nt_offsets *offsets, enum nt_topic topic, uint32_t partition,
		     uint64_t *ret_offset)
{
	const uint64_t id = (uint64_t)topic << 32 | partition;
	const struct partition_offsets *entry;

	HASH_FIND(hh, offsets->entry, &id, sizeof(id), entry);
	if (!entry)
		return -ENOENT;
	*ret_offset = entry->start;
	return 0;
}

int nt_offsets_seek(const struct nt_offsets *offsets, struct nt_bus_reader *reader)
{
	const uint64_t waiting_ns = offsets->waiting_ns;
	const uint64_t from_ns = waiting_ns > SLACK_NS ? waiting_ns - SLACK_NS : 0;
	int r;

	if (waiting_ns != UINT64_MAX) {
		r = nt_bus_reader_seek_time(reader, from_ns);
		if (r < 0)
			return r;
	}
	/* Partitions without waiting windows: seeking by time could skip later records. */
	for (const struct partition_offsets *entry = offsets->entry; entry;
	     entry = entry->hh.next) {
		const struct nt_bus_position position = {
			.topic = (enum nt_topic)(entry->id >> 32),
			.partition = (uint32_t)entry->id,
			.offset = entry->offset,
		};

		if (waiting_ns != UINT64_MAX && entry->real_ns >= from_ns)
			continue;
		r = nt_bus_reader_seek(reader, &position);
		if (r < 0)
			return r;
	}
	return 0;
}

int nt_offsets_list(const struct nt_offsets *offsets, struct nt_bus_position **ret_position,
		    size_t *ret_count)
{
	const size_t count = HASH_COUNT(offsets->entry);
	struct nt_bus_position *position = calloc(count ? count : 1, sizeof(*position));
	size_t at = 0;

	if (!position)
		return -ENOMEM;
	for (const struct partition_offsets *entry = offsets->entry; entry; entry = entry->hh.next)
		position[at++] = (struct nt_bus_position){
			.topic = (enum nt_topic)(entry->id >> 32),
			.partition = (uint32_t)entry->id,
			.offset = entry->offset,
		};
	*ret_position = position;
	*ret_count = count;
	return 0;
}

/* During a replay, records still to be replayed also count as waiting. */
static uint64_t waiting_with(const struct nt_offsets *offsets, uint64_t waiting_ns)
{
	for (const struct partition_offsets *entry = offsets->entry; entry; entry = entry->hh.next)
		if (entry->rereads && entry->reread_ns < waiting_ns)
			waiting_ns = entry->reread_ns;
	return waiting_ns;
}

static uint64_t start_of(const struct partition_offsets *entry, uint64_t waiting_ns)
{
	uint64_t start = entry->offset;

	if (waiting_ns != UINT64_MAX)
		start = find_mark(entry, waiting_ns > SLACK_NS ? waiting_ns - SLACK_NS : 0);
	return start < entry->offset ? start : entry->offset;
}

int nt_offsets_save(const struct nt_offsets *offsets, uint64_t waiting_ns, struct nt_buf *buf)
{
	struct nt_codec codec = {.out = buf};

	waiting_ns = waiting_with(offsets, waiting_ns);
	nt_codec_put_u32(&codec, SAVE_VERSION);
	nt_codec_put_u64(&codec, waiting_ns);
	nt_codec_put_u32(&codec, HASH_COUNT(offsets->entry));
	for (const struct partition_offsets *entry = offsets->entry; entry;
	     entry = entry->hh.next) {
		nt_codec_put_u64(&codec, entry->id);
		nt_codec_put_u64(&codec, entry->offset);
		nt_codec_put_u64(&codec, entry->real_ns);
		nt_codec_put_u64(&codec, start_of(entry, waiting_ns));
	}
	return codec.error;
}

int nt_offsets_load(struct nt_offsets *offsets, const void *data, size_t size)
{
	struct nt_codec codec = {.loads = true, .in = data, .in_size = size};
	struct partition_offsets *loaded = NULL;
	uint64_t waiting_ns;
	uint32_t version = nt_codec_get_u32(&codec), count;

	if (version != SAVE_VERSION && version != FIRST_VERSION)
		return -EBADMSG;
	waiting_ns = nt_codec_get_u64(&codec);
	count = nt_codec_get_count(&codec, MAX_PARTITIONS);
	for (uint32_t i = 0; i < count && !codec.error; i++) {
		struct partition_offsets *entry = calloc(1, sizeof(*entry)), *same;

		if (!entry) {
			codec.error = -ENOMEM;
			break;
		}
		entry->id = nt_codec_get_u64(&codec);
		entry->offset = entry->saved = nt_codec_get_u64(&codec);
		entry->real_ns = entry->saved_ns = nt_codec_get_u64(&codec);
		entry->loaded = true;
		entry->start = version == FIRST_VERSION ? entry->saved : nt_codec_get_u64(&codec);
		/* Before the first record, the whole range is still to be replayed. */
		entry->rereads = entry->start < entry->saved;
		entry->reread_ns = waiting_ns;
		if (entry->start > entry->saved)
			codec.error = -EBADMSG;
		if (entry->id >> 32 >= NT_TOPIC_END)
			codec.error = -EBADMSG;
		HASH_REPLACE(hh, loaded, id, sizeof(entry->id), entry, same);
		free(same);
		if (!nt_table_has(entry)) {
			free(entry);
			codec.error = -ENOMEM;
		}
	}
	if (codec.error) {
		free_all(&loaded);
		return codec.error;
	}
	free_all(&offsets->entry);
	offsets->entry = loaded;
	offsets->waiting_ns = waiting_ns;
	return 0;
}
