/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/quarantine.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/system/clock.h"

enum {
	TALLIES = 2 * NT_QUARANTINE_PROCESSES,
};

/* Both tables are small and mostly empty: linear search. */
struct quarantined_process {
	uint32_t pid;
	uint64_t start_ns;
	uint64_t owner;
	uint64_t until_ns,
		length_ns; /* of the last term; 0: none, work is postponed for its owner */
	bool is_postponed;
};

struct owner {
	uint64_t id;
	uint32_t strikes;
	uint64_t struck_ns; /* the last strike */
	uint64_t until_ns, length_ns;
	uint64_t spent_ns, spent_since_ns;
};

struct nt_quarantine {
	struct quarantined_process process[NT_QUARANTINE_PROCESSES];
	struct owner owner[NT_QUARANTINE_OWNERS];
	size_t processes, owners;
	uint64_t strikes, over_cap, lost;
	struct {
		uint64_t owner;
		uint32_t count;
	} tally[TALLIES]; /* scratch of process_to_go(): a hash table that never fills */
};

int nt_quarantine_new(struct nt_quarantine **ret_quarantine)
{
	struct nt_quarantine *quarantine = calloc(1, sizeof(*quarantine));

	if (!quarantine)
		return -ENOMEM;
	*ret_quarantine = quarantine;
	return 0;
}

void nt_quarantine_free(struct nt_quarantine *quarantine)
{
	free(quarantine);
}

bool nt_quarantine_is_empty(const struct nt_quarantine *quarantine)
{
	return !quarantine->processes && !quarantine->owners;
}

static const struct quarantined_process *find_process(const struct nt_quarantine *q, uint32_t pid,
						      uint64_t start_ns)
{
	for (size_t i = 0; i < q->processes; i++)
		if (q->process[i].pid == pid && q->process[i].start_ns == start_ns)
			return &q->process[i];
	return NULL;
}

static const struct owner *find_owner(const struct nt_quarantine *q, uint64_t id)
{
	for (size_t i = 0; id && i < q->owners; i++)
		if (q->owner[i].id == id)
			return &q->owner[i];
	return NULL;
}

static bool owner_is_held(const struct nt_quarantine *q, uint64_t id, uint64_t now_ns)
{
	const struct owner *owner = find_owner(q, id);

	return owner && now_ns < owner->until_ns;
}

/* Counts one more for the owner. Returns the new count. */
static uint32_t count_for(struct nt_quarantine *q, uint64_t owner)
{
	size_t at = nt_hash_mix(owner) % TALLIES;

	while (q->tally[at].count && q->tally[at].owner != owner)
		at = (at + 1) % TALLIES;
	q->tally[at].owner = owner;
	return ++q->tally[at].count;
}

/* The entry of the largest owner that is released first. */
static struct quarantined_process *process_to_go(struct nt_quarantine *q)
{
	struct quarantined_process *process = NULL;
	uint64_t most = 0;
	uint32_t n = 0;

	memset(q->tally, 0, sizeof(q->tally));
	for (size_t i = 0; i < q->processes; i++) {
		uint32_t own = count_for(q, q->process[i].owner);

		if (own > n) {
			n = own;
			most = q->process[i].owner;
		}
	}
	for (size_t i = 0; i < q->processes; i++)
		if (q->process[i].owner == most &&
		    (!process || q->process[i].until_ns < process->until_ns))
			process = &q->process[i];
	return process;
}

/* At the cap one is evicted. */
static struct quarantined_process *take_process(struct nt_quarantine *q, uint32_t pid,
						uint64_t start_ns, uint64_t owner)
{
	const struct quarantined_process *known = find_process(q, pid, start_ns);
	struct quarantined_process *process;

	if (known)
		return &q->process[known - q->process];
	if (q->processes < NT_QUARANTINE_PROCESSES) {
		process = &q->process[q->processes++];
	} else {
		q->over_cap++;
		process = process_to_go(q);
		q->lost += process->is_postponed;
	}
	*process = (struct quarantined_process){.pid = pid, .start_ns = start_ns, .owner = owner};
	return process;
}

static struct owner *take_owner(struct nt_quarantine *q, uint64_t id)
{
	const struct owner *known = find_owner(q, id);
	struct owner *owner = &q->owner[0];

	if (known)
		return &q->owner[known - q->owner];
	if (q->owners < NT_QUARANTINE_OWNERS) {
		owner = &q->owner[q->owners++];
	} else {
		q->over_cap++;
		for (size_t i = 1; i < q->owners; i++)
			if (q->owner[i].until_ns < owner->until_ns ||
			    (q->owner[i].until_ns == owner->until_ns &&
			     q->owner[i].struck_ns < owner->struck_ns))
				owner = &q->owner[i];
	}
	*owner = (struct owner){.id = id};
	return owner;
}

