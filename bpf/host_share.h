/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Shares of the tables of threads and of helpers. Each rank has a fixed number of places of its own.
 * The others are open: an owner is admitted while it has fewer of these than are free. One alone
 * takes half of them, the next one half of the rest, and so on: no owner takes a table from the
 * others. Used by the kernel side and by the agent, both at once.
 */
#ifndef NT_BPF_HOST_SHARE_H
#define NT_BPF_HOST_SHARE_H

/* Open places that are taken: by the ranks of one owner, or by all. */
struct nt_host_share {
	__u32 threads, helpers;
};

/*
 * Places that are taken. Counts are below 0 for a moment, while what was given back too often is put
 * right, or while one side takes what the other gives: all of them are compared as signed numbers.
 */
static inline __attribute__((always_inline)) __u32 nt_host_taken(const __u32 *count)
{
	const __s32 now = (__s32) * (const volatile __u32 *)count;

	return now > 0 ? (__u32)now : 0;
}

/*
 * The agent has listed `now` that found no room. Those that are counted are taken to be among them: they
 * are listed again and again.
 */
static inline __attribute__((always_inline)) void nt_host_left_out(__u64 *over_cap, __u32 now)
{
	const __u64 before = *(const volatile __u64 *)over_cap;

	if (now > before)
		__sync_fetch_and_add(over_cap, now - before);
}

/* *count: of the rank, of which `own` are its own. A count of 0 stays. */
static inline __attribute__((always_inline)) void nt_host_give(__u32 *count, __u32 own,
							       __u32 *of_owner, __u32 *of_all)
{
	const __s32 before = (__s32)__sync_fetch_and_add(count, -1);

	if (before <= 0) {
		__sync_fetch_and_add(count, 1);
	} else if (before > (__s32)own) {
		__sync_fetch_and_add(of_owner, -1);
		__sync_fetch_and_add(of_all, -1);
	}
}

/* open: places that are open. False: there is none for this owner. */
static inline __attribute__((always_inline)) int
nt_host_take(__u32 *count, __u32 own, __u32 *of_owner, __u32 *of_all, __u32 open)
{
	__s32 mine, all;

	if ((__s32)__sync_fetch_and_add(count, 1) < (__s32)own)
		return 1;
	mine = (__s32)__sync_fetch_and_add(of_owner, 1);
	all = (__s32)__sync_fetch_and_add(of_all, 1);
	if (all < (__s32)open && mine < (__s32)open - all)
		return 1;
	nt_host_give(count, own, of_owner, of_all);
	return 0;
}

#endif
