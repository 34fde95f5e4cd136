/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Who is compared with whom. The communicators tell: their mix of operations says what they are for,
 * and the members of a data-parallel one have the same role.
 */
#ifndef NT_DETECT_BASELINE_PEER_GROUP_H
#define NT_DETECT_BASELINE_PEER_GROUP_H

#include <stddef.h>
#include <stdint.h>

struct nt_detect;
struct nt_detect_rank;

/* Derives the groups anew where something was learned. -ENOMEM leaves the old ones. */
int nt_peer_groups_derive(struct nt_detect *detect);
/* The peers of a rank: NULL and 0 where it has none. */
const uint32_t *nt_peer_group_peers(const struct nt_detect *detect,
				    const struct nt_detect_rank *rank, size_t *ret_n);

#endif
