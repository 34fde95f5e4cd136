/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The GPU heap of a process: the device memory that it holds by its own calls, per device and call
 * site. What the driver takes for itself (contexts, code, stacks) is in no call and not here. Memory
 * of other processes that it maps is not either.
 *
 * Every allocation is recorded once: by the outermost call that makes it (bpf/memory.bpf.h), under its
 * address or handle. Physical memory counts from its creation until its last handle is released and
 * its last mapping is gone; mappings count nothing.
 *
 * The figures are those of the process if all of its calls were observed (`is_whole`). Otherwise it
 * holds at least as much: calls before `since_ns` are not known, and after a loss the heap begins
 * anew, because a release may be among what was lost.
 *
 * Calls are recorded when they return, so a thread may get an address again before the call returns
 * that released it in another thread. That release comes a little later; if it does not, it was lost.
 *
 * Pure: time is an argument (boot time). All values come from the process.
 */
#ifndef NT_AGENT_HEAP_GPU_HEAP_H
#define NT_AGENT_HEAP_GPU_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/heap/gpu_block.h"
#include "agent/heap/gpu_growth.h"
#include "agent/probes/probe.h"
#include "common/base/cleanup.h"
#include "common/system/clock.h"

enum {
	NT_GPU_HEAP_DEVICES = 16, /* by the runtime's number; others are NT_GPU_HEAP_ANY_DEVICE */
	NT_GPU_HEAP_ANY_DEVICE = NT_GPU_HEAP_DEVICES,
	NT_GPU_HEAP_SITES = 32, /* of one process; further ones share NT_GPU_HEAP_OTHER_SITES */
	NT_GPU_HEAP_OTHER_SITES = NT_GPU_HEAP_SITES,
	NT_GPU_HEAP_FILE = 48, /* bytes of a name with its NUL */
	NT_GPU_HEAP_OUT_OF_MEMORY = 2, /* cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY */
};

#define NT_GPU_HEAP_RELEASE_NS NT_SECOND /* so long a release may come after the reuse */
#define NT_GPU_HEAP_BLOCK_MOST (1ULL << 46) /* bytes; a larger block is malformed */
/* A leak is reported from this growth on: bytes, and part of the heap (Scalene's hundredth). */
#define NT_GPU_HEAP_LEAK_LEAST (1ULL << 20)
#define NT_GPU_HEAP_LEAK_PART  100

/* A call as it returned. */
struct nt_gpu_heap_call {
	enum nt_memory_op op;
	const char *symbol; /* static */
	uint64_t address; /* or handle */
	uint64_t handle; /* of NT_MEMORY_MAP */
	uint64_t bytes;
	uint64_t site; /* the address to which it returned */
	uint32_t device; /* NT_GPU_HEAP_ANY_DEVICE: not known */
	uint32_t result; /* 0: success */
	uint64_t entry_ns, ret_ns;
};

struct nt_gpu_heap_device {
	uint64_t live, high; /* bytes; high: the most so far */
	uint64_t managed; /* bytes that move between the host and devices; not in `live` */
	uint64_t blocks; /* live ones, managed ones included */
};

struct nt_gpu_heap_site {
	uint64_t address; /* 0: of the others */
	uint64_t live, peak; /* bytes; peak: since the last sample */
	uint64_t blocks;
	struct nt_gpu_growth growth;
	/* Where it is; file "": not known (yet). */
	char file[NT_GPU_HEAP_FILE];
	uint64_t offset;
	bool is_asked; /* `file` was requested */
};

/* The last allocation that failed for want of memory. */
struct nt_gpu_heap_failure {
	const char *symbol; /* static; NULL: none */
	uint64_t bytes, boot_ns;
	uint64_t live; /* bytes of the process on the device at that time */
	uint32_t device;
	uint32_t site; /* of the call; an index */
};

struct nt_gpu_heap {
	struct nt_gpu_heap_device device[NT_GPU_HEAP_DEVICES + 1];
	struct nt_gpu_heap_site *site; /* owned */
	uint32_t sites, site_room;
	struct nt_gpu_heap_site others;
	struct nt_gpu_blocks blocks; /* owned */
	bool is_whole; /* see nt_gpu_heap_is_whole() */
	uint32_t reused; /* blocks with `is_reused` */
	uint64_t reused_ns; /* since when there are any */
	uint64_t since_ns; /* the calls are known from here on; 0: from the start of the process */
	uint64_t failures; /* so far, of allocations, for any reason */
	uint64_t out_of_memory; /* of them, for want of memory */
	struct nt_gpu_heap_failure last;
	/* What went wrong so far. */
	uint64_t blocks_over_cap, sites_over_cap, malformed, unmatched;
};

/* since_ns: as above; 0 if all calls of the process are observed. seed: of the hash. */
NT_MUST_CHECK int nt_gpu_heap_new(uint64_t since_ns, uint64_t seed, struct nt_gpu_heap **ret_heap);
void nt_gpu_heap_free(struct nt_gpu_heap *heap);
NT_DEFINE_AUTO(nt_gpu_heap, nt_gpu_heap_free)
size_t nt_gpu_heap_bytes(const struct nt_gpu_heap *heap);

/* Takes a call. True: an allocation failed for want of memory. */
bool nt_gpu_heap_take(struct nt_gpu_heap *heap, const struct nt_gpu_heap_call *call);
/* Calls were lost, or are not observed any more: begins anew. */
void nt_gpu_heap_lose(struct nt_gpu_heap *heap, uint64_t now_ns);

/* A window with steps has ended: a sample of each site. */
void nt_gpu_heap_sample(struct nt_gpu_heap *heap);

/* True: the figures are those of the process. False: it holds at least as much. */
bool nt_gpu_heap_is_whole(struct nt_gpu_heap *heap, uint64_t now_ns);

/* The site with this index; NT_GPU_HEAP_OTHER_SITES: of those over the cap. NULL: there is none. */
const struct nt_gpu_heap_site *nt_gpu_heap_site(const struct nt_gpu_heap *heap, uint32_t index);
/* Bytes on all devices, without managed ones. */
uint64_t nt_gpu_heap_live(const struct nt_gpu_heap *heap);
/* The bytes on its only device with memory; 0: there are none, or several. */
uint64_t nt_gpu_heap_single(const struct nt_gpu_heap *heap);
/*
 * The sites that leak, then the others, each the largest first; at most `max` indices. Returns their
 * number. Sites without memory are left out.
 */
size_t nt_gpu_heap_largest(const struct nt_gpu_heap *heap, uint32_t *ret_index, size_t max);
/* The site with the most memory. False: there is none. */
bool nt_gpu_heap_most(const struct nt_gpu_heap *heap, uint32_t *ret_index);
/* True: its memory keeps growing. *ret_probability and *ret_bytes: as of nt_gpu_growth_probability(). */
bool nt_gpu_heap_leaks(const struct nt_gpu_heap *heap, const struct nt_gpu_heap_site *site,
		       double *ret_probability, uint64_t *ret_bytes);
/* Where the site is, as a worker found it. */
void nt_gpu_heap_locate(struct nt_gpu_heap *heap, uint64_t address, const char *file,
			uint64_t offset);

#endif
