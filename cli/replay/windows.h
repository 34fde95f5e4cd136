/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the windows of each job showed, rank by rank: the rank × time picture, and whom the space
 * detector marked in which window. Neither grows without bounds: windows are merged two by two where
 * a picture would become too wide, and what is over a cap is counted.
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
	NT_WINDOWS_MAX_COLUMNS = 512, /* of a picture: even */
	NT_WINDOWS_MAX_RANKS = 1 << 18, /* with a row, of all jobs */
	NT_WINDOWS_MAX_JOBS = 1024,
	NT_WINDOWS_MAX_LISTED = 50000, /* windows, of all jobs */
	NT_WINDOWS_MAX_MARKS = 100000, /* of all jobs */
	NT_WINDOWS_MAX_NODES = 20000, /* with a name, of one job */
	NT_WINDOWS_NAME = 64,
};

/*
 * A cell of the picture: how much more than its peers the rank needed, in hundredths of a step, as
 * NT_CELL_EVEN + that. Of several windows it is the mean, to which none gives more than
 * NT_CELL_LIMIT: ranks hiccup, and among thousands some rank always does. 0: not compared with
 * anybody.
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
	uint32_t judged; /* ranks that were compared with peers */
	uint32_t marks; /* all of them; `kept` are listed, from mark[first] on */
	uint32_t kept;
	size_t first;
};

struct nt_windows_rank {
	uint32_t rank, node;
	uint64_t judged, marked; /* windows */
	double excess; /* sum over the judged ones */
	struct nt_windows_mark worst; /* window, by its excess; .rank is this one */
	uint64_t worst_ns; /* start of that window */
	uint8_t *cell; /* NT_WINDOWS_MAX_COLUMNS of them */
	/* Of the column that is open: since which window, and the sum of so many. */
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
	char **node; /* names by index, NULL where there is none */
	size_t nodes;
	struct nt_rater *rater;
};

struct nt_windows {
	struct nt_windows_job *job; /* in the order of their first windows */
	size_t jobs;
	struct nt_windows_window *window; /* in the order in which they were judged */
	size_t listed, window_cap;
	struct nt_windows_mark *mark;
	size_t marks, mark_cap;
	size_t rows; /* ranks with one, of all jobs */
	/* What did not fit. */
	uint64_t jobs_left_out, ranks_left_out, windows_left_out, marks_left_out;
	struct nt_rules rules;
};

/* What a job is called; borrowed. */
struct nt_windows_names {
	uint64_t id; /* tells jobs apart, attempts of one too */
	const char *name, *key;
	uint32_t attempt;
	const char *(*node)(void *data, uint32_t index); /* NULL: no node has a name */
	void *data;
};

NT_MUST_CHECK int nt_windows_new(const struct nt_rules *rules, struct nt_windows **ret_windows);
void nt_windows_free(struct nt_windows *windows);
NT_DEFINE_AUTO(nt_windows, nt_windows_free)

/* Takes in the frame that the detector has just judged. -ENOMEM. */
NT_MUST_CHECK int nt_windows_add(struct nt_windows *windows, const struct nt_windows_names *names,
				 const struct nt_detect *detect, const struct nt_frame *frame);

/* The mean of several cells, as above. */
uint8_t nt_windows_mean(const uint8_t *cell, size_t count);
/* The rank's row, or NULL. */
const struct nt_windows_rank *nt_windows_find(const struct nt_windows_job *job, uint32_t rank);
/* The name of a node by its index; "" where it has none. */
const char *nt_windows_node(const struct nt_windows_job *job, uint32_t index);

#endif
