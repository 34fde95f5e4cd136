/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/kernel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

/* Out of memory is for us to handle, not for the table to exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "agent/event.h"
#include "call.skel.h"
#include "common/clock.h"
#include "common/thread.h"
#include "session.skel.h"

enum {
	TRIAL_ROW = 0x1ff, /* the row of no function */
	TRIAL_WORD = 0x5eed,
	TRIAL_RESULT = 0x600d,
	POLL_EVENTS_MAX = 65536, /* of one poll: the caller has other things to do */
	POLL_LOOK = 16, /* events of a poll between two looks at the clock: a power of two */
	WAKEUP_PART = 16,
	ENDED_MAX = 1024, /* processes whose last counters are kept; the oldest go first */
	INSIDE_READ = 128, /* threads of one read */
	COST_BATCHES = 10,
	COST_CALLS = 1000, /* of one batch … */
	COST_RING_BYTES =
		1024, /* … and one for so much of the ring: they must fit into a quarter */
};

#define POLL_NS (20 * NT_MILLISECOND) /* of one poll, for the same reason */

/* The counters of a process that has ended, until the agent has seen its end. */
struct ended {
	uint32_t pid;
	bool is_lost; /* there was no memory for its place in the table */
	struct nt_event_end last;
	UT_hash_handle hh;
};

_Static_assert(NT_ROWS_MAX <= TRIAL_ROW, "a row of the table is the row of no function");

struct nt_kernel {
	enum nt_attach_mode mode;
	struct call_bpf *call;
	struct session_bpf *session; /* in session mode */
	struct ring_buffer *ring;
	nt_event_fn fn; /* of the poll that runs */
	void *data;
	unsigned int polled;
	uint64_t poll_end_ns; /* monotonic */
	struct bpf_link *exits, *execs, *walk;
	struct ended *ended; /* uthash, owned, oldest first */
	bool has_own_links;
	uint32_t cost_calls; /* of one batch */
	struct nt_kernel_costs costs;
};

static int be_silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static void drop_ended(struct nt_kernel *k, struct ended *ended)
{
	HASH_DEL(k->ended, ended);
	free(ended);
}

static void keep_ended(struct nt_kernel *k, const struct nt_event_end *end)
{
	struct ended *ended = NULL;
	uint32_t pid = end->h.pid;

	HASH_FIND(hh, k->ended, &pid, sizeof(pid), ended);
	if (ended)
		drop_ended(k, ended);
	else if (HASH_COUNT(k->ended) >= ENDED_MAX)
		drop_ended(k, k->ended);
	ended = calloc(1, sizeof(*ended));
	if (!ended)
		return;
	ended->pid = pid;
	ended->last = *end;
	HASH_ADD(hh, k->ended, pid, sizeof(ended->pid), ended);
	if (ended->is_lost)
		free(ended);
}

static void give_event(struct nt_kernel *k, void *record, size_t size)
{
	struct nt_event_call call;
	struct nt_event_end end;
	const uint8_t *id = NULL;

	if (nt_event_read_end(record, size, &end) == 0) {
		keep_ended(k, &end);
		return;
	}
	if (nt_event_read(record, size, &call, &id) < 0)
		return;
	if (call.h.row & NT_ROW_OWN)
		call.h.flags |= NT_CALL_OWN;
	call.h.row = NT_ROW_OF(call.h.row);
	k->fn(k->data, &call, id);
}

/* The library counts the record as read whatever is returned: -EAGAIN only after it was given. */
static int take_event(void *context, void *record, size_t size)
{
	struct nt_kernel *k = context;

	give_event(k, record, size);
	if (++k->polled >= POLL_EVENTS_MAX)
		return -EAGAIN;
	return k->polled % POLL_LOOK == 0 && nt_clock_mono_ns() >= k->poll_end_ns ? -EAGAIN : 0;
}

