/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is probed in ranks alone: the interpreter, the library that reports the GPU, and queries of
 * CUDA events.
 */
#include "agent/agent_impl.h"

#include <errno.h>

#include "agent/discover/inspection.h"
#include "agent/host/proc.h"
#include "agent/probes/rank_probe.h"
#include "common/system/clock.h"
#include "common/system/log.h"

enum {
	GPU_SEARCHES = 8, /* that begin in a turn */
	ENDED = 64, /* whose probes are let go in a second: a thread does it */
};

static struct nt_probed_ranks *ranks_of(const struct nt_agent *agent, int library)
{
	switch (library) {
	case NT_LIBRARY_GPU:
		return agent->gpu_ranks;
	case NT_LIBRARY_NCCL_PROFILER:
		return agent->nccl_ranks;
	case NT_LIBRARY_NCCL_SENDS:
		return agent->send_ranks;
	case NT_LIBRARY_EVENT:
		return agent->query_ranks;
	default:
		return agent->interpreters;
	}
}

/* For the log. */
static const struct rank_file_text {
	const char *file, *subject, *verb;
} texts[] = {
	{"interpreter", "garbage collections", "are timed"},
	{"GPU library", "GPU time", "is measured"},
	{"CUDA library", "queries of events", "are observed"},
	{"profiler plugin of NCCL", "kernels of NCCL", "are measured"},
	{"profiler plugin of NCCL", "sends of NCCL", "are measured"},
};

static const struct rank_file_text *text_of(int library)
{
	switch (library) {
	case NT_LIBRARY_GPU:
		return &texts[1];
	case NT_LIBRARY_EVENT:
		return &texts[2];
	case NT_LIBRARY_NCCL_PROFILER:
		return &texts[3];
	case NT_LIBRARY_NCCL_SENDS:
		return &texts[4];
	default:
		return &texts[0];
	}
}

/* ---- attaching ------------------------------------------------------------------------------ */

static int search(struct nt_agent *agent, int library, uint32_t pid, uint64_t start_boot_ns)
{
	const struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_RANK_FILE,
			    .pid = pid,
			    .library = (uint32_t)library,
			    .takes_fuse = agent->config->attach_fuse},
		.client = &agent->rank_file_client,
		.start_ns = start_boot_ns,
	};
	int r = nt_inspector_submit(nt_discover_inspector(agent->discover), &task, NULL, -1);

	return r < 0 ? r : -EINPROGRESS;
}

static int attach_interpreter(void *data, uint32_t pid, uint64_t start_boot_ns,
			      struct nt_rank_probe **ret_probe)
{
	(void)ret_probe;
	return search(data, NT_LIBRARY_PYTHON, pid, start_boot_ns);
}

static int attach_gpu(void *data, uint32_t pid, uint64_t start_boot_ns,
		      struct nt_rank_probe **ret_probe)
{
	(void)ret_probe;
	return search(data, NT_LIBRARY_GPU, pid, start_boot_ns);
}

static int attach_nccl(void *data, uint32_t pid, uint64_t start_boot_ns,
		       struct nt_rank_probe **ret_probe)
{
	(void)ret_probe;
	return search(data, NT_LIBRARY_NCCL_PROFILER, pid, start_boot_ns);
}

static int attach_sends(void *data, uint32_t pid, uint64_t start_boot_ns,
			struct nt_rank_probe **ret_probe)
{
	(void)ret_probe;
	return search(data, NT_LIBRARY_NCCL_SENDS, pid, start_boot_ns);
}

static int attach_queries(void *data, uint32_t pid, uint64_t start_boot_ns,
			  struct nt_rank_probe **ret_probe)
{
	(void)ret_probe;
	return search(data, NT_LIBRARY_EVENT, pid, start_boot_ns);
}

static void detach(void *data, struct nt_rank_probe *probe)
{
	struct nt_agent *agent = data;

	nt_attach_drop_rank_probe(agent->attach, probe);
}

/*
 * CUPTI shows more than NCCL does, and the job is charged with one of them. result: of the search for
 * CUPTI's library. The process may have ended since.
 */
static void choose_nccl(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns, int result)
{
	uint64_t start_ns;

	if (result == 0)
		nt_probed_ranks_end(agent->nccl_ranks, pid, start_boot_ns);
	else if (result == -ENOENT && nt_probed_ranks_start_ns(agent->gpu_ranks, pid, &start_ns) &&
		 start_ns == start_boot_ns)
		nt_probed_ranks_add(agent->nccl_ranks, pid, start_boot_ns);
}

void nt_agent_rank_probe_made(void *data, int library, uint32_t pid, uint64_t start_ns, int result,
			      struct nt_rank_probe *probe)
{
	const struct rank_file_text *text = text_of(library);
	struct nt_agent *agent = data;

