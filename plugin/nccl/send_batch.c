/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nccl/send_batch.h"

NT_MARK_SEMAPHORE(nccl_sends);

void nt_send_batch_hand_over(const struct nt_gpu_transfer *transfer, uint32_t transfers,
			     uint64_t number)
{
	NT_MARK(nccl_sends, (uintptr_t)transfer, transfers, number);
}
