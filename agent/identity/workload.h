/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The job of a pod and its role in it, from the labels, annotations and owner references of batch
 * controllers. It names a job but is not part of its key: not all ranks need to be pods, and users
 * set labels freely.
 */
#ifndef NT_AGENT_IDENTITY_WORKLOAD_H
#define NT_AGENT_IDENTITY_WORKLOAD_H

#include <jansson.h>

enum {
	NT_WORKLOAD_NAME = 128, /* bytes with the NUL, as of those below; printable */
	NT_WORKLOAD_REPLICA = 96,
};

struct nt_workload {
	const char *kind; /* "PyTorchJob" only by an owner: labels give the family; "": none */
	char job[NT_WORKLOAD_NAME]; /* "": unknown */
	char replica[NT_WORKLOAD_REPLICA]; /* "worker-3", "3", "worker"; "": unknown */
};

/* metadata: of a pod. */
void nt_workload_read(const json_t *metadata, struct nt_workload *ret_workload);

#endif
