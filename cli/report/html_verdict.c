/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verdicts on the page: the fault, the remediation, and the evidence. */
#include "cli/report/html_impl.h"

#include <stdbool.h>

#include "cli/report/remediation.h"
#include "common/base/parse_number.h"

enum {
	MAX_NUMBERS = 16, /* ranks listed in one cell */
};

static void put_evidence(const struct nt_wire_incident *incident, struct nt_markup *out)
{
	if (!incident->evidences)
		return;
	nt_markup_put(out, "<div class=\"scroll\"><table>\n<caption>Evidence</caption>\n<thead><tr>"
			   "<th scope=\"col\">What</th><th scope=\"col\" class=\"n\">Value</th>"
			   "<th scope=\"col\" class=\"n\">Compared with</th>"
			   "<th scope=\"col\" class=\"n\">Ratio</th>"
			   "<th scope=\"col\" class=\"n\">Usual spread</th>"
			   "<th scope=\"col\">Method</th><th scope=\"col\" class=\"n\">Windows</th>"
			   "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < incident->evidences; i++) {
		const struct nt_wire_evidence *e = &incident->evidence[i];

		nt_markup_put(out, "<tr><th scope=\"row\">");
		nt_markup_text(out, e->what, NT_HTML_NAME);
		nt_markup_put(out, "</th><td class=\"n\">");
		nt_html_value(out, e->value, e->unit);
		nt_markup_put(out, "</td><td class=\"n\">");
		nt_html_value(out, e->peers, e->unit);
		if (e->peers > 0.0)
			nt_markup_put(out, "</td><td class=\"n\">%.2f", e->value / e->peers);
		else
			nt_markup_put(out, "</td><td class=\"n\">–");
		nt_markup_put(out, "</td><td class=\"n\">");
		if (e->width > 0.0)
			nt_html_value(out, e->width, e->unit);
		else
			nt_markup_put(out, "–");
		nt_markup_put(out, "</td><td>");
		nt_markup_text(out, e->method, NT_HTML_NAME);
		nt_markup_put(out, "</td><td class=\"n\">%u</td></tr>\n", e->windows);
	}
	nt_markup_put(out, "</tbody></table></div>\n");
}

static void put_numbers(struct nt_markup *out, const uint32_t *number, size_t count)
{
	for (size_t i = 0; i < count && i < MAX_NUMBERS; i++)
		nt_markup_put(out, "%s%u", i ? ", " : "", number[i]);
	if (count > MAX_NUMBERS)
		nt_markup_put(out, " and %zu more", count - MAX_NUMBERS);
	if (!count)
		nt_markup_put(out, "–");
}

/* Columns of a table of culprits; empty ones are omitted. */
enum verdict_column {
	COLUMN_NODE,
	COLUMN_POD,
	COLUMN_CONTAINER,
	COLUMN_GPU,
	COLUMN_RANKS,
	COLUMN_PEERS,
	COLUMN_END,
};

static const char *const titles[COLUMN_END] = {
	[COLUMN_NODE] = "Node",           [COLUMN_POD] = "Pod",
	[COLUMN_CONTAINER] = "Container", [COLUMN_GPU] = "GPU",
	[COLUMN_RANKS] = "Its ranks",     [COLUMN_PEERS] = "Compared with ranks",
};

/* NULL for a numeric column. */
static const char *text_of(const struct nt_culprit *culprit, enum verdict_column column)
{
	switch (column) {
	case COLUMN_NODE:
		return culprit->node;
	case COLUMN_POD:
		return culprit->pod;
	case COLUMN_CONTAINER:
		return culprit->container;
	case COLUMN_GPU:
		return culprit->gpu;
	default:
		return NULL;
	}
}

static bool has(const struct nt_wire_incident *incident, enum verdict_column column)
{
	for (size_t i = 0; i < incident->culprits && i < NT_HTML_MAX_CULPRITS; i++) {
		const struct nt_culprit *culprit = &incident->culprit[i];
		const char *text = text_of(culprit, column);

		if (text ? *text
			 : (column == COLUMN_RANKS ? culprit->rank_count : culprit->peer_count) > 0)
			return true;
	}
	return false;
}

static void put_culprit(const struct nt_wire_incident *incident, const struct nt_culprit *culprit,
			struct nt_markup *out)
{
	nt_markup_put(out, "<tr><th scope=\"row\">");
	nt_markup_text(out, culprit->kind, NT_HTML_NAME);
	if (culprit->has_rank) {
		nt_markup_put(out, " %u", culprit->rank);
	} else if (culprit->name[0]) {
		nt_markup_put(out, " ");
		nt_markup_text(out, culprit->name, NT_HTML_NAME);
	}
	if (culprit->peer[0]) {
		nt_markup_put(out, " to ");
		nt_markup_text(out, culprit->peer, NT_HTML_NAME);
	}
	nt_markup_put(out, "</th>");
	for (enum verdict_column column = 0; column < COLUMN_END; column++) {
		const char *text = text_of(culprit, column);

		if (!has(incident, column))
			continue;
		nt_markup_put(out, "<td>");
		if (text)
			nt_markup_text(out, *text ? text : "–", NT_HTML_NAME);
		else if (column == COLUMN_RANKS)
			put_numbers(out, culprit->ranks, culprit->rank_count);
		else
			put_numbers(out, culprit->peers, culprit->peer_count);
		nt_markup_put(out, "</td>");
	}
	nt_markup_put(out, "</tr>\n");
}

