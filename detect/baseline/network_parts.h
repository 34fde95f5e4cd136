/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The communicators that turned slow for the reason that an open incident is about. */
#ifndef NT_DETECT_BASELINE_NETWORK_PARTS_H
#define NT_DETECT_BASELINE_NETWORK_PARTS_H

#include <stdbool.h>

struct nt_detect_comm;
struct nt_detect;
struct nt_detect_incident;

/* Did it turn slow when this incident began, and may the reason be one? */
bool nt_network_is_part(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			const struct nt_detect_comm *comm);
/* The evidence of an incident that is over must not open it again. */
void nt_network_release(struct nt_detect *detect, const struct nt_detect_incident *incident);

#endif
