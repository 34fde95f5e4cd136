/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/level_desk.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/system/clock.h"

#define SWEEP_NS NT_MINUTE
#define RETRY_NS (5 * NT_SECOND)
/* After which an agent that was away takes no stacks or profile any more. */
#define STACK_NS NT_MINUTE
/* What began earlier is the recording of an earlier time, or was found by an earlier aggregator. */
#define NEW_NS NT_HOUR

static const char operator_name[] = "operator";

struct nt_level_desk {
	struct nt_control_feed *feed;
	struct nt_level_desk_options options;
	uint64_t swept_ns; /* monotonic */
	uint64_t served[NT_LEVEL_DESK_INCIDENTS]; /* hashes of their ids, as a ring */
	size_t serves;
	uint64_t minute_ns; /* monotonic, when the minute of these incidents began */
	uint32_t incidents;
	uint64_t publish_after_ns; /* monotonic */

	pthread_mutex_t lock; /* covers all below */
	struct nt_level_table *table;
	struct nt_level_entry waiting[NT_LEVEL_DESK_WAITING];
	size_t waits;
	bool is_writable;
	uint64_t expired, over_cap;
};

int nt_level_desk_open(const struct nt_level_desk_options *options, struct nt_level_desk **ret_desk)
{
	nt_auto(nt_level_desk) struct nt_level_desk *desk = calloc(1, sizeof(*desk));
	int r;

	if (!desk)
		return -ENOMEM;
	(void)pthread_mutex_init(&desk->lock, NULL);
	desk->options = *options;
	if (!desk->options.retry_ns)
		desk->options.retry_ns = RETRY_NS;
	r = nt_level_table_new(&desk->table);
	if (r == 0)
		r = nt_control_feed_start(options->bus_url, options->bus, &desk->feed);
	if (r < 0)
		return r;
	*ret_desk = nt_take(desk);
	return 0;
}

