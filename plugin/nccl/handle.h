/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handle that NCCL keeps for us: a number of a table, a slot in it, and the slot's generation. NCCL
 * uses handles again after their end, and handles of events that were never stopped; the generation
 * shows that. A generation is odd while the slot is in use. Of a call of the program the handle is
 * the time at which it was made.
 */
#ifndef NT_PLUGIN_NCCL_HANDLE_H
#define NT_PLUGIN_NCCL_HANDLE_H

#include <stdint.h>

enum nt_handle_kind {
	NT_HANDLE_NONE, /* also what NULL is */
	NT_HANDLE_COMM,
	NT_HANDLE_CALL,
	NT_HANDLE_CHANNEL,
	NT_HANDLE_TIME,
	NT_HANDLE_PROXY_OP,
	NT_HANDLE_PROXY_STEP,
	NT_HANDLE_KINDS = 8,
};

enum {
	NT_HANDLE_SLOTS = 1 << 16,
};

static inline void *nt_handle_of(enum nt_handle_kind kind, uint32_t slot, uint64_t generation)
{
	const uintptr_t number = ((uintptr_t)generation * NT_HANDLE_SLOTS + slot) * NT_HANDLE_KINDS;

	return (void *)(number + kind); /* NOLINT(performance-no-int-to-ptr) */
}

static inline enum nt_handle_kind nt_handle_kind(const void *handle)
{
	return (enum nt_handle_kind)((uintptr_t)handle % NT_HANDLE_KINDS);
}

static inline uint32_t nt_handle_slot(const void *handle)
{
	return (uint32_t)((uintptr_t)handle / NT_HANDLE_KINDS % NT_HANDLE_SLOTS);
}

static inline uint64_t nt_handle_generation(const void *handle)
{
	return (uintptr_t)handle / NT_HANDLE_KINDS / NT_HANDLE_SLOTS;
}

static inline void *nt_handle_of_time(uint64_t time_ns)
{
	return (void *)(uintptr_t)(time_ns * NT_HANDLE_KINDS + /* NOLINT(performance-*) */
				   NT_HANDLE_TIME);
}

static inline uint64_t nt_handle_time(const void *handle)
{
	return (uintptr_t)handle / NT_HANDLE_KINDS;
}

/* True if it is of that generation, which is in use. */
static inline int nt_handle_is_of(const void *handle, uint64_t generation)
{
	return generation % 2 && nt_handle_generation(handle) == (uintptr_t)generation;
}

#endif
