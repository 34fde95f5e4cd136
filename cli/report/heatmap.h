/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rank × time picture as a part of a page: at most NT_HEATMAP_MAX_ROWS by NT_WINDOWS_MAX_COLUMNS
 * cells, however large the job is. It needs no script to be seen; cli/report/page.js reads its values out.
 */
#ifndef NT_CLI_REPORT_HEATMAP_H
#define NT_CLI_REPORT_HEATMAP_H

#include <stddef.h>
#include <stdint.h>

#include "cli/replay/windows.h"
#include "cli/report/markup.h"
#include "cli/report/report.h"

enum {
	NT_HEATMAP_MAX_ROWS = 256,
	NT_HEATMAP_MAX_FRAMES = 128, /* drawn around cells that incidents name */
};

/* An incident, drawn as frames around the ranks that it names, or all where it names none. */
struct nt_heatmap_mark {
	unsigned int number; /* as in the list of verdicts */
	const char *text; /* from outside */
	uint64_t since_ns, until_ns; /* until 0: still open */
	const uint32_t *rank; /* ascending; borrowed */
	size_t ranks;
};

struct nt_heatmap {
	const struct nt_windows_job *job;
	const struct nt_windows_rank *const *rank; /* those to draw, ascending; NULL: all */
	size_t ranks; /* how many these are */
	const char *id, *title; /* id: unique in the page; title: from outside */
	const struct nt_heatmap_mark *mark;
	size_t marks;
};

/* -ENOMEM and the cap of the page are kept in *page. */
void nt_heatmap_print(const struct nt_heatmap *map, const struct nt_report *report,
		      struct nt_markup *page);

/* Ranks in one row where so many are drawn. */
size_t nt_heatmap_ranks_per_row(size_t ranks);

#endif
