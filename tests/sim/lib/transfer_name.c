/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernels of libnccl, named as those of the real library are. */
#include <stdio.h>

#include "tests/sim/lib/transfer.h"

enum {
	KINDS = SIM_CALL_PUT + 1,
	OPS = 5,
	TYPES = 12,
};

/* One kernel for signed and unsigned integers. */
static const char *const type_name[TYPES] = {"u8",  "u8",  "u32", "u32",  "u64",    "u64",
					     "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
/* An average is a sum of scaled values. */
static const char *const op_name[OPS] = {"Sum", "Prod", "MinMax", "MinMax", "PreMulSum"};

static const char *kind_name(enum sim_call_kind kind)
{
	switch (kind) {
	case SIM_CALL_ALL_REDUCE:
		return "AllReduce";
	case SIM_CALL_ALL_GATHER:
		return "AllGather";
	case SIM_CALL_REDUCE_SCATTER:
		return "ReduceScatter";
	case SIM_CALL_BROADCAST:
		return "Broadcast";
	case SIM_CALL_REDUCE:
		return "Reduce";
	default: /* The real library makes the others of sends and receives. */
		return "SendRecv";
	}
}

static bool reduces(enum sim_call_kind kind)
{
	return kind == SIM_CALL_ALL_REDUCE || kind == SIM_CALL_REDUCE_SCATTER ||
	       kind == SIM_CALL_REDUCE;
}

static bool is_ring(enum sim_call_kind kind)
{
	return reduces(kind) || kind == SIM_CALL_ALL_GATHER || kind == SIM_CALL_BROADCAST;
}

/* A group is one kernel: that of its first collective, or of its sends and receives. */
static const struct sim_call *named_by(const struct sim_batch *batch)
{
	for (size_t i = 0; i < batch->calls; i++)
		if (is_ring(batch->call[i].kind))
			return &batch->call[i];
	return &batch->call[0];
}

const char *sim_transfer_name(const void *state)
{
	static char names[KINDS][OPS][TYPES][96]; /* written once, under the device's lock */
	const struct sim_call *call = named_by(state);
	unsigned int op = (unsigned int)call->op % OPS, type = (unsigned int)call->type % TYPES;
	char *name = names[call->kind][op][type], reduction[32] = "";

	if (name[0])
		return name;
	if (reduces(call->kind))
		(void)snprintf(reduction, sizeof(reduction), "_%s_%s", op_name[op],
			       type_name[type]);
	(void)snprintf(name, sizeof(names[0][0][0]),
		       "ncclDevKernel_%s%s%s(ncclDevKernelArgsStorage<4096ul>)",
		       kind_name(call->kind), reduction, is_ring(call->kind) ? "_RING_LL" : "");
	return name;
}
