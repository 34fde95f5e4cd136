/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Entry and return as one program (uprobe.session, 6.13). An object of its own: a kernel without
 * the kfunc does not load it, whatever guards its call, and then call.bpf.c does the work.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/event.h"

#include "bpf/call.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern bool bpf_session_is_return(void) __ksym __weak;

/* Returning 1 at the entry spares the thread the trap at the return. */
SEC("uprobe")
int call_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return()) {
		call_returned(ctx);
		return 0;
	}
	return call_entered(ctx) ? 0 : 1;
}
