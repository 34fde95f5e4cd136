/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/bpf_loader_impl.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/probes/event.h"
#include "call.skel.h"
#include "common/system/clock.h"
#include "session.skel.h"

enum {
	POLL_EVENTS_MAX = 65536, /* per poll, so that the loop is not held up */
	POLL_LOOK = 16, /* events of a poll between two reads of the clock: a power of two */
	WAKEUP_PART = 16,
	ENDED_MAX = 1024, /* ended processes with counters kept; the oldest go first */
	INSIDE_READ = 128, /* threads per read */
};

#define POLL_NS (20 * NT_MILLISECOND) /* per poll, for the same reason */

_Static_assert(NT_ROWS_MAX <= NT_BPF_LOADER_TRIAL_ROW,
	       "a row of the table is the row of no function");

static void drop_ended(struct nt_bpf_loader *loader, struct nt_bpf_loader_ended *ended)
{
	HASH_DEL(loader->ended, ended);
	free(ended);
}

static void keep_ended(struct nt_bpf_loader *loader, const struct nt_event_end *end)
{
	struct nt_bpf_loader_ended *ended = NULL;
	uint32_t pid = end->h.pid;

	HASH_FIND(hh, loader->ended, &pid, sizeof(pid), ended);
	if (ended)
		drop_ended(loader, ended);
	else if (HASH_COUNT(loader->ended) >= ENDED_MAX)
		drop_ended(loader, loader->ended);
	ended = calloc(1, sizeof(*ended));
	if (!ended)
		return;
	ended->pid = pid;
	ended->last = *end;
	HASH_ADD(hh, loader->ended, pid, sizeof(ended->pid), ended);
	if (ended->is_lost)
		free(ended);
}

static void give_event(struct nt_bpf_loader *loader, void *record, size_t size)
{
	struct nt_event_call call;
	struct nt_event_query query;
	struct nt_event_gemm gemm;
	struct nt_event_capture capture;
	struct nt_event_verbs verbs;
	struct nt_event_end end;
	const uint8_t *id = NULL;

	if (nt_event_read_query(record, size, &query) == 0) {
		if (loader->event_query)
			loader->event_query(loader->gpu_data, &query);
		return;
	}
	if (nt_event_read_gemm(record, size, &gemm) == 0) {
		if (loader->gemm)
			loader->gemm(loader->gpu_data, &gemm);
		return;
	}
	if (nt_event_read_capture(record, size, &capture) == 0) {
		if (loader->capture)
			loader->capture(loader->gpu_data, &capture);
		return;
	}
	if (nt_event_read_verbs(record, size, &verbs) == 0) {
		if (loader->verbs)
			loader->verbs(loader->gpu_data, &verbs);
		return;
	}
	if (nt_event_read_gpu(record, size, &loader->gpu) == 0) {
		if (loader->gpu_batch)
			loader->gpu_batch(loader->gpu_data, &loader->gpu);
		return;
	}
	if (nt_event_read_end(record, size, &end) == 0) {
		keep_ended(loader, &end);
		if (loader->executed && end.h.flags & NT_END_EXEC)
			loader->executed(loader->gpu_data, end.h.pid, end.h.entry_ns);
		return;
	}
	if (nt_event_read(record, size, &call, &id) < 0)
		return;
	if (call.h.row & NT_ROW_OWN)
		call.h.flags |= NT_CALL_OWN;
	call.h.row = NT_ROW_OF(call.h.row);
	loader->fn(loader->data, &call, id);
}

/* libbpf consumes the record whatever is returned: -EAGAIN only after it was passed on. */
static int take_event(void *context, void *record, size_t size)
{
	struct nt_bpf_loader *loader = context;

	give_event(loader, record, size);
	if (++loader->polled >= POLL_EVENTS_MAX)
		return -EAGAIN;
	return loader->polled % POLL_LOOK == 0 && nt_clock_mono_ns() >= loader->poll_end_ns
		       ? -EAGAIN
		       : 0;
}

