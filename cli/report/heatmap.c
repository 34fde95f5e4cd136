/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/report/heatmap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/report/png.h"
#include "common/base/search.h"

enum {
	LONG_TEXT = 128,
	LABEL_ROOM = 14, /* pixels needed by a label beside a row */
	ROW_PIXELS = 22,
	HEIGHT = 484, /* of a heatmap with more rows than fit */
	SMOOTH_WINDOWS = 32,
	THIN = 8, /* pixels of a row that a frame would cover */
	FADED = 3, /* hundredths of a step: smaller excesses are drawn as even */
	FULL = NT_CELL_LIMIT, /* hundredths of a step at which a colour saturates */
};

/* A heatmap with its cells. */
struct canvas {
	const struct nt_heatmap *map;
	size_t rows, per_row, columns;
	size_t smooth; /* columns: see smoothing() */
	unsigned int height; /* pixels */
	uint8_t *cell;
	size_t frames; /* drawn so far */
	bool named[NT_HEATMAP_MAX_ROWS]; /* an incident names a rank of the row */
};

size_t nt_heatmap_ranks_per_row(size_t ranks)
{
	return ranks ? (ranks + NT_HEATMAP_MAX_ROWS - 1) / NT_HEATMAP_MAX_ROWS : 1;
}

static const struct nt_windows_rank *rank_at(const struct nt_heatmap *map, size_t i)
{
	return map->rank ? map->rank[i] : &map->job->rank[i];
}

/* The first and the last rank of a row. */
static void ends_of(const struct canvas *canvas, size_t row, uint32_t *ret_first,
		    uint32_t *ret_last)
{
	const size_t first = row * canvas->per_row, next = first + canvas->per_row;
	const size_t ranks = canvas->map->ranks;

	*ret_first = rank_at(canvas->map, first)->rank;
	*ret_last = rank_at(canvas->map, (next < ranks ? next : ranks) - 1)->rank;
}

/*
 * A row of several ranks shows the worst one. In any window some rank of many is an outlier, which
 * would hide lasting excesses: each rank is therefore averaged over some columns.
 */
static int fill(struct canvas *canvas)
{
	canvas->cell = calloc(canvas->rows, canvas->columns);
	if (!canvas->cell)
		return -ENOMEM;
	for (size_t i = 0; i < canvas->map->ranks; i++) {
		const struct nt_windows_rank *rank = rank_at(canvas->map, i);
		uint8_t *cell = &canvas->cell[i / canvas->per_row * canvas->columns];

		for (size_t c = 0; c < canvas->columns; c++) {
			const size_t from = c < canvas->smooth / 2 ? 0 : c - canvas->smooth / 2;
			const size_t left = canvas->columns - from;
			const uint8_t mean = nt_windows_mean(
				&rank->cell[from], left < canvas->smooth ? left : canvas->smooth);

			if (mean > cell[c])
				cell[c] = mean;
		}
	}
	return 0;
}

/* Columns over which each rank in a row of several is averaged. */
static size_t smoothing(const struct canvas *canvas)
{
	const size_t span = canvas->map->job->span, few = canvas->columns / 8;
	size_t columns = span < SMOOTH_WINDOWS ? SMOOTH_WINDOWS / span : 1;

	if (canvas->per_row == 1)
		return 1;
	if (columns > few)
		columns = few;
	return columns ? columns : 1;
}

/*
 * Orange for more than the peers, blue for less: distinguishable with every kind of colour
 * blindness. The strength is in the opacity, for light and dark backgrounds alike.
 */
static void choose_colours(struct nt_png_colour colour[256])
{
	for (int i = 0; i < 256; i++) {
		const int excess = i - NT_CELL_EVEN, size = excess < 0 ? -excess : excess;
		const int strength = size < FULL ? size : FULL;

		if (i == NT_CELL_NONE)
			colour[i] = (struct nt_png_colour){0x80, 0x80, 0x80, 0x60};
		else if (size < FADED)
			colour[i] = (struct nt_png_colour){0};
		else if (excess > 0)
			colour[i] = (struct nt_png_colour){0xd5, 0x5e, 0x00,
							   (uint8_t)(strength * 255 / FULL)};
		else
			colour[i] = (struct nt_png_colour){0x00, 0x72, 0xb2,
							   (uint8_t)(strength * 180 / FULL)};
	}
}

static void print_image(const struct canvas *canvas, struct nt_markup *page)
{
	struct nt_png_colour colour[256];
	nt_autobuf struct nt_buf png = {0};

	choose_colours(colour);
	if (page->error)
		return;
	page->error = nt_png_write(&png, canvas->cell, canvas->columns, canvas->rows, colour);
	nt_markup_put(page, "<image class=\"cells\" x=\"0\" y=\"0\" width=\"100%%\" "
			    "height=\"100%%\" preserveAspectRatio=\"none\" "
			    "href=\"data:image/png;base64,");
	nt_markup_base64(page, png.data, png.len);
	nt_markup_put(page, "\"/>\n");
}

