/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/probe.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

#include "agent/probes/probe_impl.h"

#if defined(__aarch64__)
#define THIS_ARCH NT_ARCH_ARM64
#else
#define THIS_ARCH NT_ARCH_X86_64
#endif

enum {
	PIECES = 14,
};

static const struct nt_probe_piece *piece_of(enum nt_arch arch, int i)
{
	const struct nt_probe_piece *const pieces[PIECES] = {
		&nt_probe_nccl,   &nt_probe_nccl_init[arch],
		&nt_probe_mpi,    &nt_probe_gloo,
		&nt_probe_cudart, &nt_probe_cuda,
		&nt_probe_rccl,   &nt_probe_rccl_init[arch],
		&nt_probe_hccl,   &nt_probe_python,
		&nt_probe_gpu,    &nt_probe_event,
		&nt_probe_cublas, &nt_probe_verbs,
	};

	return pieces[i];
}

const char *nt_subject_name(enum nt_subject subject)
{
	static const char *const names[NT_SUBJECT_END] = {
		[NT_SUBJECT_COMM] = "communication",
		[NT_SUBJECT_LAUNCH] = "launch",
		[NT_SUBJECT_SYNC] = "sync",
		[NT_SUBJECT_ORDER] = "order",
		[NT_SUBJECT_COPY] = "copy",
		[NT_SUBJECT_ALLOC] = "alloc",
		[NT_SUBJECT_DRIVER] = "driver",
		[NT_SUBJECT_GC] = "gc",
		[NT_SUBJECT_GEMM] = "gemm",
		[NT_SUBJECT_GPU] = "gpu",
		[NT_SUBJECT_COMPLETION] = "completion",
		[NT_SUBJECT_RDMA] = "rdma",
	};

	return (unsigned int)subject < NT_SUBJECT_END ? names[subject] : "unknown";
}

/* The rows of all pieces in order: the governor looks at each of them many times a second. */
static struct arch_table {
	const struct nt_probe *row[NT_ROWS_MAX];
	uint16_t rows;
} table[NT_ARCH_END];

static void fill_tables(void)
{
	for (int arch = 0; arch < NT_ARCH_END; arch++) {
		struct arch_table *t = &table[arch];

		for (int i = 0; i < PIECES; i++) {
			const struct nt_probe_piece *piece = piece_of((enum nt_arch)arch, i);

			for (uint16_t row = 0; row < piece->count && t->rows < NT_ROWS_MAX; row++)
				t->row[t->rows++] = &piece->probe[row];
		}
	}
}

static const struct arch_table *table_of(enum nt_arch arch)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, fill_tables);
	return &table[arch];
}

const struct nt_probe *nt_probe_arch_row(enum nt_arch arch, uint16_t row)
{
	const struct arch_table *t = table_of(arch);

	return row < t->rows ? t->row[row] : NULL;
}

const struct nt_probe *nt_probe_row(uint16_t row)
{
	return nt_probe_arch_row(THIS_ARCH, row);
}

uint16_t nt_probe_rows(void)
{
	return table_of(THIS_ARCH)->rows;
}

bool nt_probe_stays(const struct nt_probe *probe)
{
	switch (probe->role) {
	case NT_ROLE_INIT:
	case NT_ROLE_INIT_ALL:
	case NT_ROLE_SPLIT:
	case NT_ROLE_SHRINK:
	case NT_ROLE_GROW:
	case NT_ROLE_DESTROY:
	case NT_ROLE_LIBRARY_INIT:
	case NT_ROLE_LIBRARY_END:
	case NT_ROLE_CAPTURE_BEGIN:
	case NT_ROLE_CAPTURE_END:
	case NT_ROLE_GRAPH_COPY:
	case NT_ROLE_GRAPH_ADD:
	case NT_ROLE_GRAPH_DESTROY:
	case NT_ROLE_VERB:
		return true;
	default:
		return false;
	}
}

bool nt_probe_is_of_rank(const struct nt_probe *probe)
{
	return probe->timed || probe->batched || probe->queried || probe->traffic;
}

