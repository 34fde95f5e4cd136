/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where the RAS subsystem of a process listens, and how to connect to it. The environment of the
 * process is untrusted: it selects the port, never the address, which is always a loopback address
 * in the network namespace of the process. For workers only, as the functions block.
 */
#ifndef NT_AGENT_RAS_RAS_TARGET_H
#define NT_AGENT_RAS_RAS_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_RAS_PORT = 28028, /* NCCL's default */
	NT_RAS_PORT_LEAST = 1024, /* lower ports are never connected to */
};

struct nt_ras_target {
	uint16_t port; /* 0: not connected to: NCCL_RAS_ADDR has no port, or one that is too low */
	bool is_off; /* NCCL_RAS_ENABLE=0 */
};

/* From NAME=value strings, each NUL-terminated; the last may lack the NUL. */
void nt_ras_target_environ(const char *data, size_t size, struct nt_ras_target *ret_target);

/* The pid in the innermost PID namespace, from /proc/PID/status; 0: it is not stated there. */
uint32_t nt_ras_target_pid(const char *status, size_t size);

/*
 * Reads both of a running process. -ESRCH and the like: it is gone. -ECANCELED: its RAS is off.
 * -EADDRNOTAVAIL: the port is not usable.
 */
NT_MUST_CHECK int nt_ras_target_read(uint32_t pid, uint16_t *ret_port, uint32_t *ret_pid);

/*
 * Enters the network namespace of the process, for good, and connects to the port of a loopback
 * address. Returns a descriptor. -EPERM: without CAP_SYS_ADMIN a namespace other than the agent's
 * cannot be entered. -ECONNREFUSED: nothing listens. -ETIMEDOUT: not connected by until_ns.
 */
NT_MUST_CHECK int nt_ras_target_connect(uint32_t pid, uint16_t port, uint64_t until_ns);

#endif
