/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/kernel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/event.h"
#include "call.skel.h"
#include "common/clock.h"
#include "session.skel.h"

enum {
	TRIAL_ROW = 0xffff, /* the row of no function */
	TRIAL_WORD = 0x5eed,
	TRIAL_RESULT = 0x600d,
	POLL_EVENTS_MAX = 65536, /* of one poll: the caller has other things to do */
	WAKEUP_PART = 16,
};

struct nt_kernel {
	enum nt_attach_mode mode;
	struct call_bpf *call;
	struct session_bpf *session; /* in session mode */
	struct ring_buffer *ring;
	nt_event_fn fn; /* of the poll that runs */
	void *data;
	unsigned int polled;
	uint32_t visit_max; /* keys that a walk over a table visits at most */
	uint64_t swept_ns, swept_untracked;
};

static int be_silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int take_event(void *context, void *record, size_t size)
{
	struct nt_kernel *k = context;
	struct nt_event_call call;
	const uint8_t *id = NULL;

	if (++k->polled > POLL_EVENTS_MAX)
		return -EAGAIN;
	if (nt_event_read(record, size, &call, &id) == 0)
		k->fn(k->data, &call, id);
	return 0;
}

static void configure_call(struct call_bpf *call, const struct nt_attach_options *options,
			   bool multi)
{
	struct bpf_program *program;

	(void)bpf_map__set_max_entries(call->maps.events, (uint32_t)options->ring_bytes);
	(void)bpf_map__set_max_entries(call->maps.counters, options->max_processes);
	(void)bpf_map__set_max_entries(call->maps.inside, options->max_threads);
	(void)bpf_map__set_max_entries(call->maps.spans, options->max_threads);
	call->rodata->wakeup_bytes = options->ring_bytes / WAKEUP_PART;
	call->rodata->min_call_ns = options->min_call_ns;
	if (!multi)
		return;
	bpf_object__for_each_program(program, call->obj)(void)
		bpf_program__set_expected_attach_type(program,
						      (enum bpf_attach_type)NT_UPROBE_MULTI);
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
	(void)bpf_program__set_expected_attach_type(s->progs.call_session,
						    (enum bpf_attach_type)NT_UPROBE_SESSION);
	r = bpf_map__reuse_fd(s->maps.events, bpf_map__fd(k->call->maps.events));
	r = r ? r : bpf_map__reuse_fd(s->maps.counters, bpf_map__fd(k->call->maps.counters));
	r = r ? r : bpf_map__reuse_fd(s->maps.inside, bpf_map__fd(k->call->maps.inside));
	r = r ? r : bpf_map__reuse_fd(s->maps.ids, bpf_map__fd(k->call->maps.ids));
	r = r ? r : bpf_map__reuse_fd(s->maps.data_shared, bpf_map__fd(k->call->maps.data_shared));
	return r ? r : session_bpf__load(s);
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
	return k->ring ? 0 : -errno;
}

/* What the trial probes. Its own section of no other use, never inlined, never merged. */
__attribute__((noinline, noclone, used)) static uint64_t trial_call(uint64_t word)
{
	__asm__ volatile("" : "+r"(word));
	return word == TRIAL_WORD ? TRIAL_RESULT : 0;
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

static void check_trial(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	bool *ret_seen = data;

	(void)id;
	if (call->h.row == TRIAL_ROW && call->h.flags == NT_CALL_RETURNED &&
	    call->word[0] == TRIAL_WORD && (uint32_t)call->ret == TRIAL_RESULT && call->ret_ns)
		*ret_seen = true;
}

/* Attaches to a function of our own and sees it fire. */
static int try_out(struct nt_kernel *k)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	struct nt_place place = {.cookie = TRIAL_ROW | 1U << 16};
	bool seen = false;
	int r;

	if (dl_iterate_phdr(find_trial, &place.offset) != 1)
		return -ENOTSUP;
	r = nt_kernel_link_pair(k, "/proc/self/exe", &place, 1, &link, &leave);
	if (r < 0)
		return r;
	if (trial_call(TRIAL_WORD) != TRIAL_RESULT)
		return -ENOTSUP;
	r = nt_kernel_poll(k, check_trial, &seen);
	if (r < 0)
		return r;
	return seen ? 0 : -ENOTSUP;
}

static int kernel_try(enum nt_attach_mode mode, const struct nt_attach_options *options,
		      struct nt_kernel **ret_kernel)
{
	nt_auto(nt_kernel) struct nt_kernel *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->mode = mode;
	k->visit_max = 2 * (options->max_threads + options->max_processes);
	r = load(k, options);
	if (r < 0)
		return r;
	r = try_out(k);
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
			 const struct nt_place *place, size_t places, struct nt_link **ret_link)
{
	return nt_link_new(
		only_counted ? kernel->call->progs.call_count : kernel->call->progs.call_entry,
		kernel->mode == NT_ATTACH_PERF ? NT_LINK_PERF_ENTRY : NT_LINK_MULTI_ENTRY, path, 0,
		place, places, ret_link);
}

int nt_kernel_link_pair(const struct nt_kernel *kernel, const char *path,
			const struct nt_place *place, size_t places, struct nt_link **ret_link,
			struct nt_link **ret_leave)
{
	nt_auto(nt_link) struct nt_link *leave = NULL;
	bool perf = kernel->mode == NT_ATTACH_PERF;
	int r;