uint64_t nt_probe_cookie(uint16_t row)
{
	const struct nt_probe *p = nt_probe_row(row);
	uint64_t cookie = NT_COOKIE_OF_ROW(row);

	if (!p)
		return 0;
	cookie |= (uint64_t)p->words << 16;
	if (p->deref != NT_NO_WORD) {
		cookie |= (uint64_t)(p->deref + 1) << 20 | (uint64_t)p->deref_off << 24;
		cookie |= (uint64_t)p->deref_at_return << 58;
	}
	if (p->id_on_stack || p->memory == NT_MEMORY_ALLOC_PITCHED)
		cookie |= 1ULL << 48;
	else if (p->id != NT_NO_WORD)
		cookie |= (uint64_t)(p->id + 1) << 44;
	else if (p->memory == NT_MEMORY_CREATE)
		cookie |= 3ULL << 44;
	if (p->counter >= 0) {
		cookie |= (uint64_t)(p->counter + 1) << 49;
		cookie |= (uint64_t)(p->bytes + 1) << 53;
	}
	if (p->counter < 0 && p->role == NT_ROLE_CAPTURE_BEGIN)
		cookie |= (uint64_t)NT_CAPTURE_BEGIN << 53;
	if (p->counter < 0 && p->role == NT_ROLE_CAPTURE_END)
		cookie |= (uint64_t)NT_CAPTURE_END << 53;
	if (p->gemm)
		cookie |= (uint64_t)p->gemm << 24 | (uint64_t)p->gemm_type << 28 |
			  (uint64_t)p->gemm_is_wide << 34;
	cookie |= (uint64_t)p->has_launches << 24;
	cookie |= (uint64_t)p->verb << 24;
	cookie |= (uint64_t)p->long_only << 57;
	cookie |= (uint64_t)p->record << 59;
	return cookie;
}

uint64_t nt_probe_word(const struct nt_event_call *call, int8_t word)
{
	if (word == NT_DEREF_WORD)
		return call->deref;
	if (word >= NT_LOW_WORD && word < NT_LOW_WORD + NT_CALL_WORDS)
		return (uint32_t)call->word[word - NT_LOW_WORD];
	if (word >= NT_HIGH_WORD && word < NT_HIGH_WORD + NT_CALL_WORDS)
		return call->word[word - NT_HIGH_WORD] >> 32;
	if (word >= 0 && word < NT_CALL_WORDS)
		return call->word[word];
	return 0;
}

/* The suffix of a library's stem: ".so…", or "-0123abcd.so…" as wheels rename bundled libraries. */
static bool is_library_tail(const char *tail)
{
	if (*tail == '-') {
		tail++;
		if (!isxdigit((unsigned char)*tail))
			return false;
		while (isxdigit((unsigned char)*tail))
			tail++;
	}
	return strncmp(tail, ".so", 3) == 0 && (tail[3] == '\0' || tail[3] == '.');
}

enum nt_library nt_probe_library_of(const char *basename)
{
	static const struct {
		const char *stem;
		enum nt_library library;
	} known[] = {
		{"libnccl", NT_LIBRARY_NCCL},
		{"librccl", NT_LIBRARY_RCCL},
		{"libhccl", NT_LIBRARY_HCCL},
		{"libmpi", NT_LIBRARY_MPI},
		{"libmpich", NT_LIBRARY_MPI},
		{"libgloo", NT_LIBRARY_GLOO},
		{"libtorch_cpu", NT_LIBRARY_GLOO},
		{"libcudart", NT_LIBRARY_CUDART},
		{"libcuda", NT_LIBRARY_CUDA},
		{"libcublas", (enum nt_library)NT_LIBRARY_CUBLAS},
		{"libcublasLt", (enum nt_library)NT_LIBRARY_CUBLAS},
		{"libibverbs", (enum nt_library)NT_LIBRARY_VERBS},
		{"libmlx5", (enum nt_library)NT_LIBRARY_VERBS},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t len = strlen(known[i].stem);

		if (strncmp(basename, known[i].stem, len) == 0 && is_library_tail(basename + len))
			return known[i].library;
	}
	return NT_LIBRARY_UNKNOWN;
}

uint32_t nt_probe_type_bytes(enum nt_library library, uint32_t type)
{
	static const uint8_t nccl[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
	static const uint8_t hccl[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 16, 0, 1, 1, 1, 1};

	switch (library) {
	case NT_LIBRARY_NCCL:
	case NT_LIBRARY_RCCL:
		return type < sizeof(nccl) ? nccl[type] : 0;
	case NT_LIBRARY_HCCL:
		return type < sizeof(hccl) ? hccl[type] : 0;
	case NT_LIBRARY_MPI:
		/* MPICH: a handle of kind builtin and class data type contains its size. */
		return type >> 26 == 0x13 ? (type >> 8) & 0xff : 0;
	case NT_LIBRARY_GLOO:
		return type;
	default:
		return 0;
	}
}
