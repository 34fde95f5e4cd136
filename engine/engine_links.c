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

static int add_row(const struct nt_job *job, const struct nt_link_evidence *row,
		   struct nt_arena *arena, struct nt_wire_evidence *ret_evidence)
{
	char *what = nt_arena_alloc(arena, WHAT_BYTES);

	if (!what)
		return -ENOMEM;
	(void)snprintf(what, WHAT_BYTES, "%s, rank %u to rank %u", nt_link_evidence_what(row),
		       job->session[row->link->rank]->number,
		       job->session[row->link->peer]->number);
	*ret_evidence = (struct nt_wire_evidence){
		.what = what,
		.unit = nt_link_evidence_unit(row),
		.method = "links",
		.value = row->value,
		.peers = row->peers,
	};
	return 0;
}

static int add_rows(const struct nt_job *job, const struct nt_link_evidence *row, size_t rows,
		    struct nt_arena *arena, struct nt_wire_incident *incident)
{
	struct nt_wire_evidence *evidence =
		nt_arena_alloc(arena, (incident->evidences + rows) * sizeof(*evidence));

	if (!evidence)
		return -ENOMEM;
	if (incident->evidences)
		memcpy(evidence, incident->evidence, incident->evidences * sizeof(*evidence));
	for (size_t i = 0; i < rows; i++) {
		const int r = add_row(job, &row[i], arena, &evidence[incident->evidences + i]);

		if (r < 0)
			return r;
	}
	incident->evidence = evidence;
	incident->evidences += rows;
	return 0;
}

static int find_rows(const struct nt_job *job, const struct nt_wire_incident *incident,
		     struct nt_job_link **ret_link,
		     struct nt_link_evidence row[NT_LINK_EVIDENCE_ROWS])
{
	const size_t sessions = live_sessions(job);
	nt_autofree const struct nt_rank_links **links = NULL;
	nt_autofree bool *accused = calloc(sessions + 1, sizeof(*accused));
	uint64_t over_cap;
	size_t count;
	int r;

	links = calloc(sessions + 1, sizeof(const struct nt_rank_links *));
	if (!links || !accused)
		return -ENOMEM;
	for (size_t i = 0; i < sessions; i++) {
		links[i] = job->session[i]->links;
		accused[i] = is_accused(incident, job->session[i]);
	}
	r = nt_job_links_join(links, sessions, ret_link, &count, &over_cap);
	return r < 0 ? r : nt_link_evidence_find(*ret_link, count, accused, row);
}

int nt_engine_attach_links(const struct nt_job *job, struct nt_open_incident *open)
{
	struct nt_link_evidence row[NT_LINK_EVIDENCE_ROWS];
	nt_autofree struct nt_job_link *link = NULL;
	int rows;

	if (open->class != NT_CLASS_NETWORK || !open->firing)
		return 0;
	rows = find_rows(job, &open->incident, &link, row);
	return rows <= 0 ? rows : add_rows(job, row, (size_t)rows, open->arena, &open->incident);
}
