/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/search.h"
#include "proto/text.h"

int nt_trace_new(size_t files, struct nt_trace **ret_trace)
{
	struct nt_trace *trace;

	if (files == 0 || files > NT_FRAME_MAX_RANKS)
		return -EINVAL;
	trace = calloc(1, sizeof(*trace));
	if (!trace)
		return -ENOMEM;
	*ret_trace = trace;
	return 0;
}

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
	free(trace->rank_info);
	free(trace->node);
	free(trace->step);
	free(trace);
}

const struct nt_trace_rank_info *nt_trace_find_rank_info(const struct nt_trace *trace,
							 uint32_t rank)
{
	const size_t low =
		nt_search_first(0, trace->rank_infos, i, trace->rank_info[i].rank >= rank);

	return low < trace->rank_infos && trace->rank_info[low].rank == rank
		       ? &trace->rank_info[low]
		       : NULL;
}

uint32_t nt_trace_find_node(struct nt_trace *trace, const struct nt_trace_node *node)
{
	if (!*node->name)
		return NT_FRAME_NO_NODE;
	/* Ranks next to each other mostly share it. */
	for (size_t i = trace->nodes; i-- > 0;)
		if (strcmp(trace->node[i].name, node->name) == 0)
			return (uint32_t)i;
	trace->node[trace->nodes] = *node;
	return (uint32_t)trace->nodes++;
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

int nt_trace_compare_samples(const void *a, const void *b)
{
	const struct nt_frame_sample *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->arrive_ns > y->arrive_ns) - (x->arrive_ns < y->arrive_ns);
}

int nt_trace_leave_out(struct nt_trace *trace, int r, struct nt_trace_error *error)
{
	const char *why = *error->text ? error->text : strerrordesc_np(-r);
	const size_t size = strlen(why) + 1;
	char *text;

	if (r == -ENOMEM)
		return r;
	if (trace->unread < NT_TRACE_MAX_UNREAD) {
		text = nt_arena_alloc(&trace->arena, size);
		if (!text)
			return -ENOMEM;
		memcpy(text, why, size);
		trace->unread_text[trace->unread] = text;
	}
	if (!trace->unread++)
		trace->unread_error = r;
	*error = (struct nt_trace_error){0};
	return 0;
}

int nt_trace_check_read(const struct nt_trace *trace, size_t read, struct nt_trace_error *error)
{
	if (read || !trace->unread)
		return 0;
	(void)nt_trace_refuse(error, "%s", trace->unread_text[0]);
	return trace->unread_error;
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
