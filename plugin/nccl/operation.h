/* SPDX-License-Identifier: Apache-2.0 */
/* The operation of a call of NCCL. */
#ifndef NT_PLUGIN_NCCL_OPERATION_H
#define NT_PLUGIN_NCCL_OPERATION_H

#include "plugin/gpu_record.h"
#include "plugin/nccl/profiler_abi.h"

/* is_p2p: the event is one of a send or receive, else of a collective. */
enum nt_gpu_record_op nt_operation_of(const struct nt_nccl_event *event, int is_p2p);

#endif
