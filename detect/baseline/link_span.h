/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which communicators go over a link, by the nodes of their members. */
#ifndef NT_DETECT_BASELINE_LINK_SPAN_H
#define NT_DETECT_BASELINE_LINK_SPAN_H

#include <stdbool.h>
#include <stdint.h>

struct nt_detect_comm;
struct nt_culprit_link;
struct nt_detect;

/* A member of it is on the node. */
bool nt_detect_link_is_on(const struct nt_detect *detect, const struct nt_detect_comm *comm,
			  uint32_t node);
/* On several nodes, so that it goes through their NICs. */
bool nt_detect_link_spans(const struct nt_detect *detect, const struct nt_detect_comm *comm);
/* Its transfers go over the link. */
bool nt_detect_link_goes_over(const struct nt_detect *detect, const struct nt_detect_comm *comm,
			      const struct nt_culprit_link *link);
/* Do both go over one node? */
bool nt_detect_link_is_shared(const struct nt_detect *detect, const struct nt_detect_comm *comm,
			      const struct nt_detect_comm *other);
/* The communicator is slow because of the link that is named now. */
bool nt_detect_link_explains(const struct nt_detect *detect, const struct nt_detect_comm *comm);
/* An incident of it is over: its evidence must not open it again. */
void nt_detect_link_release(struct nt_detect *detect, uint8_t kind, uint64_t key);

#endif
