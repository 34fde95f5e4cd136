/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/frame_builder_impl.h"

#include <errno.h>
#include <string.h>

#include "engine/frame/samples.h"

/* A session that its live agent no longer reports has ended unobserved. */
#define UNREPORTED_NS    (10ULL * 1000000000)
#define UNREPORTED_CELLS 4
#define UNSEEN_NS        (60ULL * 1000000000) /* twice an agent's term for a lost process */

int nt_frame_builder_new(uint64_t cell_min_ns, struct nt_frame_builder **ret_frame_builder)
{
	struct nt_frame_builder *frame_builder = calloc(1, sizeof(*frame_builder));

	if (!frame_builder)
		return -ENOMEM;
	frame_builder->cell_min_ns = cell_min_ns ? cell_min_ns : NT_FRAME_BUILDER_CELL_MIN_NS;
	*ret_frame_builder = frame_builder;
	return 0;
}

void nt_frame_builder_free(struct nt_frame_builder *frame_builder)
{
	if (!frame_builder)
		return;
	nt_arena_release(&frame_builder->arena);
	free(frame_builder);
}

const struct nt_frame_builder_counters *
nt_frame_builder_counters(const struct nt_frame_builder *frame_builder)
{
	return &frame_builder->counters;
}

/* ---- sessions --------------------------------------------------------------------------------- */

/* Number of the session's windows that end in the cell: the first of its queue. */
static size_t count_windows(const struct nt_rank_session *session, uint64_t end_ns)
{
	size_t count = 0;

	while (count < session->waitings && session->waiting[count].end_ns < end_ns)
		count++;
	return count;
}

static void note_inside(struct nt_rank_session *session, const struct nt_message *message)
{
	session->inside = message->window.inside;
	if (nt_frame_builder_kind(session->inside.op) != NT_FRAME_POINT_TO_POINT)
		session->inside.number += nt_align_shift(session, &message->window);
	session->inside_since_ns = nt_message_real_ns(message, session->inside.since_boot_ns);
}

/*
 * A job that is named after this rank is renamed with it. The name of a pod, and so of its job,
 * may become known after the first window.
 */
static int rename_session(struct nt_rank_session *session, const struct nt_rank_id *id)
{
	struct nt_job *job = session->job;
	bool is_named_by =
		job && job->name && session->job_name && strcmp(job->name, session->job_name) == 0;
	int r = nt_rank_session_rename(session, id);

	if (r < 0 || !is_named_by || strcmp(job->name, session->job_name) == 0)
		return r;
	free(job->name);
	job->name = NULL; /* nt_jobs_describe() follows */
	job->changed = true;
	return 0;
}

/* Updates the session from its windows, before the frame is built. */
static int update_session(struct nt_rank_session *session, size_t windows)
{
	const struct nt_rank_id *id = NULL;
	const struct nt_waiting *last;
	int r;

	if (!windows)
		return 0;
	last = &session->waiting[windows - 1];
	id = &last->message->window.rank;
	r = rename_session(session, id);
	if (r < 0)
		return r;
	if (id->rank_known && !session->rank_known && session->rank != id->rank) {
		session->rank = id->rank;
		session->rank_known = true;
	}
	for (size_t i = 0; i < windows; i++) {
		const struct nt_waiting *waiting = &session->waiting[i];

		if (!waiting->message->window.steps || waiting->end_ns <= waiting->start_ns)
			continue;
		/* A long step spans several windows; the last one reports it. */
		session->step_window_ns[1] = session->step_window_ns[0];
		session->step_window_ns[0] =
			waiting->end_ns -
			(session->step_end_ns ? session->step_end_ns : waiting->start_ns);
		session->step_end_ns = waiting->end_ns;
	}
	note_inside(session, last->message);
	if (last->end_ns > session->job->last_seen_ns)
		session->job->last_seen_ns = last->end_ns;
	return 0;
}

/* Ranks may become known and then move in the order during the loop. */
static int update_sessions(struct nt_frame_builder *frame_builder, struct nt_jobs *jobs,
			   struct nt_job *job, uint64_t end_ns)
{
	const size_t sessions = job->sessions - job->retired;
	struct nt_rank_session **session =
		nt_frame_builder_alloc(frame_builder, sessions, sizeof(struct nt_rank_session *));
	int r;

