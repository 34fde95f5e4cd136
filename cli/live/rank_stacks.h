/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stacks of an incident, as text. */
#ifndef NT_CLI_LIVE_RANK_STACKS_H
#define NT_CLI_LIVE_RANK_STACKS_H

#include <jansson.h>

/* Prints the array `stacks` of an incident; nothing if it is empty. */
void nt_live_print_stacks(const json_t *stacks);

#endif