static void lengthen(uint64_t *length_ns, uint64_t *until_ns, uint64_t first_ns, uint64_t max_ns,
		     uint64_t now_ns)
{
	*length_ns = *length_ns ? *length_ns * 2 : first_ns;
	*length_ns = *length_ns > max_ns ? max_ns : *length_ns;
	*until_ns = now_ns + *length_ns;
}

bool nt_quarantine_holds(const struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			 uint64_t owner, uint64_t now_ns)
{
	const struct quarantined_process *process = find_process(quarantine, pid, start_ns);

	return (process && now_ns < process->until_ns) || owner_is_held(quarantine, owner, now_ns);
}

bool nt_quarantine_strike(struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			  uint64_t owner, uint64_t now_ns)
{
	struct quarantined_process *process = take_process(quarantine, pid, start_ns, owner);
	struct owner *struck;

	quarantine->strikes++;
	lengthen(&process->length_ns, &process->until_ns, NT_QUARANTINE_PROCESS_NS,
		 NT_QUARANTINE_PROCESS_MAX_NS, now_ns);
	if (!owner)
		return false;
	struck = take_owner(quarantine, owner);
	if (now_ns - struck->struck_ns >= NT_QUARANTINE_FORGET_NS)
		struck->strikes = 0;
	struck->struck_ns = now_ns;
	if (++struck->strikes < NT_QUARANTINE_STRIKES)
		return false;
	/* One more strike after this term is enough: earlier ones still count. */
	struck->strikes = NT_QUARANTINE_STRIKES - 1;
	lengthen(&struck->length_ns, &struck->until_ns, NT_QUARANTINE_OWNER_NS,
		 NT_QUARANTINE_OWNER_MAX_NS, now_ns);
	return true;
}

bool nt_quarantine_spend(struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			 uint64_t owner, uint64_t spent_ns, uint64_t now_ns)
{
	struct owner *spender;

	if (!owner)
		return false;
	spender = take_owner(quarantine, owner);
	if (now_ns - spender->spent_since_ns >= NT_MINUTE) {
		spender->spent_since_ns = now_ns;
		spender->spent_ns = 0;
	}
	spender->spent_ns += spent_ns;
	if (!spender->struck_ns)
		spender->struck_ns = now_ns; /* kept as long as after a strike */
	if (spender->spent_ns < NT_QUARANTINE_SPEND_NS)
		return false;
	spender->spent_ns = 0;
	(void)nt_quarantine_strike(quarantine, pid, start_ns, owner, now_ns);
	return true;
}

void nt_quarantine_postpone(struct nt_quarantine *quarantine, uint32_t pid, uint64_t start_ns,
			    uint64_t owner, uint64_t now_ns)
{
	(void)now_ns;
	take_process(quarantine, pid, start_ns, owner)->is_postponed = true;
}

/* An expired entry without postponed work is kept while its next term would still be longer. */
static bool is_forgotten(const struct quarantined_process *process, uint64_t now_ns)
{
	return !process->is_postponed && now_ns >= process->until_ns + NT_QUARANTINE_FORGET_NS;
}

bool nt_quarantine_due(struct nt_quarantine *quarantine, uint64_t now_ns, uint32_t *ret_pid,
		       uint64_t *ret_start_ns)
{
	for (size_t i = 0; i < quarantine->owners;) {
		const struct owner *owner = &quarantine->owner[i];

		if (now_ns >= owner->until_ns &&
		    now_ns - owner->struck_ns >= NT_QUARANTINE_FORGET_NS)
			quarantine->owner[i] = quarantine->owner[--quarantine->owners];
		else
			i++;
	}
	for (size_t i = 0; i < quarantine->processes;) {
		struct quarantined_process *process = &quarantine->process[i];

		if (process->is_postponed && now_ns >= process->until_ns &&
		    !owner_is_held(quarantine, process->owner, now_ns)) {
			process->is_postponed = false;
			*ret_pid = process->pid;
			*ret_start_ns = process->start_ns;
			return true;
		}
		if (is_forgotten(process, now_ns))
			*process = quarantine->process[--quarantine->processes];
		else
			i++;
	}
	return false;
}

void nt_quarantine_stats(const struct nt_quarantine *quarantine, uint64_t now_ns,
			 struct nt_quarantine_stats *ret_stats)
{
	struct nt_quarantine_stats stats = {
		.strikes = quarantine->strikes,
		.over_cap = quarantine->over_cap,
		.lost = quarantine->lost,
	};

	for (size_t i = 0; i < quarantine->processes; i++)
		stats.processes += now_ns < quarantine->process[i].until_ns;
	for (size_t i = 0; i < quarantine->owners; i++)
		stats.owners += now_ns < quarantine->owner[i].until_ns;
	*ret_stats = stats;
}
