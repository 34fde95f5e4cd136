/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Inspections: the requests that workers (agent/discover/worker.h) serve for the loop, and their
 * messages. A worker reads hostile input and may be compromised by it. The loop therefore checks
 * every size and value of an answer, which can do no more harm than a hostile file's symbols.
 */
#ifndef NT_AGENT_DISCOVER_INSPECTION_H
#define NT_AGENT_DISCOVER_INSPECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/elf/mpi_code.h"
#include "agent/host/proc.h"
#include "agent/identity/environ.h"
#include "agent/probes/rank_probe.h"
#include "agent/probes/symbols.h"
#include "agent/rdma/provider_file.h"
#include "agent/stack/stack.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_INSPECTION_MEMORY = 64 << 10, /* bytes of a process, per read */
	NT_INSPECTION_IO = 4096,
	NT_INSPECTION_FILES = 256, /* of one process */
	NT_INSPECTION_NAME =
		48, /* of a file of code, with its NUL; the beginning of a longer one */
};

enum nt_inspection_kind {
	NT_INSPECT_MEMORY, /* address, size: NT_ANSWER_BYTES */
	NT_INSPECT_ENVIRON, /* NT_ANSWER_BYTES, of a struct nt_environ */
	NT_INSPECT_IO, /* tid: NT_ANSWER_BYTES, of /proc/PID/task/TID/io */
	NT_INSPECT_PROCESS, /* NT_ANSWER_FILE for its libraries and its program, then DONE */
	/* address, size, ino, path: the same for a mapping; or NT_ANSWER_SYMBOLS, not DONE */
	NT_INSPECT_MAPPING,
	NT_INSPECT_PROGRAM, /* the same for its program */
	NT_INSPECT_SYMBOLS, /* dev, ino, library, with a descriptor: NT_ANSWER_SYMBOLS */
	NT_INSPECT_RANK_FILE, /* library: NT_ANSWER_SITES with a descriptor, or DONE */
	NT_INSPECT_MPI_CODE, /* NT_ANSWER_MPI_CODE, or DONE */
	NT_INSPECT_CODE_PLACE, /* address: NT_ANSWER_CODE_PLACE, or DONE */
	NT_INSPECT_STACK, /* thread; address: a number of the client: NT_ANSWER_STACK */
	/*
	 * address, size: of post_send and poll_cq of a provider of RDMA; or 0: those of a device
	 * that the process holds, else any provider. NT_ANSWER_PROVIDER with a descriptor, or DONE;
	 * without one if no file was found, but a device
	 */
	NT_INSPECT_PROVIDER,
	NT_INSPECT_END,
};

/* A path may follow, without its NUL. */
struct nt_inspection_request {
	uint32_t kind, pid, tid, library;
	uint64_t number; /* copied into the answers */
	uint64_t address, size;
	uint64_t dev, ino;
	uint32_t takes_fuse; /* files on FUSE file systems are inspected too */
	uint32_t wants_symbols; /* of a mapping: saves a round trip before the file is attached */
	uint32_t thread[NT_STACK_THREADS]; /* whose stacks are wanted; 0: none */
};

enum nt_answer_kind {
	NT_ANSWER_DONE, /* the last answer to a request */
	NT_ANSWER_BYTES, /* this and all below are also the last answer, except FILE */
	NT_ANSWER_SYMBOLS,
	NT_ANSWER_SITES,
	NT_ANSWER_MPI_CODE, /* a struct nt_mpi_code */
	NT_ANSWER_CODE_PLACE, /* a struct nt_inspection_code_place */
	NT_ANSWER_STACK, /* the used part of a struct nt_stack */
	NT_ANSWER_PROVIDER, /* a struct nt_provider_place */
	NT_ANSWER_FILE,
	NT_ANSWER_END,
};

struct nt_inspection_answer {
	uint32_t kind;
	int32_t result; /* 0 or a negative errno */
	uint64_t number;
	uint64_t waited_ns; /* blocked on what the process controls; 0: not noticeably */
};

/* A file that a process maps. It comes with an O_PATH descriptor, which cannot be read. */
struct nt_inspection_file {
	uint64_t dev, ino, bytes, changed_ns;
	uint64_t start, end; /* of the mapping; 0 for a program */
	uint32_t library; /* enum nt_library, by its name; UNKNOWN for a program */
	uint8_t executable;
	uint8_t is_fuse;
	uint8_t pad[2];
};

/* The header of `count` rows (struct nt_symbols_row). */
struct nt_inspection_symbols {
	uint32_t holds, count;
	struct nt_uncovered_calls uncovered;
};

/* The mapped file of code that holds an address. */
struct nt_inspection_code_place {
	uint64_t offset; /* of the address in the file */
	char name[NT_INSPECTION_NAME]; /* without its folder */
};

/* ---- in the child --------------------------------------------------------------------------- */

/* An nt_worker_fn. */
void nt_inspection_serve(int socket, const uint8_t *request, size_t len, int fd);

/* ---- in the loop: -EBADMSG: an answer is malformed ------------------------------------------- */

NT_MUST_CHECK int nt_inspection_parse(const uint8_t *data, size_t len,
				      struct nt_inspection_answer *ret_answer,
				      const uint8_t **ret_body, size_t *ret_len);
NT_MUST_CHECK int nt_inspection_parse_file(const uint8_t *body, size_t len,
					   struct nt_inspection_file *ret_file,
					   char ret_name[NT_PROC_PATH]);
NT_MUST_CHECK int nt_inspection_parse_symbols(const uint8_t *body, size_t len,
					      struct nt_symbols *ret_symbols);
NT_MUST_CHECK int nt_inspection_parse_sites(const uint8_t *body, size_t len,
					    struct nt_rank_probe_sites *ret_sites);
NT_MUST_CHECK int nt_inspection_parse_mpi_code(const uint8_t *body, size_t len,
					       struct nt_mpi_code *ret_code);
NT_MUST_CHECK int nt_inspection_parse_code_place(const uint8_t *body, size_t len,
						 struct nt_inspection_code_place *ret_place);
NT_MUST_CHECK int nt_inspection_parse_provider(const uint8_t *body, size_t len,
					       struct nt_provider_place *ret_provider);
NT_MUST_CHECK int nt_inspection_parse_environ(const uint8_t *body, size_t len,
					      struct nt_environ *ret_environ);

#endif