static void configure_call(struct call_bpf *call, const struct nt_attach_options *options,
			   bool multi)
{
	struct bpf_program *program;

	(void)bpf_map__set_max_entries(call->maps.events, (uint32_t)options->ring_bytes);
	(void)bpf_map__set_max_entries(call->maps.detail_events,
				       nt_bpf_loader_detail_ring(options->ring_bytes));
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

static int reuse_rdma(struct session_bpf *s, const struct call_bpf *call)
{
	int r = bpf_map__reuse_fd(s->maps.verbs_calls, bpf_map__fd(call->maps.verbs_calls));

	r = r ? r : bpf_map__reuse_fd(s->maps.verbs_totals, bpf_map__fd(call->maps.verbs_totals));
	r = r ? r
	      : bpf_map__reuse_fd(s->maps.all_signaled_qps,
				  bpf_map__fd(call->maps.all_signaled_qps));
	r = r ? r : bpf_map__reuse_fd(s->maps.poll_calls, bpf_map__fd(call->maps.poll_calls));
	r = r ? r : bpf_map__reuse_fd(s->maps.traffic, bpf_map__fd(call->maps.traffic));
	return r ? r
		 : bpf_map__reuse_fd(s->maps.rdma_watches, bpf_map__fd(call->maps.rdma_watches));
}

static int load_session(struct nt_bpf_loader *loader, const struct nt_attach_options *options)
{
	struct session_bpf *s = session_bpf__open();
	struct bpf_program *program;
	int r;

	if (!s)
		return -errno;
	loader->session = s;
	s->rodata->wakeup_bytes = options->ring_bytes / WAKEUP_PART;
	s->rodata->min_call_ns = options->min_call_ns;
	if (options->share_shift)
		s->rodata->share_shift = options->share_shift;
	bpf_object__for_each_program(program, s->obj)
	{
		(void)bpf_program__set_expected_attach_type(
			program, (enum bpf_attach_type)NT_UPROBE_SESSION);
	}
	r = bpf_map__reuse_fd(s->maps.events, bpf_map__fd(loader->call->maps.events));
	r = r ? r : bpf_map__reuse_fd(s->maps.counters, bpf_map__fd(loader->call->maps.counters));
	r = r ? r : bpf_map__reuse_fd(s->maps.inside, bpf_map__fd(loader->call->maps.inside));
	r = r ? r
	      : bpf_map__reuse_fd(s->maps.allocating, bpf_map__fd(loader->call->maps.allocating));
	r = r ? r : bpf_map__reuse_fd(s->maps.ids, bpf_map__fd(loader->call->maps.ids));
	r = r ? r : bpf_map__reuse_fd(s->maps.shares, bpf_map__fd(loader->call->maps.shares));
	r = r ? r : bpf_map__reuse_fd(s->maps.gemms, bpf_map__fd(loader->call->maps.gemms));
	r = r ? r
	      : bpf_map__reuse_fd(s->maps.gemm_calls, bpf_map__fd(loader->call->maps.gemm_calls));
	r = r ? r
	      : bpf_map__reuse_fd(s->maps.gemm_watches,
				  bpf_map__fd(loader->call->maps.gemm_watches));
	r = r ? r
	      : bpf_map__reuse_fd(s->maps.capture_states,
				  bpf_map__fd(loader->call->maps.capture_states));
	r = r ? r
	      : bpf_map__reuse_fd(s->maps.detail_events,
				  bpf_map__fd(loader->call->maps.detail_events));
	r = r ? r
	      : bpf_map__reuse_fd(s->maps.detail_limits,
				  bpf_map__fd(loader->call->maps.detail_limits));
	r = r ? r
	      : bpf_map__reuse_fd(s->maps.detail_rates,
				  bpf_map__fd(loader->call->maps.detail_rates));
	r = r ? r : reuse_rdma(s, loader->call);
	return r ? r : session_bpf__load(s);
}

/* Attaches the programs that belong to no library. */
static int attach_life(struct nt_bpf_loader *loader)
{
	loader->exits = bpf_program__attach_raw_tracepoint(loader->call->progs.process_exit,
							   "sched_process_exit");
	if (!loader->exits)
		return -errno;
	loader->execs = bpf_program__attach_raw_tracepoint(loader->call->progs.process_exec,
							   "sched_process_exec");
	if (!loader->execs)
		return -errno;
	loader->signals = bpf_program__attach_trace(loader->call->progs.signal_generate);
	if (!loader->signals)
		return -errno;
	loader->walk = bpf_program__attach_iter(loader->call->progs.inside_dump, NULL);
	return loader->walk ? 0 : -errno;
}

int nt_bpf_loader_load(struct nt_bpf_loader *loader, const struct nt_attach_options *options)
{
	int r;

	loader->call = call_bpf__open();
	if (!loader->call)
		return -errno;
	loader->gpu_batch = options->gpu_batch;
	loader->event_query = options->event_query;
	loader->gemm = options->gemm;
	loader->capture = options->capture;
	loader->detail = options->detail;
	loader->verbs = options->verbs;
	loader->executed = options->executed;
	loader->gpu_data = options->data;
	configure_call(loader->call, options, loader->mode != NT_ATTACH_PERF);
	r = call_bpf__load(loader->call);
	if (r == 0 && loader->mode == NT_ATTACH_SESSION)
		r = load_session(loader, options);
	if (r < 0)
		return r;
	loader->ring =
		ring_buffer__new(bpf_map__fd(loader->call->maps.events), take_event, loader, NULL);
	if (!loader->ring)
		return -errno;
	r = nt_bpf_loader_open_details(loader);
	return r < 0 ? r : attach_life(loader);
}

bool nt_bpf_loader_has_own_links(const struct nt_bpf_loader *loader)
{
	return loader->has_own_links;
}

void nt_bpf_loader_costs(const struct nt_bpf_loader *loader, struct nt_bpf_loader_costs *ret_costs)
{
	*ret_costs = loader->costs;
}

void nt_bpf_loader_free(struct nt_bpf_loader *loader)
{
	if (!loader)
		return;
	(void)bpf_link__destroy(loader->walk);
	(void)bpf_link__destroy(loader->exits);
	(void)bpf_link__destroy(loader->execs);
	(void)bpf_link__destroy(loader->signals);
	while (loader->ended)
		drop_ended(loader, loader->ended);
	ring_buffer__free(loader->ring);
	ring_buffer__free(loader->details);
	session_bpf__destroy(loader->session);
	call_bpf__destroy(loader->call);
	free(loader);
}

enum nt_attach_mode nt_bpf_loader_mode(const struct nt_bpf_loader *loader)
{
	return loader->mode;
}

int nt_bpf_loader_link_entry(const struct nt_bpf_loader *loader, bool only_counted,
			     const char *path, uint32_t pid, const struct nt_probe_site *site,
			     size_t sites, struct nt_link **ret_link)
{
	return nt_link_new(
		only_counted ? loader->call->progs.call_count : loader->call->progs.call_entry,
		loader->mode == NT_ATTACH_PERF ? NT_LINK_PERF_ENTRY : NT_LINK_MULTI_ENTRY, path,
		pid, site, sites, ret_link);
}

static struct bpf_program *session_of(const struct session_bpf *session, enum nt_bpf_pair pair)
{
	struct bpf_program *const programs[NT_BPF_PAIRS] = {
		[NT_BPF_PAIR_CALL] = session->progs.call_session,
		[NT_BPF_PAIR_MEMORY] = session->progs.memory_session,
		[NT_BPF_PAIR_GEMM] = session->progs.gemm_session,
		[NT_BPF_PAIR_VERBS] = session->progs.verbs_session,
		[NT_BPF_PAIR_POLL] = session->progs.traffic_poll_session,
	};

	return programs[pair];
}

static struct bpf_program *enter_of(const struct call_bpf *call, enum nt_bpf_pair pair)
{
	struct bpf_program *const programs[NT_BPF_PAIRS] = {
		[NT_BPF_PAIR_CALL] = call->progs.call_enter,
		[NT_BPF_PAIR_MEMORY] = call->progs.memory_enter,
		[NT_BPF_PAIR_GEMM] = call->progs.gemm_enter,
		[NT_BPF_PAIR_VERBS] = call->progs.verbs_enter,
		[NT_BPF_PAIR_POLL] = call->progs.traffic_poll_begin,
	};

	return programs[pair];
}

static struct bpf_program *leave_of(const struct call_bpf *call, enum nt_bpf_pair pair)
{
	struct bpf_program *const programs[NT_BPF_PAIRS] = {
		[NT_BPF_PAIR_CALL] = call->progs.call_leave,
		[NT_BPF_PAIR_MEMORY] = call->progs.memory_leave,
		[NT_BPF_PAIR_GEMM] = call->progs.gemm_leave,
		[NT_BPF_PAIR_VERBS] = call->progs.verbs_leave,
		[NT_BPF_PAIR_POLL] = call->progs.traffic_poll_end,
	};

	return programs[pair];
}

int nt_bpf_loader_link_pair(const struct nt_bpf_loader *loader, enum nt_bpf_pair pair,
			    const char *path, uint32_t pid, const struct nt_probe_site *site,
			    size_t sites, struct nt_link **ret_link, struct nt_link **ret_leave)
{
	const struct call_bpf *call = loader->call;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	bool perf = loader->mode == NT_ATTACH_PERF;
	int r;

	if (loader->session) {
		*ret_leave = NULL;
		return nt_link_new(session_of(loader->session, pair), NT_LINK_MULTI_SESSION, path,
				   pid, site, sites, ret_link);
	}
	/* Returns first: an entry without its return would look like a call that never ends. */
	r = nt_link_new(leave_of(call, pair), perf ? NT_LINK_PERF_RETURN : NT_LINK_MULTI_RETURN,
			path, pid, site, sites, &leave);
	if (r < 0)
		return r;
	r = nt_link_new(enter_of(call, pair), perf ? NT_LINK_PERF_ENTRY : NT_LINK_MULTI_ENTRY, path,
			pid, site, sites, ret_link);
	if (r < 0)
		return r;
	*ret_leave = nt_take(leave);
	return 0;
}

int nt_bpf_loader_link_rank_probe(const struct nt_bpf_loader *loader, const char *path,
				  uint32_t pid, const struct nt_probe_site *begin, size_t begins,
				  const struct nt_probe_site *end, size_t ends, bool at_return,
				  struct nt_link **ret_begin, struct nt_link **ret_end)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	bool perf = loader->mode == NT_ATTACH_PERF;
	enum nt_link_kind entry = perf ? NT_LINK_PERF_ENTRY : NT_LINK_MULTI_ENTRY;
	enum nt_link_kind leave = perf ? NT_LINK_PERF_RETURN : NT_LINK_MULTI_RETURN;
	int r;

	/* Ends first, as above. */
	r = nt_link_new(loader->call->progs.span_end, at_return ? leave : entry, path, pid, end,
			ends, &link);
	if (r < 0)
		return r;
	r = nt_link_new(loader->call->progs.span_begin, entry, path, pid, begin, begins, ret_begin);
	if (r < 0)
		return r;
	*ret_end = nt_take(link);
	return 0;
}

