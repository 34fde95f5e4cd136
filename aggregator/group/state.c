/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "engine/job_state.h"

enum {
	FIXED_ITEMS = 3,
};

/* Items with owned names and bytes. */
struct items {
	struct nt_state_item *item;
	struct nt_buf *buf; /* of the item with the same index */
	size_t count, cap;
};

static void release_items(struct items *items)
{
	for (size_t i = 0; i < items->count; i++) {
		free((char *)items->item[i].name);
		nt_buf_release(&items->buf[i]);
	}
	free(items->item);
	free(items->buf);
}

/* Adds an item; the caller fills in the returned buffer. */
static struct nt_buf *add_item(struct items *items, const char *prefix, const char *name)
{
	char *text;

	if (items->count == items->cap)
		return NULL;
	if (asprintf(&text, "%s%s", prefix, name) < 0)
		return NULL;
	items->item[items->count].name = text;
	return &items->buf[items->count++];
}

static int fill_items(struct items *items, struct nt_engine *engine, const struct nt_ingest *ingest,
		      const struct nt_offsets *offsets)
{
	struct nt_buf *buf;
	int r;

	buf = add_item(items, "", "ingest");
	r = buf ? nt_ingest_save(ingest, buf) : -ENOMEM;
	if (r < 0)
		return r;
	buf = add_item(items, "", "places");
	r = buf ? nt_offsets_save(offsets, nt_jobs_waiting_ns(nt_engine_jobs(engine)), buf)
		: -ENOMEM;
	if (r < 0)
		return r;
	buf = add_item(items, "", "jobs");
	r = buf ? nt_jobs_save(nt_engine_jobs(engine), buf) : -ENOMEM;
	if (r < 0)
		return r;
	for (struct nt_job_key *key = nt_jobs_keys(nt_engine_jobs(engine)); key; key = key->hh.next)
		for (struct nt_job *job = key->job; job; job = job->next) {
			char name[NT_ENGINE_JOB_NAME];

			if (!job->detect)
				continue;
			nt_engine_job_name(job, name);
			buf = add_item(items, "job-", name);
			r = buf ? nt_engine_save_job(job, buf) : -ENOMEM;
			if (r < 0)
				return r;
		}
	return 0;
}

int nt_state_save(const struct nt_state_store *states, uint32_t shard, struct nt_engine *engine,
		  const struct nt_ingest *ingest, const struct nt_offsets *offsets)
{
	__attribute__((cleanup(release_items))) struct items items = {.cap = FIXED_ITEMS};
	nt_autofree struct nt_bus_position *position = NULL;
	struct nt_state_set set = {
		.real_ns = nt_jobs_lead_ns(nt_engine_jobs(engine)),
		.shard = shard,
	};
	int r;

	for (struct nt_job_key *key = nt_jobs_keys(nt_engine_jobs(engine)); key; key = key->hh.next)
		items.cap += key->jobs;
	items.item = calloc(items.cap, sizeof(*items.item));
	items.buf = calloc(items.cap, sizeof(*items.buf));
	if (!items.item || !items.buf)
		return -ENOMEM;
	r = fill_items(&items, engine, ingest, offsets);
	if (r < 0)
		return r;
	for (size_t i = 0; i < items.count; i++) {
		items.item[i].bytes = items.buf[i].data;
		items.item[i].size = items.buf[i].len;
	}
	r = nt_offsets_list(offsets, &position, &set.positions);
	if (r < 0)
		return r;
	set.item = items.item;
	set.items = items.count;
	set.position = position;
	return states->save(states->data, &set);
}

static const struct nt_state_item *find_item(const struct nt_state_set *set, const char *prefix,
					     const char *name)
{
	const size_t len = strlen(prefix);

	for (size_t i = 0; i < set->items; i++)
		if (strncmp(set->item[i].name, prefix, len) == 0 &&
		    strcmp(set->item[i].name + len, name) == 0)
			return &set->item[i];
	return NULL;
}

static int load_jobs(struct nt_engine *engine, const struct nt_state_set *set)
{
	for (struct nt_job_key *key = nt_jobs_keys(nt_engine_jobs(engine)); key; key = key->hh.next)
		for (struct nt_job *job = key->job; job; job = job->next) {
			const struct nt_state_item *item;
			char name[NT_ENGINE_JOB_NAME];
			int r;

			nt_engine_job_name(job, name);
			item = find_item(set, "job-", name);
			/* A job without a judged frame has no item. */
			if (!item)
				continue;
			r = nt_engine_load_job(engine, job, item->bytes, item->size);
			if (r < 0)
				return r;
		}
	return 0;
}

int nt_state_take(const struct nt_state_set *set, struct nt_engine *engine,
		  struct nt_ingest *ingest, struct nt_offsets *offsets)
{
	const struct nt_state_item *of_ingest = find_item(set, "", "ingest");
	const struct nt_state_item *of_offsets = find_item(set, "", "places");
	const struct nt_state_item *of_jobs = find_item(set, "", "jobs");
	int r;

	if (!of_ingest || !of_offsets || !of_jobs)
		return -EBADMSG;
	r = nt_ingest_load(ingest, of_ingest->bytes, of_ingest->size);
	if (r < 0)
		return r;
	r = nt_offsets_load(offsets, of_offsets->bytes, of_offsets->size);
	if (r < 0)
		return r;
	r = nt_jobs_load(nt_engine_jobs(engine), of_jobs->bytes, of_jobs->size);
	if (r < 0)
		return r;
	return load_jobs(engine, set);
}