static void configure_call(struct call_bpf *call, const struct nt_attach_options *options,
			   bool multi)
{
	struct bpf_program *program;

	(void)bpf_map__set_max_entries(call->maps.events, (uint32_t)options->ring_bytes);
	call->rodata->wakeup_bytes = options->ring_bytes / WAKEUP_PART;
	call->rodata->min_call_ns = options->min_call_ns;
	if (options->share_shift)
		call->rodata->share_shift = options->share_shift;
	if (!multi)
		return;
	bpf_object__for_each_program(program, call->obj)
	{
		if (bpf_program__type(program) == BPF_PROG_TYPE_KPROBE)
			(void)bpf_program__set_expected_attach_type(
				program, (enum bpf_attach_type)NT_UPROBE_MULTI);
	}
}

static int load_session(struct nt_kernel *k, const struct nt_attach_options *options)
{
	struct session_bpf *s = session_bpf__open();
	int r;

	if (!s)
		return -errno;
	k->session = s;
	s->rodata->wakeup_bytes = options->ring_bytes / WAKEUP_PART;
	s->rodata->min_call_ns = options->min_call_ns;
	if (options->share_shift)
		s->rodata->share_shift = options->share_shift;
	(void)bpf_program__set_expected_attach_type(s->progs.call_session,
						    (enum bpf_attach_type)NT_UPROBE_SESSION);
	r = bpf_map__reuse_fd(s->maps.events, bpf_map__fd(k->call->maps.events));
	r = r ? r : bpf_map__reuse_fd(s->maps.counters, bpf_map__fd(k->call->maps.counters));
	r = r ? r : bpf_map__reuse_fd(s->maps.inside, bpf_map__fd(k->call->maps.inside));
	r = r ? r : bpf_map__reuse_fd(s->maps.ids, bpf_map__fd(k->call->maps.ids));
	r = r ? r : bpf_map__reuse_fd(s->maps.shares, bpf_map__fd(k->call->maps.shares));
	return r ? r : session_bpf__load(s);
}

/* What is not attached to a library. */
static int attach_life(struct nt_kernel *k)
{
	k->exits = bpf_program__attach_raw_tracepoint(k->call->progs.process_exit,
						      "sched_process_exit");
	if (!k->exits)
		return -errno;
	k->execs = bpf_program__attach_raw_tracepoint(k->call->progs.process_exec,
						      "sched_process_exec");
	if (!k->execs)
		return -errno;
	k->walk = bpf_program__attach_iter(k->call->progs.inside_dump, NULL);
	return k->walk ? 0 : -errno;
}

static int load(struct nt_kernel *k, const struct nt_attach_options *options)
{
	int r;

	k->call = call_bpf__open();
	if (!k->call)
		return -errno;
	configure_call(k->call, options, k->mode != NT_ATTACH_PERF);
	r = call_bpf__load(k->call);
	if (r < 0)
		return r;
	if (k->mode == NT_ATTACH_SESSION) {
		r = load_session(k, options);
		if (r < 0)
			return r;
	}
	k->ring = ring_buffer__new(bpf_map__fd(k->call->maps.events), take_event, k, NULL);
	return k->ring ? attach_life(k) : -errno;
}

/*
 * What the trial probes, and what the cost of a hit is measured with. It begins as probed functions do,
 * with an instruction that the kernel emulates (docs/probes.md): any other would cost twenty times as
 * much. TRIAL_WORD is answered by TRIAL_RESULT, anything else by 0.
 */
__attribute__((naked, noinline, used)) static uint64_t trial_call(uint64_t word
								  __attribute__((unused)))
{
#if defined(__x86_64__)
	__asm__("push %%rbp\n\t"
		"pop %%rbp\n\t"
		"xor %%eax, %%eax\n\t"
		"cmp %0, %%rdi\n\t"
		"jne 1f\n\t"
		"mov %1, %%eax\n\t"
		"1: ret"
		:
		: "i"(TRIAL_WORD), "i"(TRIAL_RESULT));
#elif defined(__aarch64__)
	__asm__("nop\n\t"
		"mov x1, %0\n\t"
		"mov x2, %1\n\t"
		"cmp x0, x1\n\t"
		"csel x0, x2, xzr, eq\n\t"
		"ret"
		:
		: "i"(TRIAL_WORD), "i"(TRIAL_RESULT));
#endif
}

