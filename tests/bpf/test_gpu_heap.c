/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Device memory by real probes on the stand-in libraries: after any calls of all allocators the heap
 * of the process is what the device's ledger states.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/bpf/harness.h"

#include "agent/tracker/tracker_impl.h"
#include "tests/sim/lib/cuda.h"
#include "tests/unit/agent/agent_node.h"

#define RUNTIME_PATH "build/sim/lib/libcudart.so.12"
#define DRIVER_PATH  "build/sim/lib/libcuda.so.1"

enum {
	THREADS = 3,
	CALLS = 1000000, /* of all threads */
	SLOTS = 150, /* of a thread: allocations that live at a time */
	DEVICES = 2,
	RING_BYTES = 256 << 20, /* a quarter holds all events of a short run */
	BLOCK_MOST = 1 << 29, /* bytes: together more than the devices have */
	VMM_RESERVED = 1 << 21,
	CODE_BYTES = 16384, /* of this file */
};

/* The functions under test. */
#define RUNTIME(X)                                                                                 \
	X(cudaSetDevice)                                                                           \
	X(cudaDeviceSynchronize)                                                                   \
	X(cudaMemGetInfo)                                                                          \
	X(cudaMalloc)                                                                              \
	X(cudaMallocAsync)                                                                         \
	X(cudaMallocFromPoolAsync)                                                                 \
	X(cudaMallocPitch)                                                                         \
	X(cudaMallocManaged)                                                                       \
	X(cudaMallocHost)                                                                          \
	X(cudaFree)                                                                                \
	X(cudaFreeAsync)                                                                           \
	X(cudaFreeHost)
#define DRIVER(X)                                                                                  \
	X(cuMemAlloc_v2)                                                                           \
	X(cuMemAllocAsync)                                                                         \
	X(cuMemAllocFromPoolAsync)                                                                 \
	X(cuMemAllocPitch_v2)                                                                      \
	X(cuMemAllocManaged)                                                                       \
	X(cuMemFree_v2)                                                                            \
	X(cuMemFreeAsync)                                                                          \
	X(cuMemCreate)                                                                             \
	X(cuMemRetainAllocationHandle)                                                             \
	X(cuMemRelease)                                                                            \
	X(cuMemAddressReserve)                                                                     \
	X(cuMemAddressFree)                                                                        \
	X(cuMemMap)                                                                                \
	X(cuMemUnmap)
#define MEMBER(name) __typeof__(name) *name;

static struct {
	RUNTIME(MEMBER)
	DRIVER(MEMBER)
} cuda;

enum kind {
	MALLOC,
	MALLOC_ASYNC,
	MALLOC_POOL,
	MALLOC_PITCH,
	MALLOC_MANAGED,
	MALLOC_HOST,
	DRIVER_ALLOC,
	DRIVER_ASYNC,
	DRIVER_POOL,
	DRIVER_PITCH,
	DRIVER_MANAGED,
	VMM,
	KINDS,
	NOTHING = KINDS,
};

struct slot {
	enum kind kind;
	uint64_t bytes, address, handle;
	uint32_t handles;
	bool is_mapped;
};

struct worker {
	pthread_t thread;
	uint64_t seed, drawn, calls;
	int device;
	struct slot slot[SLOTS];
};

static _Atomic uint64_t managed_bytes, out_of_memory, ended;