/* Columns from the first that ends after since_ns up to the last that begins before until_ns. */
static void span_of(const struct canvas *canvas, const struct nt_heatmap_mark *mark,
		    size_t *ret_from, size_t *ret_to)
{
	const struct nt_windows_column *column = canvas->map->job->column;
	size_t from = 0, to = canvas->columns;

	while (from + 1 < canvas->columns && column[from].end_ns <= mark->since_ns)
		from++;
	while (mark->until_ns && to > from + 1 && column[to - 1].start_ns >= mark->until_ns)
		to--;
	*ret_from = from;
	*ret_to = to;
}

static bool is_named(const struct nt_heatmap_mark *mark, uint32_t first, uint32_t last)
{
	const size_t low = nt_search_first(0, mark->ranks, i, mark->rank[i] >= first);

	return low < mark->ranks && mark->rank[low] <= last;
}

/*
 * Around these rows; around thin rows the frame keeps a distance, so that it does not cover them.
 */
static void print_frame(const struct canvas *canvas, const struct nt_heatmap_mark *mark, size_t row,
			size_t rows, struct nt_markup *page)
{
	const double columns = (double)canvas->columns;
	const double pixels = (double)canvas->height / (double)canvas->rows;
	const double off = pixels < THIN ? 3.0 : 0.0;
	const double top = (double)row * pixels - off;
	size_t from, to;

	span_of(canvas, mark, &from, &to);
	for (int i = 0; i < 2; i++)
		nt_markup_put(page,
			      "<rect class=\"%s\" x=\"%.3f%%\" y=\"%.1f\" width=\"%.3f%%\" "
			      "height=\"%.1f\"/>",
			      i ? "line" : "halo", 100.0 * (double)from / columns, top,
			      100.0 * (double)(to - from) / columns,
			      (double)rows * pixels + 2.0 * off);
	nt_markup_put(page, "<text x=\"%.3f%%\" y=\"%.1f\" dx=\"4\">%u</text>\n",
		      100.0 * (double)from / columns,
		      top < LABEL_ROOM ? top + LABEL_ROOM : top - 3.0, mark->number);
}

/* A frame around each run of rows with a rank of the incident. */
static void print_frames(struct canvas *canvas, const struct nt_heatmap_mark *mark,
			 struct nt_markup *page)
{
	size_t run = 0;

	for (size_t row = 0; row <= canvas->rows; row++) {
		uint32_t first, last;

		if (row < canvas->rows) {
			ends_of(canvas, row, &first, &last);
			if (is_named(mark, first, last)) {
				canvas->named[row] = true;
				run++;
				continue;
			}
		}
		if (run && canvas->frames < NT_HEATMAP_MAX_FRAMES) {
			print_frame(canvas, mark, row - run, run, page);
			canvas->frames++;
		}
		run = 0;
	}
}

static void print_mark(struct canvas *canvas, const struct nt_heatmap_mark *mark,
		       struct nt_markup *page)
{
	nt_markup_put(page, "<g class=\"mark%s\"><title>%u: ", mark->ranks ? "" : " wide",
		      mark->number);
	nt_markup_text(page, mark->text, LONG_TEXT);
	nt_markup_put(page, "</title>");
	if (mark->ranks)
		print_frames(canvas, mark, page);
	else
		print_frame(canvas, mark, 0, canvas->rows, page);
	nt_markup_put(page, "</g>\n");
}

static void print_row_name(const struct canvas *canvas, size_t row, struct nt_markup *page)
{
	uint32_t first, last;

	ends_of(canvas, row, &first, &last);
	if (first == last)
		nt_markup_put(page, "rank %u", first);
	else
		nt_markup_put(page, "%u–%u", first, last);
}

/* First beside the rows that an incident names, then beside others, as far as there is room. */
static void print_row_labels(const struct canvas *canvas, struct nt_markup *page)
{
	const size_t room = (LABEL_ROOM * canvas->rows + canvas->height - 1) / canvas->height;
	bool taken[NT_HEATMAP_MAX_ROWS] = {false};

	nt_markup_put(page,
		      "<svg class=\"names\" width=\"104\" height=\"%u\" aria-hidden=\"true\">\n",
		      canvas->height);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t row = 0; row < canvas->rows; row++) {
			const size_t from = row < room ? 0 : row - room + 1;
			bool free = !pass == canvas->named[row];

			for (size_t i = from; i < canvas->rows && i < row + room && free; i++)
				free = !taken[i];
			if (!free)
				continue;
			taken[row] = true;
			nt_markup_put(page, "<text%s x=\"98\" y=\"%.3f%%\" dy=\"0.35em\">",
				      pass ? "" : " class=\"named\"",
				      100.0 * ((double)row + 0.5) / (double)canvas->rows);
			print_row_name(canvas, row, page);
			nt_markup_put(page, "</text>\n");
		}
	}
	nt_markup_put(page, "</svg>\n");
}

static void print_time_at(const struct nt_report *report, uint64_t ns, struct nt_markup *page)
{
	if (!page->error)
		page->error = nt_report_time(report, ns, page->buf);
}

