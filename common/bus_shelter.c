/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus_shelter.h"

#include <errno.h>

#include "common/bus_impl.h"
#include "common/clock.h"

enum {
	LEAST_RATE = 16 << 10, /* bytes a second */
	DRAIN_FACTOR = 2, /* of the live rate */
	AHEAD_BYTES = 256 << 10, /* drained and not yet settled: what comes twice when killed */
};

/* Where a record came from, in its `partition`: the bus behind hands it out as it got it. */
enum {
	LIVE,
	DRAINED,
};

#define STALL_NS    (3 * NT_SECOND) /* without an answer, though there is something to answer */
#define RETRY_NS    (5 * NT_SECOND) /* after something was given back */
#define EXPIRE_NS   NT_SECOND
#define RATE_NS     (10 * NT_SECOND) /* over which the live rate is taken */
#define TURN_MAX_NS NT_SECOND

struct shelter {
	struct nt_bus bus;
	struct nt_bus *behind; /* NULL: not yet */
	struct nt_shelter_store *store;
	uint64_t least_rate;

	uint64_t taken; /* records that the bus behind took */
	uint64_t settled, delivered; /* of these, as of the last turn */
	uint64_t copied; /* up to here, those not settled are on disk as well */
	bool is_away, is_full;

	uint64_t turn_ns, progress_ns, retry_ns, expire_ns;
	uint64_t live_bytes; /* since the last turn */
	double live_rate, allowance; /* bytes a second, bytes that may be drained now */
	uint64_t ahead_bytes, ahead_number; /* drained since; until that is settled */

	uint64_t refused[NT_SHELTER_CLASS_END], given_back, outages;
};

static uint64_t size_of(const struct nt_bus_record *record)
{
	return record->key_len + record->value_len;
}

/* ---- into the shelter --------------------------------------------------------------------------- */

/* A failure is counted by the store, under the record's class. */
static void store_one(struct shelter *shelter, const struct nt_bus_record *record)
{
	int r = nt_shelter_store_add(shelter->store, record);

	(void)r;
}

/* What was drained is on disk until it is settled. */
static void copy_one(void *data, const struct nt_bus_record *record)
{
	struct shelter *shelter = data;

	if (record->partition == LIVE && record->offset > shelter->copied)
		store_one(shelter, record);
}

/* From here on nothing is only in memory. */
static void copy_unsettled(struct shelter *shelter)
{
	if (shelter->copied < shelter->taken && shelter->behind->each_unsettled)
		shelter->behind->each_unsettled(shelter->behind, copy_one, shelter);
	shelter->copied = shelter->taken;
}

static void go_away(struct shelter *shelter)
{
	if (!shelter->is_away)
		shelter->outages++;
	shelter->is_away = true;
	copy_unsettled(shelter);
}

void nt_shelter_undelivered(void *data, const struct nt_bus_record *record, enum nt_bus_cause cause)
{
	struct shelter *shelter = data;

	shelter->given_back++;
	shelter->retry_ns = shelter->turn_ns + RETRY_NS;
	if (cause == NT_BUS_TOO_LARGE) {
		shelter->refused[nt_shelter_class(record->topic)]++;
		return;
	}
	/* What it was drained from goes when it is settled, and that it is now. */
	if (record->partition == DRAINED || record->offset > shelter->copied)
		store_one(shelter, record);
}

static int publish_sheltered(struct nt_bus *bus, const struct nt_bus_record *record)
{
	struct shelter *shelter = (struct shelter *)bus;
	struct nt_bus_record live = *record;
	int r;

	shelter->live_bytes += size_of(record);
	if (!shelter->behind || shelter->is_away)
		return nt_shelter_store_add(shelter->store, record);
	live.partition = LIVE;
	r = nt_bus_publish(shelter->behind, &live);
	if (r == 0) {
		shelter->taken++;
		return 0;
	}
	if (r == -EMSGSIZE || r == -EINVAL)
		return r;
	if (r == -EAGAIN) {
		shelter->is_full = true;
		go_away(shelter);
	}
	return nt_shelter_store_add(shelter->store, record);
}

