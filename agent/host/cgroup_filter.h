/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A part of the cgroup tree, given as a directory of any mounted hierarchy, of version 1 or 2. A
 * process belongs to it where /proc/PID/cgroup places it there or below.
 */
#ifndef NT_AGENT_HOST_CGROUP_FILTER_H
#define NT_AGENT_HOST_CGROUP_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_cgroup_filter;

/* -ENOTDIR, -ENOENT; -EINVAL where the directory is in no cgroup mount. */
NT_MUST_CHECK int nt_cgroup_filter_new(const char *directory,
				       struct nt_cgroup_filter **ret_cgroup_filter);
void nt_cgroup_filter_free(struct nt_cgroup_filter *cgroup_filter);
NT_DEFINE_AUTO(nt_cgroup_filter, nt_cgroup_filter_free)

/* subtree NULL: everything is inside. A process that cannot be asked is outside. */
bool nt_cgroup_filter_holds(const struct nt_cgroup_filter *cgroup_filter, uint32_t pid);

/* The parts, for tests: the text of mountinfo, of our own /proc/PID/cgroup and of another's. */
NT_MUST_CHECK int nt_cgroup_filter_parse(const char *mountinfo, size_t len, const char *own,
					 size_t own_len, const char *directory,
					 struct nt_cgroup_filter **ret_cgroup_filter);
bool nt_cgroup_filter_matches(const struct nt_cgroup_filter *cgroup_filter, const char *cgroup,
			      size_t len);

#endif
