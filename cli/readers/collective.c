/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/collective.h"

#include <ctype.h>
#include <string.h>

#include "common/base/hash.h"

enum {
	NAME_BYTES = 40,
	OTHER_TYPE = 0x10000,
};

/* Without their underscores. The first match counts. */
static const struct {
	const char *prefix;
	enum nt_op op;
} operations[] = {
	{"allreducebarrier", NT_OP_BARRIER},
	{"barrier", NT_OP_BARRIER},
	{"allreduce", NT_OP_ALL_REDUCE},
	{"allgather", NT_OP_ALL_GATHER},
	{"reducescatter", NT_OP_REDUCE_SCATTER},
	{"alltoall", NT_OP_ALL_TO_ALL},
	{"broadcast", NT_OP_BROADCAST},
	{"reduce", NT_OP_REDUCE},
	{"gather", NT_OP_GATHER},
	{"scatter", NT_OP_SCATTER},
	{"send", NT_OP_SEND},
	{"recv", NT_OP_RECV},
};

/* In the order of NCCL's numbers. */
static const struct {
	const char *name;
	uint32_t bytes;
} types[] = {
	{"Char", 1},   {"Byte", 1}, {"Int", 4},   {"UInt32", 4}, {"Long", 8},
	{"UInt64", 8}, {"Half", 2}, {"Float", 4}, {"Double", 8}, {"BFloat16", 2},
};

enum nt_op nt_collective_op(const char *name, bool *ret_uneven)
{
	const char *colon = strchr(name, ':');
	const char *from = colon ? colon + 1 : name;
	char plain[NAME_BYTES];
	size_t len = 0;

	/* all_gather_v, all_to_all_v_single */
	*ret_uneven = strstr(from, "_v") != NULL;
	for (; *from && *from != ' ' && len < sizeof(plain) - 1; from++)
		if (*from != '_')
			plain[len++] = (char)tolower((unsigned char)*from);
	plain[len] = '\0';
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strncmp(plain, operations[i].prefix, strlen(operations[i].prefix)) == 0)
			return operations[i].op;
	return NT_OP_UNKNOWN;
}

uint32_t nt_collective_type(const char *name)
{
	for (uint32_t i = 0; name && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(name, types[i].name) == 0)
			return i;
	return name ? OTHER_TYPE | (uint32_t)(nt_hash_text(NT_HASH_SEED, name) & 0xffff) : 0;
}

uint32_t nt_collective_type_bytes(const char *name)
{
	for (size_t i = 0; name && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(name, types[i].name) == 0)
			return types[i].bytes;
	return 0;
}

uint8_t nt_collective_size(uint64_t bytes)
{
	return bytes ? (uint8_t)(64 - __builtin_clzll(bytes)) : 0;
}

uint64_t nt_collective_spread(uint64_t shortest_ns, uint64_t most, uint64_t calls)
{
	return most < calls ? (uint64_t)((double)shortest_ns * ((double)most / (double)calls))
			    : shortest_ns;
}
