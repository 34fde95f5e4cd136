/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Assigns slow communicators to the open network incident that explains them. */
#ifndef NT_DETECT_BASELINE_NETWORK_PARTS_H
#define NT_DETECT_BASELINE_NETWORK_PARTS_H

#include <stdbool.h>

struct nt_detect_comm;
struct nt_detect;
struct nt_detect_incident;

/* Whether it became slow at the incident's onset and may share its cause. */
bool nt_network_is_part(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			const struct nt_detect_comm *comm);
/* Clears the evidence of a resolved incident, so that it does not reopen. */
void nt_network_release(struct nt_detect *detect, const struct nt_detect_incident *incident);

#endif