static uint64_t draw(struct worker *worker, uint64_t below)
{
	return nt_hash_mix(worker->seed << 40 | ++worker->drawn) % below;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static int allocate_physical(struct worker *worker, struct slot *slot)
{
	const int properties[8] = {1, 0, 1, worker->device};
	CUmemHandle handle = 0;
	int r = cuda.cuMemCreate(&handle, slot->bytes, properties, 0);

	slot->handle = handle;
	slot->handles = 1;
	return r;
}

static int allocate(struct worker *worker, struct slot *slot)
{
	void *memory = NULL;
	CUdeviceptr at = 0;
	size_t pitch;
	int r = 0;

	switch (slot->kind) {
	case MALLOC:
		r = cuda.cudaMalloc(&memory, slot->bytes);
		break;
	case MALLOC_ASYNC:
		r = cuda.cudaMallocAsync(&memory, slot->bytes, NULL);
		break;
	case MALLOC_POOL:
		r = cuda.cudaMallocFromPoolAsync(&memory, slot->bytes, NULL, NULL);
		break;
	case MALLOC_PITCH:
		r = cuda.cudaMallocPitch(&memory, &pitch, slot->bytes / 64 + 1, 64);
		break;
	case MALLOC_MANAGED:
		r = cuda.cudaMallocManaged(&memory, slot->bytes, 1);
		break;
	case MALLOC_HOST:
		r = cuda.cudaMallocHost(&memory, slot->bytes);
		break;
	case DRIVER_ALLOC:
		r = cuda.cuMemAlloc_v2(&at, slot->bytes);
		break;
	case DRIVER_ASYNC:
		r = cuda.cuMemAllocAsync(&at, slot->bytes, NULL);
		break;
	case DRIVER_POOL:
		r = cuda.cuMemAllocFromPoolAsync(&at, slot->bytes, NULL, NULL);
		break;
	case DRIVER_PITCH:
		r = cuda.cuMemAllocPitch_v2(&at, &pitch, slot->bytes / 64 + 1, 64, 4);
		break;
	case DRIVER_MANAGED:
		r = cuda.cuMemAllocManaged(&at, slot->bytes, 1);
		break;
	case VMM:
		r = allocate_physical(worker, slot);
		break;
	case NOTHING:
		break;
	}
	slot->address = memory ? (uintptr_t)memory : at;
	if (r == 0 && (slot->kind == MALLOC_MANAGED || slot->kind == DRIVER_MANAGED))
		atomic_fetch_add(&managed_bytes, slot->bytes);
	return r;
}

/* One of the calls that end in the release of physical memory. True: it is released. */
static bool release_physical(struct worker *worker, struct slot *slot)
{
	CUdeviceptr at = 0;
	CUmemHandle same = 0;

	if (!slot->is_mapped && slot->handles && draw(worker, 2)) {
		assert_int_equal(cuda.cuMemAddressReserve(&at, slot->bytes, 0, 0, 0), 0);
		assert_int_equal(cuda.cuMemMap(at, slot->bytes, 0, slot->handle, 0), 0);
		slot->address = at;
		slot->is_mapped = true;
		return false;
	}
	if (slot->is_mapped && draw(worker, 3) == 0) {
		assert_int_equal(cuda.cuMemRetainAllocationHandle(&same, (void *)slot->address), 0);
		assert_int_equal(same, slot->handle);
		slot->handles++;
		return false;
	}
	if (slot->handles && draw(worker, 2)) {
		assert_int_equal(cuda.cuMemRelease(slot->handle), 0);
		slot->handles--;
	} else if (slot->is_mapped) {
		assert_int_equal(cuda.cuMemUnmap(slot->address, slot->bytes), 0);
		assert_int_equal(cuda.cuMemAddressFree(slot->address, slot->bytes), 0);
		slot->is_mapped = false;
	}
	return !slot->handles && !slot->is_mapped;
}

static void let_go(struct worker *worker, struct slot *slot)
{
	int r;

	if (slot->kind == VMM) {
		if (release_physical(worker, slot))
			slot->kind = NOTHING;
		return;
	}
	if (slot->kind == MALLOC_MANAGED || slot->kind == DRIVER_MANAGED)
		atomic_fetch_sub(&managed_bytes, slot->bytes);
	if (slot->kind == MALLOC_HOST)
		r = cuda.cudaFreeHost((void *)slot->address);
	else if (draw(worker, 4) == 0)
		r = cuda.cudaFree((void *)slot->address);
	else if (draw(worker, 3) == 0)
		r = cuda.cudaFreeAsync((void *)slot->address, NULL);
	else if (draw(worker, 2) == 0)
		r = cuda.cuMemFree_v2(slot->address);
	else
		r = cuda.cuMemFreeAsync(slot->address, NULL);
	assert_int_equal(r, 0);
	slot->kind = NOTHING;
}

static void call(struct worker *worker)
{
	struct slot *slot = &worker->slot[draw(worker, SLOTS)];
	int r;

	if (draw(worker, 50) == 0) {
		worker->device = (int)draw(worker, DEVICES);
		assert_int_equal(cuda.cudaSetDevice(worker->device), 0);
		return;
	}
	if (slot->kind != NOTHING) {
		let_go(worker, slot);
		return;
	}
	*slot = (struct slot){.kind = (enum kind)draw(worker, KINDS),
			      .bytes = 1 + draw(worker, BLOCK_MOST)};
	if (slot->kind == VMM)
		slot->bytes = (slot->bytes / VMM_RESERVED + 1) * VMM_RESERVED;
	r = allocate(worker, slot);
	if (r == 0)
		return;
	assert_int_equal(r, CUDA_ERROR_OUT_OF_MEMORY);
	atomic_fetch_add(&out_of_memory, 1);
	slot->kind = NOTHING;
}

/* The kernel makes a thread's storage at its first call: one thread after another. */
static void begin(struct worker *worker)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	void *memory;

	assert_int_equal(pthread_mutex_lock(&one), 0);
	assert_int_equal(cuda.cudaSetDevice(worker->device), 0);
	assert_int_equal(cuda.cudaMalloc(&memory, 1), 0);
	assert_int_equal(cuda.cudaFree(memory), 0);
	assert_int_equal(pthread_mutex_unlock(&one), 0);
}