int nt_bpf_loader_link_batches(const struct nt_bpf_loader *loader, const char *path, uint32_t pid,
			       const struct nt_probe_site *site, size_t sites,
			       struct nt_link **ret_link)
{
	return nt_link_new(loader->call->progs.gpu_batch,
			   loader->mode == NT_ATTACH_PERF ? NT_LINK_PERF_ENTRY
							  : NT_LINK_MULTI_ENTRY,
			   path, pid, site, sites, ret_link);
}

int nt_bpf_loader_link_queries(const struct nt_bpf_loader *loader, const char *path, uint32_t pid,
			       const struct nt_probe_site *site, size_t sites,
			       struct nt_link **ret_begin, struct nt_link **ret_end)
{
	nt_auto(nt_link) struct nt_link *end = NULL;
	const bool perf = loader->mode == NT_ATTACH_PERF;
	int r;

	r = nt_link_new(loader->call->progs.query_end,
			perf ? NT_LINK_PERF_RETURN : NT_LINK_MULTI_RETURN, path, pid, site, sites,
			&end);
	if (r < 0)
		return r;
	r = nt_link_new(loader->call->progs.query_begin,
			perf ? NT_LINK_PERF_ENTRY : NT_LINK_MULTI_ENTRY, path, pid, site, sites,
			ret_begin);
	if (r < 0)
		return r;
	*ret_end = nt_take(end);
	return 0;
}

