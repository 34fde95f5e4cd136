/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/profiler_adapter.h"

#include <string.h>

#include "tests/sim/lib/nccl/version.h"

enum {
	RUBBISH = 0xa5, /* what a plugin must not look at */
	EVENTS_V3 = SIM_PROFILE_GROUP | SIM_PROFILE_COLL | SIM_PROFILE_P2P | SIM_PROFILE_PROXY_OP |
		    SIM_PROFILE_PROXY_STEP | SIM_PROFILE_PROXY_CTRL,
	EVENTS_V4 = EVENTS_V3 | SIM_PROFILE_KERNEL_CH | SIM_PROFILE_NET_PLUGIN,
	CE_EVENTS = SIM_PROFILE_CE_COLL | SIM_PROFILE_CE_SYNC | SIM_PROFILE_CE_BATCH,
};

/* As version 1 numbers functions, types, algorithms and protocols. */
static uint8_t number_of(const char *text, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (text && strcmp(text, names[i]) == 0)
			return (uint8_t)i;
	return (uint8_t)count;
}

#define NUMBER_OF(text, names) number_of(text, names, sizeof(names) / sizeof(*(names)))

static const char *const functions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
					"AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const types[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",
				    "ncclUint32",  "ncclInt64",   "ncclUint64",
				    "ncclFloat16", "ncclFloat32", "ncclFloat64"};
static const char *const algorithms[] = {"TREE", "RING"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};

/* Before version 4 the parent of a task is its group. */
#define COMMON(to, from)                                                                           \
	do {                                                                                       \
		(to)->type = (uint8_t)(from)->type;                                                \
		(to)->parent = (from)->parent;                                                     \
		(to)->rank = (from)->rank;                                                         \
		if ((from)->type == SIM_PROFILE_COLL)                                              \
			(to)->parent = (from)->coll.parent_group;                                  \
		else if ((from)->type == SIM_PROFILE_P2P)                                          \
			(to)->parent = (from)->p2p.parent_group;                                   \
		else if ((from)->type == SIM_PROFILE_PROXY_OP)                                     \
			(to)->proxy_op = (from)->proxy_op;                                         \
		else if ((from)->type == SIM_PROFILE_PROXY_STEP)                                   \
			(to)->step = (from)->step;                                                 \
	} while (0)

static void adapt_v1(const struct sim_descr_v7 *from, const struct sim_profiler_comm_info *info,
		     struct sim_descr_v1 *to)
{
	COMMON(to, from);
	if (from->type == SIM_PROFILE_COLL) {
		to->coll.name = info->name;
		to->coll.hash = info->hash;
		to->coll.seq = from->coll.seq;
		to->coll.func = NUMBER_OF(from->coll.func, functions);
		to->coll.send = from->coll.send;
		to->coll.recv = from->coll.recv;
		to->coll.count = from->coll.count;
		to->coll.root = from->coll.root;
		to->coll.datatype = NUMBER_OF(from->coll.datatype, types);
		to->coll.channels = from->coll.channels;
		to->coll.warps = from->coll.warps;
		to->coll.algo = NUMBER_OF(from->coll.algo, algorithms);
		to->coll.proto = NUMBER_OF(from->coll.proto, protocols);
	} else if (from->type == SIM_PROFILE_P2P) {
		to->p2p.name = info->name;
		to->p2p.hash = info->hash;
		to->p2p.func = NUMBER_OF(from->p2p.func, functions);
		to->p2p.buffer = from->p2p.buffer;
		to->p2p.datatype = NUMBER_OF(from->p2p.datatype, types);
		to->p2p.count = from->p2p.count;
		to->p2p.peer = from->p2p.peer;
	}
}

