/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a probe costs before it does anything: the anchor of all probe costs. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("uprobe")
int empty(struct pt_regs *ctx)
{
	return 0;
}