/* Where trial_call lies in the file that this code was loaded from. */
static int find_trial(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t *ret_offset = data;
	uintptr_t address = (uintptr_t)trial_call;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type != PT_LOAD || address < info->dlpi_addr + h->p_vaddr ||
		    address - info->dlpi_addr - h->p_vaddr >= h->p_filesz)
			continue;
		*ret_offset = address - info->dlpi_addr - h->p_vaddr + h->p_offset;
		return 1;
	}
	return -1; /* only the main program is asked */
}

static int find_trial_place(struct nt_place *place)
{
	return dl_iterate_phdr(find_trial, &place->offset) == 1 ? 0 : -ENOTSUP;
}

static void check_trial(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	bool *ret_seen = data;

	(void)id;
	if (call->h.row == TRIAL_ROW && (call->h.flags & NT_CALL_RETURNED) &&
	    call->word[0] == TRIAL_WORD && (uint32_t)call->ret == TRIAL_RESULT && call->ret_ns)
		*ret_seen = true;
}

/* All that there is. Other processes may write meanwhile, and those are not probed yet. */
static int drain(struct nt_kernel *k, nt_event_fn fn, void *data)
{
	int r;

	do
		r = nt_kernel_poll(k, fn, data);
	while (r > 0);
	return r;
}

/* Attaches to a function of our own and sees it fire. */
static int try_out(struct nt_kernel *k)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	struct nt_place place = {.cookie = TRIAL_ROW | 1U << 16};
	bool seen = false;
	int r;

	r = find_trial_place(&place);
	if (r < 0)
		return r;
	r = nt_kernel_link_pair(k, "/proc/self/exe", 0, &place, 1, &link, &leave);
	if (r < 0)
		return r;
	if (trial_call(TRIAL_WORD) != TRIAL_RESULT)
		return -ENOTSUP;
	r = drain(k, check_trial, &seen);
	if (r < 0)
		return r;
	return seen ? 0 : -ENOTSUP;
}

static void count_trial(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	unsigned int *ret_seen = data;

	(void)id;
	*ret_seen += call->h.row == TRIAL_ROW;
}

static void *run_trial(void *data)
{
	(void)trial_call(TRIAL_WORD);
	return data;
}

/* By a call of a thread that is not the first. */
static int try_own_links(struct nt_kernel *k)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	struct nt_place place = {.cookie = TRIAL_ROW | 1U << 16};
	unsigned int seen = 0;
	pthread_t thread;
	int r;

	if (k->mode == NT_ATTACH_PERF)
		return 0;
	r = find_trial_place(&place);
	if (r < 0)
		return r;
	r = nt_kernel_link_entry(k, false, "/proc/self/exe", (uint32_t)getpid(), &place, 1, &link);
	if (r < 0)
		return 0; /* before 6.6.x: it takes no process */
	r = nt_thread_start(&thread, run_trial, NULL);
	if (r < 0)
		return r;
	(void)pthread_join(thread, NULL);
	r = drain(k, count_trial, &seen);
	k->has_own_links = seen == 1;
	return r;
}

bool nt_kernel_has_own_links(const struct nt_kernel *kernel)
{
	return kernel->has_own_links;
}

/* ---- what a hit costs ------------------------------------------------------------------------ */

static uint64_t thread_cpu_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
}

struct inner {
	uint64_t calls, ns; /* between the times of entry and return */
};

