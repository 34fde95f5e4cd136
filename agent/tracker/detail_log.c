/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/tracker/detail_log.h"

#include <stdlib.h>
#include <string.h>

enum {
	LOG_SHIFT = 30, /* from boot time in ns to the number of a period: 1.07 s */
	SHARES = 32, /* parts of a rank's rate */
};

/* Of SHARES. Communication and launches come first, as most questions are about them. */
static const uint32_t shares[NT_DETAIL_KIND_END] = {
	[NT_DETAIL_KIND_UNKNOWN] = 0, [NT_DETAIL_KIND_COMM] = 8,  [NT_DETAIL_KIND_SYNC] = 2,
	[NT_DETAIL_KIND_LAUNCH] = 8,  [NT_DETAIL_KIND_COPY] = 2,  [NT_DETAIL_KIND_ALLOC] = 2,
	[NT_DETAIL_KIND_RDMA] = 4,    [NT_DETAIL_KIND_SCHED] = 4, [NT_DETAIL_KIND_BLOCK] = 1,
	[NT_DETAIL_KIND_NET] = 1,
};

struct detail_count {
	uint64_t seen, lost;
};

struct nt_detail_log {
	uint64_t start_ns; /* of the counts */
	struct nt_detail_rate rate[NT_DETAIL_KIND_END];
	/* So far: of the kernel side, without room, and what the messages have reported. */
	struct detail_count kernel[NT_DETAIL_KIND_END], reported[NT_DETAIL_KIND_END];
	uint64_t no_room[NT_DETAIL_KIND_END];
	/* Calls that were drawn here. One that was observed with a probability stands for several. */
	double seen[NT_DETAIL_KIND_END], lost[NT_DETAIL_KIND_END];
	uint32_t records;
	struct nt_detail_call record[NT_DETAIL_LOG_RECORDS];
	uint64_t word[NT_DETAIL_LOG_RECORDS][NT_DETAIL_LOG_WORDS];
	struct nt_detail_count count[NT_DETAIL_KIND_END]; /* of the current message */
};

_Static_assert((int)NT_DETAIL_LOG_RECORDS <= (int)NT_WIRE_MAX_DETAILS, "a message takes them");
_Static_assert((int)NT_DETAIL_LOG_WORDS <= (int)NT_WIRE_MAX_DETAIL_WORDS, "a record takes them");
_Static_assert((int)NT_DETAIL_KIND_END <= (int)NT_WIRE_MAX_DETAIL_KINDS,
	       "a message takes their counts");

struct nt_detail_log *nt_detail_log_new(uint64_t now_ns)
{
	struct nt_detail_log *log = calloc(1, sizeof(*log));

	if (log)
		log->start_ns = now_ns;
	return log;
}

void nt_detail_log_free(struct nt_detail_log *log)
{
	free(log);
}

size_t nt_detail_log_bytes(void)
{
	return sizeof(struct nt_detail_log);
}

/* ---- rates ---------------------------------------------------------------------------------- */

static uint32_t per_period(double rate, enum nt_detail_kind kind, uint32_t shift)
{
	const double most = rate * shares[kind] / SHARES * (double)(1ULL << shift) / 1e9;

	if (rate <= 0 || !shares[kind])
		return 0;
	return most < 1 ? 1 : most > INT32_MAX ? INT32_MAX : (uint32_t)most;
}

uint32_t nt_detail_log_most(uint32_t rate, enum nt_detail_kind kind)
{
	return (unsigned int)kind < NT_DETAIL_KIND_END ? per_period(rate, kind, LOG_SHIFT) : 0;
}

enum nt_detail_kind nt_detail_log_kind(enum nt_detail_class class)
{
	static const enum nt_detail_kind kinds[NT_DETAIL_CLASSES] = {
		[NT_DETAIL_LAUNCHES] = NT_DETAIL_KIND_LAUNCH,
		[NT_DETAIL_COPIES] = NT_DETAIL_KIND_COPY,
		[NT_DETAIL_ALLOCS] = NT_DETAIL_KIND_ALLOC,
		[NT_DETAIL_SYNCS] = NT_DETAIL_KIND_SYNC,
		[NT_DETAIL_POSTS] = NT_DETAIL_KIND_RDMA,
	};

	return (unsigned int)class < NT_DETAIL_CLASSES ? kinds[class] : NT_DETAIL_KIND_UNKNOWN;
}

uint32_t nt_detail_log_kernel_most(double rate, enum nt_detail_class class)
{
	return per_period(rate, nt_detail_log_kind(class), NT_DETAIL_SHIFT);
}

/* ---- records -------------------------------------------------------------------------------- */

