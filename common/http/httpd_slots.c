/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/httpd_slots.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "common/system/clock.h"
#include "common/system/thread.h"

enum {
	OTHER_FILES = 256, /* descriptors that the rest of the program needs */
};

struct nt_slot_address {
	UT_hash_handle hh;
	uint64_t key[2];
	bool is_lost; /* no memory to add it to the table */
	uint32_t slots; /* that point here */
	uint32_t held[2]; /* of those: ordinary, reserved, and not cut off */
	uint64_t answer_bytes;
};

void nt_slots_init(struct nt_slots *slots, const struct nt_slots_limits *limits)
{
	*slots = (struct nt_slots){.limits = *limits};
	pthread_mutex_init(&slots->lock, NULL);
	nt_thread_condition_init(&slots->wake);
}

void nt_slots_destroy(struct nt_slots *slots)
{
	pthread_cond_destroy(&slots->wake);
	pthread_mutex_destroy(&slots->lock);
}

static struct nt_slot_address key_of(const struct sockaddr *address)
{
	struct nt_slot_address key = {0};

	if (address && address->sa_family == AF_INET) {
		struct sockaddr_in v4;

		memcpy(&v4, address, sizeof(v4));
		key.key[1] = v4.sin_addr.s_addr;
	} else if (address && address->sa_family == AF_INET6) {
		struct sockaddr_in6 v6;

		memcpy(&v6, address, sizeof(v6));
		/* An IPv4 address inside an IPv6 one counts whole, another IPv6 one by its /64. */
		memcpy(key.key, &v6.sin6_addr,
		       IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? sizeof(key.key) : 8);
	}
	return key;
}

/* NULL: no memory. */
static struct nt_slot_address *find_address(struct nt_slots *slots, const struct sockaddr *address)
{
	struct nt_slot_address key = key_of(address), *found;

	HASH_FIND(hh, slots->addresses, key.key, sizeof(key.key), found);
	if (found)
		return found;
	found = malloc(sizeof(*found));
	if (!found)
		return NULL;
	*found = key;
	HASH_ADD(hh, slots->addresses, key, sizeof(found->key), found);
	if (found->is_lost) {
		free(found);
		return NULL;
	}
	return found;
}

static void free_place(struct nt_slots *slots, struct nt_slot *slot)
{
	if (slot->is_cut)
		return;
	slot->is_cut = true;
	slot->address->held[slot->is_reserved]--;
	if (slot->is_reserved)
		slots->stats.reserved--;
	else
		slots->stats.ordinary--;
}

/* Its slot is free at once, although the server has yet to close it. */
static void cut(struct nt_slots *slots, struct nt_slot *slot)
{
	free_place(slots, slot);
	(void)shutdown(slot->fd, SHUT_RDWR);
}

/* A reserved slot is needed. */
static void evict(struct nt_slots *slots)
{
	struct nt_slot *victim = NULL;
	uint32_t most = 0;

	for (struct nt_slot *one = slots->first[true]; one; one = one->next) {
		if (one->is_cut || one->address->held[true] < most)
			continue;
		most = one->address->held[true];
		victim = one;
	}
	if (!victim)
		return;
	slots->stats.evicted++;
	cut(slots, victim);
}

static void set_deadline(struct nt_slots *slots, struct nt_slot *slot, uint64_t deadline_ns)
{
	slot->deadline_ns = deadline_ns;
	if (deadline_ns < slots->wakes_ns) {
		slots->wakes_ns = deadline_ns;
		pthread_cond_signal(&slots->wake);
	}
}

int nt_slots_enter(struct nt_slots *slots, int fd, const struct sockaddr *address, uint64_t mono_ns,
		   struct nt_slot **ret_slot)
{
	const struct nt_slots_limits *limits = &slots->limits;
	struct nt_slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	slot->fd = fd;

	pthread_mutex_lock(&slots->lock);
	slot->address = find_address(slots, address);
	if (!slot->address) {
		pthread_mutex_unlock(&slots->lock);
		free(slot);
		return -ENOMEM;
	}
	slot->address->slots++;
	slot->is_reserved = slots->stats.ordinary >= limits->ordinary ||
			    slot->address->held[false] >= limits->ordinary_per_address;
	if (slot->is_reserved) {
		slots->stats.over_limit++;
		if (slots->stats.reserved >= limits->reserved)
			evict(slots);
		slots->stats.reserved++;
	} else {
		slots->stats.ordinary++;
	}
	slot->address->held[slot->is_reserved]++;
	slot->next = slots->first[slot->is_reserved];
	if (slot->next)
		slot->next->previous = slot;
	slots->first[slot->is_reserved] = slot;
	set_deadline(slots, slot,
		     mono_ns + (slot->is_reserved ? limits->reserved_ns : limits->header_ns));
	pthread_mutex_unlock(&slots->lock);
	*ret_slot = slot;
	return 0;
}

/* The caller holds the lock. */
static void next_phase(struct nt_slots *slots, struct nt_slot *slot, uint64_t deadline_ns)
{
	if (!slot->is_reserved && !slot->is_cut)
		set_deadline(slots, slot, deadline_ns);
}

