/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/replay/long_stall.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool shows_host(const struct nt_frame_rank *rank)
{
	return rank->observed && rank->steps && !rank->no_host && rank->own_tier >= NT_FRAME_T2;
}

/* The usual length of a frame: its median. */
static double usual_ns(const struct nt_trace *trace, double *scratch)
{
	for (size_t i = 0; i < trace->frames; i++) {
		const struct nt_frame *frame = &trace->frame[i].frame;

		scratch[i] = (double)(frame->end_ns - frame->start_ns);
	}
	qsort(scratch, trace->frames, sizeof(*scratch), by_value);
	return scratch[trace->frames / 2];
}

static const struct nt_frame_rank *find_worst(const struct nt_trace_frame *frame)
{
	const struct nt_frame_rank *worst = NULL;

	for (size_t i = 0; i < frame->frame.ranks; i++)
		if (shows_host(&frame->rank[i]) &&
		    (!worst || frame->rank[i].host_ns > worst->host_ns))
			worst = &frame->rank[i];
	return worst;
}

/* The median host work of the others; < 0: there are none. */
static double others_ns(const struct nt_trace_frame *frame, const struct nt_frame_rank *except,
			double *scratch)
{
	size_t n = 0;

	for (size_t i = 0; i < frame->frame.ranks; i++)
		if (&frame->rank[i] != except && shows_host(&frame->rank[i]))
			scratch[n++] = (double)frame->rank[i].host_ns;
	if (!n)
		return -1.0;
	qsort(scratch, n, sizeof(*scratch), by_value);
	return scratch[n / 2];
}

static void add(const struct nt_frame *frame, const struct nt_frame_rank *rank, double peers_ns,
		struct nt_long_stall *stall, size_t *stalls)
{
	size_t at = 0;

	while (at < *stalls && stall[at].rank != rank->rank)
		at++;
	if (at == NT_LONG_STALL_MAX)
		return;
	if (at == *stalls)
		stall[(*stalls)++] = (struct nt_long_stall){.rank = rank->rank, .node = rank->node};
	stall[at].steps++;
	if ((double)rank->host_ns <= stall[at].host_ns)
		return;
	stall[at].host_ns = (double)rank->host_ns;
	stall[at].peers_ns = peers_ns;
	stall[at].since_ns = frame->start_ns;
	stall[at].until_ns = frame->end_ns;
}

int nt_long_stall_find(const struct nt_trace *trace, const struct nt_rules *rules,
		       struct nt_long_stall *ret_stall, size_t *ret_stalls)
{
	nt_autofree double *scratch = NULL;
	size_t room = trace->frames;
	double least_ns;

	*ret_stalls = 0;
	for (size_t i = 0; i < trace->frames; i++)
		if (trace->frame[i].frame.ranks > room)
			room = trace->frame[i].frame.ranks;
	if (!trace->frames || trace->hangs)
		return 0;
	scratch = calloc(room, sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	least_ns = fmax((double)rules->checkpoint_note_ns,
			rules->hang_periods * usual_ns(trace, scratch));
	for (size_t i = 0; i < trace->frames; i++) {
		const struct nt_frame_rank *worst = find_worst(&trace->frame[i]);
		double peers_ns;

		if (!worst || (double)worst->host_ns < least_ns)
			continue;
		peers_ns = others_ns(&trace->frame[i], worst, scratch);
		if (peers_ns >= 0.0 && (double)worst->host_ns - peers_ns >= least_ns)
			add(&trace->frame[i].frame, worst, peers_ns, ret_stall, ret_stalls);
	}
	return 0;
}
