/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records of single calls as lines: for people, and as JSON. Of a decoded message: its texts are safe. */
#ifndef NT_CLI_LIVE_DETAIL_PRINT_H
#define NT_CLI_LIVE_DETAIL_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "proto/wire.h"

/*
 * Whether "JOB" or "JOB/RANK" selects the message. JOB is the job's name, or its key, which may
 * contain slashes. NULL selects all.
 */
bool nt_detail_is_wanted(const char *target, const struct nt_message *message);

void nt_detail_print_head(FILE *out);
/* One line a record; after them, one for each kind of which calls were lost. */
void nt_detail_print(const struct nt_message *message, FILE *out);
/* The same as one JSON object a record, and one of `counts`, if there are any. -ENOMEM. */
NT_MUST_CHECK int nt_detail_print_json(const struct nt_message *message, FILE *out);

#endif