/*
 * What the bus behind has not sent yet is sent when its time has come: nobody waits for brokers here.
 */
static int flush_sheltered(struct nt_bus *bus)
{
	struct shelter *shelter = (struct shelter *)bus;
	int first = 0, r;

	if (shelter->behind && !shelter->behind->settled)
		first = nt_bus_flush(shelter->behind);
	r = nt_shelter_store_flush(shelter->store);
	return first < 0 ? first : r;
}

/* ---- out of the shelter ------------------------------------------------------------------------- */

/* Which of these keep the rest from going through; the others are about single topics or records. */
static bool is_cut_off(enum nt_bus_cause cause)
{
	return cause == NT_BUS_UNREACHABLE || cause == NT_BUS_REFUSED ||
	       cause == NT_BUS_CERTIFICATE || cause == NT_BUS_FENCED;
}

static void judge(struct shelter *shelter, enum nt_bus_cause cause)
{
	const struct nt_bus *behind = shelter->behind;
	const uint64_t settled = behind->settled ? behind->settled(behind) : shelter->taken;
	struct nt_bus_stats stats;
	bool is_stalled;

	/* Any answer will do: one partition may wait for its leader while others go on. */
	nt_bus_stats(behind, &stats);
	if (stats.delivered != shelter->delivered || settled == shelter->taken)
		shelter->progress_ns = shelter->turn_ns;
	shelter->delivered = stats.delivered;
	shelter->settled = settled;
	is_stalled = shelter->turn_ns - shelter->progress_ns >= STALL_NS;
	if (settled == shelter->taken)
		shelter->is_full = false;
	if (is_cut_off(cause) || is_stalled || shelter->is_full)
		go_away(shelter);
	else
		shelter->is_away = false;
}

/* Takes over what the next second may cost, by the time since the last turn. */
static void earn(struct shelter *shelter, uint64_t passed_ns)
{
	const double passed = (double)passed_ns / (double)NT_SECOND;
	const double weight = passed_ns < RATE_NS ? (double)passed_ns / (double)RATE_NS : 1.0;
	double rate;

	if (!passed_ns)
		return;
	shelter->live_rate += weight * ((double)shelter->live_bytes / passed - shelter->live_rate);
	shelter->live_bytes = 0;
	rate = DRAIN_FACTOR * shelter->live_rate;
	if (rate < (double)shelter->least_rate)
		rate = (double)shelter->least_rate;
	shelter->allowance += rate * (passed_ns < TURN_MAX_NS ? passed : 1.0);
	if (shelter->allowance > rate)
		shelter->allowance = rate;
}

static bool may_drain(struct shelter *shelter)
{
	if (shelter->ahead_bytes >= AHEAD_BYTES && shelter->settled >= shelter->ahead_number)
		shelter->ahead_bytes = 0;
	return shelter->allowance > 0 && shelter->ahead_bytes < AHEAD_BYTES;
}

static void drain(struct shelter *shelter)
{
	struct nt_bus_record record;

	while (may_drain(shelter) && nt_shelter_store_peek(shelter->store, &record) == 1) {
		int r;

		record.partition = DRAINED;
		r = nt_bus_publish(shelter->behind, &record);
		if (r == -EMSGSIZE || r == -EINVAL) {
			shelter->refused[nt_shelter_class(record.topic)]++;
			nt_shelter_store_take(shelter->store, shelter->taken);
			continue;
		}
		if (r < 0) {
			if (r != -EAGAIN) /* which soon has room */
				shelter->retry_ns = shelter->turn_ns + RETRY_NS;
			return;
		}
		shelter->taken++;
		shelter->ahead_number = shelter->taken;
		shelter->ahead_bytes += size_of(&record);
		shelter->allowance -= (double)size_of(&record);
		nt_shelter_store_take(shelter->store, shelter->taken);
	}
}

