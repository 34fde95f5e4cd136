/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pieces of the probe table, one per library; for agent/probes/probe*.c alone. */
#ifndef NT_AGENT_PROBES_PROBE_IMPL_H
#define NT_AGENT_PROBES_PROBE_IMPL_H

#include "agent/probes/probe.h"

/* The calling convention: words of arguments passed by value differ. */
enum nt_arch {
	NT_ARCH_X86_64,
	NT_ARCH_ARM64,
	NT_ARCH_END,
};

struct nt_probe_piece {
	const struct nt_probe *probe;
	uint16_t count;
};

#define NT_PIECE(rows)                                                                             \
	{                                                                                          \
		.probe = (rows), .count = sizeof(rows) / sizeof((rows)[0])                         \
	}

/*
 * NCCL and RCCL share their names. Calls that take the unique id by value are a piece per
 * architecture.
 */
extern const struct nt_probe_piece nt_probe_nccl, nt_probe_rccl;
extern const struct nt_probe_piece nt_probe_nccl_init[NT_ARCH_END], nt_probe_rccl_init[NT_ARCH_END];
extern const struct nt_probe_piece nt_probe_hccl, nt_probe_mpi, nt_probe_gloo;
extern const struct nt_probe_piece nt_probe_cudart, nt_probe_cuda, nt_probe_python, nt_probe_gpu;
extern const struct nt_probe_piece nt_probe_event, nt_probe_cublas, nt_probe_verbs;

/* Words that a row lacks. */
#define NT_NO_DATA                                                                                 \
	.count = NT_NO_WORD, .type = NT_NO_WORD, .peer = NT_NO_WORD, .root = NT_NO_WORD,           \
	.number = NT_NO_WORD
#define NT_NO_MAKE                                                                                 \
	.nranks = NT_NO_WORD, .rank = NT_NO_WORD, .id = NT_NO_WORD, .newcomm = NT_NO_WORD,         \
	.color = NT_NO_WORD, .key = NT_NO_WORD
#define NT_NO_GRAPH  .graph = NT_NO_WORD, .from = NT_NO_WORD
#define NT_NO_DEVICE .event = NT_NO_WORD, .bytes = NT_NO_WORD, NT_NO_GRAPH
#define NT_NO_DEREF  .deref = NT_NO_WORD
#define NT_NO_COUNT  .counter = -1
#define NT_NO_STREAM .stream = NT_NO_WORD
#define NT_NO_COMM   .comm = NT_NO_WORD

/* A word that the library declares as int. */
#define NT_INT(word) ((int)(word) < 0 ? (int)NT_NO_WORD : (int)(word) + NT_LOW_WORD)

/* The table of any architecture, so that tests cover the one that does not run. */
const struct nt_probe *nt_probe_arch_row(enum nt_arch arch, uint16_t row);

#endif
