/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The interface between libnccl and a profiler plugin, versions 1 to 7. Offsets and sizes are those of
 * NCCL's published headers, src/include/plugin/profiler/profiler_vN.h: version 1 came with tag v2.23, 2
 * with v2.24, 3 with v2.26, 4 with v2.27, 5 with v2.28, 6 with v2.29 and 7 with v2.31. Those of version 7
 * are also in the debug information of the released libraries. The product's plugin has a header of its
 * own, so each checks the other.
 */
#ifndef NT_SIM_NCCL_PROFILER_INTERFACE_H
#define NT_SIM_NCCL_PROFILER_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	SIM_PROFILER_OLDEST = 1,
	SIM_PROFILER_NEWEST = 7,
};

/* Bits of the mask, and types of events. */
enum sim_profile {
	SIM_PROFILE_GROUP = 1 << 0,
	SIM_PROFILE_COLL = 1 << 1,
	SIM_PROFILE_P2P = 1 << 2,
	SIM_PROFILE_PROXY_OP = 1 << 3,
	SIM_PROFILE_PROXY_STEP = 1 << 4,
	SIM_PROFILE_PROXY_CTRL = 1 << 5,
	SIM_PROFILE_KERNEL_CH = 1 << 6, /* from version 3 on */
	SIM_PROFILE_NET_PLUGIN = 1 << 7,
	SIM_PROFILE_GROUP_API = 1 << 8, /* from version 5 on */
	SIM_PROFILE_COLL_API = 1 << 9,
	SIM_PROFILE_P2P_API = 1 << 10,
	SIM_PROFILE_KERNEL_LAUNCH = 1 << 11,
	SIM_PROFILE_CE_COLL = 1 << 12, /* from version 6 on */
	SIM_PROFILE_CE_SYNC = 1 << 13,
	SIM_PROFILE_CE_BATCH = 1 << 14,
	SIM_PROFILE_KERNEL_PHASE = 1 << 15, /* from version 7 on */
};

/* A state names the wait that begins. */
enum sim_profile_state {
	/* Of a proxy operation, versions 1 to 3. */
	SIM_STATE_SEND_POSTED = 0,
	SIM_STATE_SEND_REM_FIFO_WAIT = 1,
	SIM_STATE_SEND_TRANSMITTED = 2,
	SIM_STATE_SEND_DONE = 3,
	SIM_STATE_RECV_POSTED = 4,
	SIM_STATE_RECV_RECEIVED = 5,
	SIM_STATE_RECV_TRANSMITTED = 6,
	SIM_STATE_RECV_DONE = 7,
	SIM_STATE_SEND_GPU_WAIT = 8,
	SIM_STATE_SEND_WAIT = 9,
	SIM_STATE_RECV_WAIT = 10,
	SIM_STATE_RECV_FLUSH_WAIT = 11,
	SIM_STATE_RECV_GPU_WAIT = 12,
	SIM_STATE_CTRL_IDLE = 13,
	SIM_STATE_CTRL_ACTIVE = 14,
	SIM_STATE_CTRL_SLEEP = 15,
	SIM_STATE_CTRL_WAKEUP = 16,
	SIM_STATE_CTRL_APPEND = 17,
	SIM_STATE_CTRL_APPEND_END = 18,
	SIM_STATE_OP_IN_PROGRESS = 19, /* from version 4 on */
	SIM_STATE_SEND_PEER_WAIT = 20,
	SIM_STATE_NET_PLUGIN_UPDATE = 21,
	SIM_STATE_KERNEL_CH_STOP = 22,
	SIM_STATE_GROUP_START_API_STOP = 23, /* from version 5 on */
	SIM_STATE_GROUP_END_API_START = 24,
	SIM_STATE_KERNEL_PHASE_STOP = 31,
};

/* ---- what begins: descriptors ---- */

struct sim_proxy_op {
	pid_t pid;
	uint8_t channel;
	int peer, steps, chunk_bytes, is_send;
};

struct sim_net_plugin {
	int64_t id;
	void *data;
};

struct sim_kernel_ch {
	uint8_t channel;
	uint64_t timer; /* from version 4 on: the GPU's %globaltimer, ns */
};

