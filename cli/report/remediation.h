/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a person does about an incident: the first thing to look at, and the way out. */
#ifndef NT_CLI_REPORT_REMEDIATION_H
#define NT_CLI_REPORT_REMEDIATION_H

#include "proto/wire.h"

/* One or two sentences, a constant; "" where there is nothing to say. */
const char *nt_remediation_find(const struct nt_wire_incident *incident);

#endif
