/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/search.h"
#include "proto/text.h"

void nt_trace_free(struct nt_trace *trace)
{
	if (!trace)
		return;
	for (size_t i = 0; i < trace->frames; i++) {
		free(trace->frame[i].rank);
		free(trace->frame[i].sample);
		free(trace->frame[i].comm);
		free(trace->frame[i].op);
	}
	nt_arena_release(&trace->arena);
	free(trace->frame);
	free(trace->collective);
	free(trace->place);
	free(trace->node);
	free(trace->step);
	free(trace);
}

const struct nt_trace_place *nt_trace_find_place(const struct nt_trace *trace, uint32_t rank)
{
	const size_t low = nt_search_first(0, trace->places, i, trace->place[i].rank >= rank);

	return low < trace->places && trace->place[low].rank == rank ? &trace->place[low] : NULL;
}

int nt_trace_frame_add(struct nt_trace *trace, size_t ranks, size_t samples,
		       struct nt_trace_frame **ret_frame)
{
	nt_autofree struct nt_frame_rank *rank = NULL;
	nt_autofree struct nt_frame_sample *sample = NULL;
	struct nt_trace_frame *frame;

	if (trace->frames == NT_TRACE_MAX_FRAMES || ranks > NT_FRAME_MAX_RANKS)
		return -E2BIG;
	rank = calloc(ranks + 1, sizeof(*rank));
	sample = calloc(samples + 1, sizeof(*sample));
	if (!rank || !sample)
		return -ENOMEM;
	if (trace->frames == trace->frame_cap) {
		const size_t cap = trace->frame_cap ? 2 * trace->frame_cap : 16;
		struct nt_trace_frame *frames = reallocarray(trace->frame, cap, sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		trace->frame = frames;
		trace->frame_cap = cap;
	}
	frame = &trace->frame[trace->frames++];
	*frame = (struct nt_trace_frame){.rank = nt_take(rank), .sample = nt_take(sample)};
	frame->frame.rank = frame->rank;
	frame->frame.sample = frame->sample;
	*ret_frame = frame;
	return 0;
}

int nt_trace_refuse(struct nt_trace_error *error, const char *fmt, ...)
{
	char text[NT_TRACE_ERROR_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* It contains names from files, which are untrusted. */
	(void)nt_text_clean(text, strlen(text), error->text, sizeof(error->text) - 1);
	return -EBADMSG;
}
