/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lines are drawn in a coordinate system of columns that is stretched to the width of the page. What
 * must not be stretched, such as text, is placed by percentages.
 */
#include "cli/anomaly/node_chart.h"

#include <math.h>

#include "common/system/clock.h"

enum {
	HEIGHT = 200, /* pixels */
	LABEL_COLUMNS = 24, /* between the numbers of two alarms */
	MICROS = 1000000,
};

#define LEAST_SCORE 0.1 /* lower scores are drawn at the bottom */
#define MOST_SCORE  1e6 /* higher ones at the top */
#define MOST_TIME_S 1e10

/* The rows of a column. */
struct chart_column {
	size_t first, end; /* end: behind the last one */
	bool is_learned, is_missing; /* none of its rows is scored; none has a value */
	double score, threshold; /* the highest one; that of its last row */
};

struct node_chart {
	const struct nt_fleet_series *fleet;
	const struct nt_node_series *series;
	struct chart_column column[NT_NODE_CHART_COLUMNS];
	size_t columns;
	int decades; /* from LEAST_SCORE on */
};

/* ---- content --------------------------------------------------------------------------------- */

static bool has_value(const struct nt_metric_table *table, size_t row)
{
	for (size_t j = 0; j < table->metrics; j++)
		if (nt_anomaly_is_value(table->value[row * table->metrics + j]))
			return true;
	return false;
}

static void fill_column(const struct node_chart *chart, size_t i, struct chart_column *column)
{
	const struct nt_node_series *series = chart->series;
	const size_t rows = series->table->rows;

	*column = (struct chart_column){
		.first = i * rows / chart->columns,
		.end = (i + 1) * rows / chart->columns,
		.is_missing = true,
	};
	column->is_learned = column->end <= series->learned_rows;
	column->threshold = chart->fleet->threshold_row[column->end - 1];
	for (size_t row = column->first; row < column->end; row++) {
		if (!has_value(series->table, row))
			continue;
		column->is_missing = false;
		if (row >= series->learned_rows && series->score[row] > column->score)
			column->score = series->score[row];
	}
}

static void fill_chart(struct node_chart *chart)
{
	const size_t rows = chart->series->table->rows;
	double most = 10.0 * LEAST_SCORE;

	chart->columns = rows < NT_NODE_CHART_COLUMNS ? rows : NT_NODE_CHART_COLUMNS;
	for (size_t i = 0; i < chart->columns; i++) {
		struct chart_column *column = &chart->column[i];

		fill_column(chart, i, column);
		most = fmax(most, column->score);
		if (isfinite(column->threshold))
			most = fmax(most, column->threshold);
	}
	most = fmin(most, MOST_SCORE);
	chart->decades = (int)ceil(log10(most / LEAST_SCORE));
}

/* Pixels from the top. */
static double height_of(const struct node_chart *chart, double score)
{
	const double clipped = fmin(fmax(score, LEAST_SCORE), MOST_SCORE);
	const double part = log10(clipped / LEAST_SCORE) / chart->decades;

	return HEIGHT * (1.0 - fmin(part, 1.0));
}

/* ---- drawing --------------------------------------------------------------------------------- */

static double percent_of(const struct node_chart *chart, size_t column)
{
	return 100.0 * (double)column / (double)chart->columns;
}

/* Runs of columns as areas. */
static void print_areas(const struct node_chart *chart, const char *kind,
			bool (*is_in)(const struct chart_column *column), struct nt_markup *out)
{
	size_t run = 0;

	for (size_t i = 0; i <= chart->columns; i++) {
		if (i < chart->columns && is_in(&chart->column[i])) {
			run++;
			continue;
		}
		if (run)
			nt_markup_put(out,
				      "<rect class=\"%s\" x=\"%.3f%%\" y=\"0\" width=\"%.3f%%\" "
				      "height=\"100%%\"/>\n",
				      kind, percent_of(chart, i - run), percent_of(chart, run));
		run = 0;
	}
}

static bool is_learned(const struct chart_column *column)
{
	return column->is_learned;
}

static bool is_missing(const struct chart_column *column)
{
	return column->is_missing;
}

/* The column of a row, which fill_column() gave it. */
static size_t column_of(const struct node_chart *chart, size_t row)
{
	return ((row + 1) * chart->columns - 1) / chart->series->table->rows;
}

