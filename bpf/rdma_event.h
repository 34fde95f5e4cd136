/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Structs of the RDMA probes that cross into user space; a part of bpf/event.h. "Verbs" are the
 * exported functions of libibverbs, which are called seldom. "Traffic" are the two functions of a
 * provider that libibverbs' inline functions call through the context: post_send and poll_cq.
 */
#ifndef NT_BPF_RDMA_EVENT_H
#define NT_BPF_RDMA_EVENT_H

#ifndef NT_BPF_EVENT_H
#error "include bpf/event.h"
#endif

/* What a verb does; in bits 24-27 of the cookie of such a row. */
enum nt_verb {
	NT_VERB_NONE,
	NT_VERB_OPEN, /* returns a context */
	NT_VERB_SET_OPS, /* the provider fills the context's functions: word 0 is a verbs_context */
	NT_VERB_CREATE_CQ, /* word 0: context */
	NT_VERB_CREATE_QP, /* words 0, 1: domain, attributes; returns a queue pair */
	NT_VERB_MODIFY_QP, /* words 0 to 2: queue pair, attributes, mask */
	NT_VERB_DESTROY_QP, /* word 0: queue pair */
	NT_VERB_REGISTER, /* words 0, 2: domain, bytes; returns a memory region */
	NT_VERB_DEREGISTER, /* word 0: memory region */
	NT_VERB_EXTENDED, /* word 0: a queue pair that is used through the extended interface */
	/* word 0: context. Queues that a device or the program drives without libibverbs */
	NT_VERB_DIRECT,
	NT_VERB_END, /* keep last; at most 15 */
};

#define NT_COOKIE_VERB(c) ((__u32)((c) >> 24) & 0xf)

#define NT_VERBS_DEVICE 32 /* bytes of the name of a device that are kept */
#define NT_VERBS_GID    16

/*
 * A verb that has returned: one that succeeded, about a queue pair or with functions of a context
 * that are new. 0 in all members that the verb does not set.
 */
struct nt_event_verbs {
	struct nt_event_header h;
	__u64 context;
	__u64 post_send, poll_cq; /* addresses of the context's functions */
	__u64 qp; /* address */
	__u32 verb; /* enum nt_verb */
	__u32 qpn;
	__u32 qp_type, qp_state; /* enum ibv_qp_type, enum ibv_qp_state */
	__u32 mask; /* of NT_VERB_MODIFY_QP: enum ibv_qp_attr_mask */
	__u32 remote_qpn, remote_lid;
	__u8 port, sgid_index, is_global, all_signaled;
	__u8 gid[NT_VERBS_GID]; /* of the remote port, with is_global */
	char device[NT_VERBS_DEVICE]; /* terminated */
};

/* Per process, in the storage of its leader, as struct nt_process_counters. */
struct nt_verbs_totals {
	__u64 registrations, registered_bytes;
	__u64 deregistrations, deregistered_bytes;
	__u64 created, destroyed; /* queue pairs */
	__u64 extended, direct; /* calls of such verbs */
	__u64 ops; /* kernel side: post_send of the last context whose functions were sent */
	__u64 seen, ended; /* entries in the table of traffic so far; of them, destroyed ones */
	__u64 over_cap; /* hits of queue pairs without room in it */
	/* Entries in the table of queue pairs that signal all requests, with those that the agent deleted. */
	__u64 signaled;
	__u64 signaled_over_cap; /* such queue pairs without room in it */
};

/* Of a work request. */
enum nt_rdma_class {
	NT_RDMA_WRITE,
	NT_RDMA_SEND,
	NT_RDMA_READ,
	NT_RDMA_ATOMIC,
	NT_RDMA_OTHER,
	NT_RDMA_CLASSES, /* keep last */
};

#define NT_RDMA_REQUESTS    64 /* work requests of one call that are read */
#define NT_RDMA_ELEMENTS    32 /* scatter-gather elements of one of them */
#define NT_RDMA_COMPLETIONS 32 /* of one call */
#define NT_RDMA_OUTSTANDING 16 /* requests of a queue pair whose completion is timed */
#define NT_RDMA_STATUSES    24 /* enum ibv_wc_status; the last one holds all beyond */
#define NT_RDMA_QPS         16384 /* in the table of traffic */
#define NT_RDMA_PROCESS_QPS 1024 /* of one process */

/* A queue pair number is unique in a device: a context belongs to one. */
struct nt_rdma_key {
	__u32 pid; /* tgid */
	__u32 qpn;
	__u64 context;
};

struct nt_rdma_posted {
	__u64 wr_id;
	__u64 ns; /* boot time */
};

/*
 * The traffic of a queue pair, updated atomically while it is observed. Entries are deleted by the
 * agent.
 */
struct nt_rdma_traffic {
	__u64 posts[NT_RDMA_CLASSES]; /* work requests */
	__u64 bytes[NT_RDMA_CLASSES];
	__u64 cut; /* calls with more requests, elements or completions than are read */
	__u64 unread; /* requests or completions in memory that cannot be read */
	__u64 completions; /* of requests, successful */
	__u64 received, received_bytes; /* completions of receives, successful */
	__u64 timed, latency_ns; /* from the call that posted to the one that returned it */
	__u64 untimed; /* completions without a known post */
	__u32 errors[NT_RDMA_STATUSES];
	/* Of the timed ones since `window` is that of the process's struct nt_rdma_watch. */
	__u64 least_ns, most_ns;
	__u32 window;
	/* Kernel side: outstanding requests, oldest first; valid for one generation. */
	__u32 generation;
	__u32 head, tail;
	__u32 skipped; /* further requests outstanding that are not in `posted` */
	__u32 all_signaled;
	__u32 is_ended; /* its queue pair is destroyed */
	__u32 unused;
	struct nt_rdma_posted posted[NT_RDMA_OUTSTANDING];
};

/* Whether completions are observed now. */
enum nt_rdma_polled {
	NT_RDMA_POLLED_NOT,
	NT_RDMA_POLLED,
	NT_RDMA_POLLED_REST, /* yes, but what is posted now is not timed: those before are waited for */
};

/* Written by the agent, by process. */
struct nt_rdma_watch {
	__u32 generation; /* changes when completions are observed again */
	__u32 is_polled; /* enum nt_rdma_polled */
	__u32 window; /* changes when the traffic was read */
	__u32 pairs_max; /* entries of the process in the table of traffic; 0: NT_RDMA_PROCESS_QPS */
	__u32 forgotten; /* of `signaled`, those that the agent has deleted */
	__u32 dropped; /* of `seen`, those deleted before they ended: the process was dropped then */
};

_Static_assert(sizeof(struct nt_event_verbs) == 136, "ring buffer layout");
_Static_assert(sizeof(struct nt_verbs_totals) == 112, "map layout");
_Static_assert(sizeof(struct nt_rdma_key) == 16, "map layout");
_Static_assert(sizeof(struct nt_rdma_traffic) ==
		       80 + 64 + 4 * NT_RDMA_STATUSES + 48 + 16 * NT_RDMA_OUTSTANDING,
	       "map layout");
_Static_assert(sizeof(struct nt_rdma_watch) == 24, "map layout");

#endif
