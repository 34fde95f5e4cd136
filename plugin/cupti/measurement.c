/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cupti/measurement.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "plugin/batch.h"
#include "plugin/cupti/buffer_pool.h"
#include "plugin/cupti/report.h"

enum {
	NULL_BUFFERS = 27, /* from this version on CUPTI accepts that there is no buffer */
	SILENT_TICKS = 1000 / NT_MEASUREMENT_BUSY_MS,
	EMPTY_TICKS = 3000 / NT_MEASUREMENT_BUSY_MS, /* of a measurement without any buffer */
	SKIPS_MOST = 32, /* requests that are passed over after such measurements */
	DRAIN_TICKS =
		2000 / NT_MEASUREMENT_BUSY_MS, /* for kernels that were enqueued before the end */
	REPORT_TICKS = 30, /* idle ones: the record may be lost, and the agent may be another one */
};

enum measurement_state {
	STATE_OFF,
	STATE_OPEN,
	STATE_CLOSING, /* nobody asks; the next buffer shows that what is enabled is ours */
	STATE_DRAINING, /* disabled; kernels still run */
	STATE_PAUSED, /* disabled while it is asked for: no buffer came at all */
	STATE_YIELDED, /* no buffer came: what is enabled may be another client's */
	STATE_GIVEN_UP,
};

static enum measurement_state state;
static struct nt_cupti_calls calls;
static bool is_registered;
static uint32_t ticks; /* in this state */
static uint32_t silent; /* ticks since the last buffer */
static bool is_empty; /* no buffer came since it was opened */
static uint32_t empties; /* measurements without a buffer, in a row */
static uint32_t skips; /* requests that are still passed over */
static bool was_wanted;
static uint32_t refused; /* ticks for which a request is not granted */
static int refused_for; /* the result that is reported */
static _Atomic uint64_t completed, declined;
static uint64_t completed_before, declined_before;

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* ---- what CUPTI calls ----------------------------------------------------------------------- */

static void request(uint8_t **buffer, size_t *size, size_t *records_max)
{
	uint8_t *taken = nt_buffer_pool_take();

	/* Older versions do not accept NULL. */
	if (!taken && calls.version < NULL_BUFFERS)
		taken = aligned_alloc(8, NT_BUFFER_BYTES);
	*buffer = taken;
	*size = taken ? NT_BUFFER_BYTES : 0;
	*records_max = 0;
	if (!taken)
		atomic_fetch_add(&declined, 1);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
		     size_t valid_size)
{
	size_t dropped = 0;

	(void)size;
	if (!buffer)
		return;
	if (valid_size)
		nt_report_buffer(&calls, buffer, valid_size);
	if (calls.dropped(context, stream, &dropped) == NT_CUPTI_SUCCESS && dropped)
		nt_report_lost(dropped);
	if (!nt_buffer_pool_give(buffer))
		free(buffer);
	atomic_fetch_add(&completed, 1);
}

/* ---- the end of the process ------------------------------------------------------------------- */

static atomic_bool is_inside, is_ending;
static pid_t process; /* that loaded CUPTI */

/* Before the handlers of CUPTI, which was loaded earlier: no call is made into it any more. */
static void end(void)
{
	const struct timespec wait = {.tv_nsec = 1000000};

	/* A child that was forked has no thread that could be inside. */
	if (getpid() != process)
		return;
	atomic_store(&is_ending, true);
	for (int i = 0; i < 1000 && atomic_load(&is_inside); i++)
		(void)nanosleep(&wait, NULL);
}

static bool load(void)
{
	process = getpid();
	return nt_cupti_calls_load(&calls) == 0 && atexit(end) == 0;
}

/* ---- states ----------------------------------------------------------------------------------- */

static void enter(enum measurement_state next)
{
	state = next;
	ticks = 0;
}

/* Reports the refusal in the given tick of a request, and again at intervals. */
static void refuse(bool wanted, uint32_t first)
{
	refused = wanted ? refused + 1 : 0;
	if (wanted && refused % REPORT_TICKS == first)
		nt_report_state(NT_GPU_RECORD_GIVEN_UP, now_ns(), (uint32_t)refused_for);
}

static void give_up(int code)
{
	refused = 0;
	refused_for = code;
	enter(STATE_GIVEN_UP);
	refuse(true, 1);
}

/* 0, or the result that prevented it. Another client's callbacks give 0 with is_registered unset. */
static int register_once(void)
{
	int r;

	if (is_registered)
		return NT_CUPTI_SUCCESS;
	/* It fails as long as nobody has registered callbacks. */
	if (calls.flush(0) == NT_CUPTI_SUCCESS)
		return NT_CUPTI_SUCCESS;
	r = calls.register_clock(now_ns);
	if (r == NT_CUPTI_SUCCESS)
		r = calls.register_callbacks(request, complete);
	is_registered = r == NT_CUPTI_SUCCESS;
	return r;
}

