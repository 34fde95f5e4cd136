/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which boot of which kernel a node runs, as texts of visible ASCII characters. */
#ifndef NT_AGENT_NODE_KERNEL_IDENTITY_H
#define NT_AGENT_NODE_KERNEL_IDENTITY_H

enum {
	NT_KERNEL_IDENTITY_BOOT = 40, /* bytes with the NUL: a UUID has 36 characters */
	NT_KERNEL_IDENTITY_KERNEL = 72, /* the kernel cuts a release at 64 */
};

struct nt_kernel_identity {
	char boot_id[NT_KERNEL_IDENTITY_BOOT]; /* empty: unknown */
	char kernel[NT_KERNEL_IDENTITY_KERNEL]; /* uname -r */
};

/* boot_id: "/proc/sys/kernel/random/boot_id", except in tests. */
void nt_kernel_identity_read(const char *boot_id, struct nt_kernel_identity *ret_identity);

#endif
