/* SPDX-License-Identifier: Apache-2.0 */
/* The mark at which the agent reads batches of records (plugin/gpu_record.h). */
#ifndef NT_PLUGIN_BATCH_H
#define NT_PLUGIN_BATCH_H

#include <stdint.h>

#include "plugin/gpu_record.h"
#include "plugin/mark.h"

NT_MARK_DECLARE(gpu_records);

/* True while a tracer is attached. */
static inline int nt_batch_is_wanted(void)
{
	return NT_MARK_IS_TRACED(gpu_records);
}

/* number: of the first record. */
void nt_batch_hand_over(const struct nt_gpu_record *record, uint32_t records, uint64_t number);

#endif
