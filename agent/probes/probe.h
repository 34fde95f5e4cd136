/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table of probed functions. A row states where a function is found, how it is attached, and
 * what its argument words mean (bpf/event.h). Rows are written once per architecture where the
 * words differ. A library is added by adding rows.
 */
#ifndef NT_AGENT_PROBES_PROBE_H
#define NT_AGENT_PROBES_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "proto/wire.h"

/* One link per subject and library file, so that a hot subject can be detached alone. */
enum nt_subject {
	NT_SUBJECT_COMM, /* communicators, collectives and their capture in graphs */
	NT_SUBJECT_LAUNCH,
	NT_SUBJECT_SYNC,
	NT_SUBJECT_ORDER, /* events and stream waits: what a synchronisation covers */
	NT_SUBJECT_COPY,
	NT_SUBJECT_ALLOC,
	NT_SUBJECT_DRIVER, /* libcuda launches and copies: for processes without a probed cudart */
	NT_SUBJECT_GC, /* an interpreter's collections: of one process at a time */
	NT_SUBJECT_GEMM, /* matrix multiplications */
	NT_SUBJECT_GPU, /* what a library inside the process reports: of one process at a time */
	NT_SUBJECT_COMPLETION, /* queries of CUDA events: of one process at a time */
	NT_SUBJECT_RDMA, /* the traffic of queue pairs: of one process at a time */
	NT_SUBJECT_END,
};

const char *nt_subject_name(enum nt_subject subject);

/* Libraries of the table alone: those without communication are not on the wire. */
enum {
	NT_LIBRARY_CUBLAS = NT_LIBRARY_END, /* with cuBLASLt */
	NT_LIBRARY_VERBS, /* libibverbs, and libmlx5 for its direct interface */
	NT_LIBRARY_FILE_END, /* those above are known by the names of their files */
	NT_LIBRARY_PYTHON = NT_LIBRARY_FILE_END, /* CPython: the interpreter or its libpython */
	NT_LIBRARY_GPU, /* ours, inside the process: plugin/cupti/ */
	NT_LIBRARY_NCCL_PROFILER, /* ours, inside the process: plugin/nccl/ */
	NT_LIBRARY_NCCL_SENDS, /* the same library's other mark */
	NT_LIBRARY_EVENT, /* the CUDA runtime, or else the driver, where only queries are probed */
	NT_LIBRARY_RDMA_POST, /* a provider of libibverbs: its post_send */
	NT_LIBRARY_RDMA_POLL, /* the same: its poll_cq */
	NT_LIBRARY_TABLE_END,
};

