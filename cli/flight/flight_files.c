/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads the dumps of all ranks at the same time. Each thread fills a flight of its own; only the
 * lists of ranks are shared at once, as each dump of a large job has those of all its groups.
 */
#include "cli/flight/flight_impl.h"

#include <errno.h>
#include <stdlib.h>

enum {
	PICKLE_BYTES = 8 << 20, /* of pickles whose trees are in memory at the same time */
};

struct flight_file {
	struct nt_flight part; /* without ranks and lists */
	struct nt_flight_rank rank;
	struct nt_trace_error error;
	int r;
};

struct flight_files {
	struct flight_file *file;
	struct nt_flight *flight;
	pthread_mutex_t lock; /* of the flight's lists */
	struct nt_pool_memory memory;
};

void nt_flight_release_rank(struct nt_flight_rank *rank)
{
	for (size_t i = 0; i < rank->groups; i++)
		free(rank->group[i].call);
	free(rank->group);
	*rank = (struct nt_flight_rank){0};
}

static void release_list(struct nt_flight_rank_list *list)
{
	free(list->rank);
	free(list);
}

void nt_flight_release_lists(struct nt_flight *flight)
{
	struct nt_flight_rank_list *list = flight->rank_list;

	HASH_CLEAR(hh, flight->rank_list); /* leaves the entries */
	while (list) {
		struct nt_flight_rank_list *next = list->hh.next;

		release_list(list);
		list = next;
	}
}

/* The flight keeps equal lists once, and the rank's groups refer to its lists. */
static int share_lists(struct nt_flight *flight, struct nt_flight *part,
		       struct nt_flight_rank *rank)
{
	struct nt_flight_rank_list *list, *next, *known;

	HASH_ITER(hh, part->rank_list, list, next)
	{
		HASH_DEL(part->rank_list, list);
		HASH_FIND(hh, flight->rank_list, &list->id, sizeof(list->id), known);
		if (!known) {
			HASH_ADD(hh, flight->rank_list, id, sizeof(list->id), list);
			if (nt_table_has(list))
				continue;
			release_list(list);
			return -ENOMEM;
		}
		for (size_t i = 0; i < rank->groups; i++)
			if (rank->group[i].rank_list == list)
				rank->group[i].rank_list = known;
		release_list(list);
	}
	return 0;
}

static void read_file(void *data, size_t i)
{
	struct flight_files *files = data;
	struct flight_file *file = &files->file[i];

	file->r = nt_flight_read_dump(&file->part, &file->rank, &files->memory, &file->error);
	if (file->r == 0) {
		(void)pthread_mutex_lock(&files->lock);
		file->r = share_lists(files->flight, &file->part, &file->rank);
		(void)pthread_mutex_unlock(&files->lock);
	}
	nt_flight_release_lists(&file->part);
}

static int collect(struct flight_file *file, size_t count, struct nt_flight *flight,
		   struct nt_trace *trace, struct nt_trace_error *error)
{
	for (size_t i = 0; i < count; i++) {
		const struct nt_flight *part = &file[i].part;

		if (file[i].r < 0) {
			int r;

			*error = file[i].error;
			r = nt_trace_leave_out(trace, file[i].r, error);
			if (r < 0)
				return r;
			continue;
		}
		flight->rank[flight->ranks++] = file[i].rank;
		file[i].rank = (struct nt_flight_rank){0};
		flight->listed = part->listed > flight->listed ? part->listed : flight->listed;
		flight->timed |= part->timed;
		flight->untyped |= part->untyped;
		flight->dropped += part->dropped;
	}
	return 0;
}

int nt_flight_read_files(struct nt_flight *flight, const char *const *paths, size_t count,
			 struct nt_trace *trace, struct nt_trace_error *error)
{
	struct flight_files files = {.flight = flight, .file = calloc(count, sizeof(*files.file))};
	int r;

	if (!files.file)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		files.file[i].rank.path = paths[i];
	(void)pthread_mutex_init(&files.lock, NULL);
	nt_pool_memory_init(&files.memory, PICKLE_BYTES);
	nt_pool_run(nt_pool_threads(), count, read_file, &files);
	nt_pool_memory_release(&files.memory);
	(void)pthread_mutex_destroy(&files.lock);
	r = collect(files.file, count, flight, trace, error);
	for (size_t i = 0; i < count; i++)
		nt_flight_release_rank(&files.file[i].rank);
	free(files.file);
	return r;
}