/* Versions 2 and 3 have members of the same names at other places. */
#define TASKS_V3(to, from, info)                                                                   \
	do {                                                                                       \
		COMMON(to, from);                                                                  \
		if ((from)->type == SIM_PROFILE_COLL) {                                            \
			(to)->coll.name = (info)->name;                                            \
			(to)->coll.hash = (info)->hash;                                            \
			(to)->coll.seq = (from)->coll.seq;                                         \
			(to)->coll.func = (from)->coll.func;                                       \
			(to)->coll.send = (from)->coll.send;                                       \
			(to)->coll.recv = (from)->coll.recv;                                       \
			(to)->coll.count = (from)->coll.count;                                     \
			(to)->coll.root = (from)->coll.root;                                       \
			(to)->coll.datatype = (from)->coll.datatype;                               \
			(to)->coll.channels = (from)->coll.channels;                               \
			(to)->coll.warps = (from)->coll.warps;                                     \
			(to)->coll.algo = (from)->coll.algo;                                       \
			(to)->coll.proto = (from)->coll.proto;                                     \
		} else if ((from)->type == SIM_PROFILE_P2P) {                                      \
			(to)->p2p.name = (info)->name;                                             \
			(to)->p2p.hash = (info)->hash;                                             \
			(to)->p2p.func = (from)->p2p.func;                                         \
			(to)->p2p.buffer = (from)->p2p.buffer;                                     \
			(to)->p2p.datatype = (from)->p2p.datatype;                                 \
			(to)->p2p.count = (from)->p2p.count;                                       \
			(to)->p2p.peer = (from)->p2p.peer;                                         \
		}                                                                                  \
	} while (0)

static void adapt_v2(const struct sim_descr_v7 *from, const struct sim_profiler_comm_info *info,
		     struct sim_descr_v2 *to)
{
	TASKS_V3(to, from, info);
}

static void adapt_v3(const struct sim_descr_v7 *from, const struct sim_profiler_comm_info *info,
		     struct sim_descr_v3 *to)
{
	TASKS_V3(to, from, info);
	if (from->type == SIM_PROFILE_KERNEL_CH)
		to->kernel_channel = from->kernel_ch.channel;
}

static void adapt_v4(const struct sim_descr_v7 *from, struct sim_descr_v4 *to)
{
	COMMON(to, from);
	if (from->type == SIM_PROFILE_COLL) {
		to->coll.seq = from->coll.seq;
		to->coll.func = from->coll.func;
		to->coll.send = from->coll.send;
		to->coll.recv = from->coll.recv;
		to->coll.count = from->coll.count;
		to->coll.root = from->coll.root;
		to->coll.datatype = from->coll.datatype;
		to->coll.channels = from->coll.channels;
		to->coll.warps = from->coll.warps;
		to->coll.algo = from->coll.algo;
		to->coll.proto = from->coll.proto;
	} else if (from->type == SIM_PROFILE_P2P) {
		to->p2p.func = from->p2p.func;
		to->p2p.buffer = from->p2p.buffer;
		to->p2p.datatype = from->p2p.datatype;
		to->p2p.count = from->p2p.count;
		to->p2p.peer = from->p2p.peer;
		if (sim_nccl_minor() < 28)
			to->p2p.channels = from->p2p.channels;
	} else if (from->type == SIM_PROFILE_KERNEL_CH) {
		to->kernel_ch = from->kernel_ch;
	}
}

bool sim_profiler_adapt(int version, const struct sim_descr_v7 *from,
			const struct sim_profiler_comm_info *info, union sim_profiler_descr *ret)
{
	int events = version <= 3 ? EVENTS_V3 : EVENTS_V4;

	memset(ret, RUBBISH, sizeof(*ret));
	if (version == 3)
		events |= SIM_PROFILE_KERNEL_CH;
	if (version <= 4 && !(from->type & (uint64_t)events))
		return false;
	switch (version) {
	case 1:
		adapt_v1(from, info, &ret->v1);
		break;
	case 2:
		adapt_v2(from, info, &ret->v2);
		break;
	case 3:
		adapt_v3(from, info, &ret->v3);
		break;
	case 4:
		adapt_v4(from, &ret->v4);
		break;
	case 5:
	case 6:
		memcpy(&ret->v7, from, SIM_DESCR_V6_BYTES);
		break;
	default:
		ret->v7 = *from;
		break;
	}
	return true;
}

bool sim_profiler_has_state(int version, enum sim_profile_state state)
{
	if (version <= 3)
		return state <= SIM_STATE_CTRL_APPEND_END;
	if (version == 4)
		return state >= SIM_STATE_SEND_GPU_WAIT && state <= SIM_STATE_KERNEL_CH_STOP;
	return state >= SIM_STATE_SEND_GPU_WAIT;
}

int sim_profiler_unknown_bits(int version)
{
	int bits = 0;

	if (version == 5 && sim_nccl_minor() >= 29)
		bits |= CE_EVENTS;
	if (version <= 6 && version >= 5 && sim_nccl_minor() >= 31)
		bits |= SIM_PROFILE_KERNEL_PHASE;
	return bits;
}
