/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log of single calls of one rank at level L1: what was taken since the last message, and counts
 * of what was not. It has no clock; times are of the boot clock.
 *
 * Each kind has a fixed part of the rank's rate, so that no kind displaces another. Above it, calls
 * are sampled with a stated probability (bpf/detail_rate.h). Calls that the kernel side has sampled
 * already are taken as they are: their limits are set from the same rate.
 */
#ifndef NT_AGENT_TRACKER_DETAIL_LOG_H
#define NT_AGENT_TRACKER_DETAIL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_DETAIL_LOG_RECORDS = 128, /* of one message */
	NT_DETAIL_LOG_WORDS = 4, /* of one record; further ones are left out */
};

struct nt_detail_log;

/* NULL: out of memory. */
struct nt_detail_log *nt_detail_log_new(uint64_t now_ns);
/* Accepts NULL. */
void nt_detail_log_free(struct nt_detail_log *log);
size_t nt_detail_log_bytes(void);

/* Calls of the kind per period of about a second that are aimed at. rate: records a second, of all. */
uint32_t nt_detail_log_most(uint32_t rate, enum nt_detail_kind kind);
/* The same of a class of the kernel side, per period of it. */
uint32_t nt_detail_log_kernel_most(double rate, enum nt_detail_class class);
enum nt_detail_kind nt_detail_log_kind(enum nt_detail_class class);

enum nt_detail_log_result {
	NT_DETAIL_LOG_TAKEN,
	NT_DETAIL_LOG_PASSED, /* not sampled */
	NT_DETAIL_LOG_LOST, /* over the rate, or no room: counted in the next message */
};

/*
 * Takes a call that is not limited yet: with the probability that its kind has now, by which the
 * call's own is multiplied. call->call is borrowed for the life of the program.
 */
enum nt_detail_log_result nt_detail_log_draw(struct nt_detail_log *log, uint32_t rate,
					     const struct nt_detail_call *call, uint64_t now_ns,
					     uint32_t random);
/* Takes a call that the kernel side has drawn, with the call's own probability. */
enum nt_detail_log_result nt_detail_log_take(struct nt_detail_log *log,
					     const struct nt_detail_call *call);
/* Calls of the kernel side since the last call of this function. */
void nt_detail_log_count(struct nt_detail_log *log, enum nt_detail_class class, uint64_t seen,
			 uint64_t lost);
/* Calls that were made and did not come here. */
void nt_detail_log_lose(struct nt_detail_log *log, enum nt_detail_kind kind, double calls);

bool nt_detail_log_is_full(const struct nt_detail_log *log);
/* True if there is something to send: records, or counts of what is not in them. */
bool nt_detail_log_has_news(const struct nt_detail_log *log);
uint64_t nt_detail_log_start_ns(const struct nt_detail_log *log);

/* Fills records, counts and times of a message. Borrows the log, which must not change meanwhile. */
void nt_detail_log_fill(struct nt_detail_log *log, uint64_t now_ns, struct nt_detail *ret_detail);
/* The message was sent. */
void nt_detail_log_clear(struct nt_detail_log *log, uint64_t now_ns);

#endif
