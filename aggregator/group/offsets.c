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
struct mark {
	uint64_t real_ns, offset;
};

struct place {
	uint64_t id; /* topic << 32 | partition */
	uint64_t offset; /* last record taken */
	uint64_t real_ns; /* of that record */
	bool loaded; /* `saved` is valid */
	uint64_t saved, saved_ns; /* offset and time when the state was saved */
	uint64_t start; /* where reading began, as loaded */
	bool rereads; /* replays up to `saved`; `reread`: last one so far, at reread_ns */
	uint64_t reread, reread_ns;
	/* Time index, oldest first; older marks are further apart. */
	struct mark mark[MARKS];
	size_t marks;
	uint64_t high_ns; /* latest time of all records read */
	UT_hash_handle hh;
};

struct nt_offsets {
	struct place *place;
	uint64_t waiting_ns; /* as loaded */
};

int nt_offsets_new(struct nt_offsets **ret_places)
{
	struct nt_offsets *places = calloc(1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	places->waiting_ns = UINT64_MAX;
	*ret_places = places;
	return 0;
}

static void free_all(struct place **places)
{
	struct place *place, *next;

	HASH_ITER(hh, *places, place, next)
	{
		HASH_DEL(*places, place);
		free(place);
	}
}

void nt_offsets_free(struct nt_offsets *places)
{
	if (!places)
		return;
	free_all(&places->place);
	free(places);
}

/*
 * Removes the mark that leaves the narrowest gap relative to its age, so that rewinding never goes
 * much further back than needed. The first mark stays.
 */
static void thin(struct place *place)
{
	double narrowest = 0;
	size_t at = 0;

	for (size_t i = 1; i + 1 < place->marks; i++) {
		const struct mark *mark = &place->mark[i];
		const double gap = (double)(mark[1].real_ns - mark[-1].real_ns) /
				   ((double)(place->high_ns - mark[0].real_ns) + 1);

		if (!at || gap < narrowest) {
			narrowest = gap;
			at = i;
		}
	}
	for (size_t i = at; i + 1 < place->marks; i++)
		place->mark[i] = place->mark[i + 1];
	place->marks--;
}

static void set_mark(struct place *place, const struct nt_bus_record *record)
{
	const struct mark *last = place->marks ? &place->mark[place->marks - 1] : NULL;

	if (!last ||
	    (place->high_ns > last->real_ns && place->high_ns - last->real_ns >= MARK_NS)) {
		if (place->marks == MARKS)
			thin(place);
		place->mark[place->marks++] = (struct mark){
			.real_ns = place->high_ns,
			.offset = record->offset,
		};
	}
	if (record->real_ns > place->high_ns)
		place->high_ns = record->real_ns;
}

/* The last known offset with no record of from_ns or later before it, or the oldest one. */
static uint64_t find_mark(const struct place *place, uint64_t from_ns)
{
	uint64_t offset = place->marks ? place->mark[0].offset : place->start;

	for (size_t i = 1; i < place->marks && place->mark[i].real_ns < from_ns; i++)
		offset = place->mark[i].offset;
	return offset;
}

int nt_offsets_take(struct nt_offsets *places, const struct nt_bus_record *record, bool *ret_again)
{
	const uint64_t id = (uint64_t)record->topic << 32 | record->partition;
	struct place *place;

	HASH_FIND(hh, places->place, &id, sizeof(id), place);
	if (!place) {
		place = calloc(1, sizeof(*place));
		if (!place)
			return -ENOMEM;
		place->id = id;
		HASH_ADD(hh, places->place, id, sizeof(place->id), place);
		if (!nt_table_has(place)) {
			free(place);
			return -ENOMEM;
		}
	}
	/* A later time at an earlier offset: the log was recreated. */
	if (place->loaded && record->real_ns > place->saved_ns + SLACK_NS)
		place->loaded = false;
	set_mark(place, record);
	*ret_again = place->loaded && record->offset <= place->saved;
	place->rereads = *ret_again && record->offset < place->saved;
	if (*ret_again) {
		place->reread = record->offset;
		place->reread_ns = record->real_ns;
		return 0;
	}
	place->offset = record->offset;
	place->real_ns = record->real_ns;
	return 0;
}

void nt_offsets_caught_up(struct nt_offsets *places)
{
	for (struct place *place = places->place; place; place = place->hh.next)
		place->rereads = false;
}

int nt_offsets_start(const struct nt_offsets *places, enum nt_topic topic, uint32_t partition,
		     uint64_t *ret_offset)
{
	const uint64_t id = (uint64_t)topic << 32 | partition;
	const struct place *place;

	HASH_FIND(hh, places->place, &id, sizeof(id), place);
	if (!place)
		return -ENOENT;
	*ret_offset = place->start;
	return 0;
}

int nt_offsets_seek(const struct nt_offsets *places, struct nt_bus_reader *reader)
{
	const uint64_t waiting_ns = places->waiting_ns;
	const uint64_t from_ns = waiting_ns > SLACK_NS ? waiting_ns - SLACK_NS : 0;
	int r;

	if (waiting_ns != UINT64_MAX) {
		r = nt_bus_reader_seek_time(reader, from_ns);
		if (r < 0)
			return r;
	}
	/* Partitions without waiting windows: seeking by time could skip later records. */
	for (const struct place *place = places->place; place; place = place->hh.next) {
		const struct nt_bus_position position = {
			.topic = (enum nt_topic)(place->id >> 32),
			.partition = (uint32_t)place->id,
			.offset = place->offset,
		};

		if (waiting_ns != UINT64_MAX && place->real_ns >= from_ns)
			continue;
		r = nt_bus_reader_seek(reader, &position);
		if (r < 0)
			return r;
	}
	return 0;
}

int nt_offsets_list(const struct nt_offsets *places, struct nt_bus_position **ret_position,
		    size_t *ret_count)
{
	const size_t count = HASH_COUNT(places->place);
	struct nt_bus_position *position = calloc(count ? count : 1, sizeof(*position));
	size_t at = 0;

	if (!position)
		return -ENOMEM;
	for (const struct place *place = places->place; place; place = place->hh.next)
		position[at++] = (struct nt_bus_position){
			.topic = (enum nt_topic)(place->id >> 32),
			.partition = (uint32_t)place->id,
			.offset = place->offset,
		};
	*ret_position = position;
	*ret_count = count;
	return 0;
}

/* During a replay, records still to be replayed also count as waiting. */
static uint64_t waiting_with(const struct nt_offsets *places, uint64_t waiting_ns)
{
	for (const struct place *place = places->place; place; place = place->hh.next)
		if (place->rereads && place->reread_ns < waiting_ns)
			waiting_ns = place->reread_ns;
	return waiting_ns;
}

static uint64_t start_of(const struct place *place, uint64_t waiting_ns)
{
	uint64_t start = place->offset;

	if (waiting_ns != UINT64_MAX)
		start = find_mark(place, waiting_ns > SLACK_NS ? waiting_ns - SLACK_NS : 0);
	return start < place->offset ? start : place->offset;
}

int nt_offsets_save(const struct nt_offsets *places, uint64_t waiting_ns, struct nt_buf *buf)
{
	struct nt_codec codec = {.out = buf};

	waiting_ns = waiting_with(places, waiting_ns);
	nt_codec_put_u32(&codec, SAVE_VERSION);
	nt_codec_put_u64(&codec, waiting_ns);
	nt_codec_put_u32(&codec, HASH_COUNT(places->place));
	for (const struct place *place = places->place; place; place = place->hh.next) {
		nt_codec_put_u64(&codec, place->id);
		nt_codec_put_u64(&codec, place->offset);
		nt_codec_put_u64(&codec, place->real_ns);
		nt_codec_put_u64(&codec, start_of(place, waiting_ns));
	}
	return codec.error;
}

int nt_offsets_load(struct nt_offsets *places, const void *data, size_t size)
{
	struct nt_codec codec = {.loads = true, .in = data, .in_size = size};
	struct place *loaded = NULL;
	uint64_t waiting_ns;
	uint32_t version = nt_codec_get_u32(&codec), count;

	if (version != SAVE_VERSION && version != FIRST_VERSION)
		return -EBADMSG;
	waiting_ns = nt_codec_get_u64(&codec);
	count = nt_codec_get_count(&codec, MAX_PARTITIONS);
	for (uint32_t i = 0; i < count && !codec.error; i++) {
		struct place *place = calloc(1, sizeof(*place)), *same;

		if (!place) {
			codec.error = -ENOMEM;
			break;
		}
		place->id = nt_codec_get_u64(&codec);
		place->offset = place->saved = nt_codec_get_u64(&codec);
		place->real_ns = place->saved_ns = nt_codec_get_u64(&codec);
		place->loaded = true;
		place->start = version == FIRST_VERSION ? place->saved : nt_codec_get_u64(&codec);
		/* Before the first record, the whole range is still to be replayed. */
		place->rereads = place->start < place->saved;
		place->reread_ns = waiting_ns;
		if (place->start > place->saved)
			codec.error = -EBADMSG;
		if (place->id >> 32 >= NT_TOPIC_END)
			codec.error = -EBADMSG;
		HASH_REPLACE(hh, loaded, id, sizeof(place->id), place, same);
		free(same);
		if (!nt_table_has(place)) {
			free(place);
			codec.error = -ENOMEM;
		}
	}
	if (codec.error) {
		free_all(&loaded);
		return codec.error;
	}
	free_all(&places->place);
	places->place = loaded;
	places->waiting_ns = waiting_ns;
	return 0;
}