/* The meaning of a call. */
enum nt_role {
	NT_ROLE_COLLECTIVE, /* moves data among the ranks of `comm`; see op */
	NT_ROLE_START, /* like a collective, but never blocks */
	NT_ROLE_WAIT, /* completion of non-blocking calls: blocks until other ranks arrive */
	NT_ROLE_GROUP_START,
	NT_ROLE_GROUP_END,
	NT_ROLE_INIT, /* makes a communicator from a unique id: nranks, rank, id, newcomm */
	NT_ROLE_INIT_ALL, /* several in one process: newcomm is an array of nranks */
	NT_ROLE_SPLIT, /* parent comm, color, key, newcomm; also MPI_Comm_create and dup */
	NT_ROLE_SHRINK, /* parent comm, newcomm */
	NT_ROLE_GROW,
	NT_ROLE_DESTROY, /* destroy, finalize, abort and revoke of one communicator */
	NT_ROLE_LIBRARY_INIT, /* MPI_Init: the process is a rank of MPI_COMM_WORLD */
	NT_ROLE_LIBRARY_END, /* MPI_Finalize, MPI_Abort */
	NT_ROLE_COMM_RANK, /* MPI_Comm_rank: comm, and *newcomm is this process's rank in it */
	NT_ROLE_COMM_SIZE, /* MPI_Comm_size: the same of its size */
	NT_ROLE_LAUNCH, /* counted */
	NT_ROLE_GRAPH_LAUNCH, /* of `graph` on `stream` */
	NT_ROLE_CAPTURE_BEGIN, /* later work on `stream` goes into `graph`, or a new one */
	NT_ROLE_CAPTURE_END, /* ends it; the result is `graph` */
	NT_ROLE_GRAPH_COPY, /* `graph` becomes a copy of `from`: instantiate, update, clone */
	NT_ROLE_GRAPH_ADD, /* `from` is added to `graph` as a child */
	NT_ROLE_GRAPH_DESTROY,
	NT_ROLE_SYNC_STREAM, /* waits for `stream` */
	NT_ROLE_SYNC_EVENT, /* waits for `event` */
	NT_ROLE_SYNC_DEVICE, /* waits for all streams: also cudaMemcpy, cudaFree */
	NT_ROLE_EVENT_RECORD, /* event, stream */
	NT_ROLE_STREAM_WAIT, /* stream waits for event */
	NT_ROLE_COPY,
	NT_ROLE_ALLOC,
	NT_ROLE_FREE,
	NT_ROLE_SET_DEVICE,
	NT_ROLE_COLLECTION, /* of garbage: counted with its time */
	NT_ROLE_GEMM, /* summed in the kernel */
	NT_ROLE_GPU_RECORDS, /* a batch of struct nt_gpu_record */
	NT_ROLE_EVENT_QUERY, /* whether `event` is complete */
	NT_ROLE_VERB, /* creates or changes a queue pair, or registers memory */
	NT_ROLE_TRAFFIC, /* posts to a queue pair, or polls a completion queue */
	NT_ROLE_END,
};

/* Where a value is: an argument word, or one of these. Resolved by nt_probe_word(). */
enum {
	NT_NO_WORD = -1,
	NT_DEREF_WORD = NT_CALL_WORDS, /* not an argument: the value read by `deref` */
	/* Added to a word: one half of it. The upper half of an int argument is undefined. */
	NT_HIGH_WORD = 16,
	NT_LOW_WORD = 32,
};

/* Flags of a row. */
enum {
	NT_PROBE_ABORTS = 1 << 0, /* ends a communicator or library abnormally */
	NT_PROBE_ANNOUNCES = 1 << 1, /* of NT_ROLE_DESTROY: the destroying call follows */
	/* Of NT_ROLE_SPLIT. */
	NT_PROBE_SAME_MEMBERS = 1 << 2, /* has the parent's members, with the same ranks */
	NT_PROBE_PER_NODE = 1 << 3, /* makes one per node, all with the same colour */
	/* Of NT_ROLE_SYNC_DEVICE: waits for its own stream, possibly for others. */
	NT_PROBE_OWN_STREAM = 1 << 4,
};

/* What a call does with device memory (agent/heap/gpu_heap.h). */
enum nt_memory_op {
	NT_MEMORY_NONE,
	NT_MEMORY_ALLOC, /* `bytes` at the address `deref` */
	NT_MEMORY_ALLOC_PITCHED, /* the same; the bytes are a pitch, word 1, times rows */
	NT_MEMORY_ALLOC_MANAGED, /* the same; it moves between the host and devices */
	NT_MEMORY_ALLOC_OPAQUE, /* of a size that is not known */
	NT_MEMORY_FREE, /* of the address in word 0 */
	NT_MEMORY_CREATE, /* physical memory: `bytes` with the handle `deref`; word 2: its location */
	NT_MEMORY_RETAIN, /* of the handle `deref`, which is released once more */
	NT_MEMORY_RELEASE, /* of the handle in word 0; it lives on while it is mapped */
	NT_MEMORY_MAP, /* of the handle in word 3 at the address in word 0 */
	NT_MEMORY_UNMAP, /* of `bytes` from the address in word 0 on */
	NT_MEMORY_RESET, /* frees all memory of the current device */
	NT_MEMORY_RESET_UNKNOWN, /* the same of a device that is not known */
};

