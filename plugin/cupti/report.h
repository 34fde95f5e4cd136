/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the buffers of CUPTI into records for the agent, and hands them over in batches. */
#ifndef NT_PLUGIN_CUPTI_REPORT_H
#define NT_PLUGIN_CUPTI_REPORT_H

#include "plugin/cupti/calls.h"
#include "plugin/gpu_record.h"

/* All records of one buffer, of which `valid_size` bytes are filled. What is cut off is lost. */
void nt_report_buffer(const struct nt_cupti_calls *calls, uint8_t *buffer, size_t valid_size);
/* One record of the library's own: open, close, given up. */
void nt_report_state(enum nt_gpu_record_kind kind, uint64_t time_ns, uint32_t code);
/* Records were lost. */
void nt_report_lost(uint64_t records);

/* What a kernel of that name, mangled or not, does: NT_GPU_RECORD_KERNEL or _COMMUNICATION. */
enum nt_gpu_record_kind nt_report_kind_of(const char *name);
/* The operation of a kernel of NCCL, of whatever release. */
enum nt_gpu_record_op nt_report_op_of(const char *name);

#endif
