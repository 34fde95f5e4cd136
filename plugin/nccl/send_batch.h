/* SPDX-License-Identifier: Apache-2.0 */
/* The mark at which the agent reads what NCCL's proxies sent (plugin/gpu_record.h). */
#ifndef NT_PLUGIN_NCCL_SEND_BATCH_H
#define NT_PLUGIN_NCCL_SEND_BATCH_H

#include <stdint.h>

#include "plugin/gpu_record.h"
#include "plugin/mark.h"

NT_MARK_DECLARE(nccl_sends);

/* True while a tracer is attached. */
static inline int nt_send_batch_is_wanted(void)
{
	return NT_MARK_IS_TRACED(nccl_sends);
}

/* number: of the first one. */
void nt_send_batch_hand_over(const struct nt_gpu_transfer *transfer, uint32_t transfers,
			     uint64_t number);

#endif
