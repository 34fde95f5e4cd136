/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `neutracer top` shows: lists of the REST interface, fetched together, in the order shown. */
#ifndef NT_CLI_TOP_TOP_DATA_H
#define NT_CLI_TOP_TOP_DATA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum nt_top_list {
	NT_TOP_INCIDENTS, /* firing */
	NT_TOP_JOBS,
	NT_TOP_RANKS, /* of one job */
	NT_TOP_NODES,
	NT_TOP_LISTS,
};

enum {
	NT_TOP_KEY = 96, /* holds the identity of an item */
	NT_TOP_NOTE = 256,
};

/* A rank of the job that an incident accuses. */
struct nt_top_accused {
	double rank;
	const json_t *incident; /* borrowed from the list of incidents */
};

/* All zero: nothing was fetched yet. Members are owned. */
struct nt_top_data {
	json_t *list[NT_TOP_LISTS]; /* arrays, or NULL */
	bool more[NT_TOP_LISTS]; /* the server has further items */
	char job[NT_TOP_KEY]; /* id of the job of the ranks; "": no job */
	struct nt_top_accused *accused; /* by rank, ascending; set by nt_top_data_sort() */
	size_t accused_count;
	char ranks_note[NT_TOP_NOTE]; /* why the ranks are missing; "": they are not */
	uint64_t real_ns; /* when it was requested; 0: never */
};

void nt_top_data_release(struct nt_top_data *data);
#define nt_auto_top_data __attribute__((cleanup(nt_top_data_release)))

/* Puts the worst first: incidents by severity, jobs by incidents, ranks by deviation, nodes by score. -ENOMEM. */
NT_MUST_CHECK int nt_top_data_sort(struct nt_top_data *data);

/* Identity of an item, the same in the next fetch. Returns key. */
const char *nt_top_key(enum nt_top_list list, const json_t *item, char key[NT_TOP_KEY]);

/* The item with this id or name, or NULL. */
const json_t *nt_top_find(const struct nt_top_data *data, enum nt_top_list list, const char *key);

/* The job whose ranks are fetched: the wanted one, or the first with an incident, or the first. NULL: no job. */
const json_t *nt_top_choose_job(const struct nt_top_data *data, const char *wanted);

/* The firing incident that accuses the rank of the job, or NULL. After nt_top_data_sort(). */
const json_t *nt_top_accusation(const struct nt_top_data *data, const json_t *rank);

/* True if the incident is one of the job's. */
bool nt_top_concerns(const json_t *job, const json_t *incident);

#endif
