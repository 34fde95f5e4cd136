/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Converts incidents to findings, the detector's output. */
#ifndef NT_DETECT_INCIDENTS_FINDINGS_H
#define NT_DETECT_INCIDENTS_FINDINGS_H

#include "detect/model/detector_state.h"

/* Builds the lists of changed and of open incidents. -ENOMEM. */
int nt_findings_make(struct nt_detect *detect);

#endif
