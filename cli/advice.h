/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a person does about an incident: the first thing to look at, and the way out. */
#ifndef NT_CLI_ADVICE_H
#define NT_CLI_ADVICE_H

#include "proto/wire.h"

/* One or two sentences, a constant; "" where there is nothing to say. */
const char *nt_advice_find(const struct nt_incident *incident);

#endif
