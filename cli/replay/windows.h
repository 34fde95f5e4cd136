/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The content of each job's windows, rank by rank: the rank × time heatmap, and the ranks that the
 * space detector marked in each window. Both are bounded: windows are merged in pairs if a heatmap
 * becomes too wide, and what is over a cap is counted.
 */
#ifndef NT_CLI_REPLAY_WINDOWS_H
#define NT_CLI_REPLAY_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/replay/rating.h"
#include "common/base/cleanup.h"
#include "detect/detect.h"

enum {
	NT_WINDOWS_MAX_COLUMNS = 512, /* of a heatmap: even */
	NT_WINDOWS_MAX_RANKS = 1 << 18, /* with a row, of all jobs */
	NT_WINDOWS_MAX_JOBS = 1024,
	NT_WINDOWS_MAX_LISTED = 50000, /* windows, of all jobs */
	NT_WINDOWS_MAX_MARKS = 100000, /* of all jobs */
	NT_WINDOWS_MAX_NODES = 20000, /* with a name, of one job */
	NT_WINDOWS_NAME = 64,
};

/*
 * A cell of the heatmap: the excess of the rank over its peers, in hundredths of a step, as
 * NT_CELL_EVEN + excess. For several windows it is their mean, with each limited to NT_CELL_LIMIT:
 * single outliers are common among thousands of ranks. 0: no peers.
 */
enum {
	NT_CELL_NONE = 0,
	NT_CELL_EVEN = 128,
	NT_CELL_LIMIT = 40,
};

struct nt_windows_mark {
	uint32_t rank;
	bool host; /* host work; else own work */
	double value_ns, peers_ns, excess; /* as in struct nt_rating */
};

struct nt_windows_window {
	uint32_t job; /* index into nt_windows.job */
	uint64_t number; /* of the job's windows, from 0 */
	uint64_t start_ns, end_ns;
	uint32_t judged; /* ranks compared with peers */
	uint32_t marks; /* total; `kept` are listed, from mark[first] on */
	uint32_t kept;
	size_t first;
};

struct nt_windows_rank {
	uint32_t rank, node;
	uint64_t judged, marked; /* windows */
	double excess; /* sum over the judged ones */
	struct nt_windows_mark worst; /* the window of largest excess; .rank is this one */
	uint64_t worst_ns; /* start of that window */
	uint8_t *cell; /* NT_WINDOWS_MAX_COLUMNS of them */
	/* Of the open column: its first window, and the sum of so many. */
	uint64_t open_since;
	double open_sum;
	uint32_t opens;
};

struct nt_windows_column {
	uint64_t start_ns, end_ns;
};

struct nt_windows_job {
	uint64_t id;
	char name[NT_WINDOWS_NAME], key[NT_WINDOWS_NAME];
	uint32_t attempt;
	uint64_t windows;
	struct nt_windows_rank *rank; /* ascending by rank */
	size_t ranks, rank_cap;
	struct nt_windows_column column[NT_WINDOWS_MAX_COLUMNS];
	size_t columns, span; /* span: windows in one column */
	uint64_t open_since; /* first window of the last column */
	char **node; /* names by index, NULL if unknown */
	size_t nodes;
	struct nt_rater *rater;
};

struct nt_windows {
	struct nt_windows_job *job; /* in the order of their first windows */
	size_t jobs;
	struct nt_windows_window *window; /* in replay order */
	size_t listed, window_cap;
	struct nt_windows_mark *mark;
	size_t marks, mark_cap;
	size_t rows; /* ranks with one, of all jobs */
	/* Dropped at the caps. */
	uint64_t jobs_left_out, ranks_left_out, windows_left_out, marks_left_out;
	struct nt_rules rules;
};

/* The names of a job; borrowed. */
struct nt_windows_names {
	uint64_t id; /* unique per job and attempt */
	const char *name, *key;
	uint32_t attempt;
	const char *(*node)(void *data, uint32_t index); /* NULL: nodes have no names */
	void *data;
};

NT_MUST_CHECK int nt_windows_new(const struct nt_rules *rules, struct nt_windows **ret_windows);
void nt_windows_free(struct nt_windows *windows);
NT_DEFINE_AUTO(nt_windows, nt_windows_free)

/* Adds the frame that the detector has just processed. -ENOMEM. */
NT_MUST_CHECK int nt_windows_add(struct nt_windows *windows, const struct nt_windows_names *names,
				 const struct nt_detect *detect, const struct nt_frame *frame);

/* The mean of several cells, as above. */
uint8_t nt_windows_mean(const uint8_t *cell, size_t count);
/* The rank's row, or NULL. */
const struct nt_windows_rank *nt_windows_find(const struct nt_windows_job *job, uint32_t rank);
/* The name of a node by its index; "" if unknown. */
const char *nt_windows_node(const struct nt_windows_job *job, uint32_t index);

#endif
