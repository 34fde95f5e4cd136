/* SPDX-License-Identifier: Apache-2.0 */
/* What the event of a call of NCCL says of the call. */
#ifndef NT_PLUGIN_NCCL_OPERATION_H
#define NT_PLUGIN_NCCL_OPERATION_H

#include "plugin/gpu_record.h"
#include "plugin/nccl/profiler_abi.h"

/* is_p2p: the event is one of a send or receive, else of a collective. */
enum nt_gpu_record_op nt_operation_of(const struct nt_nccl_event *event, int is_p2p);
/*
 * When the program made the call. NCCL launches a kernel before its event, so that it may have begun
 * by then. 0: not known; only version 5 and later have an event of the call.
 */
uint64_t nt_operation_called_ns(const struct nt_nccl_event *event, uint64_t now_ns);

#endif
