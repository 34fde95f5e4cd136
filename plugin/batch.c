/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/batch.h"

NT_MARK_SEMAPHORE(gpu_records);

void nt_batch_hand_over(const struct nt_gpu_record *record, uint32_t records, uint64_t number)
{
	NT_MARK(gpu_records, (uintptr_t)record, records, number);
}
