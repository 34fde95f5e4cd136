/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gemm_spans.h"

#include <errno.h>
#include <stdlib.h>

enum {
	BACK = 8, /* threads that return at once may be sent in another order */
};

struct gemm_span {
	uint64_t entry_ns, ret_ns;
	uint32_t tid, thread;
};

struct nt_gemm_spans {
	uint64_t from_ns, until_ns; /* all that returned in between was sent, or is lost */
	uint64_t forgotten_ns; /* return of the last one that is not kept any more; 0: none */
	uint32_t lost;
	uint32_t first, count;
	struct gemm_span span[NT_GEMM_SPANS]; /* a ring, by their returns */
};

int nt_gemm_spans_new(struct nt_gemm_spans **ret_spans)
{
	struct nt_gemm_spans *spans = calloc(1, sizeof(*spans));

	if (!spans)
		return -ENOMEM;
	*ret_spans = spans;
	return 0;
}

void nt_gemm_spans_free(struct nt_gemm_spans *spans)
{
	free(spans);
}

size_t nt_gemm_spans_bytes(void)
{
	return sizeof(struct nt_gemm_spans);
}

bool nt_gemm_spans_batch(struct nt_gemm_spans *spans, uint64_t now_ns, uint32_t lost)
{
	const bool is_new = !spans->until_ns || now_ns > spans->until_ns;
	const bool has_lost = !is_new && lost != spans->lost;

	if (is_new)
		spans->from_ns = now_ns;
	if (now_ns + NT_GEMM_WATCH_NS > spans->until_ns)
		spans->until_ns = now_ns + NT_GEMM_WATCH_NS;
	spans->lost = lost;
	return !has_lost;
}

void nt_gemm_spans_resume(struct nt_gemm_spans *spans, uint64_t from_ns)
{
	if (from_ns > spans->from_ns)
		spans->from_ns = from_ns;
}

static const struct gemm_span *span_at(const struct nt_gemm_spans *spans, uint32_t index)
{
	return &spans->span[(spans->first + index) % NT_GEMM_SPANS];
}

void nt_gemm_spans_add(struct nt_gemm_spans *spans, const struct nt_event_gemm *event)
{
	if (spans->count == NT_GEMM_SPANS) {
		spans->forgotten_ns = span_at(spans, 0)->ret_ns;
		spans->first = (spans->first + 1) % NT_GEMM_SPANS;
		spans->count--;
	}
	spans->span[(spans->first + spans->count++) % NT_GEMM_SPANS] =
		(struct gemm_span){event->h.entry_ns, event->ret_ns, event->h.tid, event->thread};
}

/* The first one that returned at that time or later. */
static uint32_t returned_from(const struct nt_gemm_spans *spans, uint64_t ns)
{
	uint32_t low = 0, high = spans->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (span_at(spans, middle)->ret_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_of(const struct gemm_span *span, uint32_t thread)
{
	return thread && (span->tid == thread || span->thread == thread);
}

enum gemm_place {
	OUTSIDE,
	INSIDE,
	UNKNOWN,
};

static enum gemm_place place_of(const struct nt_gemm_spans *spans, uint32_t thread,
				uint64_t launch_ns)
{
	const uint32_t from = returned_from(spans, launch_ns);
	uint32_t i = from > BACK ? from - BACK : 0;

	for (; i < spans->count; i++) {
		const struct gemm_span *span = span_at(spans, i);

		if (i >= from + NT_GEMM_SPANS_BESIDE)
			return UNKNOWN;
		if (!is_of(span, thread) || span->ret_ns < launch_ns)
			continue;
		return span->entry_ns <= launch_ns ? INSIDE : OUTSIDE;
	}
	return OUTSIDE;
}

bool nt_gemm_spans_kernel(const struct nt_gemm_spans *spans, uint32_t thread, uint64_t launch_ns,
			  uint64_t ns, struct nt_gemm_time *time)
{
	enum gemm_place place;

	if (launch_ns < spans->from_ns)
		return true; /* from before the measurement */
	place = launch_ns <= spans->forgotten_ns ? UNKNOWN : place_of(spans, thread, launch_ns);
	if (place == UNKNOWN) {
		time->is_partial = true;
		return false;
	}
	time->own_ns += ns;
	time->inside_ns += place == INSIDE ? ns : 0;
	return true;
}
