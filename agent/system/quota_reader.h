/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads how long the control groups of a thread had to pause because their CPU quota was used up
 * (bpf/quota.bpf.c). The process does nothing for it. Takes some 10 µs.
 */
#ifndef NT_AGENT_SYSTEM_QUOTA_READER_H
#define NT_AGENT_SYSTEM_QUOTA_READER_H

#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_quota_reader;

/* -ENOTSUP: this kernel has no such iterator (before 6.1). -EPERM, -ENOMEM. */
NT_MUST_CHECK int nt_quota_reader_new(struct nt_quota_reader **ret_reader);
/* Accepts NULL. */
void nt_quota_reader_free(struct nt_quota_reader *reader);
NT_DEFINE_AUTO(nt_quota_reader, nt_quota_reader_free)

/*
 * The pauses so far of the thread's groups, summed over processors and nested groups: not less than
 * those of the thread. -ESRCH: it has ended. -ENODATA: the kernel has no quotas.
 */
NT_MUST_CHECK int nt_quota_reader_read(const struct nt_quota_reader *reader, uint32_t tid,
				       uint64_t *ret_ns);

#endif
