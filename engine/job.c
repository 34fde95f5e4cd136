/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/job_impl.h"

#include <errno.h>
#include <string.h>

enum {
	WAIT_SIGNAL_MAX = 127, /* a larger one is no signal of wait(2) */
};

/*
 * A process is usually one rank. If it has several, they are distinguished by rank. A session whose
 * rank was unknown at first keeps its identity when the rank becomes known.
 */
static struct nt_rank_session *find_session(const struct nt_process_index *process,
					    const struct nt_rank_id *id)
{
	struct nt_rank_session *session;

	for (session = process->session; session; session = session->next)
		if (session->rank == id->rank && session->rank_known == id->rank_known)
			return session;
	session = process->session;
	if (session && !session->next && (!session->rank_known || !id->rank_known))
		return session;
	return NULL;
}

static int add_session(struct nt_jobs *jobs, struct nt_job_key *key,
		       struct nt_process_index *process, const struct nt_message *message,
		       struct nt_source *source, struct nt_rank_session **ret_session)
{
	nt_auto(nt_rank_session) struct nt_rank_session *session = NULL;
	int r;

	if (key->sessions >= jobs->limits.ranks) {
		jobs->counters.refused_ranks++;
		return -ENOBUFS;
	}
	r = nt_jobs_grow(&key->admission, key->admissions, &key->admission_cap,
			 sizeof(struct nt_rank_session *));
	if (r < 0)
		return r;
	r = nt_rank_session_new(message, &session);
	if (r < 0)
		return r;
	session->node = process->id.node;
	session->next = process->session;
	process->session = session;
	nt_rank_session_move(session, source);
	key->sessions++;
	key->admission[key->admissions++] = session;
	*ret_session = nt_take(session);
	return 0;
}

static int count_window(struct nt_jobs *jobs, struct nt_rank_session *session,
			const struct nt_message *message, uint64_t end_ns)
{
	const size_t before = session->shared_comms;
	int r = nt_rank_session_count(session, message, end_ns, &jobs->counters.session);

	if (r == 0 && session->job)
		r = nt_jobs_index_comms(jobs, session, before);
	if (r == 0)
		jobs->counters.windows++;
	return r;
}

static int put_window(struct nt_jobs *jobs, struct nt_job_key *key, struct nt_source *source,
		      struct nt_message **message, bool again)
{
	const struct nt_window *window = &(*message)->window;
	const uint64_t start_ns = nt_message_real_ns(*message, window->start_boot_ns);
	const uint64_t end_ns = nt_message_real_ns(*message, window->end_boot_ns);
	const uint32_t window_size = window->rank.size;
	struct nt_process_index *process;
	struct nt_node_entry *node;
	struct nt_process_id id;
	struct nt_rank_session *session;
	int r;

	r = nt_jobs_find_node(jobs, window->rank.node, &node);
	if (r < 0)
		return r;
	if (end_ns > node->last_seen_ns)
		node->last_seen_ns = end_ns;
	node->quiet_ns = 0;
	id = (struct nt_process_id){
		.node = node->index,
		.pid = window->rank.pid,
		.start_boot_ns = window->rank.start_boot_ns,
	};
	r = nt_jobs_find_process(jobs, key, &id, &process);
	if (r < 0)
		return r;
	session = find_session(process, &window->rank);
	if (!session && key->job && end_ns + NT_JOBS_SILENCE_NS < key->lead_ns) {
		/* Its session is gone or will follow: no job is created from a past window. */
		jobs->counters.session.late_windows += !again;
		if (!process->session)
			nt_jobs_forget_process(key, process);
		return 0;
	}
	if (!session && again) {
		/* Sessions that existed when the state was saved are in it. */
		if (!process->session)
			nt_jobs_forget_process(key, process);
		return 0;
	}
	if (!session) {
		r = add_session(jobs, key, process, *message, source, &session);
		if (r < 0) {
			if (!process->session)
				nt_jobs_forget_process(key, process);
			return r;
		}
	}
	nt_rank_session_move(session, source);
	if (!again) {
		r = count_window(jobs, session, *message, end_ns);
		if (r < 0)
			return r;
	}
	if (session->ended || session->retired || (session->job && session->job->closed))
		return 0;
	if (session->job && end_ns < session->job->grid.start_ns) {
		if (again)
			return 0;
		jobs->counters.session.late_windows++;
		/* Too late to be judged, but the end is recorded. */
		if (window->ended)
			nt_jobs_end_session_by(session, end_ns, window);
		return 0;
	}
	r = nt_rank_session_queue(session, *message, start_ns, end_ns, &jobs->counters.session);
	if (r < 0)
		return r;
	*message = NULL;
	if (!session->job && nt_rank_session_due_ns(key, session) < key->due_ns)
		key->due_ns = nt_rank_session_due_ns(key, session);
	if (!session->job && window_size > key->admission_size)
		key->admission_size = window_size;
	return 0;
}

