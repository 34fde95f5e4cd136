/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grid of a job's frames: length of cells, skipped cells, and completeness. */
#include <errno.h>
#include <stdlib.h>

#include "engine/frame_builder_impl.h"

/* ---- cells ----------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/*
 * A cell is a quarter longer than the median rank's windows. The shorter of each rank's last two
 * counts, so that one long pause does not lengthen frames. Cells grow at once and shrink slowly.
 */
int nt_frame_builder_stretch(struct nt_frame_builder *frame_builder, struct nt_job *job)
{
	size_t sessions = job->sessions - job->retired, known = 0;
	uint64_t *length = nt_frame_builder_alloc(frame_builder, sessions, sizeof(*length));
	uint64_t wanted, least = job->grid.length_ns - job->grid.length_ns / 4;

	if (!length)
		return -ENOMEM;
	for (size_t i = 0; i < sessions; i++) {
		const struct nt_rank_session *session = job->session[i];
		const uint64_t *last = session->step_window_ns;

		if (session->ended || !last[1])
			continue;
		length[known++] = last[0] < last[1] ? last[0] : last[1];
	}
	if (!known)
		return 0;
	qsort(length, known, sizeof(*length), by_size);
	wanted = length[known / 2];
	wanted = wanted < NT_FRAME_BUILDER_CELL_MAX_NS ? wanted + wanted / 4
						       : NT_FRAME_BUILDER_CELL_MAX_NS;
	if (wanted < least)
		wanted = least;
	if (wanted < frame_builder->cell_min_ns)
		wanted = frame_builder->cell_min_ns;
	if (wanted > NT_FRAME_BUILDER_CELL_MAX_NS)
		wanted = NT_FRAME_BUILDER_CELL_MAX_NS;
	job->grid.length_ns = wanted;
	return 0;
}

uint64_t nt_frame_builder_due_ns(struct nt_frame_builder *frame_builder, struct nt_job *job)
{
	if (job->closed)
		return UINT64_MAX;
	if (!job->grid.length_ns)
		job->grid.length_ns = frame_builder->cell_min_ns;
	return job->grid.start_ns + job->grid.length_ns;
}

void nt_frame_builder_skip(struct nt_frame_builder *frame_builder, struct nt_job *job,
			   uint64_t closable_ns)
{
	uint64_t next = closable_ns, cells;
	const uint64_t due = nt_frame_builder_due_ns(frame_builder, job);

	if (closable_ns < due + NT_FRAME_BUILDER_SKIP_NS)
		return;
	for (size_t i = 0; i < job->sessions - job->retired; i++)
		if (job->session[i]->waitings && job->session[i]->waiting[0].end_ns < next)
			next = job->session[i]->waiting[0].end_ns;
	if (next < due + NT_FRAME_BUILDER_SKIP_NS || next == UINT64_MAX)
		return;
	cells = (next - job->grid.start_ns) / job->grid.length_ns;
	job->grid.start_ns += cells * job->grid.length_ns;
	frame_builder->counters.skipped_gaps++;
}

/* ---- what is missing ------------------------------------------------------------------------- */

/* Whether a window that ends in a later cell began before this one ended. */
static bool is_covered_later(const struct nt_rank_session *session, uint64_t end_ns)
{
	const struct nt_waiting *next = session->waiting;

	/* Beyond the agent's watermark the result would depend on the order of arrival. */
	if (!session->waitings || session->source->watermark_ns < end_ns)
		return false;
	if (!session->covered_boot_ns)
		return next->start_ns < end_ns;
	return next->message->window.start_boot_ns <= session->covered_boot_ns;
}

/*
 * Time of the session without a window, as far as this cell shows; negative: late windows for time
 * counted as missing. Windows are contiguous on the boot clock of the node, regardless of changes
 * of the real clock.
 */
static double find_missing(struct nt_rank_session *session, size_t windows, uint64_t end_ns,
			   uint64_t length_ns)
{
	const struct nt_waiting *waiting = session->waiting;
	double gaps_ns = 0;

	if (!windows && is_covered_later(session, end_ns))
		return 0;
	if (!windows) {
		if (session->covered_boot_ns)
			session->absent_ns += length_ns;
		return (double)length_ns;
	}
	for (size_t i = 0; i < windows; i++) {
		const struct nt_window *window = &waiting[i].message->window;

		if (session->covered_boot_ns && window->start_boot_ns > session->covered_boot_ns)
			gaps_ns += (double)(window->start_boot_ns - session->covered_boot_ns);
		if (window->end_boot_ns > session->covered_boot_ns)
			session->covered_boot_ns = window->end_boot_ns;
	}
	gaps_ns -= (double)session->absent_ns;
	session->absent_ns = 0;
	return gaps_ns;
}

/*
 * Time of the session lost within windows: of each window the share of lost events or intervals. A
 * window without event counts is lost entirely.
 */
static double find_lost(const struct nt_rank_session *session, size_t windows)
{
	double lost_ns = 0;

	for (size_t i = 0; i < windows; i++) {
		const struct nt_window *window = &session->waiting[i].message->window;
		const double lost = (double)window->lost;

		if (window->lost)
			lost_ns += (double)(window->end_boot_ns - window->start_boot_ns) * lost /
				   (lost + (double)window->taken);
	}
	return lost_ns;
}

/* Ranks that were never observed count as missing. */
void nt_frame_builder_weigh(struct nt_frame_builder *frame_builder, struct nt_job *job,
			    const size_t *windows)
{
	const size_t sessions = job->sessions - job->retired;
	const size_t size = job->size > sessions ? job->size : sessions;
	const uint64_t end_ns = frame_builder->frame.end_ns,
		       length_ns = end_ns - frame_builder->frame.start_ns;
	const double length = (double)length_ns;
	double missing_ns = (double)(size - sessions) * length, missed_ns = 0, expected = 0;

	for (size_t i = 0; i < sessions; i++) {
		const struct nt_frame_rank *rank = &frame_builder->frame.rank[i];
		double ns, now;

		/* No window is expected of an ended rank. */
		if (rank->ended && !rank->observed)
			continue;
		ns = find_missing(job->session[i], windows[i], end_ns, length_ns) +
		     find_lost(job->session[i], windows[i]);
		now = ns < 0 ? 0 : ns < length ? ns : length;
		missing_ns += now;
		missed_ns += ns - now;
		expected++;
	}
	expected += (double)(size - sessions);
	frame_builder->frame.expected_ranks = (uint32_t)size;
	frame_builder->frame.completeness = expected > 0 ? 1 - missing_ns / (expected * length) : 1;
	frame_builder->frame.missed_ns = expected > 0 ? missed_ns / expected : 0;
}
