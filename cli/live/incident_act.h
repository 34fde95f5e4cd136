/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What people do with an incident: acknowledge, silence, annotate. */
#ifndef NT_CLI_LIVE_INCIDENT_ACT_H
#define NT_CLI_LIVE_INCIDENT_ACT_H

#include "cli/live/live.h"

#define NT_INCIDENT_ACTS                                                                           \
	"acknowledge ID | unacknowledge ID | silence ID | unsilence ID | annotate ID TEXT"

/* True if the first argument is such a word. */
bool nt_incident_is_act(const struct nt_live_config *config);

/* Does it, and prints the incident after it as one line or JSON. Returns an exit code. */
int nt_incident_act(struct nt_client *client, const struct nt_live_config *config);

#endif
