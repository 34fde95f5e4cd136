/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The device memory of ranks, as `neutracer jobs ID` shows it. */
#ifndef NT_CLI_LIVE_RANK_MEMORY_H
#define NT_CLI_LIVE_RANK_MEMORY_H

#include <jansson.h>

#include "cli/live/table.h"
#include "common/base/cleanup.h"

/* "12.3G", ">=1.2G leak", "79.1G oom", of all devices; "-": it has allocated none. */
NT_MUST_CHECK int nt_rank_memory_add(struct nt_table *table, const json_t *rank);
/* A line for each leak and for the last time that a rank ran out of memory. */
void nt_rank_memory_print(const json_t *ranks);

#endif