struct sim_descr_v1 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t hash, seq;
			uint8_t func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			uint8_t datatype;
			uint32_t op;
			size_t traffic_bytes;
			uint8_t channels, warps, algo, proto;
			int is_collnet, is_nvls;
		} coll;
		struct {
			const char *name;
			uint64_t hash;
			uint8_t func;
			void *buffer;
			uint8_t datatype;
			size_t count;
			int peer;
		} p2p;
		struct sim_proxy_op proxy_op;
		int step;
	};
};

struct sim_p2p_v3 {
	const char *name;
	uint64_t hash;
	const char *func;
	void *buffer;
	const char *datatype;
	size_t count;
	int peer;
};

struct sim_descr_v2 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t hash, seq;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *datatype;
			size_t traffic_bytes;
			uint8_t channels, warps;
			const char *algo, *proto;
		} coll;
		struct sim_p2p_v3 p2p;
		struct sim_proxy_op proxy_op;
		int step;
	};
};

struct sim_descr_v3 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t hash, seq;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algo, *proto;
		} coll;
		struct sim_p2p_v3 p2p;
		struct sim_proxy_op proxy_op;
		int step;
		uint8_t kernel_channel;
		struct sim_net_plugin net_plugin;
	};
};

struct sim_descr_v4 {
	uint8_t type; /* the seven bytes behind it are rubbish */
	void *parent;
	int rank;
	union {
		struct {
			uint64_t seq;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algo, *proto;
		} coll;
		struct {
			const char *func;
			void *buffer;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t channels; /* 2.28 and later do not set it for a plugin of this version */
		} p2p;
		struct sim_proxy_op proxy_op;
		int step;
		struct sim_kernel_ch kernel_ch;
		struct sim_net_plugin net_plugin;
	};
};

/* Versions 5 and 6 are the first SIM_DESCR_V6_BYTES of version 7. */
struct sim_descr_v7 {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct {
			bool graph_captured;
			int depth; /* 1: the library's own, around a single call */
		} group_api;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool graph_captured;
			uint64_t user_tag; /* version 7 */
		} coll_api;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			void *stream;
			bool graph_captured;
			uint64_t user_tag; /* version 7 */
		} p2p_api;
		struct {
			void *stream;
		} kernel_launch;
		struct {
			uint64_t seq;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algo, *proto;
			void *parent_group;
			const char *kernel_variant; /* from here on: version 7 */
			bool is_symmetric;
			uint64_t user_tag;
		} coll;
		struct {
			const char *func;
			void *buffer;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t channels;
			void *parent_group;
			uint64_t user_tag; /* version 7 */
		} p2p;
		struct sim_proxy_op proxy_op;
		int step;
		struct sim_kernel_ch kernel_ch;
		struct sim_net_plugin net_plugin;
		struct {
			uint64_t seq;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *datatype, *sync_strategy;
			bool intra_batch_sync;
			uint32_t batch_size, batches, ce_seq;
			void *stream;
			uint64_t user_tag; /* version 7 */
		} ce_coll;
		struct {
			bool is_complete;
			int ranks;
		} ce_sync;
		struct {
			int ops;
			size_t total_bytes;
			bool uses_intra_sync;
		} ce_batch;
		struct {
			uint8_t channel, phase;
			const char *name;
			uint64_t timer;
		} kernel_phase;
	};
};

enum {
	SIM_DESCR_V6_BYTES = 112,
};

/* ---- what a state carries; NULL with those of a group ---- */

union sim_state_args {
	size_t trans_bytes; /* valid from state 9 or 11 on */
	int appended;
	void *data;
	uint64_t timer;
};

union sim_state_args_v3 {
	struct {
		size_t trans_bytes;
		int steps;
	} proxy_op;
	int appended;
};

/* ---- the table that a plugin exports as ncclProfiler_vN ---- */

typedef void sim_log_fn(int level, unsigned long flags, const char *file, int line,
			const char *format, ...);
typedef int sim_init_v3(void **context, int *mask);
typedef int sim_init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
			int ranks, int rank, sim_log_fn *log);
typedef int sim_init_v7(void **context, uint64_t hash, int *mask, const char *name, int nodes,
			int ranks, int rank, sim_log_fn *log);