static void disable(void)
{
	(void)nt_cupti_calls_launches(&calls, 0);
	(void)calls.disable(NT_CUPTI_KIND_CONCURRENT_KERNEL);
	(void)calls.disable(NT_CUPTI_KIND_MEMCPY);
}

static void report_open(void)
{
	enter(STATE_OPEN);
	nt_report_state(NT_GPU_RECORD_OPEN, now_ns(), 0);
}

static void open_window(void)
{
	int r;

	if (!calls.flush && !load()) {
		give_up(-1);
		return;
	}
	r = register_once();
	if (!is_registered) {
		give_up(r);
		return;
	}
	/* Calls first: a kernel without its call is of no use. */
	r = nt_cupti_calls_launches(&calls, 1);
	if (r == NT_CUPTI_SUCCESS)
		r = calls.enable(NT_CUPTI_KIND_CONCURRENT_KERNEL);
	if (r == NT_CUPTI_SUCCESS)
		r = calls.enable(NT_CUPTI_KIND_MEMCPY);
	if (r != NT_CUPTI_SUCCESS) {
		disable();
		give_up(r);
		return;
	}
	silent = 0;
	is_empty = true;
	completed_before = atomic_load(&completed);
	report_open();
}

/*
 * Not a single buffer: the GPU does nothing, or another client registered before and gets what is
 * reported. It may never fetch that, so all is disabled. After each such measurement twice as many
 * requests are passed over.
 */
static void close_empty(bool wanted)
{
	disable();
	skips = empties ? 1U << (empties - 1) : 0;
	empties += skips < SKIPS_MOST;
	was_wanted = wanted;
	enter(STATE_PAUSED);
}

/*
 * A client that registered since the last buffer may rely on what is enabled: so it is left as it is
 * until the next one, or for good.
 */
static void close_window(void)
{
	if (silent == 0) {
		disable();
		enter(STATE_DRAINING);
	} else if (silent >= SILENT_TICKS && is_empty) {
		close_empty(false);
	} else if (silent >= SILENT_TICKS) {
		refused = 0;
		refused_for = NT_CUPTI_SUCCESS;
		enter(STATE_YIELDED);
	} else if (state == STATE_OPEN) {
		enter(STATE_CLOSING);
	}
}

static void fetch(void)
{
	const uint64_t lost = atomic_load(&declined) - declined_before;

	(void)calls.flush(0);
	declined_before += lost;
	if (lost)
		nt_report_lost(lost);
	silent = atomic_load(&completed) == completed_before ? silent + 1 : 0;
	completed_before = atomic_load(&completed);
	if (silent == 0) {
		is_empty = false;
		empties = 0;
	}
}

static uint32_t when_closed(bool wanted)
{
	if (!wanted)
		return NT_MEASUREMENT_IDLE_MS;
	open_window();
	return state == STATE_OPEN ? NT_MEASUREMENT_BUSY_MS : NT_MEASUREMENT_IDLE_MS;
}

/* Until another request comes that is not passed over. */
static uint32_t when_paused(bool wanted)
{
	const bool is_new = wanted && !was_wanted;

	was_wanted = wanted;
	if (is_new && skips == 0) {
		enter(STATE_OFF);
		return when_closed(true);
	}
	skips -= is_new;
	return NT_MEASUREMENT_IDLE_MS;
}

static uint32_t when_yielded(bool wanted)
{
	if (wanted)
		(void)calls.flush(0);
	/* Ours after all, if a buffer came: the GPU did nothing for a second. */
	if (atomic_load(&completed) != completed_before) {
		completed_before = atomic_load(&completed);
		disable();
		enter(STATE_DRAINING);
		return NT_MEASUREMENT_BUSY_MS;
	}
	refuse(wanted, 2);
	return NT_MEASUREMENT_IDLE_MS;
}

static uint32_t tick(bool wanted)
{
	ticks++;
	switch (state) {
	case STATE_OPEN:
	case STATE_CLOSING:
		fetch();
		if (!wanted)
			close_window();
		else if (is_empty && silent >= EMPTY_TICKS)
			close_empty(true);
		else if (state == STATE_CLOSING)
			report_open();
		return NT_MEASUREMENT_BUSY_MS;
	case STATE_DRAINING:
		fetch();
		if (wanted) {
			open_window();
		} else if (ticks >= DRAIN_TICKS) {
			(void)calls.flush(NT_CUPTI_FLUSH_FORCED);
			enter(STATE_OFF);
		}
		return NT_MEASUREMENT_BUSY_MS;
	case STATE_PAUSED:
		return when_paused(wanted);
	case STATE_YIELDED:
		return when_yielded(wanted);
	case STATE_GIVEN_UP:
		refuse(wanted, 1);
		return NT_MEASUREMENT_IDLE_MS;
	default:
		return when_closed(wanted);
	}
}

uint32_t nt_measurement_tick(void)
{
	uint32_t ms = NT_MEASUREMENT_IDLE_MS;

	atomic_store(&is_inside, true);
	if (!atomic_load(&is_ending))
		ms = tick(nt_batch_is_wanted());
	atomic_store(&is_inside, false);
	return ms;
}
