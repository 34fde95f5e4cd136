/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Incidents as findings, for whoever asked. */
#ifndef NT_DETECT_INCIDENTS_FINDINGS_H
#define NT_DETECT_INCIDENTS_FINDINGS_H

#include "detect/model/detector_state.h"

/* Makes the lists of what changed and of what is open. -ENOMEM. */
int nt_findings_make(struct nt_detect *detect);

#endif
