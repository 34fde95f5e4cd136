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

/* *count: of the rank, of which `own` are its own. A count of 0 stays. */
static inline __attribute__((always_inline)) void nt_host_give(__u32 *count, __u32 own,
							       __u32 *of_owner, __u32 *of_all)
{
	const __u32 before = __sync_fetch_and_add(count, -1);

	if (!before) {
		__sync_fetch_and_add(count, 1);
	} else if (before > own) {
		__sync_fetch_and_add(of_owner, -1);
		__sync_fetch_and_add(of_all, -1);
	}
}

/* open: places that are open. False: there is none for this owner. */
static inline __attribute__((always_inline)) int
nt_host_take(__u32 *count, __u32 own, __u32 *of_owner, __u32 *of_all, __u32 open)
{
	__u32 mine, all;

	if (__sync_fetch_and_add(count, 1) < own)
		return 1;
	mine = __sync_fetch_and_add(of_owner, 1);
	all = __sync_fetch_and_add(of_all, 1);
	if (all < open && mine < open - all)
		return 1;
	nt_host_give(count, own, of_owner, of_all);
	return 0;
}

#endif
