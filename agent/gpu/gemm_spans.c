/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gemm_spans.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/search.h"

struct gemm_span {
	uint64_t entry_ns, ret_ns;
};

struct gemm_thread {
	uint32_t tid, thread; /* either may name it */
	uint32_t first, count;
	uint64_t forgotten_ns; /* return of the last one that is not kept any more; 0: none */
	struct gemm_span span[NT_GEMM_SPANS]; /* a ring, in the order of time */
};

struct nt_gemm_spans {
	uint64_t from_ns, until_ns; /* all that returned in between was sent, or is lost */
	uint32_t lost;
	uint32_t threads;
	struct gemm_thread *thread[NT_GEMM_SPANS_THREADS]; /* owned */
	bool has_more; /* threads, of which nothing is known */
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
	for (uint32_t i = 0; spans && i < spans->threads; i++)
		free(spans->thread[i]);
	free(spans);
}

size_t nt_gemm_spans_bytes(const struct nt_gemm_spans *spans)
{
	return sizeof(*spans) + spans->threads * sizeof(struct gemm_thread);
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

/* NULL: at the cap, or without memory. */
static struct gemm_thread *take_thread(struct nt_gemm_spans *spans, uint32_t tid, uint32_t name)
{
	struct gemm_thread *thread;

	for (uint32_t i = 0; i < spans->threads; i++)
		if (spans->thread[i]->tid == tid && spans->thread[i]->thread == name)
			return spans->thread[i];
	thread = spans->threads < NT_GEMM_SPANS_THREADS ? calloc(1, sizeof(*thread)) : NULL;
	if (!thread) {
		spans->has_more = true;
		return NULL;
	}
	thread->tid = tid;
	thread->thread = name;
	spans->thread[spans->threads++] = thread;
	return thread;
}

static const struct gemm_span *span_at(const struct gemm_thread *thread, uint32_t index)
{
	return &thread->span[(thread->first + index) % NT_GEMM_SPANS];
}

void nt_gemm_spans_add(struct nt_gemm_spans *spans, const struct nt_event_gemm *event)
{
	struct gemm_thread *thread = take_thread(spans, event->h.tid, event->thread);

	if (!thread)
		return;
	if (thread->count == NT_GEMM_SPANS) {
		thread->forgotten_ns = span_at(thread, 0)->ret_ns;
		thread->first = (thread->first + 1) % NT_GEMM_SPANS;
		thread->count--;
	}
	thread->span[(thread->first + thread->count++) % NT_GEMM_SPANS] =
		(struct gemm_span){event->h.entry_ns, event->ret_ns};
}

/* The first one that returned at that time or later. */
static uint32_t returned_from(const struct gemm_thread *thread, uint64_t ns)
{
	return nt_search_first(0, thread->count, i, span_at(thread, i)->ret_ns >= ns);
}

/* NULL: it makes no multiplications. */
static const struct gemm_thread *find_thread(const struct nt_gemm_spans *spans, uint32_t name)
{
	for (uint32_t i = 0; name && i < spans->threads; i++)
		if (spans->thread[i]->thread == name || spans->thread[i]->tid == name)
			return spans->thread[i];
	return NULL;
}

enum gemm_place {
	OUTSIDE,
	INSIDE,
	UNKNOWN,
};

static enum gemm_place place_of(const struct nt_gemm_spans *spans, uint32_t name,
				uint64_t launch_ns)
{
	const struct gemm_thread *thread = find_thread(spans, name);
	uint32_t at;

	if (!thread)
		return spans->has_more ? UNKNOWN : OUTSIDE;
	if (launch_ns <= thread->forgotten_ns)
		return UNKNOWN;
	at = returned_from(thread, launch_ns);
	return at < thread->count && span_at(thread, at)->entry_ns <= launch_ns ? INSIDE : OUTSIDE;
}

bool nt_gemm_spans_kernel(const struct nt_gemm_spans *spans, uint32_t thread, uint64_t launch_ns,
			  uint64_t ns, struct nt_gemm_time *time)
{
	enum gemm_place place;

	if (launch_ns < spans->from_ns)
		return true; /* from before the measurement */
	place = place_of(spans, thread, launch_ns);
	if (place == UNKNOWN) {
		time->is_partial = true;
		return false;
	}
	time->own_ns += ns;
	time->inside_ns += place == INSIDE ? ns : 0;
	return true;
}