	if (nt_agent_rdma_made(agent, library, pid, start_ns, result, probe))
		return;
	if (result == 0)
		nt_debug("%s of process %u %s", text->subject, pid, text->verb);
	else if (result != -ENOENT && result != -ESRCH &&
		 result != -EBUSY) /* in quarantine: already logged */
		(void)nt_warn(result, "attach the %s of process %u: its %s will not be observed",
			      text->file, pid, text->subject);
	nt_probed_ranks_found(ranks_of(agent, library), pid, start_ns, result, probe);
	if (library == NT_LIBRARY_GPU)
		choose_nccl(agent, pid, start_ns, result);
}

static void on_found(void *data, const struct nt_inspector_task *task,
		     struct nt_inspector_outcome *outcome)
{
	struct nt_agent *agent = data;
	struct nt_rank_probe_sites sites;
	struct nt_attach_rank_probe_order order = {
		.fd = outcome->fd,
		.library = (int)task->request.library,
		.pid = task->request.pid,
		.start_ns = task->start_ns,
		.sites = &sites,
	};
	struct nt_owner owner;
	uint64_t start_ns;
	int r = outcome->result;

	if (r == 0)
		r = outcome->kind == NT_ANSWER_SITES && outcome->fd >= 0
			    ? nt_inspection_parse_sites(outcome->body, outcome->len, &sites)
			    : -EBADMSG;
	if (r == 0)
		r = nt_proc_start_ns(order.pid, &start_ns);
	if (r == 0 && start_ns != task->start_ns)
		r = -ESRCH;
	if (r == 0 && nt_owner_read(order.pid, &owner) == 0)
		order.owner = owner.id;
	if (r == 0)
		r = nt_attach_order_rank_probe(agent->attach, &order);
	if (r < 0)
		nt_agent_rank_probe_made(agent, order.library, order.pid, task->start_ns, r, NULL);
}