static void add_inner(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	struct inner *inner = data;

	(void)id;
	if (call->h.row != TRIAL_ROW || !(call->h.flags & NT_CALL_RETURNED))
		return;
	inner->calls++;
	inner->ns += call->ret_ns - call->h.entry_ns;
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Of one call of the trial function, as it is probed now: the lower quartile of batches. */
static uint64_t time_trial(struct nt_kernel *k, struct inner *inner)
{
	uint64_t batch[COST_BATCHES];

	for (int i = 0; i < COST_BATCHES; i++) {
		uint64_t start_ns = thread_cpu_ns();

		for (uint32_t n = 0; n < k->cost_calls; n++)
			(void)trial_call(TRIAL_WORD);
		batch[i] = (thread_cpu_ns() - start_ns) / k->cost_calls;
		(void)!drain(k, add_inner, inner);
	}
	qsort(batch, COST_BATCHES, sizeof(batch[0]), by_value);
	return batch[COST_BATCHES / 4]; /* the others were disturbed, if any were */
}

/* What the trial has counted is not the agent's own. */
static void forget_trial(struct nt_kernel *k)
{
	nt_autoclose int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0)
		(void)bpf_map_delete_elem(bpf_map__fd(k->call->maps.counters), &fd);
}

static int measure_costs(struct nt_kernel *k)
{
	const uint64_t words = 6ULL << 16;
	const uint64_t counted = (uint64_t)(NT_COUNTER_LAUNCH + 1) << 49;
	struct inner inner = {0};
	struct nt_place place = {0};
	nt_auto(nt_link) struct nt_link *count = NULL;
	nt_auto(nt_link) struct nt_link *entry = NULL;
	nt_auto(nt_link) struct nt_link *pair = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	int r;

	r = find_trial_place(&place);
	if (r < 0)
		return r;
	place.cookie = TRIAL_ROW | counted;
	r = nt_kernel_link_entry(k, true, "/proc/self/exe", 0, &place, 1, &count);
	if (r < 0)
		return r;
	k->costs.count_ns = time_trial(k, &inner);
	nt_link_free(nt_take(count));
	place.cookie = TRIAL_ROW | words;
	r = nt_kernel_link_entry(k, false, "/proc/self/exe", 0, &place, 1, &entry);
	if (r < 0)
		return r;
	k->costs.entry_ns = time_trial(k, &inner);
	nt_link_free(nt_take(entry));
	r = nt_kernel_link_pair(k, "/proc/self/exe", 0, &place, 1, &pair, &leave);
	if (r < 0)
		return r;
	k->costs.pair_ns = time_trial(k, &inner);
	if (inner.calls && inner.ns / inner.calls < k->costs.pair_ns)
		k->costs.outside_ns = k->costs.pair_ns - inner.ns / inner.calls;
	forget_trial(k);
	return 0;
}

void nt_kernel_costs(const struct nt_kernel *kernel, struct nt_kernel_costs *ret_costs)
{
	*ret_costs = kernel->costs;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int kernel_try(enum nt_attach_mode mode, const struct nt_attach_options *options,
		      struct nt_kernel **ret_kernel)
{
	nt_auto(nt_kernel) struct nt_kernel *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->mode = mode;
	k->cost_calls = COST_CALLS;
	if (options->ring_bytes / COST_RING_BYTES < COST_CALLS)
		k->cost_calls = (uint32_t)(options->ring_bytes / COST_RING_BYTES);
	r = load(k, options);
	if (r < 0)
		return r;
	r = try_out(k);
	if (r < 0)
		return r;
	r = measure_costs(k);
	if (r < 0)
		return r;
	r = try_own_links(k);
	if (r < 0)
		return r;
	*ret_kernel = nt_take(k);
	return 0;
}

/* A perf link takes two descriptors for each end of a function; of a node that is thousands. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* who runs out is told then */
}

int nt_kernel_new(const struct nt_attach_options *options, struct nt_kernel **ret_kernel)
{
	bool forbidden = true;

	allow_descriptors();

	(void)libbpf_set_print(be_silent);
	for (enum nt_attach_mode mode = NT_ATTACH_SESSION; mode <= NT_ATTACH_PERF; mode++) {
		int r;

		if (options->mode != NT_ATTACH_AUTO && options->mode != mode)
			continue;
		r = kernel_try(mode, options, ret_kernel);
		if (r >= 0 || r == -ENOMEM)
			return r;
		forbidden = forbidden && (r == -EPERM || r == -EACCES);
	}
	return forbidden ? -EPERM : -ENOTSUP;
}

