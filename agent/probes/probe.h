/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table of probed functions. One row is all that the agent knows of a function: where it is
 * found, how it is attached, and which argument word (bpf/event.h) means what. A row is written
 * once per architecture where the words differ. Adding a library is adding rows.
 */
#ifndef NT_AGENT_PROBES_PROBE_H
#define NT_AGENT_PROBES_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "proto/wire.h"

/* One link per subject and library file, so that one hot subject can be let go alone. */
enum nt_subject {
	NT_SUBJECT_COMM, /* communicators, collectives and what captures them */
	NT_SUBJECT_LAUNCH,
	NT_SUBJECT_SYNC,
	NT_SUBJECT_ORDER, /* events and stream waits: what a synchronisation covers */
	NT_SUBJECT_COPY,
	NT_SUBJECT_ALLOC,
	NT_SUBJECT_DRIVER, /* libcuda launches and copies: only for processes without a probed cudart */
	NT_SUBJECT_GC, /* an interpreter's collections: of one process at a time */
	NT_SUBJECT_END,
};

const char *nt_subject_name(enum nt_subject subject);

/* Of the table alone: what carries no communication is not on the wire. */
enum {
	NT_LIBRARY_PYTHON = NT_LIBRARY_END, /* CPython: the interpreter or its libpython */
	NT_LIBRARY_TABLE_END,
};

/* What the call means to the agent. */
enum nt_role {
	NT_ROLE_COLLECTIVE, /* moves data among the ranks of `comm`; see op */
	NT_ROLE_START, /* non-blocking start of op (MPI_Iallreduce): like a collective, never waits */
	NT_ROLE_WAIT, /* completion of non-blocking calls: inside, the rank waits for others */
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
	NT_ROLE_CAPTURE_BEGIN, /* what `stream` is given from here on goes into `graph`, or a new one */
	NT_ROLE_CAPTURE_END, /* and that is `graph` */
	NT_ROLE_GRAPH_COPY, /* `graph` holds what `from` holds: instantiate, update, clone */
	NT_ROLE_GRAPH_ADD, /* `graph` holds what `from` holds besides: a child */
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
	NT_ROLE_END,
};

/* Where a value is: an argument word, or one of these. nt_probe_word() knows them all. */
enum {
	NT_NO_WORD = -1,
	NT_DEREF_WORD = NT_CALL_WORDS, /* not an argument: what `deref` read */
	/* Added to a word: one half of it alone. Above an int argument lies whatever was there. */
	NT_HIGH_WORD = 16,
	NT_LOW_WORD = 32,
};

/* What sets a call apart from others of its role. */
enum {
	NT_PROBE_ABORTS = 1 << 0, /* ends a communicator or library, and not well */
	NT_PROBE_ANNOUNCES = 1 << 1, /* of NT_ROLE_DESTROY: the one that destroys follows */
	/* Of NT_ROLE_SPLIT. */
	NT_PROBE_SAME_MEMBERS = 1 << 2, /* the parent's, with the same ranks */
	NT_PROBE_PER_NODE = 1 << 3, /* one for each node: the colour is the same on all of them */
	/* Of NT_ROLE_SYNC_DEVICE: waits for its own stream, and maybe for others. */
	NT_PROBE_OWN_STREAM = 1 << 4,
};

struct nt_probe {
	const char *symbol;
	enum nt_library library;
	enum nt_subject subject;
	enum nt_role role;
	enum nt_op op;
	uint8_t flags; /* NT_PROBE_… */
	bool returns; /* entry and return are observed (the call blocks, or its result is wanted) */
	bool long_only; /* with `returns`: short ones are only summed (min-call) */
	bool hot; /* may be called thousands of times a second: refuse a slow first instruction */
	/* Words, or NT_NO_WORD. */
	/* Of a collective; `root` of a send-receive is whom it receives from. */
	int8_t count, type, comm, stream, peer, root;
	int8_t number; /* the library's own number of the call within its communicator (Gloo's tag) */
	int8_t nranks, rank, id, newcomm, color, key; /* of the making of a communicator */
	int8_t event;
	int8_t graph, from; /* CUDA graphs, executable or not */
	int8_t bytes; /* whole bytes of the call; for a collective, in place of count and type */
	bool id_on_stack; /* by value, from word 6 on (x86-64) */
	uint8_t words; /* to capture */
	int8_t deref; /* word whose target is read, at offset deref_off */
	uint32_t deref_off;
	bool deref_at_return;
	int8_t record; /* 1 + offset / 16: words 1 on are the memory at word 0 + offset; 0: none */
	int8_t counter; /* enum nt_counter, or -1 */
	/*
	 * The time between entry and return is added to `counter`, and nothing else is recorded. Such
	 * rows are attached to one process at a time (agent/probes/gc_probe.h).
	 */
	bool timed;
	const char *provider, *mark,
		*mark_end; /* marks (agent/elf/elf.h), in place of the function */
	const char *beside; /* a file has it for sure if it has a function with this prefix, too */
};

/* The whole table. Rows are numbered from 0 without gaps. */
const struct nt_probe *nt_probe_row(uint16_t row); /* NULL past the end */
uint16_t nt_probe_rows(void);

/*
 * Is the function observed even in a process that calls others too often? Those that make and end
 * communicators, and those that say what a graph holds: all other numbers rest on them.
 */
bool nt_probe_stays(const struct nt_probe *probe);

/* The attach cookie of a row (bpf/event.h). */
uint64_t nt_probe_cookie(uint16_t row);

/* The value of one of a probe's words in an event; 0 for NT_NO_WORD. Do not index `word` by hand. */
uint64_t nt_probe_word(const struct nt_event_call *call, int8_t word);

/* Which library a mapped file is, by its name ("libnccl.so.2.28.9"); UNKNOWN: of no interest. */
enum nt_library nt_probe_library_of(const char *basename);

/*
 * Bytes of one element of the library's data type; 0: not known. Open MPI's types are pointers:
 * their size is `deref`, and this knows only MPICH's handles. Gloo's type word is the size itself.
 */
uint32_t nt_probe_type_bytes(enum nt_library library, uint32_t type);

#endif
