/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Entry and return in one program (uprobe.session, 6.13). A separate object: a kernel without the
 * kfunc cannot load it, even if its call is guarded; call.bpf.c is used then.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/event.h"

#include "bpf/gemm.bpf.h"
#include "bpf/memory.bpf.h"
#include "bpf/traffic.bpf.h"
#include "bpf/verbs.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern bool bpf_session_is_return(void) __ksym __weak;

/* Returning 1 at the entry avoids the trap at the return. */
SEC("uprobe")
int call_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return()) {
		call_returned(ctx, true);
		return 0;
	}
	return call_entered(ctx, true) ? 0 : 1;
}

SEC("uprobe")
int memory_session(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	bool waits = NT_COOKIE_LONG_ONLY(cookie), is_wanted;

	if (bpf_session_is_return()) {
		memory_returned(ctx);
		if (waits)
			call_returned(ctx, false);
		return 0;
	}
	if (is_passed_over(cookie))
		return 1;
	is_wanted = memory_entered(ctx, cookie);
	if (waits && call_entered(ctx, false))
		is_wanted = true;
	return is_wanted ? 0 : 1;
}

SEC("uprobe")
int gemm_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return()) {
		gemm_returned(ctx);
		return 0;
	}
	return gemm_entered(ctx) ? 0 : 1;
}

SEC("uprobe")
int verbs_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return()) {
		verbs_returned(ctx);
		return 0;
	}
	return verbs_begun(ctx) ? 0 : 1;
}

SEC("uprobe")
int traffic_poll_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return())
		poll_ends(ctx);
	else
		poll_begins(ctx);
	return 0;
}
