/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary interface between NCCL and a profiler plugin, versions 1 to 7, from the headers
 * src/include/plugin/profiler/profiler_v*.h of NCCL 2.23 to 2.30, and for version 7 from the debug
 * information of 2.31. Only what is used here has a name.
 */
#ifndef NT_PLUGIN_NCCL_PROFILER_ABI_H
#define NT_PLUGIN_NCCL_PROFILER_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
	NT_NCCL_SUCCESS = 0, /* ncclResult_t */
	NT_NCCL_LOG_WARN = 2,
	NT_NCCL_LOG_INIT = 1, /* the subsystem of a line */

	/* Types of events, which are bits of the mask too. */
	NT_NCCL_GROUP = 1 << 0,
	NT_NCCL_COLLECTIVE = 1 << 1,
	NT_NCCL_P2P = 1 << 2,
	NT_NCCL_PROXY_OP =
		1 << 3, /* what a proxy sends or receives of one channel, as the step below */
	NT_NCCL_PROXY_STEP = 1 << 4,
	NT_NCCL_KERNEL_CHANNEL = 1 << 6, /* version 4 on: with device times */
	NT_NCCL_NET_PLUGIN = 1 << 7, /* of a network, as part of a proxy's step */
	NT_NCCL_GROUP_API = 1 << 8, /* version 5 on, as the two below */
	NT_NCCL_COLLECTIVE_API = 1 << 9, /* parent of a collective; comes unasked for, with it */
	NT_NCCL_P2P_API = 1 << 10, /* the same of a send or receive */

	/* States. Version 4 on: a send's step is with the network from this one to its stop. */
	NT_NCCL_STEP_SEND_WAIT = 9,
	NT_NCCL_STEP_PEER_WAIT = 20, /* a send has its data: comes with each attempt to send */
	NT_NCCL_KERNEL_CHANNEL_STOP = 22,

	NT_NCCL_CHANNELS = 64, /* of a communicator, at most */
	NT_NCCL_STEPS = 8, /* of an operation of a proxy that are under way at a time, at most */
	NT_NCCL_DESCRIPTION_BYTES = 136, /* of version 7, the longest */
	/* From version 5 on a collective, send or receive has a second parent: its group. */
	NT_NCCL_COLLECTIVE_GROUP_AT = 104,
	NT_NCCL_P2P_GROUP_AT = 64,
};

/* From version 4 on. `nt_nccl_event_type()` reads the type. */
struct nt_nccl_event {
	uint64_t type; /* up to version 4 a byte; the others are not set */
	void *parent;
	int rank;
	union {
		struct {
			uint64_t number;
			const char *function;
			const void *send;
			void *receive;
			size_t count;
			int root;
			const char *type;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} collective;
		struct {
			const char *function;
			void *buffer;
			const char *type;
			size_t count;
			int peer;
			uint8_t channels;
		} p2p;
		struct {
			int pid; /* a pid_t: of the process whose operation it is */
			uint8_t channel;
			int peer, steps, chunk_bytes, is_send;
		} proxy_op;
		struct {
			int step; /* its number in the operation */
		} proxy_step;
		struct {
			uint8_t channel;
			uint64_t start; /* of the device's clock, ns */
		} kernel_channel;
		struct {
			uint8_t is_captured; /* a bool: into a graph */
			int depth;
		} group_api; /* version 5 on */
	};
};

union nt_nccl_state_args {
	uint64_t stop; /* of a kernel channel: of the device's clock, ns */
	size_t bytes; /* of a step that is sent */
	void *data;
};

typedef void (*nt_nccl_log_fn)(int level, unsigned long flags, const char *file, int line,
			       const char *format, ...);

typedef int (*nt_nccl_start_fn)(void *context, void **ret_handle, void *event);
typedef int (*nt_nccl_stop_fn)(void *handle);
typedef int (*nt_nccl_state_fn)(void *handle, int state, void *args);
typedef int (*nt_nccl_finalize_fn)(void *context);
typedef int (*nt_nccl_init_1_fn)(void **ret_context, int *mask);
typedef int (*nt_nccl_init_4_fn)(void **ret_context, int *mask, const char *name, uint64_t hash,
				 int nodes, int ranks, int rank, nt_nccl_log_fn log);
typedef int (*nt_nccl_init_5_fn)(void **ret_context, uint64_t id, int *mask, const char *name,
				 int nodes, int ranks, int rank, nt_nccl_log_fn log);

/* What a plugin exports as ncclProfiler_v1 to ncclProfiler_v7. */
struct nt_nccl_profiler {
	const char *name;
	union {
		nt_nccl_init_1_fn init_1; /* versions 1 to 3 */
		nt_nccl_init_4_fn init_4;
		nt_nccl_init_5_fn init_5; /* versions 5 to 7 */
	};
	nt_nccl_start_fn start;
	nt_nccl_stop_fn stop;
	nt_nccl_state_fn state;
	nt_nccl_finalize_fn finalize;
};

#define NT_NCCL_AT(member_) __builtin_offsetof(struct nt_nccl_event, member_)

_Static_assert(NT_NCCL_AT(parent) == 8 && NT_NCCL_AT(rank) == 16, "the begin of all versions");
_Static_assert(NT_NCCL_AT(collective.number) == 24 && NT_NCCL_AT(collective.function) == 32 &&
		       NT_NCCL_AT(collective.count) == 56 && NT_NCCL_AT(collective.root) == 64 &&
		       NT_NCCL_AT(collective.type) == 72 && NT_NCCL_AT(collective.channels) == 80 &&
		       NT_NCCL_AT(collective.algorithm) == 88 &&
		       NT_NCCL_AT(collective.protocol) == 96,
	       "versions 4 to 7");
_Static_assert(NT_NCCL_AT(p2p.function) == 24 && NT_NCCL_AT(p2p.buffer) == 32 &&
		       NT_NCCL_AT(p2p.type) == 40 && NT_NCCL_AT(p2p.count) == 48 &&
		       NT_NCCL_AT(p2p.peer) == 56 && NT_NCCL_AT(p2p.channels) == 60,
	       "versions 4 to 7");
_Static_assert(NT_NCCL_AT(kernel_channel.channel) == 24 && NT_NCCL_AT(kernel_channel.start) == 32,
	       "versions 4 to 7");
_Static_assert(NT_NCCL_AT(proxy_op.pid) == 24 && NT_NCCL_AT(proxy_op.channel) == 28 &&
		       NT_NCCL_AT(proxy_op.peer) == 32 && NT_NCCL_AT(proxy_op.is_send) == 44 &&
		       NT_NCCL_AT(proxy_step.step) == 24,
	       "versions 4 to 7");
_Static_assert(NT_NCCL_AT(group_api.is_captured) == 24 && NT_NCCL_AT(group_api.depth) == 28,
	       "versions 5 to 7");
_Static_assert(sizeof(struct nt_nccl_event) == 104, "version 4; later ones are longer");
_Static_assert(sizeof(struct nt_nccl_profiler) == 48, "all versions");

#endif
