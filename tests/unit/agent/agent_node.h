/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A synthetic node around a tracker: processes with an environment and memory, events of probed
 * functions by name, and the resulting windows.
 */
#ifndef NT_TESTS_UNIT_AGENT_AGENT_NODE_H
#define NT_TESTS_UNIT_AGENT_AGENT_NODE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/steps/comm_layout.h"
#include "agent/tracker/tracker.h"
#include "tests/unit/agent/agent_memory.h"

#define MS     1000000ULL
#define SECOND (1000 * MS)

enum {
	NODE_PROCESSES = 64,
	NODE_UID = 7,
	NODE_WINDOWS = 4096,
	NODE_COMMS = 8,
	NODE_SAMPLES = 64,
	NODE_TRANSFERS = 64,
};

/* A window that outlives its message. */
struct node_window {
	char key[128], job[128];
	struct nt_window window;
	struct nt_comm_window comm[NODE_COMMS];
	char name[NODE_COMMS][NT_COMM_LAYOUT_NAME];
	struct nt_comm_op op[NODE_COMMS][NT_OP_END];
	struct nt_signature recent[NODE_COMMS][NT_WIRE_MAX_RECENT];
	struct nt_sample sample[NODE_SAMPLES];
	struct nt_transfer transfer[NODE_TRANSFERS];
	struct nt_gemm gemm[NT_WIRE_MAX_GEMMS];
	uint64_t watermark_ns;
	char state[4];
	struct nt_heap_device heap_device[NT_GPU_HEAP_DEVICES + 1];
	struct nt_heap_site heap_site[NT_WINDOW_HEAP_SITES];
	char heap_file[NT_WINDOW_HEAP_SITES][NT_GPU_HEAP_FILE];
	struct nt_wire_stack stack; /* the first; its texts are freed */
	struct nt_wire_profile profile; /* the same */
	char heap_call[32], heap_failed_file[NT_GPU_HEAP_FILE], holder_file[NT_GPU_HEAP_FILE];
};

struct node {
	struct nt_tracker *tracker;
	struct fake_memory memory;
	struct {
		uint32_t pid;
		const char *environ;
		size_t size;
		uint32_t uid; /* 0: NODE_UID */
		bool has_no_uid;
		struct nt_cgroup cgroup;
	} process[NODE_PROCESSES];
	size_t processes;
	struct nt_process_counters counters;
	struct nt_tcp_window tcp; /* of every process, in each window; observed_ns 0: none */
	struct nt_gemm_totals gemms;
	bool has_gemms;
	struct nt_host_sample host;
	bool has_host;
	char gpu[64]; /* of the process that was sampled last */
	const struct nt_placement *placement; /* placement of every process; NULL: unknown */
	bool has_api; /* there is an API server */
	const char *namespace; /* its state of every pod; NULL: not yet */
	struct node_window *window; /* owned */
	size_t windows;
	uint64_t heartbeats, heartbeat_mark_ns;
	uint32_t heartbeat_ranks;
	uint32_t crowd_pid; /* from here on all processes have one owner; 0: none */
	uint32_t awaited_pid; /* discovery has not finished with it; 0: none */
	uint64_t ranked; /* processes that became ranks */
	uint32_t ranked_pid;
	enum nt_gpu_shared shared_card; /* of any two processes */
	uint32_t card_lookups;
	uint64_t sites_wanted, site_wanted; /* how often, and the last one */
	void (*take_detail)(const char *key, const struct nt_detail *detail); /* or NULL */
	uint64_t now_ns;
};

static inline int node_describe(void *data, uint32_t pid, struct nt_process_facts *ret_facts)
{
	const struct node *node = data;

	for (size_t i = 0; i < node->processes; i++) {
		if (node->process[i].pid != pid)
			continue;
		*ret_facts = (struct nt_process_facts){
			.command = "prog",
			.parent = 99,
			.uid = node->process[i].uid ? node->process[i].uid : NODE_UID,
			.has_uid = !node->process[i].has_no_uid,
			.cgroup = node->process[i].cgroup,
		};
		nt_environ_parse(node->process[i].environ, node->process[i].size, &ret_facts->env);
		return 0;
	}
	return -ESRCH;
}

static inline int node_sample(void *data, uint32_t pid, uint32_t tid, const char *gpu,
			      struct nt_host **host, struct nt_host_sample *ret_sample)
{
	struct node *node = data;

	(void)pid;
	(void)tid;
	(void)host;
	(void)snprintf(node->gpu, sizeof(node->gpu), "%s", gpu);
	*ret_sample = node->host;
	return node->has_host ? 0 : -ESRCH;
}

static inline bool node_counters(void *data, uint32_t pid, struct nt_process_counters *ret_counters)
{
	const struct node *node = data;

	(void)pid;
	*ret_counters = node->counters;
	return true;
}