static void put_culprits(const struct nt_wire_incident *incident, struct nt_markup *out)
{
	if (!incident->culprits)
		return;
	nt_markup_put(out, "<div class=\"scroll\"><table>\n<caption>Culprits</caption>\n<thead><tr>"
			   "<th scope=\"col\">Culprit</th>");
	for (enum verdict_column column = 0; column < COLUMN_END; column++)
		if (has(incident, column))
			nt_markup_put(out, "<th scope=\"col\">%s</th>", titles[column]);
	nt_markup_put(out, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < incident->culprits && i < NT_HTML_MAX_CULPRITS; i++)
		put_culprit(incident, &incident->culprit[i], out);
	nt_markup_put(out, "</tbody></table></div>\n");
	if (incident->culprits > NT_HTML_MAX_CULPRITS)
		nt_markup_put(out, "<p>%zu more: see --json.</p>\n",
			      incident->culprits - NT_HTML_MAX_CULPRITS);
}

static void put_facts(const struct nt_html_page *page, const struct nt_wire_incident *incident)
{
	struct nt_markup *out = page->out;

	nt_markup_put(out, "<p class=\"soft\">Class ");
	nt_markup_text(out, incident->class, NT_HTML_NAME);
	if (*incident->cause) {
		nt_markup_put(out, " (");
		nt_markup_text(out, incident->cause, NT_HTML_NAME);
		nt_markup_put(out, ")");
	}
	nt_markup_put(out, ", ");
	nt_markup_text(out, incident->state, NT_HTML_NAME);
	nt_markup_put(out, ", since ");
	nt_html_time(page, incident->since_real_ns);
	if (incident->until_real_ns) {
		nt_markup_put(out, " until ");
		nt_html_time(page, incident->until_real_ns);
	}
	if (incident->slowdown > 0.0)
		nt_markup_put(out, ". A step takes %.2f times as long as without the fault",
			      incident->slowdown);
	if (incident->cost.gpu_hours > 0.0)
		nt_markup_put(out, "; %.3g GPU-hours lost", incident->cost.gpu_hours);
	if (incident->cost.has_money) {
		nt_markup_put(out, ", %.2f ", incident->cost.money);
		nt_markup_text(out, incident->cost.currency, NT_HTML_NAME);
	}
	nt_markup_put(out, ". Confidence %.3f at tier %s with %u %% of the windows received.</p>\n",
		      incident->confidence, nt_tier_name(incident->tier),
		      nt_parse_percent(incident->completeness));
}

static void put_verdict(const struct nt_html_page *page, const struct nt_wire_incident *incident,
			size_t number)
{
	const char *advice = nt_remediation_find(incident);
	struct nt_markup *out = page->out;

	nt_markup_put(out, "<article id=\"verdict-%zu\" class=\"", number);
	nt_markup_text(out, incident->severity, NT_HTML_NAME);
	nt_markup_put(out, "\">\n<h3><span class=\"number\">%zu</span> <span class=\"severity\">",
		      number);
	nt_markup_text(out, incident->severity, NT_HTML_NAME);
	nt_markup_put(out, "</span> ");
	if (page->report->jobs > 1) {
		nt_markup_put(out, "job ");
		nt_markup_text(out, incident->job, NT_HTML_NAME);
		nt_markup_put(out, ": ");
	}
	nt_markup_text(out, incident->summary, NT_HTML_TEXT);
	nt_markup_put(out, "</h3>\n");
	if (*advice) {
		nt_markup_put(out, "<p class=\"next\"><strong>What to do:</strong> ");
		nt_markup_text(out, advice, NT_HTML_TEXT);
		nt_markup_put(out, "</p>\n");
	}
	put_facts(page, incident);
	put_culprits(incident, out);
	put_evidence(incident, out);
	nt_html_stacks(page, incident);
	nt_markup_put(out, "</article>\n");
}

void nt_html_verdicts(const struct nt_html_page *page)
{
	struct nt_markup *out = page->out;

	nt_markup_put(out, "<section aria-labelledby=\"verdicts\">\n<h2 id=\"verdicts\">Verdicts"
			   "</h2>\n");
	for (size_t i = 0; i < page->incidents && i < NT_HTML_MAX_INCIDENTS; i++)
		put_verdict(page, page->incident[i], i + 1);
	if (!page->incidents)
		nt_markup_put(out, "<p>None: no rank deviates from its peers.</p>\n");
	if (page->incidents > NT_HTML_MAX_INCIDENTS)
		nt_markup_put(out, "<p>%zu more: see --json.</p>\n",
			      page->incidents - NT_HTML_MAX_INCIDENTS);
	nt_markup_put(out, "</section>\n");
}
