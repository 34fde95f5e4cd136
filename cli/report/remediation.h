/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Remediation texts: the first thing to check about an incident, and the remedy. */
#ifndef NT_CLI_REPORT_REMEDIATION_H
#define NT_CLI_REPORT_REMEDIATION_H

#include "proto/wire.h"

/* One or two sentences, a constant; "" if there is none. */
const char *nt_remediation_find(const struct nt_wire_incident *incident);

#endif
