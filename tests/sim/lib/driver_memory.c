/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The driver's calls on memory: allocate, register, copy, set, look up. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/sim/lib/activity.h"
#include "tests/sim/lib/driver.h"

enum {
	PITCH = 512,
	LOCATION = 12, /* of the device's number in CUmemAllocationProp */
};

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	sim_model_lock();
	*total_bytes = sim_driver_bytes();
	*free_bytes = *total_bytes - sim_memory_used(sim_driver_device());
	return sim_driver_leave(CUDA_SUCCESS);
}

static CUresult allocate(void **ret, size_t bytes, enum sim_memory kind)
{
	void *memory;

	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	sim_model_lock();
	if (kind == SIM_MEMORY_DEVICE &&
	    bytes > sim_driver_bytes() - sim_memory_used(sim_driver_device()))
		return sim_driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
	memory = sim_memory_alloc(bytes, kind, sim_driver_device());
	if (memory)
		*ret = memory;
	return sim_driver_leave(memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult allocate_device(CUdeviceptr *ret, size_t bytes, enum sim_memory kind)
{
	void *memory = NULL;
	CUresult r = allocate(&memory, bytes, kind);

	if (r == CUDA_SUCCESS)
		*ret = (CUdeviceptr)memory;
	return r;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
	return allocate_device(ret, bytes, SIM_MEMORY_DEVICE);
}

CUresult cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream stream)
{
	(void)stream;
	return allocate_device(ret, bytes, SIM_MEMORY_DEVICE);
}

/* There is one pool. */
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	(void)pool;
	(void)stream;
	return allocate_device(ret, bytes, SIM_MEMORY_DEVICE);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *pitch, size_t width, size_t height,
			    unsigned int element_bytes)
{
	const size_t wide = (width + PITCH - 1) / PITCH * PITCH;
	CUresult r = allocate_device(ret, wide * height, SIM_MEMORY_DEVICE);

	(void)element_bytes;
	if (r == CUDA_SUCCESS)
		*pitch = wide;
	return r;
}

CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned int flags)
{
	(void)flags;
	return allocate_device(ret, bytes, SIM_MEMORY_MANAGED);
}

CUresult cuMemAllocHost_v2(void **ret, size_t bytes)
{
	return allocate(ret, bytes, SIM_MEMORY_HOST);
}

CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned int flags)
{
	(void)flags;
	return allocate(ret, bytes, SIM_MEMORY_HOST);
}

