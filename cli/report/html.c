/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/report/html_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/report/page.h"
#include "proto/json.h"

/* ---- head ------------------------------------------------------------------------------------ */

static int take_note(void *data, const char *note)
{
	struct nt_markup *out = data;

	nt_markup_put(out, "<li>");
	nt_markup_text(out, note, NT_HTML_TEXT);
	nt_markup_put(out, "</li>\n");
	return out->error;
}

static void put_notes(const struct nt_html_page *page)
{
	nt_autobuf struct nt_buf notes = {0};
	struct nt_markup list = {.buf = &notes};
	int r = nt_report_each_note(page->report, take_note, &list);

	page->out->error = page->out->error ?: r;
	if (!notes.len)
		return;
	nt_markup_put(page->out, "<ul class=\"notes\" aria-label=\"Missing data\">\n");
	nt_markup_bytes(page->out, (const char *)notes.data, notes.len);
	nt_markup_put(page->out, "</ul>\n");
}

static void put_lead(const struct nt_html_page *page)
{
	const struct nt_report *report = page->report;
	struct nt_markup *out = page->out;
	const size_t others = page->incidents - page->accusing;

	nt_markup_put(out, "<header>\n<h1>");
	if (page->accusing == 1 ||
	    (!page->accusing && page->incidents && nt_report_accuses(page->incident[0])))
		nt_markup_text(out, page->incident[0]->summary, NT_HTML_TEXT);
	else if (page->accusing == 0)
		nt_markup_put(out, "%s",
			      nt_report_is_short(report)
				      ? "The recording is too short to name a culprit"
				      : "No rank, node or link is to blame");
	else
		nt_markup_put(out, "%zu verdicts name a culprit", page->accusing);
	nt_markup_put(out, "</h1>\n<p class=\"soft\">");
	nt_markup_text(out, report->source, NT_HTML_TEXT);
	nt_markup_put(out, ": ");
	if (report->jobs > 1)
		nt_markup_put(out, "%zu jobs, ", report->jobs);
	nt_markup_put(out, "%zu rank%s, %zu window%s, %.1f s from ", report->ranks,
		      report->ranks == 1 ? "" : "s", report->frames, report->frames == 1 ? "" : "s",
		      (double)(report->end_ns - report->start_ns) / 1e9);
	nt_html_time(page, report->start_ns);
	nt_markup_put(out, " to ");
	nt_html_time(page, report->end_ns);
	nt_markup_put(out, ".");
	if (others)
		nt_markup_put(out, " %zu %sverdict%s %s informational or without a culprit.",
			      others, page->accusing ? "more " : "", others == 1 ? "" : "s",
			      others == 1 ? "is" : "are");
	nt_markup_put(out, "</p>\n");
	put_notes(page);
	nt_markup_put(out, "</header>\n<main>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_collectives(const struct nt_html_page *page)
{
	const struct nt_report *report = page->report;
	struct nt_markup *out = page->out;

	if (!report->collectives)
		return;
	nt_markup_put(out, "<section aria-labelledby=\"calls\">\n<h2 id=\"calls\">Collectives</h2>"
			   "\n<div class=\"scroll\"><table>\n<caption>Last rank of each "
			   "collective</caption>"
			   "<thead><tr><th scope=\"col\" class=\"n\">Call</th>"
			   "<th scope=\"col\">Collective</th>"
			   "<th scope=\"col\" class=\"n\">Ranks</th>"
			   "<th scope=\"col\" class=\"n\">Last rank</th>"
			   "<th scope=\"col\" class=\"n\">Late by</th>"
			   "<th scope=\"col\" class=\"n\">Spread</th>"
			   "<th scope=\"col\" class=\"n\">Transfer</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < report->collectives && i < NT_HTML_MAX_COLLECTIVES; i++) {
		const struct nt_trace_collective *c = &report->collective[i];

		nt_markup_put(out, "<tr><th scope=\"row\" class=\"n\">%" PRIu64 "</th><td>",
			      c->number);
		nt_markup_text(out, c->name, NT_HTML_NAME);
		nt_markup_put(out,
			      "</td><td class=\"n\">%zu</td><td class=\"n\">%u</td>"
			      "<td class=\"n\">%.3f ms</td><td class=\"n\">%.3f ms</td>"
			      "<td class=\"n\">%.3f ms</td></tr>\n",
			      c->ranks, c->last_rank, (double)c->lateness_ns / 1e6,
			      (double)c->spread_ns / 1e6, (double)c->transfer_ns / 1e6);
	}
	nt_markup_put(out, "</tbody></table></div>\n");
	if (report->collectives > NT_HTML_MAX_COLLECTIVES)
		nt_markup_put(out, "<p>%zu more: see --json.</p>\n",
			      report->collectives - NT_HTML_MAX_COLLECTIVES);
	nt_markup_put(out, "</section>\n");
}

static bool accuses(const struct nt_wire_incident *incident)
{
	for (size_t i = 0; i < incident->culprits; i++)
		if (nt_json_culprit_accuses(&incident->culprit[i]))
			return true;
	return false;
}

static int rank_of(const struct nt_wire_incident *incident)
{
	const int severity = strcmp(incident->severity, "critical") == 0  ? 0
			     : strcmp(incident->severity, "warning") == 0 ? 1
									  : 2;

	return (accuses(incident) ? 0 : 3) + severity;
}

/* The most urgent first; equal ones in opening order. */
static void sort_incidents(struct nt_html_page *page)
{
	const struct nt_judgement *judgement = page->report->judgement;

	for (int rank = 0; rank < 6; rank++) {
		for (size_t i = 0; i < judgement->incidents; i++) {
			const struct nt_wire_incident *incident = &judgement->judged[i].incident;

			if (rank_of(incident) == rank)
				page->incident[page->incidents++] = incident;
		}
		if (rank == 2)
			page->accusing = page->incidents;
	}
}

int nt_html_write(const struct nt_report *report, struct nt_buf *buf)
{
	struct nt_markup out = {.buf = buf};
	struct nt_html_page page = {.out = &out, .report = report};
	nt_autofree const struct nt_wire_incident **incident =
		calloc(report->judgement->incidents + 1, sizeof(*incident));
	int r;

	if (!incident)
		return -ENOMEM;
	buf->max = NT_PAGE_MAX_BYTES;
	page.incident = incident;
	sort_incidents(&page);
	nt_page_begin(&out, report->source, true);
	put_lead(&page);
	nt_html_verdicts(&page);
	r = nt_html_heatmaps(&page);
	put_collectives(&page);
	nt_page_end(&out, true);
	return r ?: out.error;
}

int nt_html_save(const struct nt_report *report, const char *path)
{
	nt_autobuf struct nt_buf buf = {0};
	int r = nt_html_write(report, &buf);

	return r < 0 ? r : nt_page_save(&buf, path);
}
