/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/place.h"

#include <errno.h>

#include "aggregator/pack.h"
#include "aggregator/table.h"

enum {
	SAVE_VERSION = 1,
	MAX_PARTITIONS = 65536,
};

/* Records of one partition are in the order of their time, give or take this. */
#define SLACK_NS (2ULL * 1000000000)

struct place {
	uint64_t id; /* topic << 32 | partition */
	uint64_t offset; /* of the last record taken */
	uint64_t real_ns; /* of it */
	bool loaded; /* `saved` holds */
	uint64_t saved, saved_ns; /* offset and time when the state was saved */
	UT_hash_handle hh;
};

struct nt_places {
	struct place *place;
	uint64_t waiting_ns; /* as loaded */
};

int nt_places_new(struct nt_places **ret_places)
{
	struct nt_places *places = calloc(1, sizeof(*places));

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

void nt_places_free(struct nt_places *places)
{
	if (!places)
		return;
	free_all(&places->place);
	free(places);
}

int nt_places_take(struct nt_places *places, const struct nt_bus_record *record, bool *ret_again)
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
	/* Later in time and yet before in place: somebody has begun the log anew. */
	if (place->loaded && record->real_ns > place->saved_ns + SLACK_NS)
		place->loaded = false;
	*ret_again = place->loaded && record->offset <= place->saved;
	if (*ret_again)
		return 0;
	place->offset = record->offset;
	place->real_ns = record->real_ns;
	return 0;
}

int nt_places_seek(const struct nt_places *places, struct nt_bus_reader *reader)
{
	const uint64_t waiting_ns = places->waiting_ns;
	const uint64_t from_ns = waiting_ns > SLACK_NS ? waiting_ns - SLACK_NS : 0;
	int r;

	if (waiting_ns != UINT64_MAX) {
		r = nt_bus_reader_seek_time(reader, from_ns);
		if (r < 0)
			return r;
	}
	/* None of these has a window that waits; by time, what came after might be passed over. */
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

int nt_places_list(const struct nt_places *places, struct nt_bus_position **ret_position,
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

int nt_places_save(const struct nt_places *places, uint64_t waiting_ns, struct nt_buf *buf)
{
	struct nt_packer packer = {.buf = buf};

	nt_pack_u32(&packer, SAVE_VERSION);
	nt_pack_u64(&packer, waiting_ns);
	nt_pack_u32(&packer, HASH_COUNT(places->place));
	for (const struct place *place = places->place; place; place = place->hh.next) {
		nt_pack_u64(&packer, place->id);
		nt_pack_u64(&packer, place->offset);
		nt_pack_u64(&packer, place->real_ns);
	}
	return packer.error;
}

int nt_places_load(struct nt_places *places, const void *data, size_t size)
{
	struct nt_unpacker unpacker = {.data = data, .size = size};
	struct place *loaded = NULL;
	uint64_t waiting_ns;
	uint32_t count;

	if (nt_unpack_u32(&unpacker) != SAVE_VERSION)
		return -EBADMSG;
	waiting_ns = nt_unpack_u64(&unpacker);
	count = nt_unpack_count(&unpacker, MAX_PARTITIONS);
	for (uint32_t i = 0; i < count && !unpacker.error; i++) {
		struct place *place = calloc(1, sizeof(*place)), *same;

		if (!place) {
			unpacker.error = -ENOMEM;
			break;
		}
		place->id = nt_unpack_u64(&unpacker);
		place->offset = place->saved = nt_unpack_u64(&unpacker);
		place->real_ns = place->saved_ns = nt_unpack_u64(&unpacker);
		place->loaded = true;
		if (place->id >> 32 >= NT_TOPIC_END)
			unpacker.error = -EBADMSG;
		HASH_REPLACE(hh, loaded, id, sizeof(place->id), place, same);
		free(same);
		if (!nt_table_has(place)) {
			free(place);
			unpacker.error = -ENOMEM;
		}
	}
	if (unpacker.error) {
		free_all(&loaded);
		return unpacker.error;
	}
	free_all(&places->place);
	places->place = loaded;
	places->waiting_ns = waiting_ns;
	return 0;
}