static void *work(void *data)
{
	struct worker *worker = data;

	begin(worker);
	for (uint64_t i = 0; i < worker->calls; i++)
		call(worker);
	atomic_fetch_add(&ended, 1);
	return NULL;
}

static void release_all(struct worker *worker)
{
	for (size_t i = 0; i < SLOTS; i++)
		while (worker->slot[i].kind != NOTHING)
			let_go(worker, &worker->slot[i]);
}

/* ---- the agent's side ----------------------------------------------------------------------- */

struct scene {
	struct harness h;
	struct node node;
	uint64_t events; /* of memory */
};

static void give(void *data, const struct nt_event_call *event, const uint8_t *id)
{
	struct scene *scene = data;

	if (event->h.pid != (uint32_t)getpid())
		return;
	scene->events += (event->h.flags & NT_CALL_MEMORY) != 0;
	nt_tracker_event(scene->node.tracker, event, id);
}

static void poll_all(struct scene *scene)
{
	assert_int_equal(harness_drain(scene->h.attach, give, scene), 0);
}

static void attach(struct scene *scene, const char *path, enum nt_library library,
		   uint32_t subjects)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_true(attach_file(scene->h.attach, path, st.st_dev, st.st_ino, library, subjects) >
		    0);
}

/* The process was probed before it began. */
static void map(struct scene *scene, enum nt_library library)
{
	struct nt_owner owner = {.id = 1};
	const struct nt_mapped_file file = {.pid = (uint32_t)getpid(),
					    .start_boot_ns = 2,
					    .probed_ns = 1,
					    .owner = &owner,
					    .name = "lib",
					    .library = library};

	nt_tracker_mapped(scene->node.tracker, &file);
}

static void start(struct scene *scene, enum nt_attach_mode mode)
{
	struct nt_attach_options options = harness_options(mode);

	*scene = (struct scene){0};
	node_start(&scene->node);
	node_describe_as(&scene->node, (uint32_t)getpid(), "", 0);
	options.ring_bytes = RING_BYTES;
	harness_init(&scene->h, &options);
	attach(scene, RUNTIME_PATH, NT_LIBRARY_CUDART, UINT32_MAX);
	attach(scene, DRIVER_PATH, NT_LIBRARY_CUDA, 1U << NT_SUBJECT_ALLOC);
	map(scene, NT_LIBRARY_CUDART);
	map(scene, NT_LIBRARY_CUDA);
	managed_bytes = out_of_memory = ended = 0;
}

