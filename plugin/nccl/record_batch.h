/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records that wait to be handed over (plugin/gpu_record.h). A batch is handed over when it is
 * full or old, and when nothing more is expected soon. Not safe for several threads at a time.
 */
#ifndef NT_PLUGIN_NCCL_RECORD_BATCH_H
#define NT_PLUGIN_NCCL_RECORD_BATCH_H

#include <stdint.h>

#include "plugin/gpu_record.h"

enum {
	NT_RECORD_BATCH = 32, /* records that are handed over at once */
};

#define NT_RECORD_BATCH_NS 50000000 /* after which a record is handed over with the next event */

/* now_ns: boot time, as below. */
void nt_record_batch_add(const struct nt_gpu_record *record, uint64_t now_ns);
/* Records were lost: the gap in their numbers says so. */
void nt_record_batch_lose(uint64_t records);
/* Hands over what is old. */
void nt_record_batch_tick(uint64_t now_ns);
/* Hands over all. */
void nt_record_batch_flush(void);
/* Discards what was not handed over: no tracer is attached any more. */
void nt_record_batch_drop(void);

#endif