static void print_alarm_area(const struct node_chart *chart, const struct nt_node_alarm *alarm,
			     size_t number, bool has_label, struct nt_markup *out)
{
	const size_t from = column_of(chart, alarm->first), to = column_of(chart, alarm->last) + 1;

	nt_markup_put(out, "<g class=\"mark\"><title>Alarm %zu: ", number);
	nt_node_chart_row(chart->series, alarm->first, out);
	nt_markup_put(out, " to ");
	nt_node_chart_row(chart->series, alarm->last, out);
	nt_markup_put(out,
		      "</title><rect class=\"alarm\" x=\"%.3f%%\" y=\"0\" width=\"%.3f%%\" "
		      "height=\"100%%\"/>",
		      percent_of(chart, from), percent_of(chart, to - from));
	if (has_label)
		nt_markup_put(out, "<text x=\"%.3f%%\" y=\"14\" dx=\"4\">%zu</text>",
			      percent_of(chart, from), number);
	nt_markup_put(out, "</g>\n");
}

static void print_alarms(const struct node_chart *chart, struct nt_markup *out)
{
	const struct nt_node_series *series = chart->series;
	size_t free = 0; /* the first column with room for a number */

	for (size_t i = 0; i < series->alarms && i < NT_NODE_CHART_ALARMS; i++) {
		const size_t from = column_of(chart, series->alarm[i].first);
		const bool has_label = from >= free;

		print_alarm_area(chart, &series->alarm[i], i + 1, has_label, out);
		if (has_label)
			free = from + LABEL_COLUMNS * chart->columns / NT_NODE_CHART_COLUMNS + 1;
	}
}

/* A step for each column; without a score there is a gap. */
static void print_scores(const struct node_chart *chart, struct nt_markup *out)
{
	bool is_drawn = false;

	nt_markup_put(out, "<path class=\"score\" d=\"");
	for (size_t i = 0; i < chart->columns; i++) {
		const struct chart_column *column = &chart->column[i];
		const double y = height_of(chart, column->score);
		const bool draws = !column->is_learned && !column->is_missing;

		if (draws && is_drawn)
			nt_markup_put(out, "V%.1fH%zu", y, i + 1);
		else if (draws)
			nt_markup_put(out, "M%zu %.1fH%zu", i, y, i + 1);
		is_drawn = draws;
	}
	nt_markup_put(out, "\"/>\n");
}

static void print_threshold(const struct node_chart *chart, struct nt_markup *out)
{
	if (!isfinite(chart->fleet->threshold))
		return;
	nt_markup_put(out, "<path class=\"threshold\" d=\"");
	for (size_t i = 0; i < chart->columns; i++)
		nt_markup_put(out, "%s%.1fH%zu", i ? "V" : "M0 ",
			      height_of(chart, chart->column[i].threshold), i + 1);
	nt_markup_put(out, "\"/>\n");
}

/* A line and a number for each decade. */
static void print_levels(const struct node_chart *chart, bool numbers, struct nt_markup *out)
{
	for (int i = 0; i <= chart->decades; i++) {
		const double level = LEAST_SCORE * pow(10.0, i), y = height_of(chart, level);

		if (numbers)
			nt_markup_put(out, "<text x=\"98\" y=\"%.1f\" dy=\"0.35em\">%.6g</text>", y,
				      level);
		else
			nt_markup_put(out,
				      "<line class=\"level\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" "
				      "y2=\"%.1f\"/>",
				      y, y);
	}
	nt_markup_put(out, "\n");
}

/* ---- the chart ------------------------------------------------------------------------------- */

void nt_node_chart_row(const struct nt_node_series *series, size_t row, struct nt_markup *out)
{
	const double time_s = series->table->time_s ? series->table->time_s[row] : NAN;
	char text[NT_CLOCK_TEXT];

	if (time_s > 0.0 && time_s < MOST_TIME_S)
		nt_markup_put(out, "%s",
			      nt_clock_format((uint64_t)(time_s * MICROS) * 1000, 0, text));
	else
		nt_markup_put(out, "row %zu", row);
}

