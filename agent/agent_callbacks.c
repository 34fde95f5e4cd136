/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the parts of the agent that call back into others: workers, probes, tracker, discovery. */
#include "agent/agent_impl.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/discover/inspection.h"
#include "agent/host/proc.h"
#include "agent/probes/bpf_loader.h"
#include "agent/steps/process.h"
#include "common/base/hash.h"
#include "common/system/clock.h"
#include "common/system/log.h"

#define BTF "/sys/kernel/btf/vmlinux"

_Static_assert((int)NT_OWN_LINKS_FILES >= (int)NT_PROCESS_TABLE_FILES,
	       "no process has a file without links of its own");

/* ---- callbacks ------------------------------------------------------------------------------ */

static void note_uncovered(struct nt_agent *agent, const struct nt_mapped_file *file,
			   const struct nt_uncovered_calls *calls)
{
	if (!calls->count)
		return;
	agent->uncovered_calls += calls->count;
	(void)nt_warn(0,
		      "%u communication calls of '%s' have no probe, such as '%s': ranks that make "
		      "them show longer steps and less communication",
		      calls->count, file->name, calls->first);
}

static int attach_file(void *data, const struct nt_mapped_file *file, uint32_t subjects)
{
	struct nt_agent *agent = data;
	struct nt_discover_file opened;
	struct nt_attach_order order = {
		.dev = file->dev,
		.ino = file->ino,
		.subjects = subjects,
		.name = file->name,
		.owner = file->owner ? file->owner->id : 0,
	};
	int r = nt_discover_file(agent->discover, file->dev, file->ino, &opened);

	if (r == 0 && opened.symbols)
		note_uncovered(agent, file, &opened.symbols->uncovered);
	if (r == 0) {
		order.fd = opened.fd;
		order.symbols = opened.symbols;
		r = nt_attach_opened(agent->attach, &order);
	}
	if (r >= 0)
		nt_own_links_use(agent->own_links, file->pid, file->start_boot_ns, file->dev,
				 file->ino);
	if (r < 0) {
		agent->attach_failures++;
		(void)nt_warn(r,
			      "attach '%s' of process %u: its calls are not "
			      "observed",
			      file->name, file->pid);
	}
	return r;
}

static void on_attached(void *data, const char *name, int result)
{
	struct nt_agent *agent = data;

	if (result > 0)
		nt_info("attached %d functions of '%s'", result, name);
	if (result < 0) {
		agent->attach_failures++;
		(void)nt_warn(result, "attach '%s': its calls are not observed", name);
	}
}

static void drop_file(void *data, dev_t dev, ino_t ino)
{
	struct nt_agent *agent = data;

	nt_own_links_drop(agent->own_links, dev, ino);
	nt_attach_drop(agent->attach, dev, ino);
}

static void on_ranked(void *data, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_agent *agent = data;

	nt_agent_probe_rank(agent, pid, start_boot_ns);
	if (agent->config->level)
		nt_agent_raise(agent, pid, start_boot_ns, agent->config->level);
}

static void on_called(void *data, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_agent *agent = data;

	nt_discover_called(agent->discover, pid, start_boot_ns);
}

static void on_dropped(void *data, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_agent *agent = data;

	nt_agent_forget_rank(agent, pid, start_boot_ns);
	nt_agent_forget_level(agent, pid, start_boot_ns);
}

static void on_claimed(void *data)
{
	nt_agent_keep_memory(data);
}

static int owner_of(void *data, uint32_t pid, struct nt_owner *ret_owner)
{
	(void)data;
	return nt_owner_read(pid, ret_owner);
}

static bool is_awaited(void *data, uint32_t pid)
{
	const struct nt_agent *agent = data;

	return nt_discover_awaits(agent->discover, pid);
}

static void end_process(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns)
{
	nt_attachment_end(agent->attachment, pid, start_boot_ns, nt_clock_boot_ns());
	nt_agent_forget_rank(agent, pid, start_boot_ns);
	nt_agent_forget_level(agent, pid, start_boot_ns);
	nt_own_links_end(agent->own_links, pid, start_boot_ns);
	nt_governor_end(agent->governor, pid);
	nt_attach_forget(agent->attach, pid);
}

