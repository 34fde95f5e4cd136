/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which container, pod and batch job a process runs in, by the path of its cgroup: what the kubelet,
 * a container engine or Slurm has made of it, whether by systemd or by itself, on cgroup v1 or v2.
 */
#ifndef NT_AGENT_IDENTITY_CGROUP_H
#define NT_AGENT_IDENTITY_CGROUP_H

#include <stddef.h>

enum {
	NT_CGROUP_PATH = 256, /* bytes, with the NUL, as of all below */
	NT_CGROUP_CONTAINER = 65, /* 64 hex digits */
	NT_CGROUP_POD = 37, /* a UUID, or the 32 digits of a static pod's hash */
	NT_CGROUP_NUMBER = 24, /* of Slurm */
};

struct nt_cgroup {
	char path[NT_CGROUP_PATH]; /* printable; cut where it is longer */
	/* Each "" where there is none. */
	char container[NT_CGROUP_CONTAINER];
	char pod[NT_CGROUP_POD];
	char slurm_job[NT_CGROUP_NUMBER], slurm_step[NT_CGROUP_NUMBER];
};

/*
 * The text of /proc/PID/cgroup. Of several hierarchies the one that tells most counts. Of pods in
 * pods, the outermost that can be seen: it is our cluster's, and those within could claim any name.
 * Of its containers the outermost too, which `kubectl` knows; without a pod, the innermost.
 */
void nt_cgroup_parse(const char *text, size_t len, struct nt_cgroup *ret_cgroup);

#endif
