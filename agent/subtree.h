/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A part of the cgroup tree, given as a directory of any mounted hierarchy, of version 1 or 2. A
 * process belongs to it where /proc/PID/cgroup places it there or below.
 */
#ifndef NT_AGENT_SUBTREE_H
#define NT_AGENT_SUBTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

struct nt_subtree;

/* -ENOTDIR, -ENOENT; -EINVAL where the directory is in no cgroup mount. */
NT_MUST_CHECK int nt_subtree_new(const char *directory, struct nt_subtree **ret_subtree);
void nt_subtree_free(struct nt_subtree *subtree);
NT_DEFINE_AUTO(nt_subtree, nt_subtree_free)

/* subtree NULL: everything is inside. A process that cannot be asked is outside. */
bool nt_subtree_holds(const struct nt_subtree *subtree, uint32_t pid);

/* The parts, for tests: the text of mountinfo, of our own /proc/PID/cgroup and of another's. */
NT_MUST_CHECK int nt_subtree_parse(const char *mountinfo, size_t len, const char *own,
				   size_t own_len, const char *directory,
				   struct nt_subtree **ret_subtree);
bool nt_subtree_matches(const struct nt_subtree *subtree, const char *cgroup, size_t len);

#endif