/* It leaves the table last: until then sample() has its GPUs. */
static void end_waiting(struct nt_agent *agent, const struct nt_gpu_end *waiting)
{
	const struct nt_gpu_end end = *waiting;

	nt_tracker_exited(agent->tracker, end.pid, end.start_boot_ns, end.boot_ns);
	end_process(agent, end.pid, end.start_boot_ns);
	nt_gpu_ends_remove(&agent->gpu_ends, end.pid);
}

void nt_agent_end_processes(struct nt_agent *agent, uint64_t mono_ns)
{
	const uint64_t begun_ns = agent->gpu_health ? nt_gpu_health_begun_ns(agent->gpu_health) : 0;
	const struct nt_gpu_end *end;

	nt_gpu_ends_look(&agent->gpu_ends, nt_proc_has_ended, mono_ns);
	while ((end = nt_gpu_ends_due(&agent->gpu_ends, begun_ns, mono_ns)))
		end_waiting(agent, end);
}

/* True: the last windows of the process wait until its GPUs are read again. */
static bool waits_for_gpu(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns,
			  uint64_t boot_ns)
{
	const struct nt_gpu_end end = {.pid = pid,
				       .start_boot_ns = start_boot_ns,
				       .boot_ns = boot_ns,
				       .noticed_ns = nt_clock_mono_ns()};
	struct nt_gpu_total ignored;

	return agent->gpu_health && nt_gpu_health_of(agent->gpu_health, pid, NULL, &ignored) &&
	       nt_gpu_ends_add(&agent->gpu_ends, &end);
}

static void on_mapped(void *data, const struct nt_mapped_file *file)
{
	struct nt_agent *agent = data;
	const struct nt_gpu_end *end = nt_gpu_ends_find(&agent->gpu_ends, file->pid);
	const struct nt_attached *attached = nt_attach_find(agent->attach, file->dev, file->ino);
	struct nt_mapped_file mapped = *file;

	/* Its number is in use again, or the process runs another program: an end, too. */
	if (end)
		end_waiting(agent, end);
	if (attached)
		mapped.probed_ns = nt_attached_alloc_ns(attached);
	nt_tracker_mapped(agent->tracker, &mapped);
	(void)nt_attachment_use(agent->attachment, file);
}

/* Several ends may be noticed at one time. Who ended first is in the events of the kernel side. */
static void on_exited(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t boot_ns)
{
	struct nt_agent *agent = data;
	uint64_t ended_ns;

	/* The last calls must precede the end; calls that are not read by then are lost. */
	if (!nt_agent_read_all_events(agent))
		nt_tracker_lost_of(agent->tracker, pid, 1);
	nt_agent_count_details(agent, pid);
	ended_ns = nt_attach_ended_ns(agent->attach, pid);
	if (ended_ns > start_boot_ns && ended_ns < boot_ns)
		boot_ns = ended_ns;
	if (waits_for_gpu(agent, pid, start_boot_ns, boot_ns))
		return;
	nt_tracker_exited(agent->tracker, pid, start_boot_ns, boot_ns);
	end_process(agent, pid, start_boot_ns);
}

/* The process still runs, but was evicted: sends its data and drops it. */
static void on_evicted(void *data, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_agent *agent = data;

	nt_tracker_evicted(agent->tracker, pid, start_boot_ns);
	end_process(agent, pid, start_boot_ns);
}

/* If the environment cannot be read in time, its values are missing. */
static int describe(void *data, uint32_t pid, struct nt_process_facts *ret_facts)
{
	struct nt_agent *agent = data;
	struct nt_environ env;
	int r;

	nt_environ_parse("", 0, &env);
	r = nt_process_reader_environ(agent->process_reader, pid, &env);
	if (r < 0 && r != -ETIMEDOUT && r != -EBUSY && r != -EIO)
		return r;
	return nt_process_describe(pid, &env, ret_facts);
}

void nt_agent_stalled(void *data, uint32_t pid, const struct nt_owner *owner, bool held)
{
	(void)data;
	(void)nt_warn(0,
		      "reading from process %u of %s takes too long: %s in quarantine for a while",
		      pid, owner->id ? owner->name : "an unknown owner",
		      held ? "all processes of its owner are" : "it is");
}