int nt_bpf_loader_link_posts(const struct nt_bpf_loader *loader, const char *path, uint32_t pid,
			     const struct nt_probe_site *site, size_t sites,
			     struct nt_link **ret_link)
{
	return nt_link_new(loader->call->progs.traffic_post,
			   loader->mode == NT_ATTACH_PERF ? NT_LINK_PERF_ENTRY
							  : NT_LINK_MULTI_ENTRY,
			   path, pid, site, sites, ret_link);
}

void nt_bpf_loader_rdma(const struct nt_bpf_loader *loader, struct nt_bpf_loader_rdma *ret_maps)
{
	*ret_maps = (struct nt_bpf_loader_rdma){
		.traffic = bpf_map__fd(loader->call->maps.traffic),
		.watches = bpf_map__fd(loader->call->maps.rdma_watches),
		.all_signaled = bpf_map__fd(loader->call->maps.all_signaled_qps),
	};
}

int nt_bpf_loader_fd(const struct nt_bpf_loader *loader)
{
	return ring_buffer__epoll_fd(loader->ring);
}

int nt_bpf_loader_poll(struct nt_bpf_loader *loader, nt_event_fn fn, void *data)
{
	int r;

	loader->fn = fn;
	loader->data = data;
	loader->polled = 0;
	loader->poll_end_ns = nt_clock_mono_ns() + POLL_NS;
	r = ring_buffer__consume(loader->ring);
	if (r == -EAGAIN)
		return 1;
	return r < 0 ? r : 0;
}