void nt_level_desk_close(struct nt_level_desk *desk)
{
	if (!desk)
		return;
	nt_control_feed_stop(desk->feed);
	nt_level_table_free(desk->table);
	(void)pthread_mutex_destroy(&desk->lock);
	free(desk);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Under the lock. Replaces a waiting one for the same. */
static int wait_for(struct nt_level_desk *desk, const struct nt_level_entry *entry)
{
	for (size_t i = 0; i < desk->waits; i++) {
		const struct nt_level_entry *other = &desk->waiting[i];

		if (other->request != entry->request || other->target.kind != entry->target.kind ||
		    other->target.rank != entry->target.rank ||
		    strcmp(other->target.name, entry->target.name) != 0)
			continue;
		desk->waiting[i] = *entry;
		return 0;
	}
	if (desk->waits == NT_LEVEL_DESK_WAITING)
		return -EBUSY;
	desk->waiting[desk->waits++] = *entry;
	return 0;
}

int nt_level_desk_set(struct nt_level_desk *desk, const struct nt_level_target *target,
		      uint32_t level, uint64_t ttl_ns, struct nt_level_entry *ret_entry)
{
	struct nt_level_entry entry = {
		.target = *target,
		.request = NT_REQUEST_LEVEL,
		.level = level,
		.set_real_ns = nt_clock_real_ns(),
	};
	char text[NT_LEVEL_TARGET];
	int r;

	if (level > NT_LEVEL_MAX || !ttl_ns || ttl_ns > NT_LEVEL_MAX_TTL ||
	    !nt_level_target_format(target, text))
		return -EINVAL;
	entry.expires_real_ns = entry.set_real_ns + ttl_ns;
	memcpy(entry.reason, operator_name, sizeof(operator_name));
	(void)pthread_mutex_lock(&desk->lock);
	r = desk->is_writable ? wait_for(desk, &entry) : -EROFS;
	(void)pthread_mutex_unlock(&desk->lock);
	if (r == 0)
		*ret_entry = entry;
	return r;
}

int nt_level_desk_profile(struct nt_level_desk *desk, const struct nt_level_target *target,
			  const struct nt_profile_wish *wish, struct nt_level_entry *ret_entry)
{
	struct nt_level_entry entry = {
		.target = *target,
		.request = NT_REQUEST_PROFILE,
		.set_real_ns = nt_clock_real_ns(),
		.profile = *wish,
	};
	char text[NT_LEVEL_TARGET];
	int r;

	if (!nt_profile_wish_is_sound(wish) || !nt_level_target_format(target, text))
		return -EINVAL;
	entry.expires_real_ns = entry.set_real_ns + STACK_NS;
	entry.id =
		nt_hash_mix(nt_hash_u64(nt_hash_text(NT_HASH_SEED, text), entry.set_real_ns)) | 1;
	memcpy(entry.reason, operator_name, sizeof(operator_name));
	(void)pthread_mutex_lock(&desk->lock);
	r = desk->is_writable ? wait_for(desk, &entry) : -EROFS;
	(void)pthread_mutex_unlock(&desk->lock);
	if (r == 0)
		*ret_entry = entry;
	return r;
}

int nt_level_desk_list(struct nt_level_desk *desk, struct nt_level_entry **ret_entry,
		       size_t *ret_count)
{
	nt_autofree const struct nt_level_entry **found = NULL;
	nt_autofree struct nt_level_entry *entry = NULL;
	size_t count = 0;

	found = calloc(NT_LEVEL_TABLE_ENTRIES, sizeof(*found));
	entry = calloc(NT_LEVEL_TABLE_ENTRIES, sizeof(*entry));
	if (!found || !entry)
		return -ENOMEM;
	(void)pthread_mutex_lock(&desk->lock);
	count = nt_level_table_list(desk->table, nt_clock_real_ns(), found, NT_LEVEL_TABLE_ENTRIES);
	for (size_t i = 0; i < count; i++)
		entry[i] = *found[i];
	(void)pthread_mutex_unlock(&desk->lock);
	*ret_entry = nt_take(entry);
	*ret_count = count;
	return 0;
}

/* ---- the topic ------------------------------------------------------------------------------- */

static void read_topic(struct nt_level_desk *desk, uint64_t now_real_ns)
{
	for (int i = 0; i < NT_CONTROL_FEED_QUEUE; i++) {
		nt_auto(nt_message) struct nt_message *message = nt_control_feed_take(desk->feed);

		if (!message)
			return;
		(void)pthread_mutex_lock(&desk->lock);
		/* Refused ones are counted. */
		(void)!nt_level_table_take(desk->table, &message->control, now_real_ns);
		(void)pthread_mutex_unlock(&desk->lock);
	}
}

/* Not under the lock: it may wait for brokers. */
static int publish_entry(struct nt_level_desk *desk, struct nt_bus_producer *bus_producer,
			 const struct nt_level_entry *entry, uint64_t now_real_ns)
{
	char target[NT_LEVEL_TARGET];
	const struct nt_control control = {
		.target = target,
		.level = entry->level,
		.expires_real_ns = entry->expires_real_ns,
		.set_real_ns = entry->set_real_ns,
		.request = entry->request,
		.id = entry->id,
		.reason = entry->reason,
		.seconds = entry->profile.seconds,
		.hz = entry->profile.hz,
		.kind = entry->profile.kind,
	};

	if (!nt_level_target_format(&entry->target, target))
		return 0;
	if (nt_bus_producer_control(bus_producer, &control) < 0)
		return -EIO;
	/* At once, and again when it is read from the topic. */
	(void)pthread_mutex_lock(&desk->lock);
	(void)!nt_level_table_take(desk->table, &control, now_real_ns);
	(void)pthread_mutex_unlock(&desk->lock);
	return 0;
}

/* Under the lock. Other threads add to the end or replace, and remove none. */
static void remove_waiting(struct nt_level_desk *desk, size_t i)
{
	desk->waits--;
	memmove(&desk->waiting[i], &desk->waiting[i + 1],
		(desk->waits - i) * sizeof(desk->waiting[i]));
}

/* Under the lock. */
static void drop_expired(struct nt_level_desk *desk, uint64_t now_real_ns)
{
	for (size_t i = 0; i < desk->waits;) {
		if (desk->waiting[i].expires_real_ns > now_real_ns) {
			i++;
			continue;
		}
		desk->expired++;
		remove_waiting(desk, i);
	}
}

/* What the bus does not take is tried again, all of it, until it expires. */
static void publish_waiting(struct nt_level_desk *desk, struct nt_bus_producer *bus_producer,
			    uint64_t now_real_ns)
{
	const bool tries = bus_producer && nt_clock_mono_ns() >= desk->publish_after_ns;
	bool failed = false;

	(void)pthread_mutex_lock(&desk->lock);
	desk->is_writable = bus_producer != NULL;
	drop_expired(desk, now_real_ns);
	for (size_t i = 0; tries && !failed && i < desk->waits;) {
		const struct nt_level_entry entry = desk->waiting[i];

		(void)pthread_mutex_unlock(&desk->lock);
		failed = publish_entry(desk, bus_producer, &entry, now_real_ns) < 0;
		(void)pthread_mutex_lock(&desk->lock);
		/* One that has replaced it meanwhile is for the next turn. */
		if (failed || desk->waiting[i].set_real_ns != entry.set_real_ns)
			i++;
		else
			remove_waiting(desk, i);
	}
	(void)pthread_mutex_unlock(&desk->lock);
	if (failed)
		desk->publish_after_ns = nt_clock_mono_ns() + desk->options.retry_ns;
}

/* Entries that the table has removed, to be removed from the topic. */
struct swept {
	struct nt_level_entry *entry;
	size_t count;
};

static void note_swept(void *data, const struct nt_level_entry *entry)
{
	struct swept *swept = data;

	if (swept->entry && swept->count < NT_LEVEL_TABLE_ENTRIES)
		swept->entry[swept->count++] = *entry;
}

/* What is not removed from the topic for want of memory expires there. */
static void sweep(struct nt_level_desk *desk, struct nt_bus_producer *bus_producer,
		  uint64_t now_real_ns)
{
	nt_autofree struct nt_level_entry *entry = calloc(NT_LEVEL_TABLE_ENTRIES, sizeof(*entry));
	struct swept swept = {.entry = entry};
	char target[NT_LEVEL_TARGET];

	(void)pthread_mutex_lock(&desk->lock);
	nt_level_table_sweep(desk->table, now_real_ns, note_swept, &swept);
	(void)pthread_mutex_unlock(&desk->lock);
	for (size_t i = 0; bus_producer && i < swept.count; i++)
		if (nt_level_target_format(&entry[i].target, target))
			(void)nt_bus_producer_forget_control(bus_producer, entry[i].request,
							     target);
}

void nt_level_desk_turn(struct nt_level_desk *desk, struct nt_bus_producer *bus_producer)
{
	const uint64_t now_real_ns = nt_clock_real_ns(), now_ns = nt_clock_mono_ns();

	read_topic(desk, now_real_ns);
	publish_waiting(desk, bus_producer, now_real_ns);
	if (now_ns - desk->swept_ns < SWEEP_NS)
		return;
	desk->swept_ns = now_ns;
	sweep(desk, bus_producer, now_real_ns);
}

/* ---- incidents ------------------------------------------------------------------------------- */

static bool is_served(const struct nt_level_desk *desk, uint64_t hash)
{
	const size_t count =
		desk->serves < NT_LEVEL_DESK_INCIDENTS ? desk->serves : NT_LEVEL_DESK_INCIDENTS;

	for (size_t i = 0; i < count; i++)
		if (desk->served[i] == hash)
			return true;
	return false;
}

static void serve(struct nt_level_desk *desk, uint64_t hash)
{
	desk->served[desk->serves++ % NT_LEVEL_DESK_INCIDENTS] = hash;
}

/* Under the lock. */
static void request_rank(struct nt_level_desk *desk, const struct nt_snapshot_job *job,
			 const struct nt_wire_incident *incident, uint32_t rank,
			 uint64_t now_real_ns)
{
	struct nt_level_entry entry = {
		.target = {.kind = NT_LEVEL_RANK, .rank = rank},
		.request = NT_REQUEST_STACK,
		.set_real_ns = now_real_ns,
		.expires_real_ns = now_real_ns + STACK_NS,
		.id = nt_hash_mix(nt_hash_u64(nt_hash_text(NT_HASH_SEED, incident->id), rank)),
	};
	int r;

	(void)snprintf(entry.target.name, sizeof(entry.target.name), "%s", job->key);
	(void)snprintf(entry.reason, sizeof(entry.reason), "%.63s", incident->id);
	r = wait_for(desk, &entry);
	if (r == 0 && desk->options.auto_level) {
		entry.request = NT_REQUEST_AUTO_LEVEL;
		entry.level = desk->options.auto_level;
		entry.expires_real_ns = now_real_ns + desk->options.auto_ns;
		entry.id = 0;
		r = wait_for(desk, &entry);
	}
	desk->over_cap += r < 0;
}

static bool is_accused(const struct nt_wire_incident *incident, uint32_t rank)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *culprit = &incident->culprit[i];

		if (culprit->has_rank && culprit->rank == rank)
			return true;
		for (size_t j = 0; j < culprit->rank_count; j++)
			if (culprit->ranks[j] == rank)
				return true;
	}
	return false;
}

