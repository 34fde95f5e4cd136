/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/anomaly/node_page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/anomaly/node_chart.h"
#include "proto/node_metric.h"

enum {
	NAME_TEXT = 64, /* bytes of a name that are shown */
	NOTE_TEXT = 512,
	LEADING = 3, /* metrics in the row of an alarm */
	SPARSE = 8, /* metrics whose missing values are stated, per node */
};

/* A node in display order. */
struct node_entry {
	const struct nt_node_series *series;
	const struct nt_node_alarm *worst; /* NULL: no alarm */
	double highest; /* score of all rows */
	size_t place; /* as read */
};

/* ---- order ----------------------------------------------------------------------------------- */

static bool is_alarmed(const struct nt_node_series *series)
{
	return series->alarms && series->alarm[series->alarms - 1].is_open;
}

static size_t alarms_of(const struct nt_node_series *series)
{
	return series->alarms + series->alarms_dropped;
}

static void fill_entry(const struct nt_node_series *series, size_t place, struct node_entry *entry)
{
	*entry = (struct node_entry){.series = series, .place = place};
	for (size_t i = 0; i < series->alarms; i++)
		if (!entry->worst || series->alarm[i].score > entry->worst->score)
			entry->worst = &series->alarm[i];
	for (size_t row = series->learned_rows; row < series->table->rows; row++)
		entry->highest = fmax(entry->highest, series->score[row]);
}

