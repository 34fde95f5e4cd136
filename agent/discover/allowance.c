/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/allowance.h"

#include <errno.h>
#include <stddef.h>

#include "common/base/hash.h"

enum {
	WAYS = 8, /* places per key: lookups stay short, and collisions are rare */
};

struct debt {
	uint64_t key; /* 0: free */
	uint64_t debt_ns, since_ns; /* debt at since_ns */
};

/* The debts of one kind: processes or owners. */
struct book {
	uint64_t part, max_ns;
	size_t places; /* a multiple of WAYS */
	struct debt *place;
};

struct nt_allowance {
	struct debt process[NT_ALLOWANCE_PROCESSES], owner[NT_ALLOWANCE_OWNERS],
		window[NT_ALLOWANCE_OWNERS];
	struct book processes, owners, windows;
	uint64_t over_cap;
};

int nt_allowance_new(struct nt_allowance **ret_allowance)
{
	struct nt_allowance *allowance = calloc(1, sizeof(*allowance));

	if (!allowance)
		return -ENOMEM;
	allowance->processes = (struct book){
		.part = NT_ALLOWANCE_PROCESS_PART,
		.max_ns = NT_ALLOWANCE_PROCESS_NS,
		.places = NT_ALLOWANCE_PROCESSES,
		.place = allowance->process,
	};
	allowance->owners = (struct book){
		.part = NT_ALLOWANCE_OWNER_PART,
		.max_ns = NT_ALLOWANCE_OWNER_NS,
		.places = NT_ALLOWANCE_OWNERS,
		.place = allowance->owner,
	};
	allowance->windows = (struct book){
		.part = NT_ALLOWANCE_WINDOW_PART,
		.max_ns = NT_ALLOWANCE_OWNER_NS,
		.places = NT_ALLOWANCE_OWNERS,
		.place = allowance->window,
	};
	*ret_allowance = allowance;
	return 0;
}

void nt_allowance_free(struct nt_allowance *allowance)
{
	free(allowance);
}

static uint64_t process_key(uint32_t pid, uint64_t start_ns)
{
	return nt_hash_mix(nt_hash_u64(nt_hash_u64(NT_HASH_SEED, pid), start_ns)) | 1;
}

static uint64_t owner_key(uint64_t owner)
{
	return nt_hash_mix(owner) | 1;
}

/* The first of the places that the key may take. */
static struct debt *places_of(const struct book *book, uint64_t key)
{
	return &book->place[(key >> 1) % (book->places / WAYS) * WAYS];
}

static uint64_t left_of(const struct book *book, const struct debt *debt, uint64_t now_ns)
{
	uint64_t paid_ns = now_ns > debt->since_ns ? (now_ns - debt->since_ns) / book->part : 0;

	return debt->debt_ns > paid_ns ? debt->debt_ns - paid_ns : 0;
}

static bool has(const struct book *book, uint64_t key, uint64_t now_ns)
{
	const struct debt *place = places_of(book, key);

	for (size_t i = 0; i < WAYS; i++)
		if (place[i].key == key)
			return left_of(book, &place[i], now_ns) < book->max_ns;
	return true;
}

/* The key's own place, or a free one, or that of the smallest debt. */
static struct debt *take_place(struct nt_allowance *allowance, const struct book *book,
			       uint64_t key, uint64_t now_ns)
{
	struct debt *place = places_of(book, key), *least = place;

	for (size_t i = 0; i < WAYS; i++) {
		if (place[i].key == key)
			return &place[i];
		if (left_of(book, &place[i], now_ns) < left_of(book, least, now_ns))
			least = &place[i];
	}
	allowance->over_cap += left_of(book, least, now_ns) > 0;
	*least = (struct debt){.key = key, .since_ns = now_ns};
	return least;
}

static void spend(struct nt_allowance *allowance, const struct book *book, uint64_t key,
		  uint64_t spent_ns, uint64_t now_ns)
{
	struct debt *debt = take_place(allowance, book, key, now_ns);

	debt->debt_ns = left_of(book, debt, now_ns) + spent_ns;
	/* Caps the debt of one long read: quarantine is for those. */
	if (debt->debt_ns > 2 * book->max_ns)
		debt->debt_ns = 2 * book->max_ns;
	debt->since_ns = now_ns;
}

bool nt_allowance_has(const struct nt_allowance *allowance, enum nt_allowance_account account,
		      uint32_t pid, uint64_t start_ns, uint64_t owner, uint64_t now_ns)
{
	if (account == NT_ALLOWANCE_WINDOWS)
		return has(&allowance->windows, owner_key(owner), now_ns);
	return has(&allowance->processes, process_key(pid, start_ns), now_ns) &&
	       has(&allowance->owners, owner_key(owner), now_ns);
}

void nt_allowance_spend(struct nt_allowance *allowance, enum nt_allowance_account account,
			uint32_t pid, uint64_t start_ns, uint64_t owner, uint64_t spent_ns,
			uint64_t now_ns)
{
	if (account == NT_ALLOWANCE_WINDOWS) {
		spend(allowance, &allowance->windows, owner_key(owner), spent_ns, now_ns);
		return;
	}
	spend(allowance, &allowance->processes, process_key(pid, start_ns), spent_ns, now_ns);
	spend(allowance, &allowance->owners, owner_key(owner), spent_ns, now_ns);
}

uint64_t nt_allowance_over_cap(const struct nt_allowance *allowance)
{
	return allowance->over_cap;
}