static void stop(struct scene *scene)
{
	const struct nt_attach_stats stats = harness_stats(&scene->h);

	/*
	 * No call may be untracked for want of memory, but the kernel also refuses a thread's storage
	 * while another task of the same processor was preempted in its own.
	 */
	if (stats.untracked)
		print_message("# %llu calls found no storage\n",
			      (unsigned long long)stats.untracked);
	assert_int_equal(stats.dropped[NT_EVENT_CALL], 0);
	assert_int_equal(stats.unreturned, 0);
	harness_release(&scene->h);
	node_stop(&scene->node);
}

static struct nt_gpu_heap *heap_of(const struct scene *scene)
{
	const struct nt_process *process =
		nt_tracker_process(scene->node.tracker, (uint32_t)getpid());

	assert_non_null(process);
	assert_non_null(process->heap);
	return process->heap;
}

static void check_ledger(struct scene *scene)
{
	struct nt_gpu_heap *heap;
	uint64_t managed = 0;

	for (int device = 0; device < DEVICES; device++) {
		assert_int_equal(cuda.cudaSetDevice(device), 0);
		assert_int_equal(cuda.cudaDeviceSynchronize(), 0);
	}
	poll_all(scene);
	heap = heap_of(scene);
	for (int device = 0; device < DEVICES; device++) {
		size_t free_bytes, total_bytes;

		assert_int_equal(cuda.cudaSetDevice(device), 0);
		assert_int_equal(cuda.cudaMemGetInfo(&free_bytes, &total_bytes), 0);
		assert_int_equal(heap->device[device].live, total_bytes - free_bytes);
	}
	poll_all(scene);
	for (int i = 0; i <= NT_GPU_HEAP_ANY_DEVICE; i++)
		managed += heap->device[i].managed;
	assert_int_equal(managed, managed_bytes);
	assert_int_equal(heap->device[NT_GPU_HEAP_ANY_DEVICE].live, 0);
	assert_int_equal(heap->out_of_memory, out_of_memory);
	assert_int_equal(heap->unmatched, 0);
	assert_int_equal(heap->blocks_over_cap, 0);
	assert_true(nt_gpu_heap_is_whole(heap, nt_clock_boot_ns()));
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void live_bytes_are_those_of_the_ledger_after_random_calls(void **state)
{
	static struct worker workers[THREADS];
	const struct timespec moment = {.tv_nsec = 1000000};
	struct scene scene;

	(void)state;
	start(&scene, NT_ATTACH_AUTO);
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.seed = i + 1, .calls = CALLS / THREADS};
		for (size_t slot = 0; slot < SLOTS; slot++)
			workers[i].slot[slot].kind = NOTHING;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	while (ended < THREADS) {
		poll_all(&scene);
		(void)nanosleep(&moment, NULL);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
	check_ledger(&scene);
	assert_true(heap_of(&scene)->device[0].live > 0);
	assert_true(out_of_memory > 0);
	print_message("# %llu records of memory, %llu times out of memory\n",
		      (unsigned long long)scene.events, (unsigned long long)out_of_memory);
	for (size_t i = 0; i < THREADS; i++)
		release_all(&workers[i]);
	check_ledger(&scene);
	assert_int_equal(heap_of(&scene)->device[0].live, 0);
	assert_int_equal(heap_of(&scene)->blocks.count, 0);
	stop(&scene);
}

/* All lie in this file: none is in the runtime, which calls the driver. */
static void check_sites(const struct nt_gpu_heap *heap)
{
	const uintptr_t here = (uintptr_t)allocate;

	assert_int_equal(heap->sites, KINDS - 1); /* of each allocator but that of the host */
	for (uint32_t i = 0; i < heap->sites; i++)
		assert_in_range(heap->site[i].address, here - CODE_BYTES, here + CODE_BYTES);
}

/* The runtime's call ends in the driver's, which is probed too. */
static void each_allocator_counts_once_in_every_mode(void **state)
{
	static const enum nt_attach_mode modes[] = {NT_ATTACH_SESSION, NT_ATTACH_MULTI,
						    NT_ATTACH_PERF};

	(void)state;
	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		struct worker worker = {.seed = 9};
		struct scene scene;

		if (!harness_has_mode(modes[m]))
			continue;
		start(&scene, modes[m]);
		assert_int_equal(cuda.cudaSetDevice(0), 0);
		for (enum kind kind = MALLOC; kind < KINDS; kind++) {
			struct slot slot = {.kind = kind, .bytes = VMM_RESERVED};
			uint64_t before;

			poll_all(&scene);
			before = scene.events;
			assert_int_equal(allocate(&worker, &slot), 0);
			poll_all(&scene);
			assert_int_equal(scene.events - before, kind != MALLOC_HOST);
			if (kind != MALLOC_HOST)
				check_ledger(&scene);
			while (slot.kind != NOTHING)
				let_go(&worker, &slot);
		}
		check_ledger(&scene);
		assert_int_equal(heap_of(&scene)->blocks.count, 0);
		check_sites(heap_of(&scene));
		stop(&scene);
	}
}