void nt_shelter_turn(struct nt_bus *bus, uint64_t mono_ns, uint64_t real_ns)
{
	struct shelter *shelter = (struct shelter *)bus;
	const uint64_t passed_ns = shelter->turn_ns ? mono_ns - shelter->turn_ns : 0;
	struct nt_bus_health health;

	if (!shelter->turn_ns)
		shelter->progress_ns = mono_ns;
	shelter->turn_ns = mono_ns;
	if (!shelter->behind)
		return;
	if (shelter->behind->give_back)
		shelter->behind->give_back(shelter->behind);
	nt_bus_health(shelter->behind, &health);
	judge(shelter, health.cause);
	earn(shelter, passed_ns);
	if (!shelter->is_away && health.cause == NT_BUS_WELL && mono_ns >= shelter->retry_ns)
		drain(shelter);
	/* What was given back is on disk before that which it was drained from goes. */
	if (flush_sheltered(bus) == 0)
		nt_shelter_store_settle(shelter->store, shelter->behind->settled ? shelter->settled
										 : shelter->taken);
	if (mono_ns >= shelter->expire_ns) {
		shelter->expire_ns = mono_ns + EXPIRE_NS;
		nt_shelter_store_expire(shelter->store, real_ns);
	}
}

/* ---- opening and closing ------------------------------------------------------------------------ */

static void close_sheltered(struct nt_bus *bus)
{
	struct shelter *shelter = (struct shelter *)bus;

	/* Gives back what it does not get rid of. */
	nt_bus_close(shelter->behind);
	if (nt_shelter_store_flush(shelter->store) == 0)
		nt_shelter_store_settle(shelter->store, UINT64_MAX);
	nt_shelter_store_free(shelter->store);
	free(shelter);
}

static void get_stats(const struct nt_bus *bus, struct nt_bus_stats *stats)
{
	const struct shelter *shelter = (const struct shelter *)bus;
	const uint64_t too_large = stats->dropped_too_large; /* counted in front of us */
	struct nt_shelter_counters counters;

	if (shelter->behind)
		nt_bus_stats(shelter->behind, stats);
	stats->dropped_too_large += too_large;
	/* What found no room there found it here, or is counted here. */
	stats->dropped_full = 0;
	for (int i = 0; i < NT_SHELTER_CLASS_END; i++) {
		nt_shelter_store_counters(shelter->store, (enum nt_shelter_class)i, &counters);
		stats->dropped_full += counters.dropped;
		stats->evicted_records += counters.evicted + counters.expired;
	}
	stats->recovered_torn += nt_shelter_store_torn(shelter->store);
}

static void get_health(const struct nt_bus *bus, struct nt_bus_health *ret_health)
{
	const struct shelter *shelter = (const struct shelter *)bus;

	if (shelter->behind)
		nt_bus_health(shelter->behind, ret_health);
}

int nt_shelter_open(const struct nt_shelter_options *options, struct nt_bus **ret_bus)
{
	struct shelter *shelter = calloc(1, sizeof(*shelter));
	int r;

	if (!shelter)
		return -ENOMEM;
	shelter->bus.close = close_sheltered;
	shelter->bus.publish = publish_sheltered;
	shelter->bus.flush = flush_sheltered;
	shelter->bus.get_stats = get_stats;
	shelter->bus.get_health = get_health;
	shelter->least_rate = options->least_rate ? options->least_rate : LEAST_RATE;
	r = nt_shelter_store_open(options->dir, &options->limits, &shelter->store);
	if (r < 0) {
		free(shelter);
		return r;
	}
	*ret_bus = &shelter->bus;
	return 0;
}

void nt_shelter_attach(struct nt_bus *bus, struct nt_bus *behind)
{
	((struct shelter *)bus)->behind = behind;
}

void nt_shelter_stats(const struct nt_bus *bus, struct nt_shelter_stats *ret_stats)
{
	const struct shelter *shelter = (const struct shelter *)bus;
	struct nt_shelter_stats stats = {
		.given_back = shelter->given_back,
		.outages = shelter->outages,
		.bytes = nt_shelter_store_bytes(shelter->store),
		.is_away = shelter->is_away,
	};

	for (int i = 0; i < NT_SHELTER_CLASS_END; i++) {
		nt_shelter_store_counters(shelter->store, (enum nt_shelter_class)i,
					  &stats.class[i]);
		stats.refused[i] = shelter->refused[i];
	}
	*ret_stats = stats;
}