static void print_times(const struct canvas *canvas, const struct nt_report *report,
			struct nt_markup *page)
{
	const struct nt_windows_column *column = canvas->map->job->column;
	const uint64_t end_ns = column[canvas->columns - 1].end_ns;

	nt_markup_put(page, "<svg class=\"times\" width=\"100%%\" height=\"22\" "
			    "aria-hidden=\"true\"><text x=\"0\" y=\"15\">");
	print_time_at(report, column[0].start_ns, page);
	nt_markup_put(page, "</text><text x=\"50%%\" y=\"15\" text-anchor=\"middle\">");
	print_time_at(report, column[canvas->columns / 2].start_ns, page);
	nt_markup_put(page, "</text><text x=\"100%%\" y=\"15\" text-anchor=\"end\">");
	print_time_at(report, end_ns, page);
	nt_markup_put(page, "</text></svg>\n");
}

/* The data for cli/report/page.js: the cells, the names of their rows, and the start of columns. */
static void print_values(const struct canvas *canvas, const struct nt_report *report,
			 struct nt_markup *page)
{
	const struct nt_windows_column *column = canvas->map->job->column;
	const uint64_t zero_ns = report->relative ? report->start_ns : 0;

	nt_markup_put(page, " data-columns=\"%zu\" data-rows=\"%zu\" data-relative=\"%d\"",
		      canvas->columns, canvas->rows, report->relative);
	nt_markup_put(page, " data-names=\"");
	for (size_t row = 0; row < canvas->rows; row++) {
		nt_markup_put(page, "%s", row ? "," : "");
		print_row_name(canvas, row, page);
	}
	nt_markup_put(page, "\" data-times=\"");
	for (size_t i = 0; i < canvas->columns; i++)
		nt_markup_put(page, "%" PRIu64 ",", (column[i].start_ns - zero_ns) / 1000000);
	nt_markup_put(page, "%" PRIu64 "\" data-cells=\"",
		      (column[canvas->columns - 1].end_ns - zero_ns) / 1000000);
	nt_markup_base64(page, canvas->cell, canvas->rows * canvas->columns);
	nt_markup_put(page, "\"");
}

static void print_caption(const struct canvas *canvas, struct nt_markup *page)
{
	const size_t windows = canvas->map->job->span * canvas->smooth;

	nt_markup_put(page, "<figcaption id=\"%s-c\">", canvas->map->id);
	nt_markup_text(page, canvas->map->title, LONG_TEXT);
	nt_markup_put(page, " Rows are ranks, columns are time. ");
	if (canvas->per_row > 1)
		nt_markup_put(page, "One row shows the largest deviation of %zu ranks. ",
			      canvas->per_row);
	if (windows > 1)
		nt_markup_put(page,
			      "One cell is the mean of %zu windows, each limited to "
			      "%d %% of a step. ",
			      windows, NT_CELL_LIMIT);
	nt_markup_put(page, "Numbered frames mark the verdicts of that number.</figcaption>\n");
}

void nt_heatmap_print(const struct nt_heatmap *map, const struct nt_report *report,
		      struct nt_markup *page)
{
	struct canvas canvas = {.map = map, .columns = map->job->columns};
	nt_autobuf struct nt_buf marks = {.max = page->buf->max};
	struct nt_markup overlay = {.buf = &marks};

	if (!map->ranks || !canvas.columns || page->error)
		return;
	canvas.per_row = nt_heatmap_ranks_per_row(map->ranks);
	canvas.rows = (map->ranks + canvas.per_row - 1) / canvas.per_row;
	canvas.height =
		canvas.rows * ROW_PIXELS < HEIGHT ? (unsigned int)canvas.rows * ROW_PIXELS : HEIGHT;
	if (canvas.height < 2 * canvas.rows)
		canvas.height = 2 * (unsigned int)canvas.rows;
	canvas.smooth = smoothing(&canvas);
	page->error = fill(&canvas);
	/* The frames come first: they determine which rows get a label. */
	for (size_t i = 0; i < map->marks; i++)
		print_mark(&canvas, &map->mark[i], &overlay);
	page->error = page->error ?: overlay.error;
	nt_markup_put(page, "<figure class=\"map\" aria-labelledby=\"%s-c\">\n", map->id);
	print_caption(&canvas, page);
	nt_markup_put(page, "<div class=\"grid\">\n");
	print_row_labels(&canvas, page);
	nt_markup_put(page, "<div class=\"plot\" id=\"%s\"", map->id);
	if (!page->error)
		print_values(&canvas, report, page);
	nt_markup_put(page,
		      ">\n<svg width=\"100%%\" height=\"%u\" role=\"img\" "
		      "aria-labelledby=\"%s-c\">\n",
		      canvas.height, map->id);
	if (!page->error)
		print_image(&canvas, page);
	if (!page->error && marks.len)
		page->error = nt_buf_append(page->buf, marks.data, marks.len);
	nt_markup_put(page, "</svg></div>\n<span></span>");
	print_times(&canvas, report, page);
	nt_markup_put(page, "</div>\n<p class=\"value\" role=\"status\" aria-live=\"polite\"></p>\n"
			    "</figure>\n");
	free(canvas.cell);
}
