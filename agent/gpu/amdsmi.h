/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * AMD's management library, libamd_smi.so of ROCm; see gpu_library.h. Used by workers only.
 *
 * Time that a limit held the clock down is computed from the driver's table of metrics, as
 * amdsmi_get_violation_status() does it. That one sleeps a tenth of a second for each card.
 */
#ifndef NT_AGENT_GPU_AMDSMI_H
#define NT_AGENT_GPU_AMDSMI_H

#include "agent/gpu/gpu_card.h"
#include "agent/gpu/library_error.h"
#include "common/base/cleanup.h"

struct nt_amdsmi;

/* As `open` of struct nt_gpu_library; the caller frees the result. */
NT_MUST_CHECK int nt_amdsmi_open(const char *path, char error[NT_LIBRARY_ERROR],
				 struct nt_amdsmi **ret_amdsmi);
void nt_amdsmi_close(struct nt_amdsmi *amdsmi);
NT_DEFINE_AUTO(nt_amdsmi, nt_amdsmi_close)

/* now_ns: monotonic. */
void nt_amdsmi_read(struct nt_amdsmi *amdsmi, uint64_t now_ns, struct nt_gpu_cards *ret_cards);

#endif
