/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpu_ends.h"

#include <string.h>

bool nt_gpu_ends_add(struct nt_gpu_ends *ends, const struct nt_gpu_end *end)
{
	if (ends->count == NT_GPU_ENDS) {
		ends->over_cap++;
		return false;
	}
	ends->end[ends->count++] = *end;
	return true;
}

const struct nt_gpu_end *nt_gpu_ends_find(const struct nt_gpu_ends *ends, uint32_t pid)
{
	for (uint32_t i = 0; i < ends->count; i++)
		if (ends->end[i].pid == pid)
			return &ends->end[i];
	return NULL;
}

void nt_gpu_ends_look(struct nt_gpu_ends *ends, bool (*is_gone)(uint32_t pid), uint64_t now_ns)
{
	for (uint32_t i = 0; i < ends->count; i++)
		if (!ends->end[i].gone_ns && is_gone(ends->end[i].pid))
			ends->end[i].gone_ns = now_ns;
}

const struct nt_gpu_end *nt_gpu_ends_due(const struct nt_gpu_ends *ends, uint64_t begun_ns,
					 uint64_t now_ns)
{
	for (uint32_t i = 0; i < ends->count; i++) {
		const struct nt_gpu_end *end = &ends->end[i];

		if ((end->gone_ns && begun_ns >= end->gone_ns) ||
		    now_ns - end->noticed_ns >= NT_GPU_ENDS_WAIT_NS)
			return &ends->end[i];
	}
	return NULL;
}

void nt_gpu_ends_remove(struct nt_gpu_ends *ends, uint32_t pid)
{
	uint32_t at = 0;

	while (at < ends->count && ends->end[at].pid != pid)
		at++;
	if (at == ends->count)
		return;
	ends->count--;
	memmove(&ends->end[at], &ends->end[at + 1], (ends->count - at) * sizeof(ends->end[0]));
}