	if (kernel->session) {
		*ret_leave = NULL;
		return nt_link_new(kernel->session->progs.call_session, NT_LINK_MULTI_SESSION, path,
				   0, place, places, ret_link);
	}
	/* Returns first: an entry without its return would look like a call that never ends. */
	r = nt_link_new(kernel->call->progs.call_leave,
			perf ? NT_LINK_PERF_RETURN : NT_LINK_MULTI_RETURN, path, 0, place, places,
			&leave);
	if (r < 0)
		return r;
	r = nt_link_new(kernel->call->progs.call_enter,
			perf ? NT_LINK_PERF_ENTRY : NT_LINK_MULTI_ENTRY, path, 0, place, places,
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

static uint64_t untracked(const struct nt_kernel *k)
{
	return k->call->bss->untracked + (k->session ? k->session->bss->untracked : 0);
}

/*
 * Makes room in the counters, whose keys nobody else deletes where a process outside our subtree
 * made them.
 */
static void sweep(struct nt_kernel *k)
{
	int map = bpf_map__fd(k->call->maps.counters);
	uint32_t key, next;
	bool more;

	more = bpf_map_get_next_key(map, NULL, &next) == 0;
	for (uint32_t i = 0; more && i < k->visit_max; i++) {
		key = next;
		more = bpf_map_get_next_key(map, &key, &next) == 0;
		if (kill((pid_t)key, 0) < 0 && errno == ESRCH)
			nt_kernel_forget(k, key);
	}
}

int nt_kernel_poll(struct nt_kernel *kernel, nt_event_fn fn, void *data)
{
	uint64_t now = nt_clock_boot_ns();
	int r;

	kernel->fn = fn;
	kernel->data = data;
	kernel->polled = 0;
	r = ring_buffer__consume(kernel->ring);
	if (untracked(kernel) != kernel->swept_untracked && now - kernel->swept_ns > NT_SECOND) {
		kernel->swept_ns = now;
		sweep(kernel);
		kernel->swept_untracked = untracked(kernel);
	}
	return r < 0 && r != -EAGAIN ? r : 0;
}

bool nt_kernel_counters(const struct nt_kernel *kernel, uint32_t pid,
			struct nt_process_counters *ret_counters)
{
	return bpf_map_lookup_elem(bpf_map__fd(kernel->call->maps.counters), &pid, ret_counters) ==
	       0;
}

int nt_kernel_inside(struct nt_kernel *kernel, nt_inside_fn fn, void *data)
{
	int map = bpf_map__fd(kernel->call->maps.inside);
	struct nt_inside inside, again;
	uint64_t key, next;
	bool more;

	more = bpf_map_get_next_key(map, NULL, &next) == 0;
	for (uint32_t i = 0; more && i < kernel->visit_max; i++) {
		key = next;
		/* Where the key was pushed out meanwhile, this starts over: hence the limit. */
		more = bpf_map_get_next_key(map, &key, &next) == 0;
		if (bpf_map_lookup_elem(map, &key, &inside) < 0 || !inside.entry_ns)
			continue;
		/* Twice the same entry: nothing was written in between. */
		if (bpf_map_lookup_elem(map, &key, &again) < 0 ||
		    memcmp(&inside, &again, sizeof(inside)) != 0)
			continue;
		if (NT_COOKIE_ROW(inside.cookie) != TRIAL_ROW)
			fn(data, (uint32_t)(key >> 32), (uint32_t)key, NT_COOKIE_ROW(inside.cookie),
			   &inside);
	}
	return 0;
}

/* Keys of a table by thread. */
static void forget_threads(int map, uint32_t limit, uint32_t pid)
{
	uint64_t key, next;
	bool more;

	more = bpf_map_get_next_key(map, NULL, &next) == 0;
	for (uint32_t i = 0; more && i < limit; i++) {
		key = next;
		more = bpf_map_get_next_key(map, &key, &next) == 0;
		if (key >> 32 == pid)
			(void)bpf_map_delete_elem(map, &key);
	}
}

void nt_kernel_forget(struct nt_kernel *kernel, uint32_t pid)
{
	(void)bpf_map_delete_elem(bpf_map__fd(kernel->call->maps.counters), &pid);
	forget_threads(bpf_map__fd(kernel->call->maps.inside), kernel->visit_max, pid);
	forget_threads(bpf_map__fd(kernel->call->maps.ids), kernel->visit_max, pid);
	forget_threads(bpf_map__fd(kernel->call->maps.spans), kernel->visit_max, pid);
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

void nt_kernel_stats(const struct nt_kernel *kernel, struct nt_attach_stats *stats)
{
	for (int i = 0; i < NT_EVENT_TYPE_END; i++) {
		stats->dropped[i] = kernel->call->bss->dropped[i];
		if (kernel->session)
			stats->dropped[i] += kernel->session->bss->dropped[i];
	}
	stats->untracked = untracked(kernel);
	stats->unmeasured = kernel->call->bss->unmeasured;
	stats->missed = misses_of(kernel->call->obj);
	if (kernel->session)
		stats->missed += misses_of(kernel->session->obj);
}
