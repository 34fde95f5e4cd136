/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nccl/record_batch.h"

#include "plugin/batch.h"

static struct nt_gpu_record batch[NT_RECORD_BATCH];
static uint32_t batched;
static uint64_t number; /* of the last record, or lost one */
static uint64_t first_ns; /* when the first of the batch was added */

void nt_record_batch_flush(void)
{
	if (batched)
		nt_batch_hand_over(batch, batched, number - batched + 1);
	batched = 0;
}

void nt_record_batch_add(const struct nt_gpu_record *record, uint64_t now_ns)
{
	if (!batched)
		first_ns = now_ns;
	batch[batched++] = *record;
	number++;
	if (batched == NT_RECORD_BATCH)
		nt_record_batch_flush();
}

void nt_record_batch_lose(uint64_t records)
{
	nt_record_batch_flush();
	number += records;
}

void nt_record_batch_tick(uint64_t now_ns)
{
	if (batched && now_ns - first_ns >= NT_RECORD_BATCH_NS)
		nt_record_batch_flush();
}

void nt_record_batch_drop(void)
{
	number -= batched;
	batched = 0;
}