struct sim_profiler_table {
	const char *name;
	union {
		sim_init_v3 *init_v3;
		sim_init_v4 *init_v4;
		sim_init_v7 *init_v7;
	};
	int (*start)(void *context, void **handle, void *descr);
	int (*stop)(void *handle);
	int (*record)(void *handle, int state, void *args);
	int (*finalize)(void *context);
};

/* ---- offsets, by number ---- */

#define SIM_AT(type, member, offset)                                                               \
	_Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define SIM_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)

SIM_AT(sim_profiler_table, init_v7, 8);
SIM_AT(sim_profiler_table, start, 16);
SIM_AT(sim_profiler_table, stop, 24);
SIM_AT(sim_profiler_table, record, 32);
SIM_AT(sim_profiler_table, finalize, 40);

SIM_SIZE(struct sim_descr_v1, 120);
SIM_AT(sim_descr_v1, coll.hash, 32);
SIM_AT(sim_descr_v1, coll.seq, 40);
SIM_AT(sim_descr_v1, coll.func, 48);
SIM_AT(sim_descr_v1, coll.send, 56);
SIM_AT(sim_descr_v1, coll.count, 72);
SIM_AT(sim_descr_v1, coll.root, 80);
SIM_AT(sim_descr_v1, coll.datatype, 84);
SIM_AT(sim_descr_v1, coll.algo, 106);
SIM_AT(sim_descr_v1, coll.proto, 107);
SIM_AT(sim_descr_v1, p2p.func, 40);
SIM_AT(sim_descr_v1, p2p.buffer, 48);
SIM_AT(sim_descr_v1, p2p.datatype, 56);
SIM_AT(sim_descr_v1, p2p.count, 64);
SIM_AT(sim_descr_v1, p2p.peer, 72);

SIM_SIZE(struct sim_descr_v2, 128);
SIM_AT(sim_descr_v2, coll.func, 48);
SIM_AT(sim_descr_v2, coll.count, 72);
SIM_AT(sim_descr_v2, coll.datatype, 88);
SIM_AT(sim_descr_v2, coll.algo, 112);
SIM_AT(sim_descr_v2, coll.proto, 120);
SIM_AT(sim_descr_v2, p2p.peer, 72);

SIM_SIZE(struct sim_descr_v3, 120);
SIM_AT(sim_descr_v3, coll.func, 48);
SIM_AT(sim_descr_v3, coll.datatype, 88);
SIM_AT(sim_descr_v3, coll.algo, 104);
SIM_AT(sim_descr_v3, coll.proto, 112);
SIM_AT(sim_descr_v3, p2p.peer, 72);
SIM_AT(sim_descr_v3, net_plugin.data, 32);

SIM_SIZE(struct sim_descr_v4, 104);
SIM_AT(sim_descr_v4, parent, 8);
SIM_AT(sim_descr_v4, rank, 16);
SIM_AT(sim_descr_v4, coll.seq, 24);
SIM_AT(sim_descr_v4, coll.func, 32);
SIM_AT(sim_descr_v4, coll.send, 40);
SIM_AT(sim_descr_v4, coll.recv, 48);
SIM_AT(sim_descr_v4, coll.count, 56);
SIM_AT(sim_descr_v4, coll.root, 64);
SIM_AT(sim_descr_v4, coll.datatype, 72);
SIM_AT(sim_descr_v4, coll.channels, 80);
SIM_AT(sim_descr_v4, coll.warps, 81);
SIM_AT(sim_descr_v4, coll.algo, 88);
SIM_AT(sim_descr_v4, coll.proto, 96);
SIM_AT(sim_descr_v4, p2p.func, 24);
SIM_AT(sim_descr_v4, p2p.buffer, 32);
SIM_AT(sim_descr_v4, p2p.datatype, 40);
SIM_AT(sim_descr_v4, p2p.count, 48);
SIM_AT(sim_descr_v4, p2p.peer, 56);
SIM_AT(sim_descr_v4, p2p.channels, 60);
SIM_AT(sim_descr_v4, proxy_op.pid, 24);
SIM_AT(sim_descr_v4, proxy_op.channel, 28);
SIM_AT(sim_descr_v4, proxy_op.peer, 32);
SIM_AT(sim_descr_v4, proxy_op.steps, 36);
SIM_AT(sim_descr_v4, proxy_op.chunk_bytes, 40);
SIM_AT(sim_descr_v4, proxy_op.is_send, 44);
SIM_AT(sim_descr_v4, step, 24);
SIM_AT(sim_descr_v4, kernel_ch.channel, 24);
SIM_AT(sim_descr_v4, kernel_ch.timer, 32);
SIM_AT(sim_descr_v4, net_plugin.data, 32);