/* Alarms that last first, then former ones, then the rest; each by the highest score. */
static int by_urgency(const void *a, const void *b)
{
	const struct node_entry *x = a, *y = b;
	const int x_rank = is_alarmed(x->series) ? 0 : x->worst ? 1 : 2;
	const int y_rank = is_alarmed(y->series) ? 0 : y->worst ? 1 : 2;

	if (x_rank != y_rank)
		return x_rank - y_rank;
	if (x->highest != y->highest)
		return x->highest > y->highest ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The columns of a table are rates already. */
static void put_unit(struct nt_markup *out, const char *metric)
{
	const struct nt_node_metric *known = nt_node_metric_find(metric);

	if (!known) {
		nt_markup_put(out, "unknown");
		return;
	}
	nt_markup_put(out, "%s%s", *known->unit ? known->unit : "–",
		      known->kind == NT_NODE_METRIC_COUNTER || known->kind == NT_NODE_METRIC_TROUBLE
			      ? "/s"
			      : "");
}

static void put_number(struct nt_markup *out, double value, const char *without)
{
	if (isfinite(value))
		nt_markup_put(out, "%.4g", value);
	else
		nt_markup_put(out, "%s", without);
}

static double missing_percent(size_t missing, size_t values)
{
	return values ? 100.0 * (double)missing / (double)values : 0.0;
}

/* ---- head ------------------------------------------------------------------------------------ */

static size_t count_alarmed(const struct nt_fleet_series *fleet)
{
	size_t n = 0;

	for (size_t i = 0; i < fleet->count; i++)
		n += fleet->series[i].alarms > 0;
	return n;
}

static void put_headline(const struct nt_fleet_series *fleet, struct nt_markup *out)
{
	const size_t alarmed = count_alarmed(fleet);

	nt_markup_put(out, "<header>\n<h1>");
	if (fleet->count == 1) {
		const size_t alarms = alarms_of(&fleet->series[0]);

		nt_markup_put(out, "Node ");
		nt_markup_text(out, fleet->series[0].name, NAME_TEXT);
		if (alarms)
			nt_markup_put(out, " had %zu alarm%s", alarms, alarms == 1 ? "" : "s");
		else
			nt_markup_put(out, " had no alarm");
	} else if (alarmed) {
		nt_markup_put(out, "%zu of %zu nodes had an alarm", alarmed, fleet->count);
	} else {
		nt_markup_put(out, "None of %zu nodes had an alarm", fleet->count);
	}
	nt_markup_put(out, "</h1>\n");
}

static void put_page_notes(const struct nt_node_page *page, struct nt_markup *out)
{
	if (!page->notes)
		return;
	nt_markup_put(out, "<ul class=\"notes\" aria-label=\"Missing data\">\n");
	for (size_t i = 0; i < page->notes && i < NT_NODE_PAGE_NOTES; i++) {
		nt_markup_put(out, "<li>");
		nt_markup_text(out, page->note[i], NOTE_TEXT);
		nt_markup_put(out, "</li>\n");
	}
	if (page->notes > NT_NODE_PAGE_NOTES)
		nt_markup_put(out, "<li>%zu further notes are not shown.</li>\n",
			      page->notes - NT_NODE_PAGE_NOTES);
	nt_markup_put(out, "</ul>\n");
}

static void put_header(const struct nt_node_page *page, struct nt_markup *out)
{
	const struct nt_fleet_series *fleet = page->fleet;

	put_headline(fleet, out);
	nt_markup_put(out, "<p class=\"soft\">");
	nt_markup_text(out, page->source, NOTE_TEXT);
	nt_markup_put(out, ": %zu node%s, rows of %.4g s, compared with %s. ", fleet->count,
		      fleet->count == 1 ? "" : "s", fleet->row_interval_s,
		      fleet->has_peers ? "the median of all nodes" : "their own past");
	if (isfinite(fleet->threshold))
		nt_markup_put(out, "The alarm threshold is %.1f at the end. ", fleet->threshold);
	else
		nt_markup_put(out, "Alarms are disabled. ");
	nt_markup_put(out, "A score of 1 is what a node exceeded in a tenth of the rows in which "
			   "it was learned.</p>\n");
	put_page_notes(page, out);
	nt_markup_put(out, "</header>\n<main>\n");
}

/* ---- the table of nodes ---------------------------------------------------------------------- */

static void put_state(const struct nt_node_series *series, struct nt_markup *out)
{
	if (is_alarmed(series))
		nt_markup_put(out, "<td class=\"warning\"><span class=\"severity\">alarm</span>");
	else
		nt_markup_put(out, "<td>%s", series->is_learning ? "learning" : "quiet");
	nt_markup_put(out, "</td>");
}

/* What the series lacks. */
static void put_gaps(const struct nt_node_series *series, struct nt_markup *out)
{
	const struct nt_metric_table *table = series->table;

	nt_markup_put(out, "<td>");
	if (!series->missing && !table->left_out && !table->cut)
		nt_markup_put(out, "–");
	if (series->missing)
		nt_markup_put(out, "%.2g %% of values",
			      missing_percent(series->missing, table->rows * table->metrics));
	if (table->left_out)
		nt_markup_put(out, "%s%zu metrics beyond the first %d", series->missing ? "; " : "",
			      table->left_out, NT_ANOMALY_METRICS_MAX);
	if (table->cut)
		nt_markup_put(out, "%sthe last line, which is cut short",
			      series->missing || table->left_out ? "; " : "");
	nt_markup_put(out, "</td>");
}

static void put_node_row(const struct node_entry *entry, size_t chart, struct nt_markup *out)
{
	const struct nt_node_series *series = entry->series;

	nt_markup_put(out, "<tr><th scope=\"row\">");
	if (chart)
		nt_markup_put(out, "<a href=\"#node-%zu\">", chart);
	nt_markup_text(out, series->name, NAME_TEXT);
	nt_markup_put(out, "%s</th>", chart ? "</a>" : "");
	put_state(series, out);
	nt_markup_put(out, "<td class=\"n\">%zu</td><td class=\"n\">", alarms_of(series));
	if (series->table->rows > series->learned_rows)
		nt_markup_put(out, "%.1f", entry->highest);
	else
		nt_markup_put(out, "–");
	nt_markup_put(
		out,
		"</td><td class=\"n\">%zu</td><td class=\"n\">%zu</td><td class=\"n\">%zu</td>",
		series->learned_rows, series->table->rows - series->learned_rows,
		series->table->metrics);
	put_gaps(series, out);
	nt_markup_put(out, "</tr>\n");
}

static void put_table(const struct node_entry *entry, size_t count, size_t charts,
		      struct nt_markup *out)
{
	nt_markup_put(out,
		      "<section aria-labelledby=\"nodes\">\n<h2 id=\"nodes\">Nodes</h2>\n"
		      "<div class=\"scroll\"><table>\n<caption>State at the end of each series. "
		      "Nodes with an alarm come first.</caption>\n<thead><tr>"
		      "<th scope=\"col\">Node</th><th scope=\"col\">State</th>"
		      "<th scope=\"col\" class=\"n\">Alarms</th>"
		      "<th scope=\"col\" class=\"n\">Highest score</th>"
		      "<th scope=\"col\" class=\"n\">Rows learned</th>"
		      "<th scope=\"col\" class=\"n\">Rows scored</th>"
		      "<th scope=\"col\" class=\"n\">Metrics</th>"
		      "<th scope=\"col\">Missing</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < count && i < NT_NODE_PAGE_NODES; i++)
		put_node_row(&entry[i], i < charts ? i + 1 : 0, out);
	nt_markup_put(out, "</tbody></table></div>\n");
	if (count > NT_NODE_PAGE_NODES)
		nt_markup_put(out, "<p>%zu more nodes: see --json.</p>\n",
			      count - NT_NODE_PAGE_NODES);
	nt_markup_put(out, "</section>\n");
}

/* ---- a node ---------------------------------------------------------------------------------- */

static void put_range(struct nt_markup *out, const struct nt_anomaly_metric *metric)
{
	if (isfinite(metric->low) && isfinite(metric->high))
		nt_markup_put(out, "%.4g to %.4g", metric->low, metric->high);
	else
		nt_markup_put(out, "–");
}

static void put_metrics(const struct nt_node_series *series, const struct nt_node_alarm *alarm,
			bool has_peers, struct nt_markup *out)
{
	nt_markup_put(
		out,
		"<div class=\"scroll\"><table>\n<caption>Metrics of alarm %zu by their share "
		"of its highest score</caption>\n<thead><tr><th scope=\"col\">Metric</th>"
		"<th scope=\"col\" class=\"n\">Share</th>"
		"<th scope=\"col\" class=\"n\">Value</th>%s"
		"<th scope=\"col\" class=\"n\">%s</th><th scope=\"col\">Unit</th></tr></thead>\n"
		"<tbody>\n",
		(size_t)(alarm - series->alarm) + 1,
		has_peers ? "<th scope=\"col\" class=\"n\">Peers</th>" : "",
		has_peers ? "Usual difference" : "Usual");
	for (size_t i = 0; i < alarm->metrics; i++) {
		const struct nt_anomaly_metric *metric = &alarm->metric[i];

		nt_markup_put(out, "<tr><th scope=\"row\">");
		nt_markup_text(out, metric->name, NAME_TEXT);
		nt_markup_put(out, "</th><td class=\"n\">%.0f %%</td><td class=\"n\">",
			      100.0 * metric->share);
		put_number(out, metric->value, "missing");
		if (has_peers) {
			nt_markup_put(out, "</td><td class=\"n\">");
			put_number(out, metric->peers, "–");
		}
		nt_markup_put(out, "</td><td class=\"n\">");
		put_range(out, metric);
		nt_markup_put(out, "</td><td>");
		put_unit(out, metric->name);
		nt_markup_put(out, "</td></tr>\n");
	}
	nt_markup_put(out, "</tbody></table></div>\n");
}

static void put_alarm(const struct nt_node_series *series, size_t index, struct nt_markup *out)
{
	const struct nt_node_alarm *alarm = &series->alarm[index];

	nt_markup_put(out, "<tr><th scope=\"row\" class=\"n\">%zu</th><td class=\"t\">", index + 1);
	nt_node_chart_row(series, alarm->first, out);
	nt_markup_put(out, "</td><td class=\"t\">");
	if (alarm->is_open)
		nt_markup_put(out, "lasts");
	else
		nt_node_chart_row(series, alarm->last, out);
	nt_markup_put(out,
		      "</td><td class=\"n\">%.1f</td><td class=\"n\">%.1f</td><td class=\"t\">",
		      alarm->score, alarm->threshold);
	nt_node_chart_row(series, alarm->peak, out);
	nt_markup_put(out, "</td><td>");
	for (size_t i = 0; i < alarm->metrics && i < LEADING; i++) {
		nt_markup_put(out, "%s", i ? ", " : "");
		nt_markup_text(out, alarm->metric[i].name, NAME_TEXT);
	}
	nt_markup_put(out, "</td></tr>\n");
}

static void put_alarms(const struct nt_node_series *series, struct nt_markup *out)
{
	nt_markup_put(out, "<div class=\"scroll\"><table>\n<caption>Alarms</caption>\n<thead><tr>"
			   "<th scope=\"col\" class=\"n\">Alarm</th><th scope=\"col\">From</th>"
			   "<th scope=\"col\">To</th>"
			   "<th scope=\"col\" class=\"n\">Highest score</th>"
			   "<th scope=\"col\" class=\"n\">Threshold</th>"
			   "<th scope=\"col\">Highest at</th>"
			   "<th scope=\"col\">Leading metrics</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < series->alarms && i < NT_NODE_PAGE_ALARMS; i++)
		put_alarm(series, i, out);
	nt_markup_put(out, "</tbody></table></div>\n");
	if (alarms_of(series) > NT_NODE_PAGE_ALARMS)
		nt_markup_put(out, "<p>%zu more alarms: see --json.</p>\n",
			      alarms_of(series) - NT_NODE_PAGE_ALARMS);
}

struct sparse_metric {
	const char *name;
	size_t missing;
};

static int by_missing(const void *a, const void *b)
{
	const struct sparse_metric *x = a, *y = b;

	if (x->missing != y->missing)
		return x->missing > y->missing ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Which metrics lack values. */
static void put_missing(const struct nt_node_series *series, struct nt_markup *out)
{
	const struct nt_metric_table *table = series->table;
	struct sparse_metric metric[NT_ANOMALY_METRICS_MAX];
	size_t sparse = 0;

	if (!series->missing)
		return;
	for (size_t j = 0; j < table->metrics; j++) {
		metric[j] = (struct sparse_metric){.name = table->name[j]};
		for (size_t row = 0; row < table->rows; row++)
			metric[j].missing +=
				!nt_anomaly_is_value(table->value[row * table->metrics + j]);
		sparse += metric[j].missing > 0;
	}
	qsort(metric, table->metrics, sizeof(*metric), by_missing);
	nt_markup_put(out, "<p class=\"notes\">Missing values: ");
	for (size_t j = 0; j < sparse && j < SPARSE; j++) {
		nt_markup_put(out, "%s", j ? ", " : "");
		nt_markup_text(out, metric[j].name, NAME_TEXT);
		nt_markup_put(out, " %.2g %%", missing_percent(metric[j].missing, table->rows));
	}
	if (sparse > SPARSE)
		nt_markup_put(out, ", and %zu metrics more", sparse - SPARSE);
	nt_markup_put(out, ".</p>\n");
}

static void put_node(const struct nt_fleet_series *fleet, const struct node_entry *entry,
		     size_t number, struct nt_markup *out)
{
	const struct nt_node_series *series = entry->series;

	nt_markup_put(
		out,
		"<article id=\"node-%zu\" class=\"%s\">\n<h3><span class=\"severity\">%s</span> ",
		number, is_alarmed(series) ? "warning" : "info",
		is_alarmed(series) ? "alarm" : "ended");
	nt_markup_text(out, series->name, NAME_TEXT);
	nt_markup_put(out, "</h3>\n");
	put_missing(series, out);
	nt_node_chart_print(fleet, series, number, out);
	put_metrics(series, entry->worst, fleet->has_peers, out);
	put_alarms(series, out);
	nt_markup_put(out, "</article>\n");
}

static void put_nodes(const struct nt_fleet_series *fleet, const struct node_entry *entry,
		      size_t charts, size_t alarmed, struct nt_markup *out)
{
	if (!alarmed)
		return;
	nt_markup_put(out, "<section aria-labelledby=\"alarms\">\n<h2 id=\"alarms\">Alarms</h2>\n");
	nt_node_chart_legend(out);
	for (size_t i = 0; i < charts; i++)
		put_node(fleet, &entry[i], i + 1, out);
	if (alarmed > charts)
		nt_markup_put(out, "<p>%zu more nodes had an alarm: see --json.</p>\n",
			      alarmed - charts);
	nt_markup_put(out, "</section>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

int nt_node_page_write(const struct nt_node_page *page, struct nt_buf *buf)
{
	const struct nt_fleet_series *fleet = page->fleet;
	nt_autofree struct node_entry *entry = calloc(fleet->count + 1, sizeof(*entry));
	const size_t alarmed = count_alarmed(fleet);
	const size_t charts = alarmed < NT_NODE_PAGE_CHARTS ? alarmed : NT_NODE_PAGE_CHARTS;
	struct nt_markup out = {.buf = buf};

	if (!entry)
		return -ENOMEM;
	buf->max = NT_PAGE_MAX_BYTES;
	for (size_t i = 0; i < fleet->count; i++)
		fill_entry(&fleet->series[i], i, &entry[i]);
	qsort(entry, fleet->count, sizeof(*entry), by_urgency);
	nt_page_begin(&out, page->source, false);
	put_header(page, &out);
	put_table(entry, fleet->count, charts, &out);
	put_nodes(fleet, entry, charts, alarmed, &out);
	nt_page_end(&out, false);
	return out.error;
}

int nt_node_page_save(const struct nt_node_page *page, const char *path)
{
	nt_autobuf struct nt_buf buf = {0};
	int r = nt_node_page_write(page, &buf);

	return r < 0 ? r : nt_page_save(&buf, path);
}