	if (!session)
		return -ENOMEM;
	if (sessions)
		memcpy(session, job->session, sessions * sizeof(struct nt_rank_session *));
	for (size_t i = 0; i < sessions; i++) {
		if (session[i]->retired)
			continue;
		r = update_session(session[i], count_windows(session[i], end_ns));
		if (r < 0)
			return r;
		r = nt_jobs_describe(jobs, session[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Whether its live agent no longer sends windows of it. An agent that gave up a process does not
 * report its end: such a rank leaves the job later and does not count as failed.
 */
static bool has_left(const struct nt_rank_session *session, uint64_t length_ns, uint64_t end_ns)
{
	uint64_t least_ns = session->lost_sight ? UNSEEN_NS : UNREPORTED_NS;

	if (least_ns < UNREPORTED_CELLS * length_ns)
		least_ns = UNREPORTED_CELLS * length_ns;
	return session->source->watermark_ns >= end_ns &&
	       session->last_seen_ns + least_ns < end_ns &&
	       session->source->silent_until_ns + least_ns < end_ns;
}

/* Records ends: those reported by windows of the cell, and unreported ones. */
static void end_sessions(struct nt_job *job, const size_t *windows, uint64_t end_ns)
{
	for (size_t i = 0; i < job->sessions - job->retired; i++) {
		struct nt_rank_session *session = job->session[i];

		for (size_t j = 0; j < windows[i]; j++) {
			const struct nt_window *window = &session->waiting[j].message->window;

			if (window->ended)
				nt_jobs_end_session_by(session, session->waiting[j].end_ns, window);
		}
		if (!session->ended && has_left(session, job->grid.length_ns, end_ns))
			nt_jobs_end_session(session, session->last_seen_ns, session->lost_sight);
	}
}

/* ---- samples --------------------------------------------------------------------------------- */

static const struct nt_comm_window *find_comm(const struct nt_window *window, uint64_t id,
					      uint64_t epoch)
{
	for (size_t i = 0; i < window->comms; i++)
		if (window->comm[i].id == id && window->comm[i].epoch == epoch)
			return &window->comm[i];
	return NULL;
}

static void add_samples(struct nt_frame_builder *frame_builder,
			const struct nt_rank_session *session, const struct nt_message *message,
			struct nt_frame_sample *sample, size_t *samples)
{
	for (size_t i = 0; i < message->window.samples; i++) {
		const struct nt_sample *from = &message->window.sample[i];
		const struct nt_comm_window *comm =
			find_comm(&message->window, from->comm, from->epoch);
		struct nt_frame_sample *to = &sample[*samples];
		bool by_gpu = from->gpu_start_boot_ns && from->gpu_end_boot_ns;
		struct nt_align_reading reading;

		if (!comm) {
			frame_builder->counters.unaligned_samples++;
			continue;
		}
		reading = nt_align_read(session, comm);
		*to = (struct nt_frame_sample){
			.comm = from->comm,
			.epoch = reading.group,
			.number = from->number + reading.shift,
			.bytes = from->bytes,
			.op = (uint8_t)from->op,
			.kind = (uint8_t)nt_frame_builder_kind(from->op),
			.rank = session->number,
			.by_gpu = by_gpu,
			.arrive_ns = nt_message_real_ns(message, by_gpu ? from->gpu_start_boot_ns
									: from->arrive_boot_ns),
		};
		if (by_gpu || from->release_boot_ns)
			to->release_ns = nt_message_real_ns(
				message, by_gpu ? from->gpu_end_boot_ns : from->release_boot_ns);
		(*samples)++;
	}
}

static int collect_samples(struct nt_frame_builder *frame_builder, const struct nt_job *job,
			   const size_t *windows)
{
	struct nt_frame_sample *sample;
	size_t most = 0, samples = 0;
	int r;

	for (size_t i = 0; i < job->sessions - job->retired; i++)
		for (size_t j = 0; j < windows[i]; j++)
			most += job->session[i]->waiting[j].message->window.samples;
	sample = nt_frame_builder_alloc(frame_builder, most, sizeof(*sample));
	if (!sample)
		return -ENOMEM;
	for (size_t i = 0; i < job->sessions - job->retired; i++)
		for (size_t j = 0; j < windows[i]; j++)
			add_samples(frame_builder, job->session[i],
				    job->session[i]->waiting[j].message, sample, &samples);
	r = nt_samples_sort(&frame_builder->arena, sample, samples, &sample);
	if (r < 0)
		return r;
	frame_builder->frame.sample = sample;
	frame_builder->frame.samples = samples;
	return 0;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int draw_up(struct nt_frame_builder *frame_builder, struct nt_job *job, uint64_t end_ns)
{
	const size_t sessions = job->sessions - job->retired;
	struct nt_frame_rank *rank = nt_frame_builder_alloc(frame_builder, sessions, sizeof(*rank));
	size_t *windows = nt_frame_builder_alloc(frame_builder, sessions, sizeof(*windows));
	int r;

	if (!rank || !windows)
		return -ENOMEM;
	for (size_t i = 0; i < sessions; i++)
		windows[i] = count_windows(job->session[i], end_ns);
	end_sessions(job, windows, end_ns);
	r = nt_align_cell(job, windows, &frame_builder->arena, &frame_builder->counters.align);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sessions; i++) {
		r = nt_frame_builder_fill(frame_builder, job->session[i], windows[i], end_ns,
					  &rank[i]);
		if (r < 0)
			return r;
	}
	nt_frame_builder_part(job, rank, sessions);
	r = collect_samples(frame_builder, job, windows);
	if (r < 0)
		return r;
	frame_builder->frame.rank = rank;
	frame_builder->frame.ranks = sessions;
	nt_frame_builder_weigh(frame_builder, job, windows);
	for (size_t i = 0; i < sessions; i++)
		(void)nt_rank_session_drop(job->session[i], end_ns);
	return 0;
}

int nt_frame_builder_close(struct nt_frame_builder *frame_builder, struct nt_jobs *jobs,
			   struct nt_job *job, const struct nt_frame **ret_frame)
{
	const uint64_t end_ns = nt_frame_builder_due_ns(frame_builder, job);
	int r;

	nt_arena_release(&frame_builder->arena);
	frame_builder->frame = (struct nt_frame){.start_ns = job->grid.start_ns, .end_ns = end_ns};

	r = update_sessions(frame_builder, jobs, job, end_ns);
	if (r < 0)
		return r;
	r = draw_up(frame_builder, job, end_ns);
	if (r < 0)
		return r;
	job->grid.start_ns = end_ns;
	job->grid.frames++;
	job->grid.completeness = frame_builder->frame.completeness;
	job->changed = true;
	r = nt_frame_builder_stretch(frame_builder, job);
	if (r < 0)
		return r;
	frame_builder->counters.frames++;
	frame_builder->counters.incomplete_frames += frame_builder->frame.completeness < 1;
	*ret_frame = &frame_builder->frame;
	return 0;
}
