/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The heatmaps of the page, and their tables. */
#include "cli/report/html_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/report/heatmap.h"
#include "proto/text.h"

enum {
	MAX_MARKS = 32, /* in one heatmap */
};

/* The content of a job's heatmap. */
struct scene {
	const struct nt_windows_job *job;
	struct nt_heatmap_mark mark[MAX_MARKS];
	size_t marks;
	uint32_t *number; /* the ranks of all marks */
	size_t numbers;
	const struct nt_windows_rank **rank; /* marked ranks */
	size_t ranks, more; /* more: marked, but not listed */
};

static void release_scene(struct scene *scene)
{
	free(scene->number);
	free(scene->rank);
}

/* Jobs that differ only in their placement share a name. */
static bool is_of(const struct nt_windows_job *job, const struct nt_wire_incident *incident)
{
	char name[NT_WINDOWS_NAME], key[NT_WINDOWS_NAME];

	(void)nt_text_clean(incident->job, strlen(incident->job), name, sizeof(name) - 1);
	(void)nt_text_clean(incident->job_key, strlen(incident->job_key), key, sizeof(key) - 1);
	return incident->attempt == job->attempt && strcmp(name, job->name) == 0 &&
	       strcmp(key, job->key) == 0;
}

static bool is_at(const struct nt_windows_job *job, const struct nt_culprit *culprit)
{
	const struct nt_windows_rank *rank = nt_windows_find(job, culprit->rank);
	const char *node = rank ? nt_windows_node(job, rank->node) : "";

	return rank && (!*node || !culprit->node[0] ||
			strncmp(node, culprit->node, NT_WINDOWS_NAME - 1) == 0);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* 1: added, 0: of another job. */
static int add_mark(struct scene *scene, const struct nt_wire_incident *incident,
		    unsigned int number)
{
	size_t wanted = 0, n = 0;
	uint32_t *list;

	for (size_t i = 0; i < incident->culprits; i++)
		wanted += 1 + incident->culprit[i].rank_count;
	list = reallocarray(scene->number, scene->numbers + wanted + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	scene->number = list;
	list += scene->numbers;
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *culprit = &incident->culprit[i];

		if (culprit->has_rank && is_at(scene->job, culprit))
			list[n++] = culprit->rank;
		for (size_t j = 0; j < culprit->rank_count; j++)
			list[n++] = culprit->ranks[j];
	}
	if (!n && wanted && incident->culprit[0].has_rank)
		return 0;
	if (n)
		qsort(list, n, sizeof(*list), by_number);
	scene->numbers += n;
	scene->mark[scene->marks++] = (struct nt_heatmap_mark){
		.number = number,
		.text = incident->summary,
		.since_ns = incident->since_real_ns,
		.until_ns = incident->until_real_ns,
		.ranks = n,
	};
	return 1;
}

static int add_marks(struct scene *scene, const struct nt_html_page *page)
{
	size_t at = 0;

	for (size_t i = 0; i < page->incidents && i < NT_HTML_MAX_INCIDENTS; i++) {
		int r;

		if (scene->marks == MAX_MARKS || !is_of(scene->job, page->incident[i]))
			continue;
		r = add_mark(scene, page->incident[i], (unsigned int)i + 1);
		if (r < 0)
			return r;
	}
	/* The list is final: pointers into it are stable. */
	for (size_t i = 0; i < scene->marks; i++) {
		scene->mark[i].rank = &scene->number[at];
		at += scene->mark[i].ranks;
	}
	return 0;
}

static bool is_named(const struct scene *scene, uint32_t rank)
{
	for (size_t i = 0; i < scene->marks; i++)
		if (bsearch(&rank, scene->mark[i].rank, scene->mark[i].ranks, sizeof(rank),
			    by_number))
			return true;
	return false;
}

/* Order: named in a verdict, then most often marked, then largest excess. */
struct heatmap_candidate {
	const struct nt_windows_rank *rank;
	bool named;
};

static int by_interest(const void *a, const void *b)
{
	const struct heatmap_candidate *x = a, *y = b;

	if (x->named != y->named)
		return x->named ? -1 : 1;
	if (x->rank->marked != y->rank->marked)
		return x->rank->marked > y->rank->marked ? -1 : 1;
	if (x->rank->worst.excess != y->rank->worst.excess)
		return x->rank->worst.excess > y->rank->worst.excess ? -1 : 1;
	return (x->rank->rank > y->rank->rank) - (x->rank->rank < y->rank->rank);
}

static int by_rank(const void *a, const void *b)
{
	const struct nt_windows_rank *const *x = a, *const *y = b;

	return ((*x)->rank > (*y)->rank) - ((*x)->rank < (*y)->rank);
}

static int pick_ranks(struct scene *scene)
{
	const struct nt_windows_job *job = scene->job;
	nt_autofree struct heatmap_candidate *candidate =
		calloc(job->ranks + 1, sizeof(*candidate));
	size_t n = 0;

	scene->rank = calloc(NT_HTML_MAX_RANKS, sizeof(*scene->rank));
	if (!candidate || !scene->rank)
		return -ENOMEM;
	for (size_t i = 0; i < job->ranks; i++) {
		const bool named = is_named(scene, job->rank[i].rank);

		if (named || job->rank[i].marked)
			candidate[n++] = (struct heatmap_candidate){&job->rank[i], named};
	}
	qsort(candidate, n, sizeof(*candidate), by_interest);
	scene->ranks = n < NT_HTML_MAX_RANKS ? n : NT_HTML_MAX_RANKS;
	scene->more = n - scene->ranks;
	for (size_t i = 0; i < scene->ranks; i++)
		scene->rank[i] = candidate[i].rank;
	return 0;
}

static void put_excess(struct nt_markup *out, double excess)
{
	nt_markup_put(out, "%+.1f %%", 100.0 * excess);
}

static void put_ranks(const struct nt_html_page *page, const struct scene *scene)
{
	struct nt_markup *out = page->out;

	if (!scene->ranks) {
		nt_markup_put(out, "<p>No rank deviated from its peers in any window.</p>\n");
		return;
	}
	nt_markup_put(
		out,
		"<div class=\"scroll\"><table>\n<caption>Culprits and ranks that deviated. Deviations are "
		"from the median of the peers, as a share of the step time.</caption>\n<thead><tr>"
		"<th scope=\"col\">Rank</th><th scope=\"col\">Node</th>"
		"<th scope=\"col\" class=\"n\">Windows with a deviation</th>"
		"<th scope=\"col\" class=\"n\">Mean deviation</th>"
		"<th scope=\"col\" class=\"n\">Largest deviation</th>"
		"<th scope=\"col\">Worst window</th>"
		"<th scope=\"col\">Kind of work</th>"
		"<th scope=\"col\" class=\"n\">Its time</th>"
		"<th scope=\"col\" class=\"n\">Its peers'</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < scene->ranks; i++) {
		const struct nt_windows_rank *rank = scene->rank[i];
		const char *node = nt_windows_node(scene->job, rank->node);

		nt_markup_put(out, "<tr><th scope=\"row\">%u</th><td>", rank->rank);
		nt_markup_text(out, *node ? node : "–", NT_HTML_NAME);
		nt_markup_put(out, "</td><td class=\"n\">%" PRIu64 " of %" PRIu64 "</td>",
			      rank->marked, rank->judged);
		if (!rank->judged) {
			nt_markup_put(out, "<td colspan=\"6\">not compared</td></tr>\n");
			continue;
		}
		nt_markup_put(out, "<td class=\"n\">");
		put_excess(out, rank->excess / (double)rank->judged);
		nt_markup_put(out, "</td><td class=\"n\">");
		put_excess(out, rank->worst.excess);
		nt_markup_put(out, "</td><td class=\"t\">");
		nt_html_time(page, rank->worst_ns);
		nt_markup_put(out, "</td><td>%s</td><td class=\"n\">",
			      rank->worst.host ? "host work" : "own work");
		nt_html_value(out, rank->worst.value_ns / 1e6, "ms");
		nt_markup_put(out, "</td><td class=\"n\">");
		nt_html_value(out, rank->worst.peers_ns / 1e6, "ms");
		nt_markup_put(out, "</td></tr>\n");
	}
	nt_markup_put(out, "</tbody></table></div>\n");
	if (scene->more)
		nt_markup_put(out, "<p>%zu more: see --json --windows.</p>\n", scene->more);
}

static void put_maps(const struct nt_html_page *page, struct scene *scene, size_t number)
{
	char id[32];
	struct nt_heatmap map = {
		.job = scene->job,
		.ranks = scene->job->ranks,
		.id = id,
		.title = "All ranks compared with their peers.",
		.mark = scene->mark,
		.marks = scene->marks,
	};

	(void)snprintf(id, sizeof(id), "map-%zu", number);
	nt_heatmap_print(&map, page->report, page->out);
	put_ranks(page, scene);
	if (nt_heatmap_ranks_per_row(scene->job->ranks) == 1 || !scene->ranks)
		return;
	(void)snprintf(id, sizeof(id), "map-%zu-ranks", number);
	map.title = "Ranks that deviated, one per line.";
	map.rank = scene->rank;
	map.ranks = scene->ranks;
	qsort(scene->rank, scene->ranks, sizeof(*scene->rank), by_rank);
	nt_heatmap_print(&map, page->report, page->out);
}

static void put_legend(struct nt_markup *out)
{
	static const struct {
		const char *fill, *opacity, *text;
	} sample[] = {
		{"#0072b2", "0.6", "less than its peers"},
		{"none", "0", "equal to its peers (within 3 % of a step)"},
		{"#d55e00", "0.25", "10 % of a step more"},
		{"#d55e00", "1", "40 % or more"},
		{"#808080", "0.38", "no data, or no peers"},
	};

	nt_markup_put(out, "<ul class=\"legend\">\n");
	for (size_t i = 0; i < sizeof(sample) / sizeof(sample[0]); i++)
		nt_markup_put(out,
			      "<li><svg width=\"18\" height=\"14\" aria-hidden=\"true\"><rect "
			      "width=\"18\" height=\"14\" fill=\"%s\" fill-opacity=\"%s\"/></svg>%s"
			      "</li>\n",
			      sample[i].fill, sample[i].opacity, sample[i].text);
	nt_markup_put(out, "</ul>\n");
}

static bool is_compared(const struct nt_windows_job *job)
{
	for (size_t i = 0; i < job->ranks; i++)
		if (job->rank[i].judged)
			return true;
	return false;
}

static bool has_namesake(const struct nt_windows *windows, const struct nt_windows_job *job)
{
	for (size_t i = 0; i < windows->jobs; i++)
		if (strcmp(windows->job[i].name, job->name) == 0 &&
		    strcmp(windows->job[i].key, job->key) != 0)
			return true;
	return false;
}

static int put_scene(const struct nt_html_page *page, const struct nt_windows_job *job,
		     size_t number)
{
	__attribute__((cleanup(release_scene))) struct scene scene = {.job = job};
	int r = add_marks(&scene, page);

	r = r ?: pick_ranks(&scene);
	if (r < 0)
		return r;
	if (page->report->judgement->windows->jobs > 1) {
		nt_markup_put(page->out, "<h3>Job ");
		nt_markup_text(page->out, job->name, NT_HTML_NAME);
		if (has_namesake(page->report->judgement->windows, job)) {
			nt_markup_put(page->out, " (");
			nt_markup_text(page->out, job->key, NT_HTML_NAME);
			nt_markup_put(page->out, ")");
		}
		if (job->attempt > 1)
			nt_markup_put(page->out, ", attempt %u", job->attempt);
		nt_markup_put(page->out, "</h3>\n");
	}
	if (is_compared(job))
		put_maps(page, &scene, number);
	else
		nt_markup_put(page->out, "<p>No rank could be compared in any window: its own work "
					 "is not observable, or it has no peers.</p>\n");
	return page->out->error;
}

static bool has_incident(const struct nt_html_page *page, const struct nt_windows_job *job)
{
	for (size_t i = 0; i < page->incidents; i++)
		if (is_of(job, page->incident[i]))
			return true;
	return false;
}

/* Jobs with a verdict come first. */
int nt_html_heatmaps(const struct nt_html_page *page)
{
	const struct nt_windows *windows = page->report->judgement->windows;
	struct nt_markup *out = page->out;
	size_t shown = 0;
	uint64_t left;
	int r = 0;

	nt_markup_put(
		out,
		"<section aria-labelledby=\"pictures\">\n<h2 id=\"pictures\">Rank by "
		"time</h2>\n<p class=\"soft\">Deviation of each rank from ranks of the same "
		"role: in its own work or in the work of its host, whichever deviates more. "
		"A single coloured cell is not a verdict: evidence is accumulated over several "
		"windows.</p>\n");
	put_legend(out);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < windows->jobs && shown < NT_HTML_MAX_JOBS && r == 0; i++)
			if (has_incident(page, &windows->job[i]) == !pass)
				r = put_scene(page, &windows->job[i], ++shown);
	left = windows->jobs - shown + (windows->jobs_left_out > 0);
	if (left)
		nt_markup_put(out, "<p>%" PRIu64 " or more further jobs are not shown.</p>\n",
			      left);
	if (windows->ranks_left_out)
		nt_markup_put(out, "<p>Ranks beyond the first %d are not shown.</p>\n",
			      NT_WINDOWS_MAX_RANKS);
	nt_markup_put(out, "</section>\n");
	return r;
}