SIM_SIZE(struct sim_descr_v7, 136);
SIM_AT(sim_descr_v7, parent, 8);
SIM_AT(sim_descr_v7, rank, 16);
SIM_AT(sim_descr_v7, group_api.graph_captured, 24);
SIM_AT(sim_descr_v7, group_api.depth, 28);
SIM_AT(sim_descr_v7, coll_api.func, 24);
SIM_AT(sim_descr_v7, coll_api.count, 32);
SIM_AT(sim_descr_v7, coll_api.datatype, 40);
SIM_AT(sim_descr_v7, coll_api.root, 48);
SIM_AT(sim_descr_v7, coll_api.stream, 56);
SIM_AT(sim_descr_v7, coll_api.graph_captured, 64);
SIM_AT(sim_descr_v7, coll_api.user_tag, 72);
SIM_AT(sim_descr_v7, p2p_api.func, 24);
SIM_AT(sim_descr_v7, p2p_api.count, 32);
SIM_AT(sim_descr_v7, p2p_api.datatype, 40);
SIM_AT(sim_descr_v7, p2p_api.stream, 48);
SIM_AT(sim_descr_v7, p2p_api.graph_captured, 56);
SIM_AT(sim_descr_v7, p2p_api.user_tag, 64);
SIM_AT(sim_descr_v7, kernel_launch.stream, 24);
SIM_AT(sim_descr_v7, coll.seq, 24);
SIM_AT(sim_descr_v7, coll.func, 32);
SIM_AT(sim_descr_v7, coll.send, 40);
SIM_AT(sim_descr_v7, coll.recv, 48);
SIM_AT(sim_descr_v7, coll.count, 56);
SIM_AT(sim_descr_v7, coll.root, 64);
SIM_AT(sim_descr_v7, coll.datatype, 72);
SIM_AT(sim_descr_v7, coll.channels, 80);
SIM_AT(sim_descr_v7, coll.warps, 81);
SIM_AT(sim_descr_v7, coll.algo, 88);
SIM_AT(sim_descr_v7, coll.proto, 96);
SIM_AT(sim_descr_v7, coll.parent_group, 104);
SIM_AT(sim_descr_v7, coll.kernel_variant, SIM_DESCR_V6_BYTES);
SIM_AT(sim_descr_v7, coll.is_symmetric, 120);
SIM_AT(sim_descr_v7, coll.user_tag, 128);
SIM_AT(sim_descr_v7, p2p.func, 24);
SIM_AT(sim_descr_v7, p2p.peer, 56);
SIM_AT(sim_descr_v7, p2p.channels, 60);
SIM_AT(sim_descr_v7, p2p.parent_group, 64);
SIM_AT(sim_descr_v7, p2p.user_tag, 72);
SIM_AT(sim_descr_v7, proxy_op.is_send, 44);
SIM_AT(sim_descr_v7, step, 24);
SIM_AT(sim_descr_v7, kernel_ch.timer, 32);
SIM_AT(sim_descr_v7, ce_coll.sync_strategy, 80);
SIM_AT(sim_descr_v7, ce_coll.batch_size, 92);
SIM_AT(sim_descr_v7, ce_coll.batches, 96);
SIM_AT(sim_descr_v7, ce_coll.ce_seq, 100);
SIM_AT(sim_descr_v7, ce_coll.stream, 104);
SIM_AT(sim_descr_v7, ce_coll.user_tag, SIM_DESCR_V6_BYTES);
SIM_AT(sim_descr_v7, ce_sync.ranks, 28);
SIM_AT(sim_descr_v7, ce_batch.total_bytes, 32);
SIM_AT(sim_descr_v7, kernel_phase.phase, 25);
SIM_AT(sim_descr_v7, kernel_phase.name, 32);
SIM_AT(sim_descr_v7, kernel_phase.timer, 40);

SIM_SIZE(union sim_state_args, 8);
SIM_SIZE(union sim_state_args_v3, 16);

#undef SIM_AT
#undef SIM_SIZE

#endif
