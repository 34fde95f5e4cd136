/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/gpu.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"

/*
 * Silence of the plugin after which nothing is awaited. A device that waits for another rank in a
 * collective is silent too. If that rank is slow, it is so for most of a step: at least two steps.
 */
#define SILENT_NS (2 * NT_SECOND)
#define WAIT_NS   (10 * NT_SECOND) /* hosts further ahead are not followed */
/* For streams without a report after a step while others have one: they may be idle. */
#define REST_NS (500 * NT_MILLISECOND)

enum {
	FEW_LAUNCHES = 2, /* per step: a copy, a counter */
};

/* Intervals enqueued in one step. */
struct account {
	struct nt_accounting_step step; /* of those that have ended */
	/* ascending, disjoint, all after `added_ns` */
	struct nt_accounting_span span[NT_GPU_SPANS];
	uint64_t entry_ns[NT_GPU_SPANS]; /* of the interval that begins the span */
	uint32_t spans;
	uint64_t added_ns; /* spans up to here are in `busy_ns` */
	uint64_t busy_ns, kernels;
	/* By communication. */
	uint64_t calls; /* enqueued */
	uint64_t after_ns; /* end of the step before, as spans were first added up; 0: not yet */
	uint64_t apart_ns, queued_ns; /* between spans; with the next one enqueued */
	uint64_t lag_ns, intervals;
	uint64_t last_ns; /* end of the last of them */
	uint64_t passed_ns; /* when a stream first reported a later one; 0: none did */
	bool broken;
	bool outside; /* not wholly measured */
};

struct gpu_stream {
	uint64_t handle;
	uint64_t entry_ns; /* of its last interval */
};

struct nt_gpu {
	struct account
		account[NT_GPU_STEPS + 1]; /* a ring of ended steps, and the step after them */
	uint32_t first, count; /* ended */
	uint64_t begin_ns; /* of the one after; 0: no step was added yet */
	uint64_t delivered_ns; /* end of the last delivered step; 0: none */
	uint64_t
		outside_ns; /* end of the last delivered step that was not wholly measured; 0: none */
	uint64_t device_ns; /* when the step before ended on the device; 0: not known */
	uint64_t reported_ns; /* time of the last report */
	uint64_t open_ns; /* what is enqueued from then on is reported; 0: all is */
	bool is_closed, by_communication;
	struct gpu_stream stream[NT_GPU_STREAMS];
	uint32_t streams;
	struct nt_gpu_stats stats;
};

int nt_gpu_new(struct nt_gpu **ret_gpu)
{
	struct nt_gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return -ENOMEM;
	*ret_gpu = gpu;
	return 0;
}

void nt_gpu_free(struct nt_gpu *gpu)
{
	free(gpu);
}

size_t nt_gpu_bytes(void)
{
	return sizeof(struct nt_gpu);
}

const struct nt_gpu_stats *nt_gpu_stats(const struct nt_gpu *gpu)
{
	return &gpu->stats;
}

static struct account *account_at(struct nt_gpu *gpu, uint32_t index)
{
	return &gpu->account[(gpu->first + index) % (NT_GPU_STEPS + 1)];
}

/* ---- the union of streams ------------------------------------------------------------------- */

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The time before a span in which no other ran, since the step before. */
static void add_apart(struct account *account, const struct nt_accounting_span *span,
		      uint64_t entry_ns)
{
	const uint64_t from_ns = later_of(account->after_ns, account->added_ns);
	const uint64_t queued_ns = later_of(from_ns, entry_ns);

	if (span->start_ns > from_ns)
		account->apart_ns += span->start_ns - from_ns;
	if (span->start_ns > queued_ns)
		account->queued_ns += span->start_ns - queued_ns;
}

/* before_ns: end of the step before on the device, as far as it is known. */
static void add_up(struct account *account, uint32_t spans, uint64_t before_ns)
{
	if (!account->after_ns)
		account->after_ns = before_ns;
	for (uint32_t i = 0; i < spans; i++) {
		add_apart(account, &account->span[i], account->entry_ns[i]);
		account->busy_ns += account->span[i].end_ns - account->span[i].start_ns;
		account->added_ns = account->span[i].end_ns;
	}
	account->spans -= spans;
	memmove(account->span, account->span + spans, account->spans * sizeof(account->span[0]));
	memmove(account->entry_ns, account->entry_ns + spans,
		account->spans * sizeof(account->entry_ns[0]));
}

/* Where the account begins on the device, as far as intervals were reported. */
static uint64_t end_before(struct nt_gpu *gpu, const struct account *account)
{
	uint64_t end_ns = gpu->device_ns;

	for (uint32_t i = 0; i <= gpu->count && account_at(gpu, i) != account; i++)
		end_ns = later_of(end_ns, account_at(gpu, i)->last_ns);
	return end_ns;
}