int nt_agent_open_ranks(struct nt_agent *agent)
{
	const struct nt_probed_ranks_hooks interpreters = {
		.attach = attach_interpreter, .detach = detach, .data = agent};
	const struct nt_probed_ranks_hooks gpus = {
		.attach = attach_gpu, .detach = detach, .data = agent};
	const struct nt_probed_ranks_hooks nccl = {
		.attach = attach_nccl, .detach = detach, .data = agent};
	const struct nt_probed_ranks_hooks sends = {
		.attach = attach_sends, .detach = detach, .data = agent};
	const struct nt_probed_ranks_hooks queries = {
		.attach = attach_queries, .detach = detach, .data = agent};
	int r = nt_probed_ranks_new(&interpreters, &agent->interpreters);

	if (r == 0)
		r = nt_probed_ranks_new(&gpus, &agent->gpu_ranks);
	if (r == 0)
		r = nt_probed_ranks_new(&nccl, &agent->nccl_ranks);
	if (r == 0)
		r = nt_probed_ranks_new(&sends, &agent->send_ranks);
	if (r == 0)
		r = nt_probed_ranks_new(&queries, &agent->query_ranks);
	if (r < 0)
		return r;
	agent->rank_file_client = (struct nt_inspector_client){.done = on_found, .data = agent};
	agent->gpu_schedule.window_ns = agent->config->gpu_window_ns;
	agent->gpu_schedule.interval_ns = agent->config->gpu_interval_ns;
	nt_probed_ranks_close(agent->gpu_ranks);
	nt_probed_ranks_close(agent->nccl_ranks);
	nt_probed_ranks_close(agent->send_ranks);
	return 0;
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static void enrol(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_owner owner;

	if (!agent->system)
		return;
	if (nt_owner_read(pid, &owner) < 0)
		owner = (struct nt_owner){0};
	nt_system_enrol(agent->system, pid, start_boot_ns, owner.id);
}

void nt_agent_probe_rank(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns)
{
	nt_probed_ranks_add(agent->interpreters, pid, start_boot_ns);
	nt_rdma_add(agent->rdma, pid, start_boot_ns, nt_clock_boot_ns());
	nt_sockets_add(agent->sockets, pid);
	enrol(agent, pid, start_boot_ns);
	if (agent->config->query_max)
		nt_probed_ranks_add(agent->query_ranks, pid, start_boot_ns);
	if (!agent->config->gpu_window_ns)
		return;
	nt_probed_ranks_add(agent->gpu_ranks, pid, start_boot_ns);
	nt_probed_ranks_add(agent->send_ranks, pid, start_boot_ns);
	nt_gpu_schedule_add(&agent->gpu_schedule, nt_clock_mono_ns());
}

void nt_agent_forget_rank(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns)
{
	nt_probed_ranks_end(agent->interpreters, pid, start_boot_ns);
	if (agent->system)
		nt_system_leave(agent->system, pid, start_boot_ns);
	nt_probed_ranks_end(agent->gpu_ranks, pid, start_boot_ns);
	nt_probed_ranks_end(agent->nccl_ranks, pid, start_boot_ns);
	nt_probed_ranks_end(agent->send_ranks, pid, start_boot_ns);
	nt_probed_ranks_end(agent->query_ranks, pid, start_boot_ns);
	nt_rdma_end(agent->rdma, pid, start_boot_ns);
	nt_sockets_end(agent->sockets, pid);
}

static void refuse(struct nt_agent *agent, const struct nt_event_gpu *batch,
		   enum nt_gpu_batch_result result)
{
	const uint32_t pid = batch->h.pid;
	uint64_t start_ns;

	if (result == NT_GPU_BATCH_FLOOD) {
		nt_probed_ranks_refuse(agent->gpu_ranks, pid);
		nt_probed_ranks_refuse(agent->nccl_ranks, pid);
		nt_probed_ranks_refuse(agent->send_ranks, pid);
	} else if (result == NT_GPU_BATCH_GIVEN_UP &&
		   nt_probed_ranks_start_ns(agent->gpu_ranks, pid, &start_ns)) {
		nt_probed_ranks_add(agent->nccl_ranks, pid, start_ns);
	}
}

void nt_agent_charge(struct nt_agent *agent, uint32_t pid)
{
	const uint64_t now_ns = nt_clock_mono_ns();

	nt_governor_spend(agent->governor, pid, now_ns - agent->event_since_ns);
	agent->event_since_ns = now_ns;
}

void nt_agent_gpu_batch(void *data, const struct nt_event_gpu *batch)
{
	struct nt_agent *agent = data;

	if (batch->h.entry_ns > agent->event_ns)
		agent->event_ns = batch->h.entry_ns;
	if (agent->is_gpu_open)
		refuse(agent, batch, nt_tracker_gpu_batch(agent->tracker, batch));
	nt_agent_charge(agent, batch->h.pid);
}

void nt_agent_event_query(void *data, const struct nt_event_query *query)
{
	struct nt_agent *agent = data;

	if (query->h.entry_ns > agent->event_ns)
		agent->event_ns = query->h.entry_ns;
	if (!nt_tracker_query(agent->tracker, query))
		nt_probed_ranks_refuse(agent->query_ranks, query->h.pid);
	nt_agent_charge(agent, query->h.pid);
}

void nt_agent_gemm(void *data, const struct nt_event_gemm *gemm)
{
	struct nt_agent *agent = data;

	if (gemm->ret_ns > agent->event_ns)
		agent->event_ns = gemm->ret_ns;
	nt_tracker_gemm(agent->tracker, gemm);
	nt_agent_charge(agent, gemm->h.pid);
}

void nt_agent_capture(void *data, const struct nt_event_capture *capture)
{
	struct nt_agent *agent = data;

	nt_tracker_capture(agent->tracker, capture);
	nt_agent_charge(agent, capture->h.pid);
}

static bool is_attached(const struct nt_probed_ranks *ranks)
{
	struct nt_probed_ranks_stats stats;

	nt_probed_ranks_stats(ranks, &stats);
	return stats.attached > 0;
}

void nt_agent_turn_ranks(struct nt_agent *agent, uint64_t real_ns)
{
	const bool measures = is_attached(agent->gpu_ranks) || is_attached(agent->nccl_ranks) ||
			      is_attached(agent->send_ranks);
	const bool opens = nt_gpu_schedule_is_open(&agent->gpu_schedule, measures,
						   nt_clock_mono_ns(), real_ns);

	if (opens && !agent->is_gpu_open) {
		nt_probed_ranks_open(agent->gpu_ranks);
		nt_probed_ranks_open(agent->nccl_ranks);
		nt_probed_ranks_open(agent->send_ranks);
	}
	/* First what was sent: nothing of this measurement is taken later. */
	if (!opens && agent->is_gpu_open) {
		if (!nt_agent_read_all_events(agent))
			nt_debug(
				"records of the GPUs are left unread at the end of their measurement");
		nt_probed_ranks_close(agent->gpu_ranks);
		nt_probed_ranks_close(agent->nccl_ranks);
		nt_probed_ranks_close(agent->send_ranks);
		nt_tracker_gpu_closed_all(agent->tracker);
	}
	agent->is_gpu_open = opens;
	nt_probed_ranks_attach(agent->interpreters);
	nt_probed_ranks_attach(agent->query_ranks);
	/* A window is short. */
	for (int i = 0; i < GPU_SEARCHES; i++) {
		nt_probed_ranks_attach(agent->gpu_ranks);
		nt_probed_ranks_attach(agent->nccl_ranks);
		nt_probed_ranks_attach(agent->send_ranks);
	}
}

void nt_agent_detach_ended_ranks(struct nt_agent *agent)
{
	for (int i = 0; i < ENDED; i++) {
		nt_probed_ranks_detach(agent->interpreters);
		nt_probed_ranks_detach(agent->gpu_ranks);
		nt_probed_ranks_detach(agent->nccl_ranks);
		nt_probed_ranks_detach(agent->send_ranks);
		nt_probed_ranks_detach(agent->query_ranks);
	}
}