struct nt_probe {
	const char *symbol;
	enum nt_library library;
	enum nt_subject subject;
	enum nt_role role;
	enum nt_op op;
	uint8_t flags; /* NT_PROBE_… */
	bool returns; /* entry and return are recorded: the call blocks, or its result is used */
	bool long_only; /* with `returns`: short calls are only summed (min-call) */
	bool hot; /* called thousands of times a second: not probed where that is slow */
	/* Words, or NT_NO_WORD. */
	/* Of a collective; the `root` of a send-receive is the rank that it receives from. */
	int8_t count, type, comm, stream, peer, root;
	int8_t number; /* the library's number of the call in its communicator (Gloo's tag) */
	int8_t nranks, rank, id, newcomm, color, key; /* of calls that make a communicator */
	int8_t event;
	int8_t graph, from; /* CUDA graphs, executable or not */
	int8_t bytes; /* total bytes of the call; for a collective, in place of count and type */
	bool id_on_stack; /* by value, from word 6 on (x86-64) */
	uint8_t words; /* to capture */
	int8_t deref; /* word whose target is read at offset deref_off */
	uint32_t deref_off;
	bool deref_at_return;
	int8_t record; /* 1 + offset / 16: words 1 on are the memory at word 0 + offset; 0: none */
	int8_t counter; /* enum nt_counter, or -1 */
	/* Not NONE: the call is recorded by the programs of bpf/memory.bpf.h */
	enum nt_memory_op memory;
	uint8_t gemm; /* enum nt_gemm_form; then nothing else is recorded */
	uint8_t gemm_type; /* cudaDataType of a form that has no word for it */
	bool gemm_is_wide; /* its sizes are 64 bits */
	/*
	 * The time between entry and return is added to `counter`; nothing else is recorded. Such
	 * rows are attached to one process at a time (agent/probes/rank_probe.h).
	 */
	bool timed;
	/* A mark at which a batch of records is copied; attached like the timed rows. */
	bool batched;
	bool has_launches; /* of all kinds of kernels: the batches hold the calls that enqueue them */
	/* A query of `event`, of which some are sent (bpf/event_query.bpf.h); attached like these. */
	bool queried;
	uint8_t verb; /* enum nt_verb; then nothing else is recorded */
	bool traffic; /* summed in the kernel by queue pair; attached like the timed rows */
	const char *provider, *mark,
		*mark_end; /* USDT marks (agent/elf/elf.h), in place of the function */
	const char *beside; /* also required: a function with this prefix in the same file */
};

/* The whole table. Rows are numbered from 0 without gaps. */
const struct nt_probe *nt_probe_row(uint16_t row); /* NULL past the end */
uint16_t nt_probe_rows(void);

/*
 * True if the function is observed even in a process over its budget. These make and end
 * communicators, or define what a graph holds: all other figures depend on them.
 */
bool nt_probe_stays(const struct nt_probe *probe);

/* True if the row is attached to one process at a time (agent/probes/rank_probe.h). */
bool nt_probe_is_of_rank(const struct nt_probe *probe);

/* The attach cookie of a row (bpf/event.h). */
uint64_t nt_probe_cookie(uint16_t row);

/* The value of a probe's word in an event; 0 for NT_NO_WORD. Never index `word` directly. */
uint64_t nt_probe_word(const struct nt_event_call *call, int8_t word);

/* The library of a mapped file, by its name ("libnccl.so.2.28.9"). UNKNOWN: none of the table. */
enum nt_library nt_probe_library_of(const char *basename);

/*
 * Bytes of one element of the library's data type; 0: not known. MPI: MPICH's handles alone; Open
 * MPI's types are pointers, and their size is `deref`. Gloo's type word is the size itself.
 */
uint32_t nt_probe_type_bytes(enum nt_library library, uint32_t type);

#endif