static inline const struct nt_tcp_window *node_tcp(void *data, uint32_t pid)
{
	const struct node *node = data;

	(void)pid;
	return node->tcp.observed_ns ? &node->tcp : NULL;
}

static inline bool node_gemms(void *data, uint32_t pid, struct nt_gemm_totals *ret_totals)
{
	const struct node *node = data;

	(void)pid;
	if (node->has_gemms)
		*ret_totals = node->gemms;
	return node->has_gemms;
}

static inline int node_owner(void *data, uint32_t pid, struct nt_owner *ret_owner)
{
	const struct node *node = data;
	const bool is_crowd = node->crowd_pid && pid >= node->crowd_pid;

	*ret_owner = (struct nt_owner){.id = is_crowd ? 99 : 1000000 + pid, .name = "user"};
	return 0;
}

static inline bool node_awaits(void *data, uint32_t pid)
{
	const struct node *node = data;

	return node->awaited_pid == pid;
}

static inline enum nt_tenant_stated node_locate(void *data, const struct nt_cgroup *cgroup,
						struct nt_placement *placement)
{
	const struct node *node = data;

	if (node->placement)
		*placement = *node->placement;
	if (!node->has_api || !cgroup->pod[0])
		return NT_TENANT_NEVER;
	if (!node->namespace)
		return NT_TENANT_NOT_YET;
	(void)snprintf(placement->namespace, sizeof(placement->namespace), "%s", node->namespace);
	return NT_TENANT_STATED;
}

/* An empty array is NULL in a decoded window. */
static inline void node_copy(void *to, const void *from, size_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
}

static inline void node_copy_heap(struct node_window *copy, const struct nt_heap_window *heap)
{
	struct nt_heap_window *to = &copy->window.heap;

	node_copy(copy->heap_device, heap->device, heap->devices * sizeof(*heap->device));
	node_copy(copy->heap_site, heap->site, heap->sites * sizeof(*heap->site));
	to->device = copy->heap_device;
	to->site = copy->heap_site;
	for (size_t i = 0; i < heap->sites; i++) {
		(void)snprintf(copy->heap_file[i], sizeof(copy->heap_file[i]), "%s",
			       heap->site[i].file);
		copy->heap_site[i].file = copy->heap_file[i];
	}
	if (!heap->failure.call)
		return;
	(void)snprintf(copy->heap_call, sizeof(copy->heap_call), "%s", heap->failure.call);
	(void)snprintf(copy->heap_failed_file, sizeof(copy->heap_failed_file), "%s",
		       heap->failure.file);
	(void)snprintf(copy->holder_file, sizeof(copy->holder_file), "%s",
		       heap->failure.holder_file);
	to->failure.call = copy->heap_call;
	to->failure.file = copy->heap_failed_file;
	to->failure.holder_file = copy->holder_file;
}

static inline void node_window(void *data, const char *key, const struct nt_window *window,
			       uint64_t watermark_ns)
{
	struct node *node = data;
	struct node_window *copy;

	if (node->windows == NODE_WINDOWS)
		return;
	copy = &node->window[node->windows++];
	(void)snprintf(copy->key, sizeof(copy->key), "%s", key);
	(void)snprintf(copy->job, sizeof(copy->job), "%s", window->rank.job);
	(void)snprintf(copy->state, sizeof(copy->state), "%s", window->host.state);
	copy->window = *window;
	copy->watermark_ns = watermark_ns;
	node_copy(copy->gemm, window->gemms.gemm, window->gemms.gemms * sizeof(copy->gemm[0]));
	copy->window.gemms.gemm = copy->gemm;
	if (copy->window.comms > NODE_COMMS)
		copy->window.comms = NODE_COMMS;
	for (size_t i = 0; i < copy->window.comms; i++) {
		copy->comm[i] = window->comm[i];
		node_copy(copy->op[i], window->comm[i].op,
			  window->comm[i].ops * sizeof(copy->op[i][0]));
		node_copy(copy->recent[i], window->comm[i].recent,
			  window->comm[i].recents * sizeof(copy->recent[i][0]));
		(void)snprintf(copy->name[i], sizeof(copy->name[i]), "%s", window->comm[i].name);
		copy->comm[i].name = copy->name[i];
		copy->comm[i].op = copy->op[i];
		copy->comm[i].recent = copy->recent[i];
	}
	copy->window.comm = copy->comm;
	node_copy(copy->sample, window->sample, window->samples * sizeof(copy->sample[0]));
	copy->window.sample = copy->sample;
	node_copy(copy->transfer, window->transfer, window->transfers * sizeof(copy->transfer[0]));
	copy->window.transfer = copy->transfer;
	node_copy_heap(copy, &window->heap);
	node_copy(&copy->stack, window->stack, (window->stacks > 0) * sizeof(copy->stack));
	copy->window.stack = &copy->stack;
	node_copy(&copy->profile, window->profile, (window->profiles > 0) * sizeof(copy->profile));
	copy->window.profile = &copy->profile;
}

