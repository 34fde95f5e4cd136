/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Peer groups: ranks of one role, which are compared with each other. They are derived from the
 * communicators: the mix of operations gives the use, and members of a data-parallel one share a
 * role.
 */
#ifndef NT_DETECT_BASELINE_PEER_GROUP_H
#define NT_DETECT_BASELINE_PEER_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nt_detect;
struct nt_detect_comm;
struct nt_group;
struct nt_detect_rank;

/* Rebuilds the groups if communicators changed. -ENOMEM keeps the old ones. */
int nt_peer_groups_derive(struct nt_detect *detect);
/* The peers of a rank; NULL and 0 if it has none. Valid until the next rebuild. */
const uint32_t *nt_peer_group_peers(const struct nt_detect *detect,
				    const struct nt_detect_rank *rank, size_t *ret_n);
/*
 * The communicator of the ranks that share the rank's layers with it, such as its tensor-parallel
 * partners: their devices have the same work, though their hosts may not. NULL: none.
 */
const struct nt_detect_comm *nt_peer_group_partners(const struct nt_detect *detect,
						    const struct nt_detect_rank *rank);
/* Its member `at`, if that is of another group and is seen at the rank's tier; else NULL. */
const struct nt_detect_rank *nt_peer_group_partner(const struct nt_detect *detect,
						   const struct nt_detect_rank *rank,
						   const struct nt_detect_comm *comm, uint32_t at);
/* Whether at least half of its ranks are culprits: then their work moves its lower median. */
bool nt_peer_group_is_blamed(const struct nt_detect *detect, const struct nt_group *group);

#endif
