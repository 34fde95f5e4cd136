/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Maps communicators to the links that they use, by the nodes of their members. */
#ifndef NT_DETECT_BASELINE_LINK_SPAN_H
#define NT_DETECT_BASELINE_LINK_SPAN_H

#include <stdbool.h>
#include <stdint.h>

struct nt_detect_comm;
struct nt_culprit_link;
struct nt_detect;

/* Whether the communicator has a member on the node. */
bool nt_detect_link_is_on(const struct nt_detect *detect, const struct nt_detect_comm *comm,
			  uint32_t node);
/* Whether its members are on several nodes, so that its traffic uses their NICs. */
bool nt_detect_link_spans(const struct nt_detect *detect, const struct nt_detect_comm *comm);
/* Whether its transfers use the link. */
bool nt_detect_link_goes_over(const struct nt_detect *detect, const struct nt_detect_comm *comm,
			      const struct nt_culprit_link *link);
/* Whether both communicators have a member on a common node. */
bool nt_detect_link_is_shared(const struct nt_detect *detect, const struct nt_detect_comm *comm,
			      const struct nt_detect_comm *other);
/* Whether the link that is currently named explains the slow communicator. */
bool nt_detect_link_explains(const struct nt_detect *detect, const struct nt_detect_comm *comm);
/* Clears the link's evidence after its incident resolved, so that it does not reopen. */
void nt_detect_link_release(struct nt_detect *detect, uint8_t kind, uint64_t key);

#endif
