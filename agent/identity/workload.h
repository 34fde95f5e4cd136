/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which job a pod is of, and which of its parts: what the controllers of batch jobs write on their
 * pods as labels, annotations and owner references. It names, and never keys, a job: not all of its
 * ranks need to be pods, and users set labels as they like.
 */
#ifndef NT_AGENT_IDENTITY_WORKLOAD_H
#define NT_AGENT_IDENTITY_WORKLOAD_H

#include <jansson.h>

enum {
	NT_WORKLOAD_NAME = 128, /* bytes with the NUL, as of those below; printable */
	NT_WORKLOAD_REPLICA = 96,
};

struct nt_workload {
	const char *kind; /* "PyTorchJob" only by an owner: a label tells the family; "" for none */
	char job[NT_WORKLOAD_NAME]; /* "": none is known */
	char replica[NT_WORKLOAD_REPLICA]; /* "worker-3", "3", "worker"; "": not told */
};

/* metadata: of a pod. */
void nt_workload_read(const json_t *metadata, struct nt_workload *ret_workload);

#endif