static void print_ends(const struct node_chart *chart, struct nt_markup *out)
{
	const size_t rows = chart->series->table->rows;

	nt_markup_put(out, "<svg class=\"times\" width=\"100%%\" height=\"22\" "
			   "aria-hidden=\"true\"><text x=\"0\" y=\"15\">");
	nt_node_chart_row(chart->series, 0, out);
	nt_markup_put(out, "</text><text x=\"100%%\" y=\"15\" text-anchor=\"end\">");
	nt_node_chart_row(chart->series, rows - 1, out);
	nt_markup_put(out, "</text></svg>\n");
}

static void print_chart_caption(const struct node_chart *chart, size_t number,
				struct nt_markup *out)
{
	const struct nt_node_series *series = chart->series;
	const size_t rows = series->table->rows;

	nt_markup_put(out, "<figcaption id=\"chart-%zu-c\">Score of %zu rows from ", number, rows);
	nt_node_chart_row(series, 0, out);
	nt_markup_put(out, " to ");
	nt_node_chart_row(series, rows - 1, out);
	nt_markup_put(out, ", on a logarithmic scale. ");
	if (rows > chart->columns)
		nt_markup_put(out, "Each point is the highest score of up to %zu rows. ",
			      (rows + chart->columns - 1) / chart->columns);
	if (!isfinite(chart->fleet->threshold))
		nt_markup_put(out, "Alarms are disabled: there is no threshold. ");
	if (series->alarms > NT_NODE_CHART_ALARMS)
		nt_markup_put(out, "Only the first %d of %zu alarms are marked. ",
			      NT_NODE_CHART_ALARMS, series->alarms + series->alarms_dropped);
	nt_markup_put(out, "</figcaption>\n");
}

void nt_node_chart_print(const struct nt_fleet_series *fleet, const struct nt_node_series *series,
			 size_t number, struct nt_markup *out)
{
	struct node_chart chart = {.fleet = fleet, .series = series};

	if (!series->table->rows || out->error)
		return;
	fill_chart(&chart);
	nt_markup_put(out, "<figure aria-labelledby=\"chart-%zu-c\">\n", number);
	print_chart_caption(&chart, number, out);
	nt_markup_put(out,
		      "<div class=\"grid\">\n<svg class=\"names\" width=\"104\" height=\"%d\" "
		      "aria-hidden=\"true\">\n",
		      HEIGHT);
	print_levels(&chart, true, out);
	nt_markup_put(out,
		      "</svg>\n<div class=\"plot chart\" id=\"chart-%zu\">\n<svg width=\"100%%\" "
		      "height=\"%d\" role=\"img\" aria-labelledby=\"chart-%zu-c\">\n",
		      number, HEIGHT, number);
	print_areas(&chart, "learned", is_learned, out);
	print_areas(&chart, "missing", is_missing, out);
	print_levels(&chart, false, out);
	print_alarms(&chart, out);
	nt_markup_put(out,
		      "<svg width=\"100%%\" height=\"100%%\" viewBox=\"0 0 %zu %d\" "
		      "preserveAspectRatio=\"none\">\n",
		      chart.columns, HEIGHT);
	print_threshold(&chart, out);
	print_scores(&chart, out);
	nt_markup_put(out, "</svg>\n</svg></div>\n<span></span>");
	print_ends(&chart, out);
	nt_markup_put(out, "</div>\n</figure>\n");
}

void nt_node_chart_legend(struct nt_markup *out)
{
	static const struct {
		const char *shape, *text;
	} sample[] = {
		{"<path class=\"score\" d=\"M0 7H18\"/>", "score"},
		{"<path class=\"threshold\" d=\"M0 7H18\"/>", "alarm threshold"},
		{"<rect class=\"alarm\" width=\"18\" height=\"14\"/>", "alarm"},
		{"<rect class=\"learned\" width=\"18\" height=\"14\"/>", "learned, not scored"},
		{"<rect class=\"missing\" width=\"18\" height=\"14\"/>", "no data"},
	};

	nt_markup_put(out, "<ul class=\"legend chart\">\n");
	for (size_t i = 0; i < sizeof(sample) / sizeof(sample[0]); i++)
		nt_markup_put(out,
			      "<li><svg width=\"18\" height=\"14\" aria-hidden=\"true\">%s</svg>%s"
			      "</li>\n",
			      sample[i].shape, sample[i].text);
	nt_markup_put(out, "</ul>\n");
}
