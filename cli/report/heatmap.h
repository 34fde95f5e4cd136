/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rank × time heatmap as part of a page: at most NT_HEATMAP_MAX_ROWS by NT_WINDOWS_MAX_COLUMNS
 * cells, for any size of job. It is visible without scripts; cli/report/page.js shows its values.
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
	NT_HEATMAP_MAX_FRAMES = 128, /* around the cells of incidents */
};

/* An incident, drawn as frames around its ranks, or around all if it names none. */
struct nt_heatmap_mark {
	unsigned int number; /* as in the list of verdicts */
	const char *text; /* untrusted */
	uint64_t since_ns, until_ns; /* until 0: still open */
	const uint32_t *rank; /* ascending; borrowed */
	size_t ranks;
};

struct nt_heatmap {
	const struct nt_windows_job *job;
	const struct nt_windows_rank *const *rank; /* those to draw, ascending; NULL: all */
	size_t ranks; /* number of these */
	const char *id, *title; /* id: unique in the page; title: untrusted */
	const struct nt_heatmap_mark *mark;
	size_t marks;
};

/* -ENOMEM and -ENOBUFS are kept in *page. */
void nt_heatmap_print(const struct nt_heatmap *map, const struct nt_report *report,
		      struct nt_markup *page);

/* Ranks per row if so many are drawn. */
size_t nt_heatmap_ranks_per_row(size_t ranks);

#endif