void nt_kernel_free(struct nt_kernel *kernel)
{
	if (!kernel)
		return;
	(void)bpf_link__destroy(kernel->walk);
	(void)bpf_link__destroy(kernel->exits);
	(void)bpf_link__destroy(kernel->execs);
	while (kernel->ended)
		drop_ended(kernel, kernel->ended);
	ring_buffer__free(kernel->ring);
	session_bpf__destroy(kernel->session);
	call_bpf__destroy(kernel->call);
	free(kernel);
}

enum nt_attach_mode nt_kernel_mode(const struct nt_kernel *kernel)
{
	return kernel->mode;
}

int nt_kernel_link_entry(const struct nt_kernel *kernel, bool only_counted, const char *path,
			 uint32_t pid, const struct nt_place *place, size_t places,
			 struct nt_link **ret_link)
{
	return nt_link_new(
		only_counted ? kernel->call->progs.call_count : kernel->call->progs.call_entry,
		kernel->mode == NT_ATTACH_PERF ? NT_LINK_PERF_ENTRY : NT_LINK_MULTI_ENTRY, path,
		pid, place, places, ret_link);
}

int nt_kernel_link_pair(const struct nt_kernel *kernel, const char *path, uint32_t pid,
			const struct nt_place *place, size_t places, struct nt_link **ret_link,
			struct nt_link **ret_leave)
{
	nt_auto(nt_link) struct nt_link *leave = NULL;
	bool perf = kernel->mode == NT_ATTACH_PERF;
	int r;

	if (kernel->session) {
		*ret_leave = NULL;
		return nt_link_new(kernel->session->progs.call_session, NT_LINK_MULTI_SESSION, path,
				   pid, place, places, ret_link);
	}
	/* Returns first: an entry without its return would look like a call that never ends. */
	r = nt_link_new(kernel->call->progs.call_leave,
			perf ? NT_LINK_PERF_RETURN : NT_LINK_MULTI_RETURN, path, pid, place, places,
			&leave);
	if (r < 0)
		return r;
	r = nt_link_new(kernel->call->progs.call_enter,
			perf ? NT_LINK_PERF_ENTRY : NT_LINK_MULTI_ENTRY, path, pid, place, places,
			ret_link);
	if (r < 0)
		return r;
	*ret_leave = nt_take(leave);
	return 0;
}

int nt_kernel_link_span(const struct nt_kernel *kernel, const char *path, uint32_t pid,
			const struct nt_place *begin, size_t begins, const struct nt_place *end,
			size_t ends, bool at_return, struct nt_link **ret_begin,
			struct nt_link **ret_end)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	bool perf = kernel->mode == NT_ATTACH_PERF;
	enum nt_link_kind entry = perf ? NT_LINK_PERF_ENTRY : NT_LINK_MULTI_ENTRY;
	enum nt_link_kind leave = perf ? NT_LINK_PERF_RETURN : NT_LINK_MULTI_RETURN;
	int r;

	/* Ends first, as above. */
	r = nt_link_new(kernel->call->progs.span_end, at_return ? leave : entry, path, pid, end,
			ends, &link);
	if (r < 0)
		return r;
	r = nt_link_new(kernel->call->progs.span_begin, entry, path, pid, begin, begins, ret_begin);
	if (r < 0)
		return r;
	*ret_end = nt_take(link);
	return 0;
}

int nt_kernel_fd(const struct nt_kernel *kernel)
{
	return ring_buffer__epoll_fd(kernel->ring);
}

int nt_kernel_poll(struct nt_kernel *kernel, nt_event_fn fn, void *data)
{
	int r;

	kernel->fn = fn;
	kernel->data = data;
	kernel->polled = 0;
	kernel->poll_end_ns = nt_clock_mono_ns() + POLL_NS;
	r = ring_buffer__consume(kernel->ring);
	if (r == -EAGAIN)
		return 1;
	return r < 0 ? r : 0;
}

