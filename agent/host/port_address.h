/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The addresses of an RDMA port, from /sys/class/infiniband. */
#ifndef NT_AGENT_HOST_PORT_ADDRESS_H
#define NT_AGENT_HOST_PORT_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NT_PORT_GID_BYTES = 16,
};

/*
 * The GID with that index and the LID of a port. `device` is a name that a process states: one that
 * is no file name is refused. False: no such GID; *ret_lid is then 0, or the LID.
 */
bool nt_port_address_read(const char *sys, const char *device, uint32_t port, uint32_t index,
			  uint8_t ret_gid[NT_PORT_GID_BYTES], uint32_t *ret_lid);

/* Exported for tests: "fe80:0000:…", as the kernel writes a GID. False: malformed. */
bool nt_port_address_parse(const char *text, size_t len, uint8_t ret_gid[NT_PORT_GID_BYTES]);

#endif
