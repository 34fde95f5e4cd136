/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The health of the node's GPUs: their clocks, temperature, power and errors, read through the
 * driver's library by a worker, as its calls block for as long as the driver does. One that does not answer in time is
 * killed, and the next is started later.
 */
#ifndef NT_AGENT_GPU_GPU_HEALTH_H
#define NT_AGENT_GPU_GPU_HEALTH_H

#include "agent/discover/worker.h"
#include "agent/gpu/gpu_library.h"
#include "agent/gpu/gpu_totals.h"
#include "common/base/cleanup.h"
#include "common/system/clock.h"

/* How long an answer is awaited, and how long after a failure it is tried again. */
#define NT_GPU_HEALTH_STALL_NS (10 * NT_SECOND)
#define NT_GPU_HEALTH_REST_NS  (60 * NT_SECOND)
#define NT_GPU_HEALTH_LATE_NS  (600 * NT_SECOND) /* where there is no library or no GPU */

struct nt_gpu_health;

struct nt_gpu_health_stats {
	uint64_t reads; /* answers with cards */
	uint64_t failures; /* refused by the library, or of a worker that died */
	uint64_t stalls; /* workers killed as they did not answer in time */
};

/*
 * library: of that vendor, a path or a name that the loader finds; NULL: by its own names. Both
 * pointers outlive the result; the caller frees it.
 */
NT_MUST_CHECK int nt_gpu_health_new(struct nt_workers *workers, enum nt_gpu_vendor vendor,
				    const char *library, struct nt_gpu_health **ret_health);
void nt_gpu_health_free(struct nt_gpu_health *health);
NT_DEFINE_AUTO(nt_gpu_health, nt_gpu_health_free)

/*
 * Takes an answer that has come, and asks for the next. Never blocks; meant to be called once a
 * second. now_ns: any clock that only runs forward.
 */
void nt_gpu_health_tick(struct nt_gpu_health *health, uint64_t now_ns);

/* The last answer; NULL: there is none, or the last attempt failed. */
const struct nt_gpu_cards *nt_gpu_health_cards(const struct nt_gpu_health *health);
/* What the GPUs of a process add up to: see nt_gpu_totals_get(). False if they are not known now. */
bool nt_gpu_health_of(const struct nt_gpu_health *health, uint32_t pid, const char *gpu,
		      struct nt_gpu_total *ret_total);
/* When the last answer was requested, by the clock of the ticks; 0: there is none. */
uint64_t nt_gpu_health_begun_ns(const struct nt_gpu_health *health);
/* At the last answer. */
enum nt_gpu_shared nt_gpu_health_shared(const struct nt_gpu_health *health, uint32_t pid,
					uint32_t other);
const struct nt_gpu_health_stats *nt_gpu_health_stats(const struct nt_gpu_health *health);

#endif