static void on_refused(void *data, uint32_t pid, const char *name, enum nt_refusal why)
{
	static const char *const reasons[] = {
		[NT_REFUSED_BUDGET] = "it takes too much memory or processor time to read",
		[NT_REFUSED_DEADLINE] = "it takes too long to read: tried again in 10 minutes",
		[NT_REFUSED_NOT_REGULAR] = "it is no regular file",
		[NT_REFUSED_FUSE] =
			("it is on a file system in user space, whose server could halt this host; "
			 "see --attach-fuse"),
		[NT_REFUSED_CHANGES] = "it has changed too often: tried again in a minute",
	};

	(void)data;
	if (name)
		(void)nt_warn(0,
			      "'%s' of process %u is not attached, its calls are not observed: %s",
			      name, pid, reasons[why]);
}

static int sample(void *data, uint32_t pid, uint32_t tid, const char *gpu, struct nt_host **host,
		  struct nt_host_sample *ret_sample)
{
	const struct nt_agent *agent = data;
	char io[NT_INSPECTION_IO];
	ssize_t len;
	int r;

	/* Nothing but what its GPUs did is known of it any more. */
	if (nt_gpu_ends_find(&agent->gpu_ends, pid)) {
		*ret_sample = (struct nt_host_sample){0};
		ret_sample->has_gpu =
			nt_gpu_health_of(agent->gpu_health, pid, gpu, &ret_sample->gpu);
		return 0;
	}
	if (!*host) {
		r = nt_host_open(pid, tid, host);
		if (r < 0)
			return r;
	}
	r = nt_host_read(*host, ret_sample);
	if (r < 0)
		return r;
	len = nt_process_reader_io(agent->process_reader, pid, tid, io, sizeof(io));
	if (len == -EBUSY)
		return -EBUSY; /* zero counters would make the totals so far appear as new */
	if (len > 0)
		nt_host_parse_io(io, (size_t)len, ret_sample);
	ret_sample->nic_retransmits = agent->nic.retransmits;
	ret_sample->nic_errors = agent->nic.errors;
	ret_sample->nic_congestion = agent->nic.congestion;
	ret_sample->has_gpu = agent->gpu_health &&
			      nt_gpu_health_of(agent->gpu_health, pid, gpu, &ret_sample->gpu);
	nt_agent_sample_system(agent, pid, tid, ret_sample);
	return 0;
}

static enum nt_gpu_shared shared_card(void *data, uint32_t pid, uint32_t other)
{
	const struct nt_agent *agent = data;

	return agent->gpu_health ? nt_gpu_health_shared(agent->gpu_health, pid, other)
				 : NT_GPU_SHARED_UNKNOWN;
}

static bool counters(void *data, uint32_t pid, struct nt_process_counters *ret_counters)
{
	const struct nt_agent *agent = data;

	return nt_attach_counters(agent->attach, pid, ret_counters);
}

static bool gemms(void *data, uint32_t pid, struct nt_gemm_totals *ret_totals)
{
	const struct nt_agent *agent = data;

	return nt_attach_gemms(agent->attach, pid, ret_totals);
}

static enum nt_tenant_stated locate(void *data, const struct nt_cgroup *cgroup,
				    struct nt_placement *placement)
{
	const struct nt_agent *agent = data;

	return nt_placement_lookup_find(agent->placement_lookup, cgroup, placement);
}

static void on_window(void *data, const char *key, const struct nt_window *window,
		      uint64_t watermark_ns)
{
	struct nt_agent *agent = data;

	nt_gpu_schedule_steps(&agent->gpu_schedule, window->rank.pid, window->rank.rank,
			      window->steps, window->step_ns, nt_clock_mono_ns());
	nt_rank_times_add(&agent->rank_times, window);
	nt_publisher_window(agent->publisher, key, window, watermark_ns);
}

static void on_detail(void *data, const char *key, const struct nt_detail *detail)
{
	struct nt_agent *agent = data;

	nt_publisher_detail(agent->publisher, key, detail);
}