void nt_slots_request(struct nt_slots *slots, struct nt_slot *slot, uint64_t mono_ns)
{
	pthread_mutex_lock(&slots->lock);
	next_phase(slots, slot, mono_ns + slots->limits.request_ns);
	pthread_mutex_unlock(&slots->lock);
}

/* The caller holds the lock. */
static void end_answer(struct nt_slots *slots, struct nt_slot *slot)
{
	slots->stats.answer_bytes -= slot->answer_bytes;
	slot->address->answer_bytes -= slot->answer_bytes;
	slot->answer_bytes = 0;
}

/* What is alone always fits. most 0: no limit. */
static bool fits(uint64_t now, uint64_t more, uint64_t most)
{
	return !most || !now || (now <= most && more <= most - now);
}

bool nt_slots_answer(struct nt_slots *slots, struct nt_slot *slot, uint64_t bytes)
{
	const struct nt_slots_limits *limits = &slots->limits;
	struct nt_slot_address *address = slot->address;
	bool taken;

	pthread_mutex_lock(&slots->lock);
	end_answer(slots, slot);
	taken = fits(slots->stats.answer_bytes, bytes, limits->answer_bytes) &&
		fits(address->answer_bytes, bytes, limits->answer_bytes_per_address);
	if (taken) {
		slot->answer_bytes = bytes;
		slots->stats.answer_bytes += bytes;
		address->answer_bytes += bytes;
	}
	pthread_mutex_unlock(&slots->lock);
	return taken;
}

void nt_slots_idle(struct nt_slots *slots, struct nt_slot *slot, uint64_t mono_ns)
{
	pthread_mutex_lock(&slots->lock);
	end_answer(slots, slot);
	next_phase(slots, slot, mono_ns + slots->limits.idle_ns);
	pthread_mutex_unlock(&slots->lock);
}

void nt_slots_extend(struct nt_slots *slots, struct nt_slot *slot, uint64_t deadline_mono_ns)
{
	pthread_mutex_lock(&slots->lock);
	next_phase(slots, slot, deadline_mono_ns);
	pthread_mutex_unlock(&slots->lock);
}

void nt_slots_leave(struct nt_slots *slots, struct nt_slot *slot)
{
	if (!slot)
		return;
	pthread_mutex_lock(&slots->lock);
	free_place(slots, slot);
	end_answer(slots, slot);
	if (slot->previous)
		slot->previous->next = slot->next;
	else
		slots->first[slot->is_reserved] = slot->next;
	if (slot->next)
		slot->next->previous = slot->previous;
	if (--slot->address->slots == 0) {
		HASH_DEL(slots->addresses, slot->address);
		free(slot->address);
	}
	pthread_mutex_unlock(&slots->lock);
	free(slot);
}

static uint64_t reap(struct nt_slots *slots, uint64_t mono_ns)
{
	uint64_t next_ns = UINT64_MAX;

	for (int i = 0; i < 2; i++) {
		for (struct nt_slot *one = slots->first[i]; one; one = one->next) {
			if (one->is_cut)
				continue;
			if (one->deadline_ns <= mono_ns) {
				/* Counted before the peer can notice. */
				slots->stats.reaped++;
				cut(slots, one);
			} else if (one->deadline_ns < next_ns) {
				next_ns = one->deadline_ns;
			}
		}
	}
	return next_ns;
}

uint64_t nt_slots_reap(struct nt_slots *slots, uint64_t mono_ns)
{
	uint64_t next_ns;

	pthread_mutex_lock(&slots->lock);
	next_ns = reap(slots, mono_ns);
	pthread_mutex_unlock(&slots->lock);
	return next_ns;
}

void nt_slots_run(struct nt_slots *slots)
{
	pthread_mutex_lock(&slots->lock);
	while (!slots->is_ending) {
		uint64_t now_ns = nt_clock_mono_ns(), next_ns = reap(slots, now_ns);

		/* At least 50 ms: under an attack there is always one more to cut. */
		if (next_ns < now_ns + NT_SECOND / 20)
			next_ns = now_ns + NT_SECOND / 20;
		if (next_ns > now_ns + NT_MINUTE)
			next_ns = now_ns + NT_MINUTE;
		slots->wakes_ns = next_ns;
		(void)nt_thread_wait(&slots->wake, &slots->lock, next_ns);
	}
	pthread_mutex_unlock(&slots->lock);
}

void nt_slots_end(struct nt_slots *slots)
{
	pthread_mutex_lock(&slots->lock);
	slots->is_ending = true;
	pthread_cond_signal(&slots->wake);
	pthread_mutex_unlock(&slots->lock);
}

uint32_t nt_slots_fit(uint32_t wanted, uint32_t reserved)
{
	struct rlimit files;
	rlim_t room;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return wanted;
	if (files.rlim_cur < wanted + 2 * reserved + OTHER_FILES &&
	    files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &files) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
			return wanted;
	}
	room = files.rlim_cur > 2 * reserved + OTHER_FILES
		       ? files.rlim_cur - 2 * reserved - OTHER_FILES
		       : 1;
	return room < wanted ? (uint32_t)room : wanted;
}

void nt_slots_stats(struct nt_slots *slots, struct nt_slots_stats *ret_stats)
{
	pthread_mutex_lock(&slots->lock);
	*ret_stats = slots->stats;
	pthread_mutex_unlock(&slots->lock);
}