bool nt_kernel_counters(const struct nt_kernel *kernel, uint32_t pid,
			struct nt_process_counters *ret_counters)
{
	nt_autoclose int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	struct ended *ended = NULL;

	if (fd >= 0 &&
	    bpf_map_lookup_elem(bpf_map__fd(kernel->call->maps.counters), &fd, ret_counters) == 0)
		return true;
	HASH_FIND(hh, kernel->ended, &pid, sizeof(pid), ended);
	if (!ended)
		return false;
	*ret_counters = (struct nt_process_counters){.lost = ended->last.lost, .ended = 1};
	memcpy(ret_counters->calls, ended->last.calls, sizeof(ret_counters->calls));
	memcpy(ret_counters->bytes, ended->last.bytes, sizeof(ret_counters->bytes));
	return true;
}

int nt_kernel_inside(struct nt_kernel *kernel, nt_inside_fn fn, void *data)
{
	struct nt_inside inside[INSIDE_READ];
	nt_autoclose int fd = bpf_iter_create(bpf_link__fd(kernel->walk));
	size_t kept = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, (char *)inside + kept, sizeof(inside) - kept)) != 0) {
		size_t records;

		if (n < 0 && errno == EAGAIN)
			continue; /* the walk pauses after a million tasks without one */
		if (n < 0)
			return -errno;
		kept += (size_t)n;
		records = kept / sizeof(inside[0]);
		for (size_t i = 0; i < records; i++)
			if (NT_ROW_OF(inside[i].row) != TRIAL_ROW)
				fn(data, inside[i].pid, inside[i].tid, NT_ROW_OF(inside[i].row),
				   &inside[i]);
		kept -= records * sizeof(inside[0]);
		memmove(inside, inside + records, kept);
	}
	return 0;
}

void nt_kernel_forget(struct nt_kernel *kernel, uint32_t pid)
{
	struct ended *ended = NULL;

	HASH_FIND(hh, kernel->ended, &pid, sizeof(pid), ended);
	if (ended)
		drop_ended(kernel, ended);
}

static uint64_t misses_of(const struct bpf_object *object)
{
	struct bpf_program *program;
	uint64_t misses = 0;

	bpf_object__for_each_program(program, object)
	{
		struct bpf_prog_info info = {0};
		uint32_t len = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len) == 0)
			misses += info.recursion_misses;
	}
	return misses;
}

void nt_kernel_set_split(const struct nt_kernel *kernel, uint32_t slot, enum nt_split split)
{
	if (!slot)
		return;
	/* One store each, which probes read at any time. */
	__atomic_store_n(&kernel->call->bss->splits[slot], split, __ATOMIC_SEQ_CST);
	if (kernel->session)
		__atomic_store_n(&kernel->session->bss->splits[slot], split, __ATOMIC_SEQ_CST);
}

void nt_kernel_stats(const struct nt_kernel *kernel, struct nt_attach_stats *stats)
{
	for (int i = 0; i < NT_EVENT_TYPE_END; i++) {
		stats->dropped[i] = kernel->call->bss->dropped[i];
		if (kernel->session)
			stats->dropped[i] += kernel->session->bss->dropped[i];
	}
	stats->untracked = kernel->call->bss->untracked;
	stats->unreturned = kernel->call->bss->unreturned;
	stats->over_share = kernel->call->bss->over_share;
	if (kernel->session) {
		stats->untracked += kernel->session->bss->untracked;
		stats->unreturned += kernel->session->bss->unreturned;
		stats->over_share += kernel->session->bss->over_share;
	}
	stats->unmeasured = kernel->call->bss->unmeasured;
	stats->missed = misses_of(kernel->call->obj);
	if (kernel->session)
		stats->missed += misses_of(kernel->session->obj);
}
