/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Drops one packet in twenty, by chance. */
#include "bpf/vmlinux.h"

#include <bpf/bpf_helpers.h>

enum {
	PASS = 2, /* the kernel's enum xdp_action */
	DROP = 1,
	ONE_IN = 20,
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("xdp")
int drop(void *ctx)
{
	return bpf_get_prandom_u32() % ONE_IN ? PASS : DROP;
}