static void on_heartbeat(void *data, const char *key, uint32_t ranks, uint64_t watermark_ns)
{
	struct nt_agent *agent = data;

	nt_publisher_heartbeat(agent->publisher, key, ranks, watermark_ns);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Before any thread exists: a later fork would have to deal with all threads. */
int nt_agent_open_workers(struct nt_agent *agent)
{
	const struct nt_process_reader_hooks hooks = {.stalled = nt_agent_stalled, .data = agent};
	int r = nt_quarantine_new(&agent->quarantine);

	if (r == 0)
		r = nt_workers_begin(&agent->workers);
	if (r == 0)
		r = nt_process_reader_new(&agent->workers, agent->quarantine, &hooks,
					  &agent->process_reader);
	if (r == 0)
		r = nt_agent_open_profiler(agent);
	return r < 0 ? nt_err(r, "start a worker") : 0;
}

int nt_agent_open_probes(struct nt_agent *agent)
{
	struct nt_attach_options options = {
		.mode = (enum nt_attach_mode)agent->config->attach_mode,
		.ring_bytes = agent->config->ring_bytes,
		.min_call_ns = agent->config->min_call_ns,
		.has_thread = true,
		.attached = on_attached,
		.rank_probe_made = nt_agent_rank_probe_made,
		.gpu_batch = nt_agent_gpu_batch,
		.event_query = nt_agent_event_query,
		.gemm = nt_agent_gemm,
		.capture = nt_agent_capture,
		.detail = nt_agent_detail,
		.verbs = nt_agent_verbs,
		.executed = nt_agent_executed,
		.data = agent,
	};
	int r;

	if (access(BTF, R_OK) < 0)
		return nt_err(-errno, "the kernel provides no type information (BTF) at '%s'", BTF);
	r = nt_attach_new(&options, &agent->attach);
	if (r == -EPERM || r == -EACCES)
		return nt_err(r, "load the probes: run as root, or with CAP_BPF, CAP_PERFMON, "
				 "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
	if (r < 0)
		return nt_err(r, "load the probes");
	nt_agent_open_system(agent);
	return nt_agent_open_governor(agent);
}

int nt_agent_open_tracker(struct nt_agent *agent, uint64_t boot)
{
	struct nt_bpf_loader_costs costs;
	struct nt_tracker_options options = {
		.node = agent->node,
		.boot = boot,
		.seed = nt_hash_u64(boot, nt_clock_boot_ns()),
		.window_min_ns = agent->config->window_min_ns,
		.query_max = agent->config->query_max,
		.gpu_peak_flops = agent->config->gpu_peak * 1e12,
		.source = {.describe = describe,
			   .sample = sample,
			   .counters = counters,
			   .gemms = gemms,
			   .owner = owner_of,
			   .awaited = is_awaited,
			   .locate = locate,
			   .shared_card = shared_card,
			   .rdma = nt_agent_rdma_window,
			   .tcp = nt_agent_tcp_window,
			   .data = agent},
		.sink = {.window = on_window,
			 .called = on_called,
			 .dropped = on_dropped,
			 .claimed = on_claimed,
			 .ranked = on_ranked,
			 .site_wanted = nt_agent_site_wanted,
			 .detail = on_detail,
			 .heartbeat = on_heartbeat,
			 .data = agent},
	};
	struct nt_attachment_hooks hooks = {
		.attach = attach_file,
		.drop = drop_file,
		.data = agent,
	};
	const struct nt_discover_options discover = {
		.cgroup = agent->config->cgroup,
		.attach_fuse = agent->config->attach_fuse,
		.workers = &agent->workers,
		.quarantine = agent->quarantine,
		.handler = {.mapped = on_mapped,
			    .exited = on_exited,
			    .evicted = on_evicted,
			    .refused = on_refused,
			    .stalled = nt_agent_stalled,
			    .data = agent},
	};
	int r;

	options.source.memory = nt_process_reader_memory(agent->process_reader);
	nt_agent_open_unprobed(agent);
	nt_agent_open_heap(agent);
	nt_agent_open_stacks(agent);
	nt_bpf_loader_costs(nt_attach_loader(agent->attach), &costs);
	options.outside_ns = costs.outside_ns;
	r = nt_agent_open_details(agent);
	if (r == 0)
		r = nt_tracker_new(&options, &agent->tracker);
	if (r == 0)
		r = nt_attachment_new(&hooks, &agent->attachment);
	if (r == 0)
		r = nt_agent_open_ranks(agent);
	if (r == 0)
		r = nt_agent_open_rdma(agent);
	if (r == 0)
		r = nt_self_metrics_new(&agent->metrics);
	if (r < 0)
		return nt_err(r, "start");
	r = nt_discover_new(&discover, &agent->discover);
	if (r < 0 && agent->config->cgroup)
		return nt_err(r, "scan for the processes of cgroup '%s'", agent->config->cgroup);
	return r < 0 ? nt_err(r, "scan for processes") : 0;
}
