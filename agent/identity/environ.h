/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A process's environment and command at exec, as far as they describe its place in a job. The text
 * is untrusted: numbers are parsed strictly, strings are truncated and cleaned.
 */
#ifndef NT_AGENT_IDENTITY_ENVIRON_H
#define NT_AGENT_IDENTITY_ENVIRON_H

#include <stddef.h>
#include <stdint.h>

#include "agent/identity/script.h"
#include "common/base/cleanup.h"

enum {
	NT_ENVIRON_MAX_BYTES = 1 << 20, /* the rest is ignored */
	NT_ENVIRON_TEXT = 128,
	NT_ENVIRON_DEVICES = 512, /* names of 12 GPUs */
	NT_ENVIRON_ABSENT = -1,
};

struct nt_environ {
	/* NT_ENVIRON_ABSENT if unset or not a number. */
	int32_t rank, world_size, local_rank, restart_count;
	int32_t ompi_rank, ompi_size, ompi_local_rank;
	int32_t pmix_rank, pmi_rank, pmi_size, mpi_local_rank;
	int32_t slurm_procid, slurm_ntasks, slurm_localid, slurm_nodeid;
	int32_t local_size; /* ranks on this node, as torchrun, Open MPI or MPICH states it */
	/* Empty if unset. No control characters. */
	char master_addr[NT_ENVIRON_TEXT], master_port[16], run_id[NT_ENVIRON_TEXT];
	char pmix_namespace[NT_ENVIRON_TEXT];
	char slurm_job_id[32], slurm_step_id[32], slurm_job_name[NT_ENVIRON_TEXT];
	char job[NT_ENVIRON_TEXT]; /* NT_JOB: the user's own name for the job */
	char hostname[NT_ENVIRON_TEXT]; /* of the pod */
	char pod_name[254], pod_namespace[64]; /* if the pod exports them */
	char cuda_devices[NT_ENVIRON_DEVICES], nvidia_devices[NT_ENVIRON_DEVICES];
	char script[NT_SCRIPT_NAME]; /* from the command line, not the environment */
};

/* data: NAME=value strings, each NUL-terminated; the last may lack the NUL. */
void nt_environ_parse(const char *data, size_t size, struct nt_environ *ret_environ);

/* Sanitises values from other sources: terminated texts without control characters. */
void nt_environ_clean(struct nt_environ *env);

/* Reads both of a running process, from /proc. May block: the pages belong to that process. */
NT_MUST_CHECK int nt_environ_read(uint32_t pid, struct nt_environ *ret_environ);

#endif