/* Consumes buffered messages that are now contiguous. */
static void close_up(struct nt_source *source)
{
	for (uint32_t i = 0; i < source->aheads;) {
		if (source->ahead[i].seq > source->next_seq) {
			i++;
			continue;
		}
		if (source->ahead[i].seq == source->next_seq)
			source->next_seq++;
		if (source->ahead[i].watermark_ns > source->watermark_ns)
			source->watermark_ns = source->ahead[i].watermark_ns;
		source->ahead[i] = source->ahead[--source->aheads];
		i = 0;
	}
}

/* Stops waiting for missing messages. */
static void give_up(struct nt_source *source)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < source->aheads; i++)
		if (source->ahead[i].seq < least)
			least = source->ahead[i].seq;
	source->next_seq = least;
	close_up(source);
}

/* A watermark is valid once all earlier messages have arrived or are too late. */
static void advance_source(struct nt_source *source, const struct nt_message *message)
{
	const uint64_t watermark_ns = nt_message_real_ns(message, message->watermark_boot_ns);
	const uint64_t before_ns = source->watermark_ns;
	bool is_missing;

	/* From an earlier run of the agent: its backlog does not advance the current run. */
	if (source->next_seq && source->boot != message->boot && watermark_ns <= source->claimed_ns)
		return;
	if (watermark_ns > source->claimed_ns)
		source->claimed_ns = watermark_ns;
	is_missing = source->boot != message->boot || message->seq > source->next_seq;
	if (source->boot != message->boot || !source->next_seq) {
		source->boot = message->boot;
		source->next_seq = message->seq;
		source->aheads = 0;
		source->unsure_ns = message->seq > 1 ? watermark_ns : 0;
	}
	if (source->aheads == NT_SOURCE_MAX_AHEAD)
		give_up(source);
	if (message->seq >= source->next_seq)
		source->ahead[source->aheads++] = (struct nt_ahead){
			.seq = message->seq,
			.watermark_ns = watermark_ns,
		};
	close_up(source);
	if (source->claimed_ns >= source->unsure_ns + NT_JOBS_LATENESS_NS)
		source->unsure_ns = 0;
	while (source->aheads && source->claimed_ns >= source->watermark_ns + NT_JOBS_LATENESS_NS)
		give_up(source);
	if (is_missing && before_ns && source->watermark_ns > before_ns + NT_JOBS_LATENESS_NS) {
		source->silent_from_ns = before_ns;
		source->silent_until_ns = source->watermark_ns;
	}
}

int nt_jobs_put(struct nt_jobs *jobs, struct nt_message *message, bool again,
		struct nt_job_key **ret_key)
{
	nt_auto(nt_message) struct nt_message *owned = message;
	struct nt_source *source;
	struct nt_job_key *key;
	int r;

	*ret_key = NULL;
	r = nt_jobs_find_key(jobs, message->key, &key);
	if (r >= 0)
		r = nt_jobs_find_source(jobs, key, message->agent, &source);
	if (r < 0)
		return r == -ENOBUFS ? 0 : r;

	advance_source(source, message);
	if (message->body == NT_BODY_WINDOW) {
		r = put_window(jobs, key, source, &owned, again);
		if (r < 0 && r != -ENOBUFS)
			return r;
	}
	key->quiet_ns = 0;
	if (key->lead_ns && source->silent_until_ns == source->claimed_ns &&
	    source->claimed_ns > key->lead_ns + NT_JOBS_LATENESS_NS) {
		/* The first agent to resume: the others were cut off as well. */
		key->silent_from_ns = key->lead_ns;
		key->silent_until_ns = source->claimed_ns;
	}
	if (source->claimed_ns > key->lead_ns)
		key->lead_ns = source->claimed_ns;
	if (source->claimed_ns > jobs->lead_ns)
		jobs->lead_ns = source->claimed_ns;
	*ret_key = key;
	return 0;
}

void nt_jobs_end_session_by(struct nt_rank_session *session, uint64_t ended_ns,
			    const struct nt_window *window)
{
	if (session->ended || session->retired)
		return;
	/* Other values do not exist: the message is malformed there, and nothing is known. */
	if (window->exit_signal <= WAIT_SIGNAL_MAX && window->exit_status <= UINT8_MAX) {
		session->exit_signal = (uint8_t)window->exit_signal;
		session->exit_status = (uint8_t)window->exit_status;
		session->ended_by_parent = window->exit_signal && window->ended_by_parent;
	}
	if (window->ended_early_ns < ended_ns)
		ended_ns -= window->ended_early_ns;
	nt_jobs_end_session(session, ended_ns, window->finalized);
}

void nt_jobs_end_session(struct nt_rank_session *session, uint64_t ended_ns, bool finalized)
{
	struct nt_job *job = session->job;

	if (session->ended || session->retired)
		return;
	session->ended = true;
	session->ended_ns = ended_ns;
	session->finalized = finalized;
	session->source->sessions--;
	if (!job)
		return;
	job->live--;
	job->changed = true;
	if (job->live)
		return;
	for (size_t i = 0; i < job->sessions; i++)
		if (job->session[i]->ended_ns > job->ended_ns)
			job->ended_ns = job->session[i]->ended_ns;
}
