/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A cgroup filter: a subtree of the cgroup tree, given as a directory of any mounted hierarchy (v1
 * or v2). A process matches if /proc/PID/cgroup places it in that directory or below.
 */
#ifndef NT_AGENT_HOST_CGROUP_FILTER_H
#define NT_AGENT_HOST_CGROUP_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

struct nt_cgroup_filter;

/* -ENOTDIR, -ENOENT; -EINVAL if the directory is in no cgroup mount. */
NT_MUST_CHECK int nt_cgroup_filter_new(const char *directory,
				       struct nt_cgroup_filter **ret_cgroup_filter);
void nt_cgroup_filter_free(struct nt_cgroup_filter *cgroup_filter);
NT_DEFINE_AUTO(nt_cgroup_filter, nt_cgroup_filter_free)

/* cgroup_filter NULL: every process matches. A process whose cgroup is unreadable does not. */
bool nt_cgroup_filter_holds(const struct nt_cgroup_filter *cgroup_filter, uint32_t pid);

/* Exported for tests. Texts: mountinfo, /proc/PID/cgroup of our own and of another process. */
NT_MUST_CHECK int nt_cgroup_filter_parse(const char *mountinfo, size_t len, const char *own,
					 size_t own_len, const char *directory,
					 struct nt_cgroup_filter **ret_cgroup_filter);
bool nt_cgroup_filter_matches(const struct nt_cgroup_filter *cgroup_filter, const char *cgroup,
			      size_t len);

#endif