/* Room was made if there was none. */
static void insert(struct account *account, uint64_t start_ns, uint64_t end_ns, uint64_t entry_ns)
{
	struct nt_accounting_span *span = account->span;
	uint64_t *entry = account->entry_ns;
	uint32_t first = account->spans, behind;

	while (first > 0 && span[first - 1].end_ns >= start_ns)
		first--;
	/* Spans [first, behind) touch the new one and become part of it. */
	for (behind = first; behind < account->spans && span[behind].start_ns <= end_ns; behind++) {
		if (span[behind].start_ns < start_ns) {
			start_ns = span[behind].start_ns;
			entry_ns = entry[behind];
		}
		if (span[behind].end_ns > end_ns)
			end_ns = span[behind].end_ns;
	}
	memmove(&span[first + 1], &span[behind], (account->spans - behind) * sizeof(*span));
	memmove(&entry[first + 1], &entry[behind], (account->spans - behind) * sizeof(*entry));
	span[first] = (struct nt_accounting_span){start_ns, end_ns};
	entry[first] = entry_ns;
	account->spans = account->spans + first + 1 - behind;
}

static void run(struct nt_gpu *gpu, struct account *account, uint64_t start_ns, uint64_t end_ns,
		uint64_t entry_ns)
{
	if (account->spans == NT_GPU_SPANS)
		add_up(account, NT_GPU_SPANS / 2, end_before(gpu, account));
	if (start_ns < account->added_ns) {
		gpu->stats.overlap_ns +=
			(end_ns < account->added_ns ? end_ns : account->added_ns) - start_ns;
		start_ns = account->added_ns;
	}
	if (start_ns < end_ns)
		insert(account, start_ns, end_ns, entry_ns);
}

/* ---- intervals ------------------------------------------------------------------------------ */

static void see_stream(struct nt_gpu *gpu, uint64_t handle, uint64_t entry_ns)
{
	struct gpu_stream *stream = NULL, *oldest = &gpu->stream[0];

	for (uint32_t i = 0; i < gpu->streams && !stream; i++) {
		if (gpu->stream[i].handle == handle)
			stream = &gpu->stream[i];
		else if (gpu->stream[i].entry_ns < oldest->entry_ns)
			oldest = &gpu->stream[i];
	}
	if (!stream && gpu->streams < NT_GPU_STREAMS)
		stream = &gpu->stream[gpu->streams++];
	if (!stream) {
		gpu->stats.streams_over_cap++;
		stream = oldest;
	}
	*stream = (struct gpu_stream){handle, entry_ns};
}

void nt_gpu_lose(struct nt_gpu *gpu)
{
	for (uint32_t i = 0; i <= gpu->count; i++)
		account_at(gpu, i)->broken = true;
}

bool nt_gpu_add(struct nt_gpu *gpu, const struct nt_gpu_interval *interval, uint64_t now_ns)
{
	uint64_t entry_ns = interval->entry_ns ?: interval->start_ns;
	struct account *account;
	uint32_t i = gpu->count;

	gpu->reported_ns = now_ns;
	see_stream(gpu, interval->stream, entry_ns);
	for (uint32_t j = 0; j < gpu->count; j++) {
		account = account_at(gpu, j);
		if (!account->passed_ns && entry_ns >= account->step.end_ns)
			account->passed_ns = now_ns;
	}
	if (!gpu->begin_ns)
		return true;
	if (entry_ns < gpu->begin_ns) {
		while (i > 0 && account_at(gpu, i - 1)->step.start_ns > entry_ns)
			i--;
		if (i-- == 0 && entry_ns < gpu->outside_ns)
			return true; /* of a step that does not need it */
		if (i == UINT32_MAX) {
			/* Its step was delivered without it, and the next may be too. */
			gpu->stats.late++;
			nt_gpu_lose(gpu);
			/* An invalid step does not need it. */
			return entry_ns >= gpu->delivered_ns;
		}
	}
	account = account_at(gpu, i);
	if (!interval->kernels) {
		account->calls++;
		return true;
	}
	run(gpu, account, interval->start_ns, interval->end_ns, entry_ns);
	account->kernels += interval->kernels;
	if (interval->end_ns > account->last_ns)
		account->last_ns = interval->end_ns;
	account->lag_ns += interval->start_ns - entry_ns;
	account->intervals++;
	return true;
}

/* ---- measurement --------------------------------------------------------------------------- */

void nt_gpu_open(struct nt_gpu *gpu, uint64_t from_ns, bool by_communication)
{
	/* Steps of another kind of report are not compared with what comes now. */
	for (uint32_t i = 0; i <= gpu->count && by_communication != gpu->by_communication; i++)
		account_at(gpu, i)->outside = true;
	gpu->open_ns = from_ns;
	gpu->by_communication = by_communication;
	gpu->is_closed = false;
	gpu->streams = 0;
}

bool nt_gpu_is_by_communication(const struct nt_gpu *gpu)
{
	return gpu->by_communication;
}

