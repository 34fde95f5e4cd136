/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Incidents as findings, for whoever asked. */
#ifndef NT_DETECT_ANSWER_H
#define NT_DETECT_ANSWER_H

#include "detect/core.h"

/* Makes the lists of what changed and of what is open. -ENOMEM. */
int nt_answers_make(struct nt_detect *detect);

#endif
