/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Links as evidence of incidents of class network. */
#include "engine/engine_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/links/link_evidence.h"

enum {
	WHAT_BYTES = 96,
};

#define LINKS_NS 10000000000 /* as often as the agents read sockets */

static const char method[] = "links";

static size_t live_sessions(const struct nt_job *job)
{
	return job->sessions - job->retired;
}

/* By rank, or as one on an accused node. */
static bool is_accused(const struct nt_wire_incident *incident,
		       const struct nt_rank_session *session)
{
	const char *node = nt_rank_session_text(session, NT_RANK_SESSION_NODE);

	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *culprit = &incident->culprit[i];

		if (culprit->has_rank ? culprit->rank == session->number
				      : culprit->node[0] && strcmp(culprit->node, node) == 0)
			return true;
	}
	return false;
}

/* Sessions in the order of their links' indices: the accused ones first, so that no cap omits their links. */
struct link_ranks {
	const struct nt_rank_session **session; /* owned */
	size_t sessions;
};

static void put_sessions(const struct nt_job *job, const struct nt_wire_incident *incident,
			 bool accused, struct link_ranks *ranks)
{
	for (size_t i = 0; i < live_sessions(job); i++)
		if (is_accused(incident, job->session[i]) == accused)
			ranks->session[ranks->sessions++] = job->session[i];
}

static int add_row(const struct link_ranks *ranks, const struct nt_link_evidence *row,
		   struct nt_arena *arena, struct nt_wire_evidence *ret_evidence)
{
	char *what = nt_arena_alloc(arena, WHAT_BYTES);

	if (!what)
		return -ENOMEM;
	(void)snprintf(what, WHAT_BYTES, "%s, rank %u to rank %u", nt_link_evidence_what(row),
		       ranks->session[row->link->rank]->number,
		       ranks->session[row->link->peer]->number);
	*ret_evidence = (struct nt_wire_evidence){
		.what = what,
		.unit = nt_link_evidence_unit(row),
		.method = method,
		.value = row->value,
		.peers = row->peers,
	};
	return 0;
}

static int add_evidence(const struct nt_wire_evidence *row, size_t rows, struct nt_arena *arena,
			struct nt_wire_incident *incident)
{
	struct nt_wire_evidence *evidence;

	if (!rows)
		return 0;
	evidence = nt_arena_alloc(arena, (incident->evidences + rows) * sizeof(*evidence));
	if (!evidence)
		return -ENOMEM;
	if (incident->evidences)
		memcpy(evidence, incident->evidence, incident->evidences * sizeof(*evidence));
	memcpy(evidence + incident->evidences, row, rows * sizeof(*evidence));
	incident->evidence = evidence;
	incident->evidences += rows;
	return 0;
}

static int find_links(const struct link_ranks *ranks, size_t accused, struct nt_open_incident *open)
{
	nt_autofree const struct nt_rank_links **links = NULL;
	nt_autofree bool *flags = calloc(ranks->sessions + 1, sizeof(*flags));
	nt_autofree struct nt_job_link *link = NULL;
	struct nt_wire_evidence evidence[NT_LINK_EVIDENCE_ROWS];
	struct nt_link_evidence row[NT_LINK_EVIDENCE_ROWS] = {0};
	uint64_t over_cap;
	size_t count, rows = 0;
	int r;

	links = calloc(ranks->sessions + 1, sizeof(const struct nt_rank_links *));
	if (!links || !flags)
		return -ENOMEM;
	for (size_t i = 0; i < ranks->sessions; i++) {
		links[i] = ranks->session[i]->links;
		flags[i] = i < accused;
	}
	r = nt_job_links_join(links, ranks->sessions, &link, &count, &over_cap);
	if (r == 0)
		r = nt_link_evidence_find(link, count, flags, row);
	while (r >= 0 && rows < NT_LINK_EVIDENCE_ROWS && row[rows].link) {
		r = add_row(ranks, &row[rows], open->arena, &evidence[rows]);
		rows++;
	}
	return r < 0 ? r : add_evidence(evidence, rows, open->arena, &open->incident);
}

static char *copy_text(struct nt_arena *arena, const char *text)
{
	const size_t size = strlen(text) + 1;
	char *copy = nt_arena_alloc(arena, size);

	return copy ? memcpy(copy, text, size) : NULL;
}

static int keep_links(const struct nt_open_incident *before, struct nt_open_incident *open)
{
	struct nt_wire_evidence evidence[NT_LINK_EVIDENCE_ROWS];
	size_t rows = 0;

	for (size_t i = 0; i < before->incident.evidences && rows < NT_LINK_EVIDENCE_ROWS; i++) {
		const struct nt_wire_evidence *from = &before->incident.evidence[i];

		if (strcmp(from->method, method) != 0)
			continue;
		evidence[rows] = *from;
		evidence[rows].what = copy_text(open->arena, from->what);
		evidence[rows].unit = copy_text(open->arena, from->unit);
		evidence[rows].method = method;
		if (!evidence[rows].what || !evidence[rows].unit)
			return -ENOMEM;
		rows++;
	}
	open->links_ns = before->links_ns;
	return add_evidence(evidence, rows, open->arena, &open->incident);
}

int nt_engine_attach_links(const struct nt_job *job, const struct nt_open_incident *before,
			   struct nt_open_incident *open)
{
	const uint64_t now_ns = open->incident.seen_real_ns;
	struct link_ranks ranks = {0};
	size_t accused;
	int r;

	open->links_ns = 0;
	if (open->class != NT_CLASS_NETWORK || !open->firing)
		return 0;
	/* To join the links of a large job takes 0.05 s (make bench-reading). */
	if (before->arena && before->links_ns && now_ns >= before->links_ns &&
	    now_ns - before->links_ns < LINKS_NS)
		return keep_links(before, open);
	ranks.session = calloc(live_sessions(job) + 1, sizeof(const struct nt_rank_session *));
	if (!ranks.session)
		return -ENOMEM;
	put_sessions(job, &open->incident, true, &ranks);
	accused = ranks.sessions;
	put_sessions(job, &open->incident, false, &ranks);
	open->links_ns = now_ns;
	r = find_links(&ranks, accused, open);
	free(ranks.session);
	return r;
}
