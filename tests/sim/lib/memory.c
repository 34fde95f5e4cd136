/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Device memory is host memory that costs nothing until it is touched. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/search.h"
#include "tests/sim/lib/model.h"

struct allocation {
	uintptr_t start;
	size_t bytes;
	enum sim_memory kind;
	int device;
	bool mapped; /* ours to unmap */
	bool counts; /* it uses memory of the device */
};

/* Sorted by start. */
static struct allocation *table;
static size_t count, room;
static size_t used[SIM_DEVICES];

/* Index of the first allocation that starts after the address. */
static size_t after(uintptr_t address)
{
	return nt_search_first(0, count, i, table[i].start > address);
}

static bool insert(const struct allocation *allocation)
{
	size_t at;

	if (count == room) {
		size_t more = room ? 2 * room : 256;
		struct allocation *grown = reallocarray(table, more, sizeof(*table));

		if (!grown)
			return false;
		table = grown;
		room = more;
	}
	at = after(allocation->start);
	memmove(&table[at + 1], &table[at], (count - at) * sizeof(*table));
	table[at] = *allocation;
	count++;
	return true;
}

void *sim_memory_alloc(size_t bytes, enum sim_memory kind, int device)
{
	struct allocation allocation = {.bytes = bytes ? bytes : 1, .kind = kind, .device = device};
	void *memory = mmap(NULL, allocation.bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	allocation.start = (uintptr_t)memory;
	allocation.mapped = true;
	allocation.counts = kind == SIM_MEMORY_DEVICE;
	if (!insert(&allocation)) {
		(void)munmap(memory, allocation.bytes);
		return NULL;
	}
	if (allocation.counts)
		used[device] += bytes;
	return memory;
}

void sim_memory_use(int device, int64_t bytes)
{
	used[device] += (size_t)bytes;
}

bool sim_memory_map(void *pointer, size_t bytes, int device)
{
	const struct allocation allocation = {.start = (uintptr_t)pointer,
					      .bytes = bytes,
					      .kind = SIM_MEMORY_DEVICE,
					      .device = device};

	return insert(&allocation);
}

bool sim_memory_register(void *pointer, size_t bytes, int device)
{
	struct allocation allocation = {.start = (uintptr_t)pointer,
					.bytes = bytes,
					.kind = SIM_MEMORY_HOST,
					.device = device};

	return insert(&allocation);
}

bool sim_memory_free(void *pointer)
{
	size_t at = after((uintptr_t)pointer);

	if (at == 0 || table[at - 1].start != (uintptr_t)pointer)
		return false;
	at--;
	if (table[at].counts)
		used[table[at].device] -= table[at].bytes;
	if (table[at].mapped)
		(void)munmap(pointer, table[at].bytes);
	memmove(&table[at], &table[at + 1], (count - at - 1) * sizeof(*table));
	count--;
	return true;
}

enum sim_memory sim_memory_find(const void *pointer, int *ret_device, void **ret_start,
				size_t *ret_bytes)
{
	size_t at = after((uintptr_t)pointer);
	const struct allocation *allocation;

	if (at == 0)
		return SIM_MEMORY_NONE;
	allocation = &table[at - 1];
	if ((uintptr_t)pointer - allocation->start >= allocation->bytes)
		return SIM_MEMORY_NONE;
	if (ret_device)
		*ret_device = allocation->device;
	if (ret_start)
		*ret_start = (void *)allocation->start;
	if (ret_bytes)
		*ret_bytes = allocation->bytes;
	return allocation->kind;
}

size_t sim_memory_used(int device)
{
	return used[device];
}