/* True while a thread of the process runs; false also once it is a zombie. */
static bool is_running(int pidfd)
{
	struct pollfd poller = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&poller, 1, 0) == 0;
}

bool nt_bpf_loader_counters(const struct nt_bpf_loader *loader, uint32_t pid,
			    struct nt_process_counters *ret_counters)
{
	nt_autoclose int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	struct nt_bpf_loader_ended *ended = NULL;

	HASH_FIND(hh, loader->ended, &pid, sizeof(pid), ended);
	/* The pid was reused: the one that ended was never forgotten, as it was not watched. */
	if (ended && !(ended->last.h.flags & NT_END_EXEC) && is_running(fd))
		ended = NULL;
	/* The storage of a process that was not yet waited for can still be read. */
	if ((!ended || ended->last.h.flags & NT_END_EXEC) && fd >= 0 &&
	    bpf_map_lookup_elem(bpf_map__fd(loader->call->maps.counters), &fd, ret_counters) == 0)
		return true;
	if (!ended)
		return false;
	*ret_counters = (struct nt_process_counters){
		.lost = ended->last.lost, .ended = NT_ENDED, .exit_code = ended->last.h.row};
	if (ended->last.h.flags & NT_END_KILLED_BY_PARENT)
		ret_counters->ended |= NT_ENDED_BY_PARENT;
	memcpy(ret_counters->calls, ended->last.calls, sizeof(ret_counters->calls));
	memcpy(ret_counters->bytes, ended->last.bytes, sizeof(ret_counters->bytes));
	return true;
}