/* Freeing waits for the device, as the real call does. */
static CUresult release(void *pointer)
{
	if (!pointer)
		return CUDA_SUCCESS;
	sim_model_lock();
	sim_device_wait_all(sim_driver_device());
	return sim_driver_leave(sim_memory_free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	return release((void *)pointer);
}

CUresult cuMemFreeHost(void *pointer)
{
	return release(pointer);
}

static void free_memory(void *pointer)
{
	sim_model_lock();
	(void)sim_memory_free(pointer);
	sim_model_unlock();
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	struct sim_op op = {.kind = SIM_OP_HOST,
			    .host = {.fn = free_memory, .data = (void *)pointer}};
	struct sim_stream *on = sim_driver_enter(stream);

	return sim_driver_leave(sim_stream_put(on, &op));
}

/* ---- virtual memory: physical memory has handles, and lives on while it is mapped -------------- */

/* A handle is the address of one. */
struct physical {
	size_t bytes;
	int device;
	unsigned int handles, mappings;
};

struct mapping {
	CUdeviceptr address;
	struct physical *of;
	struct mapping *next;
};

static struct mapping *mappings;

static void let_go(struct physical *physical)
{
	if (physical->handles || physical->mappings)
		return;
	sim_memory_use(physical->device, -(int64_t)physical->bytes);
	free(physical);
}

CUresult cuMemCreate(CUmemHandle *ret, size_t bytes, const void *properties,
		     unsigned long long flags)
{
	const int device = *(const int *)(const void *)((const char *)properties + LOCATION);
	struct physical *physical;

	(void)flags;
	if (!bytes || device < 0 || device >= SIM_DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	sim_model_lock();
	physical = bytes > sim_driver_bytes() - sim_memory_used(device)
			   ? NULL
			   : calloc(1, sizeof(*physical));
	if (!physical)
		return sim_driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
	*physical = (struct physical){.bytes = bytes, .device = device, .handles = 1};
	sim_memory_use(device, (int64_t)bytes);
	*ret = (uintptr_t)physical;
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuMemRelease(CUmemHandle handle)
{
	struct physical *physical = (struct physical *)(uintptr_t)handle;

	sim_model_lock();
	physical->handles--;
	let_go(physical);
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuMemRetainAllocationHandle(CUmemHandle *ret, void *address)
{
	sim_model_lock();
	for (struct mapping *m = mappings; m; m = m->next) {
		if (m->address != (CUdeviceptr)address)
			continue;
		m->of->handles++;
		*ret = (uintptr_t)m->of;
		return sim_driver_leave(CUDA_SUCCESS);
	}
	return sim_driver_leave(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemAddressReserve(CUdeviceptr *ret, size_t bytes, size_t alignment, CUdeviceptr wanted,
			     unsigned long long flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)alignment, (void)wanted, (void)flags;
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = (CUdeviceptr)memory;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	return munmap((void *)address, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemHandle handle,
		  unsigned long long flags)
{
	struct physical *physical = (struct physical *)(uintptr_t)handle;
	struct mapping *mapping = calloc(1, sizeof(*mapping));

	(void)flags;
	if (!mapping || offset || bytes != physical->bytes) {
		free(mapping);
		return CUDA_ERROR_INVALID_VALUE;
	}
	sim_model_lock();
	*mapping = (struct mapping){.address = address, .of = physical, .next = mappings};
	mappings = mapping;
	physical->mappings++;
	return sim_driver_leave(sim_memory_map((void *)address, bytes, physical->device)
					? CUDA_SUCCESS
					: CUDA_ERROR_OUT_OF_MEMORY);
}

/* All mappings that lie in the range. */
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	sim_model_lock();
	for (struct mapping **at = &mappings; *at;) {
		struct mapping *mapping = *at;

		if (mapping->address < address || mapping->address >= address + bytes) {
			at = &mapping->next;
			continue;
		}
		*at = mapping->next;
		(void)sim_memory_free((void *)mapping->address);
		mapping->of->mappings--;
		let_go(mapping->of);
		free(mapping);
	}
	return sim_driver_leave(CUDA_SUCCESS);
}

/* ---- memory of the host ------------------------------------------------------------------------ */

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	sim_model_lock();
	return sim_driver_leave(sim_memory_register(pointer, bytes, sim_driver_device())
					? CUDA_SUCCESS
					: CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuMemHostUnregister(void *pointer)
{
	sim_model_lock();
	return sim_driver_leave(sim_memory_free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *pointer, unsigned int flags)
{
	(void)flags;
	*ret = (CUdeviceptr)pointer;
	return CUDA_SUCCESS;
}

static bool on_device(enum sim_memory kind)
{
	return kind == SIM_MEMORY_DEVICE || kind == SIM_MEMORY_MANAGED;
}

/* What the real calls do with pageable memory: read it before they return, or wait until written. */
static CUresult copy(enum sim_driver_call cbid, void *to, const void *from, size_t bytes,
		     CUstream stream, bool wait)
{
	struct sim_op op = {.kind = SIM_OP_COPY, .copy = {.to = to, .from = from, .bytes = bytes}};
	enum sim_memory source, target;
	struct sim_stream *on;
	struct sim_api api;
	CUresult r;

	if (bytes == 0)
		return CUDA_SUCCESS;
	if (!to || !from)
		return CUDA_ERROR_INVALID_VALUE;
	sim_api_begin(&api, cbid);
	on = sim_driver_enter(stream);
	source = sim_memory_find(from, NULL, NULL, NULL);
	target = sim_memory_find(to, NULL, NULL, NULL);
	op.copy.source = source;
	op.copy.target = target;
	op.copy.across = !on_device(source) || !on_device(target);
	if (source == SIM_MEMORY_NONE && !wait && !on->capture && on->head) {
		op.copy.staged = malloc(bytes);
		if (!op.copy.staged)
			return sim_api_end(&api, sim_driver_leave(CUDA_ERROR_OUT_OF_MEMORY));
		memcpy(op.copy.staged, from, bytes);
	}
	r = sim_stream_put(on, &op);
	if (r != CUDA_SUCCESS)
		free(op.copy.staged);
	else if ((wait || target == SIM_MEMORY_NONE) && !on->capture)
		sim_stream_wait(on);
	return sim_api_end(&api, sim_driver_leave(r));
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy(SIM_DRIVER_MEMCPY, (void *)to, (const void *)from, bytes, NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(SIM_DRIVER_MEMCPY_ASYNC, (void *)to, (const void *)from, bytes, stream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	return copy(SIM_DRIVER_MEMCPY_HTOD, (void *)to, from, bytes, NULL, true);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	return copy(SIM_DRIVER_MEMCPY_DTOH, to, (const void *)from, bytes, NULL, true);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy(SIM_DRIVER_MEMCPY_DTOD, (void *)to, (const void *)from, bytes, NULL, false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return copy(SIM_DRIVER_MEMCPY_HTOD_ASYNC, (void *)to, from, bytes, stream, false);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(SIM_DRIVER_MEMCPY_DTOH_ASYNC, to, (const void *)from, bytes, stream, false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(SIM_DRIVER_MEMCPY_DTOD_ASYNC, (void *)to, (const void *)from, bytes, stream,
		    false);
}

static CUresult set(enum sim_driver_call cbid, CUdeviceptr to, uint32_t value, unsigned int width,
		    size_t count, CUstream stream)
{
	struct sim_op op = {
		.kind = SIM_OP_SET,
		.set = {.to = (void *)to, .value = value, .width = width, .count = count}};
	struct sim_stream *on;
	struct sim_api api;

	sim_api_begin(&api, cbid);
	on = sim_driver_enter(stream);
	return sim_api_end(&api, sim_driver_leave(sim_stream_put(on, &op)));
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	return set(SIM_DRIVER_MEMSET_D8, to, value, 1, count, NULL);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	return set(SIM_DRIVER_MEMSET_D8_ASYNC, to, value, 1, count, stream);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
	return set(SIM_DRIVER_MEMSET_D32, to, value, 4, count, NULL);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
	return set(SIM_DRIVER_MEMSET_D32_ASYNC, to, value, 4, count, stream);
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer)
{
	int device = 0;
	void *start = NULL;
	size_t bytes = 0;
	enum sim_memory kind;

	sim_model_lock();
	kind = sim_memory_find((void *)pointer, &device, &start, &bytes);
	sim_model_unlock();
	if (kind == SIM_MEMORY_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case 1: /* context */
		*(struct sim_context **)value = sim_driver_context(device);
		return CUDA_SUCCESS;
	case 2: /* memory type */
		*(int *)value = kind == SIM_MEMORY_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case 3: /* device pointer */
	case 4: /* host pointer */
		*(CUdeviceptr *)value = pointer;
		return CUDA_SUCCESS;
	case 7: /* buffer id */
	case 11: /* start of the range */
		*(void **)value = start;
		return CUDA_SUCCESS;
	case 8: /* managed */
		*(int *)value = kind == SIM_MEMORY_MANAGED;
		return CUDA_SUCCESS;
	case 9: /* device */
		*(int *)value = device;
		return CUDA_SUCCESS;
	case 12: /* size of the range */
		*(size_t *)value = bytes;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}
