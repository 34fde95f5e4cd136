/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Container, pod and Slurm job of a process, parsed from its cgroup path. The kubelet, a container
 * engine or Slurm makes it, with or without systemd, on cgroup v1 or v2.
 */
#ifndef NT_AGENT_IDENTITY_CGROUP_H
#define NT_AGENT_IDENTITY_CGROUP_H

#include <stddef.h>

enum {
	NT_CGROUP_PATH = 256, /* bytes, with the NUL, as of all below */
	NT_CGROUP_CONTAINER = 65, /* 64 hex digits */
	NT_CGROUP_POD = 37, /* a UUID, or the 32 digits of a static pod's hash */
	NT_CGROUP_NUMBER = 24, /* of a Slurm job or step */
};

struct nt_cgroup {
	char path[NT_CGROUP_PATH]; /* printable; truncated */
	/* Each "" if absent. */
	char container[NT_CGROUP_CONTAINER];
	char pod[NT_CGROUP_POD];
	char slurm_job[NT_CGROUP_NUMBER], slurm_step[NT_CGROUP_NUMBER];
};

/*
 * Parses /proc/PID/cgroup. Of several hierarchies the most informative one is used. Of nested pods,
 * the outermost visible one: it is our cluster's, while inner ones could claim any name. Of its
 * containers the outermost too, which `kubectl` shows; without a pod, the innermost.
 */
void nt_cgroup_parse(const char *text, size_t len, struct nt_cgroup *ret_cgroup);

#endif