bool nt_bpf_loader_gemms(const struct nt_bpf_loader *loader, uint32_t pid,
			 struct nt_gemm_totals *ret_totals)
{
	nt_autoclose int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	return fd >= 0 &&
	       bpf_map_lookup_elem(bpf_map__fd(loader->call->maps.gemms), &fd, ret_totals) == 0;
}

bool nt_bpf_loader_verbs(const struct nt_bpf_loader *loader, uint32_t pid,
			 struct nt_verbs_totals *ret_totals)
{
	nt_autoclose int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	return fd >= 0 && bpf_map_lookup_elem(bpf_map__fd(loader->call->maps.verbs_totals), &fd,
					      ret_totals) == 0;
}

uint64_t nt_bpf_loader_ended_ns(const struct nt_bpf_loader *loader, uint32_t pid)
{
	struct nt_bpf_loader_ended *ended = NULL;

	HASH_FIND(hh, loader->ended, &pid, sizeof(pid), ended);
	return ended && !(ended->last.h.flags & NT_END_EXEC) ? ended->last.h.entry_ns : 0;
}

static void give_thread(const struct nt_inside *inside, nt_inside_fn fn, nt_outside_fn outside,
			void *data)
{
	if (NT_ROW_OF(inside->row) == NT_BPF_LOADER_TRIAL_ROW)
		return;
	if (inside->entry_ns)
		fn(data, inside->pid, inside->tid, NT_ROW_OF(inside->row), inside);
	else if (outside)
		outside(data, inside->pid, inside->user_ip);
}

int nt_bpf_loader_inside(struct nt_bpf_loader *loader, nt_inside_fn fn, nt_outside_fn outside,
			 void *data)
{
	struct nt_inside inside[INSIDE_READ];
	nt_autoclose int fd = bpf_iter_create(bpf_link__fd(loader->walk));
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
			give_thread(&inside[i], fn, outside, data);
		kept -= records * sizeof(inside[0]);
		memmove(inside, inside + records, kept);
	}
	return 0;
}

void nt_bpf_loader_forget(struct nt_bpf_loader *loader, uint32_t pid)
{
	struct nt_bpf_loader_ended *ended = NULL;

	HASH_FIND(hh, loader->ended, &pid, sizeof(pid), ended);
	if (ended)
		drop_ended(loader, ended);
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

void nt_bpf_loader_set_split(const struct nt_bpf_loader *loader, uint32_t slot, enum nt_split split)
{
	if (!slot)
		return;
	/* One atomic store: probes read it at any time. */
	__atomic_store_n(&loader->call->bss->splits[slot], split, __ATOMIC_SEQ_CST);
	if (loader->session)
		__atomic_store_n(&loader->session->bss->splits[slot], split, __ATOMIC_SEQ_CST);
}

void nt_bpf_loader_stats(const struct nt_bpf_loader *loader, struct nt_attach_stats *stats)
{
	for (int i = 0; i < NT_EVENT_TYPE_END; i++) {
		stats->dropped[i] = loader->call->bss->dropped[i];
		if (loader->session)
			stats->dropped[i] += loader->session->bss->dropped[i];
	}
	stats->untracked = loader->call->bss->untracked;
	stats->unreturned = loader->call->bss->unreturned;
	stats->over_share = loader->call->bss->over_share;
	if (loader->session) {
		stats->untracked += loader->session->bss->untracked;
		stats->unreturned += loader->session->bss->unreturned;
		stats->over_share += loader->session->bss->over_share;
	}
	stats->unmeasured = loader->call->bss->unmeasured;
	stats->missed = misses_of(loader->call->obj);
	if (loader->session)
		stats->missed += misses_of(loader->session->obj);
}