static void *made_inside;

static void allocate_inside(void)
{
	assert_int_equal(cuda.cudaMalloc(&made_inside, 12345), 0);
}

/* NCCL allocates while it makes a communicator. */
static void an_allocation_inside_of_another_call_counts(void **state)
{
	uint64_t args[STUB_ARGS] = {0};
	struct stub nccl;
	struct scene scene;

	(void)state;
	assert_true(stub_open(&nccl, NT_LIBRARY_NCCL));
	start(&scene, NT_ATTACH_AUTO);
	assert_true(harness_attach(&scene.h, &nccl, NT_LIBRARY_NCCL, UINT32_MAX) > 0);
	assert_int_equal(cuda.cudaSetDevice(0), 0);
	*nccl.hook = allocate_inside;
	(void)stub_call(&nccl, "ncclCommDestroy", args);
	*nccl.hook = NULL;
	check_ledger(&scene);
	assert_int_equal(heap_of(&scene)->device[0].live, 12345);
	assert_int_equal(cuda.cudaFree(made_inside), 0);
	check_ledger(&scene);
	stop(&scene);
}

static bool load_libraries(void)
{
	void *runtime = dlopen(RUNTIME_PATH, RTLD_NOW | RTLD_LOCAL);
	void *driver = dlopen(DRIVER_PATH, RTLD_NOW | RTLD_LOCAL);

	if (!runtime || !driver)
		return false;
#define FIND_RUNTIME(name) cuda.name = (__typeof__(cuda.name))dlsym(runtime, #name);
#define FIND_DRIVER(name)  cuda.name = (__typeof__(cuda.name))dlsym(driver, #name);
	RUNTIME(FIND_RUNTIME)
	DRIVER(FIND_DRIVER)
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_bytes_are_those_of_the_ledger_after_random_calls),
		cmocka_unit_test(each_allocator_counts_once_in_every_mode),
		cmocka_unit_test(an_allocation_inside_of_another_call_counts),
	};
	int r;

	/* Small devices, so that allocations fail. */
	if (setenv("SIM_GPU_MEMORY", "17179869184", 1) < 0 || !stub_begin())
		return 1;
	if (stub_only())
		return 0;
	if (!load_libraries()) {
		print_error("cannot load the stand-in libraries: make sim\n");
		return 1;
	}
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	r = cmocka_run_group_tests(tests, NULL, NULL);
	stub_clean();
	return r;
}