static enum nt_detail_log_result append(struct nt_detail_log *log,
					const struct nt_detail_call *call, double probability)
{
	struct nt_detail_call *record;
	uint64_t *word;

	if (log->records == NT_DETAIL_LOG_RECORDS) {
		log->no_room[call->kind] += (uint64_t)(1 / probability);
		return NT_DETAIL_LOG_LOST;
	}
	record = &log->record[log->records];
	word = log->word[log->records];
	*record = *call;
	record->probability = probability;
	record->words = call->words < NT_DETAIL_LOG_WORDS ? call->words : NT_DETAIL_LOG_WORDS;
	if (record->words)
		memcpy(word, call->word, record->words * sizeof(*word));
	record->word = word;
	log->records++;
	return NT_DETAIL_LOG_TAKEN;
}

enum nt_detail_log_result nt_detail_log_draw(struct nt_detail_log *log, uint32_t rate,
					     const struct nt_detail_call *call, uint64_t now_ns,
					     uint32_t random)
{
	uint32_t threshold = 0;

	if ((unsigned int)call->kind >= NT_DETAIL_KIND_END || !(call->probability > 0))
		return NT_DETAIL_LOG_LOST;
	log->seen[call->kind] += 1 / call->probability;
	switch (nt_detail_draw(&log->rate[call->kind], now_ns >> LOG_SHIFT,
			       nt_detail_log_most(rate, call->kind), random, &threshold)) {
	case NT_DETAIL_TAKE:
		break;
	case NT_DETAIL_PASS:
		return NT_DETAIL_LOG_PASSED;
	default:
		log->lost[call->kind] += 1 / call->probability;
		return NT_DETAIL_LOG_LOST;
	}
	return append(log, call, call->probability * ((double)threshold + 1) / 4294967296.0);
}

enum nt_detail_log_result nt_detail_log_take(struct nt_detail_log *log,
					     const struct nt_detail_call *call)
{
	if ((unsigned int)call->kind >= NT_DETAIL_KIND_END || !(call->probability > 0))
		return NT_DETAIL_LOG_LOST;
	return append(log, call, call->probability);
}

void nt_detail_log_count(struct nt_detail_log *log, enum nt_detail_class class, uint64_t seen,
			 uint64_t lost)
{
	struct detail_count *count = &log->kernel[nt_detail_log_kind(class)];

	count->seen += seen;
	count->lost += lost;
}

void nt_detail_log_lose(struct nt_detail_log *log, enum nt_detail_kind kind, double calls)
{
	if ((unsigned int)kind >= NT_DETAIL_KIND_END || !(calls > 0))
		return;
	log->seen[kind] += calls;
	log->lost[kind] += calls;
}

bool nt_detail_log_is_full(const struct nt_detail_log *log)
{
	return log->records == NT_DETAIL_LOG_RECORDS;
}

static struct detail_count so_far(const struct nt_detail_log *log, int kind)
{
	return (struct detail_count){
		.seen = log->kernel[kind].seen + (uint64_t)log->seen[kind],
		.lost = log->kernel[kind].lost + (uint64_t)log->lost[kind] + log->no_room[kind],
	};
}

bool nt_detail_log_has_news(const struct nt_detail_log *log)
{
	for (int kind = 0; !log->records && kind < NT_DETAIL_KIND_END; kind++)
		if (so_far(log, kind).seen != log->reported[kind].seen ||
		    so_far(log, kind).lost != log->reported[kind].lost)
			return true;
	return log->records > 0;
}

uint64_t nt_detail_log_start_ns(const struct nt_detail_log *log)
{
	return log->start_ns;
}

/* ---- messages ------------------------------------------------------------------------------- */

static int by_entry(const void *a, const void *b)
{
	const struct nt_detail_call *left = a, *right = b;

	return left->entry_boot_ns < right->entry_boot_ns
		       ? -1
		       : left->entry_boot_ns > right->entry_boot_ns;
}

void nt_detail_log_fill(struct nt_detail_log *log, uint64_t now_ns, struct nt_detail *ret_detail)
{
	size_t counts = 0;

	qsort(log->record, log->records, sizeof(log->record[0]), by_entry);
	for (int kind = 0; kind < NT_DETAIL_KIND_END; kind++) {
		const struct detail_count now = so_far(log, kind), before = log->reported[kind];

		if (now.seen != before.seen || now.lost != before.lost)
			log->count[counts++] = (struct nt_detail_count){
				.kind = (enum nt_detail_kind)kind,
				.seen = now.seen - before.seen,
				.lost = now.lost - before.lost,
			};
	}
	ret_detail->start_boot_ns = log->start_ns;
	ret_detail->end_boot_ns = now_ns;
	ret_detail->record = log->record;
	ret_detail->records = log->records;
	ret_detail->count = log->count;
	ret_detail->counts = counts;
}

void nt_detail_log_clear(struct nt_detail_log *log, uint64_t now_ns)
{
	for (int kind = 0; kind < NT_DETAIL_KIND_END; kind++)
		log->reported[kind] = so_far(log, kind);
	log->records = 0;
	log->start_ns = now_ns;
}