void nt_gpu_close(struct nt_gpu *gpu)
{
	gpu->is_closed = true;
	/* What has not been reported yet never will be. */
	for (uint32_t i = 0; i < gpu->count; i++) {
		struct account *account = account_at(gpu, i);

		if (!account->passed_ns)
			account->outside = true;
	}
}

/* ---- steps ---------------------------------------------------------------------------------- */

bool nt_gpu_waits(const struct nt_gpu *gpu)
{
	return gpu->count > 0;
}

void nt_gpu_reset(struct nt_gpu *gpu)
{
	gpu->first = gpu->count = 0;
	gpu->begin_ns = gpu->delivered_ns = gpu->outside_ns = gpu->device_ns = 0;
	gpu->account[0] = (struct account){0};
}

void nt_gpu_step(struct nt_gpu *gpu, const struct nt_accounting_step *step)
{
	struct account *account = account_at(gpu, gpu->count);

	assert(gpu->count < NT_GPU_STEPS);
	/* Earlier reports of it, from before it was known as a step, are lost. */
	if (step->start_ns != gpu->begin_ns)
		account->broken = true;
	account->step = *step;
	account->outside |= gpu->is_closed || step->start_ns < gpu->open_ns;
	gpu->begin_ns = step->end_ns;
	gpu->count++;
	*account_at(gpu, gpu->count) = (struct account){0};
	for (uint32_t i = 0; i < gpu->streams; i++) {
		if (gpu->stream[i].entry_ns >= step->end_ns)
			account->passed_ns = gpu->reported_ns;
	}
}

/* True if each stream that may have work in the step has reported something later. */
static bool is_passed(const struct nt_gpu *gpu, const struct account *account, uint64_t now_ns)
{
	uint64_t length_ns = account->step.end_ns - account->step.start_ns;

	if (!account->passed_ns)
		return false;
	if (gpu->by_communication)
		return account->kernels == account->calls;
	if (now_ns >= account->passed_ns + REST_NS)
		return true;
	for (uint32_t i = 0; i < gpu->streams; i++) {
		uint64_t entry_ns = gpu->stream[i].entry_ns;

		if (entry_ns < account->step.end_ns &&
		    entry_ns + length_ns >= account->step.start_ns)
			return false;
	}
	return true;
}

static bool is_given_up(const struct nt_gpu *gpu, const struct account *account, uint64_t now_ns)
{
	uint64_t length_ns = account->step.end_ns - account->step.start_ns;
	uint64_t silent_ns = 2 * length_ns > SILENT_NS ? 2 * length_ns : SILENT_NS;
	uint64_t since_ns =
		gpu->reported_ns > account->step.end_ns ? gpu->reported_ns : account->step.end_ns;

	return now_ns >= since_ns + silent_ns ||
	       now_ns >= account->step.end_ns + 2 * length_ns + WAIT_NS;
}

static bool is_valid(const struct nt_gpu *gpu, const struct account *account)
{
	if (account->broken)
		return false;
	/* The step before must have ended where this one was taken to begin. */
	if (gpu->by_communication)
		return account->kernels && gpu->device_ns && gpu->device_ns == account->after_ns;
	return account->step.launches <= FEW_LAUNCHES ||
	       account->kernels * 2 >= account->step.launches;
}

bool nt_gpu_next(struct nt_gpu *gpu, uint64_t now_ns, struct nt_accounting_step *ret_step)
{
	struct account *account = account_at(gpu, 0);
	struct nt_accounting_step *step = &account->step;
	bool full = gpu->count == NT_GPU_STEPS, is_known;

	if (!gpu->count)
		return false;
	if (account->outside) {
		account->broken = true;
	} else if (!is_passed(gpu, account, now_ns)) {
		if (!full && !is_given_up(gpu, account, now_ns))
			return false;
		gpu->stats.steps_over_cap += full;
		gpu->stats.steps_unknown++;
		account->broken = true;
	}
	add_up(account, account->spans, gpu->device_ns);
	step->has_gpu = is_valid(gpu, account);
	step->gpu_by_communication = gpu->by_communication;
	step->gpu_ns = gpu->by_communication ? account->apart_ns : account->busy_ns;
	step->gpu_queued_ns = account->queued_ns;
	step->gpu_lag_ns = account->intervals ? account->lag_ns / account->intervals : 0;
	/* A host that runs ahead ends steps when it enqueued them, several at a time. */
	step->gpu_step_ns = step->has_gpu && gpu->device_ns && account->last_ns > gpu->device_ns
				    ? account->last_ns - gpu->device_ns
				    : 0;
	/* By communication, where a step begins is known before it is known what was done in it. */
	is_known = gpu->by_communication ? !account->broken : step->has_gpu;
	gpu->device_ns = is_known ? account->last_ns : 0;
	if (account->outside)
		gpu->outside_ns = step->end_ns;
	*ret_step = *step;
	if (step->has_gpu)
		gpu->delivered_ns = step->end_ns;
	gpu->first = (gpu->first + 1) % (NT_GPU_STEPS + 1);
	gpu->count--;
	return true;
}
