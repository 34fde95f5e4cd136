/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which devices of a class have hardware of their own, by sysfs: whole disks and network cards, but no
 * partitions, loops, bridges and pairs of namespaces, whose traffic would be counted twice.
 */
#ifndef NT_AGENT_NODE_HARDWARE_H
#define NT_AGENT_NODE_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NT_HARDWARE_NAMES = 64, /* further ones are counted and left out */
	NT_HARDWARE_NAME = 32, /* bytes with the NUL; longer ones are left out too */
	NT_HARDWARE_READINGS = 12, /* between two listings: a minute */
	NT_HARDWARE_ENTRIES = 4096, /* of the directory, that are looked at */
};

/* Zero-initialised; needs no release. */
struct nt_hardware {
	char name[NT_HARDWARE_NAMES][NT_HARDWARE_NAME];
	size_t names;
	uint32_t readings; /* until the next listing */
	uint64_t over_cap; /* so far, once a listing */
};

/* Call with each reading. Lists the directory anew if it is time: "/sys/block", "/sys/class/net". */
void nt_hardware_refresh(struct nt_hardware *hardware, const char *directory);

bool nt_hardware_has(const struct nt_hardware *hardware, const char *name, size_t len);

#endif