static inline void node_heartbeat(void *data, const char *key, uint32_t ranks,
				  uint64_t watermark_ns)
{
	struct node *node = data;

	(void)key;
	node->heartbeats++;
	node->heartbeat_ranks = ranks;
	node->heartbeat_mark_ns = watermark_ns;
}

static inline void node_ranked(void *data, uint32_t pid, uint64_t start_boot_ns)
{
	struct node *node = data;

	(void)start_boot_ns;
	node->ranked++;
	node->ranked_pid = pid;
}

static inline enum nt_gpu_shared node_shared_card(void *data, uint32_t pid, uint32_t other)
{
	struct node *node = data;

	(void)pid;
	(void)other;
	node->card_lookups++;
	return node->shared_card;
}

static inline void node_site_wanted(void *data, uint32_t pid, uint64_t start_boot_ns,
				    uint64_t address)
{
	struct node *node = data;

	(void)pid;
	(void)start_boot_ns;
	node->sites_wanted++;
	node->site_wanted = address;
}

static inline void node_detail(void *data, const char *key, const struct nt_detail *detail)
{
	const struct node *node = data;

	if (node->take_detail)
		node->take_detail(key, detail);
}

/* outside_ns: overhead of a probed call outside its own time. */
static inline void node_start_with(struct node *node, uint64_t outside_ns)
{
	struct nt_tracker_options options = {
		.node = "n1",
		.boot = 0xb007,
		.seed = 1,
		.window_min_ns = 500 * MS,
		.query_max = 2000,
		.outside_ns = outside_ns,
		.source = {.memory = fake_memory(&node->memory),
			   .describe = node_describe,
			   .sample = node_sample,
			   .counters = node_counters,
			   .gemms = node_gemms,
			   .tcp = node_tcp,
			   .owner = node_owner,
			   .awaited = node_awaits,
			   .locate = node_locate,
			   .shared_card = node_shared_card,
			   .data = node},
		.sink = {.window = node_window,
			 .ranked = node_ranked,
			 .site_wanted = node_site_wanted,
			 .detail = node_detail,
			 .heartbeat = node_heartbeat,
			 .data = node},
	};

	*node = (struct node){.now_ns = 10 * SECOND};
	node->window = calloc(NODE_WINDOWS, sizeof(*node->window));
	assert_non_null(node->window);
	options.source.memory = fake_memory(&node->memory);
	assert_int_equal(nt_tracker_new(&options, &node->tracker), 0);
}

static inline void node_start(struct node *node)
{
	node_start_with(node, 0);
}

static inline void node_stop(struct node *node)
{
	nt_tracker_free(node->tracker);
	free(node->window);
}

/* environ: a literal, its size with sizeof. */
static inline void node_describe_as(struct node *node, uint32_t pid, const char *environ,
				    size_t size)
{
	node->process[node->processes].pid = pid;
	node->process[node->processes].environ = environ;
	node->process[node->processes++].size = size;
}

static inline void node_map(struct node *node, uint32_t pid, const char *name,
			    enum nt_library library, bool late)
{
	struct nt_owner owner;
	struct nt_mapped_file file = {
		.pid = pid,
		.start_boot_ns = pid,
		.owner = &owner,
		.dev = 1,
		.ino = (ino_t)library,
		.path = name,
		.name = name,
		.library = library,
		.late = late,
	};

	(void)node_owner(node, pid, &owner);
	nt_tracker_mapped(node->tracker, &file);
}

static inline uint16_t node_row(const char *symbol, enum nt_library library)
{
	for (uint16_t i = 0; i < nt_probe_rows(); i++) {
		const struct nt_probe *probe = nt_probe_row(i);

		if (strcmp(probe->symbol, symbol) == 0 && probe->library == library)
			return i;
	}
	fail_msg("no probe of %s", symbol);
	return 0;
}

/* An event of the function at node->now_ns that lasts ns; 0: its entry alone. */
static inline struct nt_event_call node_call(const struct node *node, uint32_t pid, uint32_t tid,
					     const char *symbol, enum nt_library library,
					     uint64_t ns)
{
	return (struct nt_event_call){
		.h = {.type = NT_EVENT_CALL,
		      .size = sizeof(struct nt_event_call),
		      .row = node_row(symbol, library),
		      .flags = ns ? NT_CALL_RETURNED : 0,
		      .pid = pid,
		      .tid = tid,
		      .entry_ns = node->now_ns},
		.ret_ns = ns ? node->now_ns + ns : 0,
		.launches = node->counters.calls[NT_COUNTER_LAUNCH],
	};
}

static inline void node_event(struct node *node, const struct nt_event_call *call)
{
	nt_tracker_event(node->tracker, call, NULL);
}

static inline const struct node_window *node_last(const struct node *node)
{
	assert_true(node->windows > 0);
	return &node->window[node->windows - 1];
}

#endif