static const struct nt_snapshot_rank *find_rank(const struct nt_snapshot_job *job, uint32_t number)
{
	for (size_t i = 0; i < job->ranks; i++)
		if (job->rank[i].rank == number && job->rank[i].rank_known && !job->rank[i].ended)
			return &job->rank[i];
	return NULL;
}

/* A rank to compare with: of the same role, else any other of the job. NULL: there is none. */
static const struct nt_snapshot_rank *find_peer(const struct nt_snapshot_job *job,
						const struct nt_wire_incident *incident,
						const struct nt_snapshot_rank *accused)
{
	for (size_t i = 0; i < accused->peer_count; i++) {
		const struct nt_snapshot_rank *peer = find_rank(job, accused->peers[i]);

		if (peer && !is_accused(incident, peer->rank))
			return peer;
	}
	for (size_t i = 0; i < job->ranks; i++) {
		const struct nt_snapshot_rank *other = &job->rank[i];

		if (other->rank_known && !other->ended && !is_accused(incident, other->rank))
			return other;
	}
	return NULL;
}

static void request_incident(struct nt_level_desk *desk, const struct nt_snapshot_job *job,
			     const struct nt_wire_incident *incident, uint64_t now_real_ns)
{
	const struct nt_snapshot_rank *first = NULL, *peer;
	int ranks = 0;

	(void)pthread_mutex_lock(&desk->lock);
	for (size_t i = 0; i < job->ranks && ranks < NT_LEVEL_DESK_RANKS; i++) {
		const struct nt_snapshot_rank *rank = &job->rank[i];

		if (!rank->rank_known || rank->ended || !is_accused(incident, rank->rank))
			continue;
		request_rank(desk, job, incident, rank->rank, now_real_ns);
		first = first ? first : rank;
		ranks++;
	}
	peer = first ? find_peer(job, incident, first) : NULL;
	if (peer)
		request_rank(desk, job, incident, peer->rank, now_real_ns);
	(void)pthread_mutex_unlock(&desk->lock);
}

/* However many incidents there are, and so even if older ones are no longer known as served. */
static bool is_over_rate(struct nt_level_desk *desk)
{
	const uint64_t now_ns = nt_clock_mono_ns();

	if (!desk->minute_ns || now_ns - desk->minute_ns >= NT_MINUTE) {
		desk->minute_ns = now_ns;
		desk->incidents = 0;
	}
	return desk->incidents++ >= NT_LEVEL_DESK_A_MINUTE;
}

static void look_at_incident(struct nt_level_desk *desk, const struct nt_snapshot_job *job,
			     const struct nt_wire_incident *incident, uint64_t now_real_ns)
{
	const uint64_t hash = nt_hash_text(NT_HASH_SEED, incident->id);

	if (strcmp(incident->state, "firing") != 0 || is_served(desk, hash))
		return;
	serve(desk, hash);
	if (incident->seen_real_ns + NT_MINUTE < now_real_ns ||
	    incident->since_real_ns + NEW_NS < now_real_ns)
		return;
	if (is_over_rate(desk)) {
		(void)pthread_mutex_lock(&desk->lock);
		desk->over_cap++;
		(void)pthread_mutex_unlock(&desk->lock);
		return;
	}
	request_incident(desk, job, incident, now_real_ns);
}

void nt_level_desk_look(struct nt_level_desk *desk, const struct nt_snapshot *snapshot)
{
	const uint64_t now_real_ns = nt_clock_real_ns();

	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		for (size_t j = 0; !job->is_summary && j < job->incidents; j++)
			look_at_incident(desk, job, job->incident[j], now_real_ns);
	}
}

void nt_level_desk_stats(struct nt_level_desk *desk, struct nt_level_desk_stats *ret_stats)
{
	nt_control_feed_stats(desk->feed, &ret_stats->feed);
	(void)pthread_mutex_lock(&desk->lock);
	ret_stats->table = *nt_level_table_stats(desk->table);
	ret_stats->expired = desk->expired;
	ret_stats->over_cap = desk->over_cap;
	ret_stats->in_force_now = nt_level_table_list(desk->table, nt_clock_real_ns(), NULL, 0);
	(void)pthread_mutex_unlock(&desk->lock);
}
