/* SPDX-License-Identifier: GPL-3.0-or-later */
/* RDMA: events of libibverbs in, probes of its providers out. */
#include "agent/agent_impl.h"

#include <errno.h>
#include <signal.h>

#include "agent/discover/inspection.h"
#include "agent/host/port_address.h"
#include "agent/host/proc.h"
#include "agent/probes/bpf_loader.h"
#include "agent/probes/rank_probe.h"
#include "agent/rdma/rdma.h"
#include "agent/rdma/traffic_map.h"
#include "common/system/clock.h"
#include "common/system/log.h"

#define INFINIBAND "/sys/class/infiniband"

/* ---- hooks ----------------------------------------------------------------------------------- */

static int find(void *data, uint32_t pid, uint64_t start_ns, uint64_t post, uint64_t poll)
{
	struct nt_agent *agent = data;
	const struct nt_inspector_task task = {
		.request = {.kind = NT_INSPECT_PROVIDER,
			    .pid = pid,
			    .address = post,
			    .size = poll,
			    .takes_fuse = agent->config->attach_fuse},
		.client = &agent->provider_client,
		.start_ns = start_ns,
	};

	return nt_inspector_submit(nt_discover_inspector(agent->discover), &task, NULL, -1);
}

static void on_provider(void *data, const struct nt_inspector_task *task,
			struct nt_inspector_outcome *outcome)
{
	struct nt_agent *agent = data;
	struct nt_provider_place provider;
	int r = outcome->result;

	if (r == 0)
		r = outcome->kind == NT_ANSWER_PROVIDER
			    ? nt_inspection_parse_provider(outcome->body, outcome->len, &provider)
			    : -EBADMSG;
	if (r < 0 && r != -ESRCH && r != -ENOENT)
		nt_debug("process %u: no probe fits its provider of RDMA (%d)", task->request.pid,
			 r);
	nt_rdma_found(agent->rdma, task->request.pid, task->start_ns, r, &outcome->fd,
		      r == 0 ? &provider : NULL);
}

static uint32_t row_of(int library)
{
	uint16_t row = 0;

	while (row < nt_probe_rows() && (int)nt_probe_row(row)->library != library)
		row++;
	return row;
}

static uint64_t owner_of(void *data, uint32_t pid)
{
	struct nt_owner owner;

	(void)data;
	return nt_owner_read(pid, &owner) == 0 ? owner.id : 0;
}

static int attach(void *data, int library, uint32_t pid, uint64_t start_ns, int fd, uint64_t offset)
{
	struct nt_agent *agent = data;
	const struct nt_rank_probe_sites sites = {
		.row = row_of(library), .begins = 1, .begin = {{.offset = offset}}};
	struct nt_attach_rank_probe_order order = {
		.fd = fd, .library = library, .pid = pid, .start_ns = start_ns, .sites = &sites};
	uint64_t now_start_ns;
	struct nt_owner owner;

	if (nt_proc_start_ns(pid, &now_start_ns) < 0 || now_start_ns != start_ns)
		return -ESRCH;
	if (nt_owner_read(pid, &owner) == 0)
		order.owner = owner.id;
	return nt_attach_order_rank_probe(agent->attach, &order);
}

static void detach(void *data, struct nt_rank_probe *probe)
{
	struct nt_agent *agent = data;

	nt_attach_drop_rank_probe(agent->attach, probe);
}

static bool traffic(void *data, const struct nt_rdma_key *key, struct nt_rdma_traffic *ret_traffic)
{
	const struct nt_agent *agent = data;

	return nt_traffic_map_read(agent->attach, key, ret_traffic);
}

static bool forget(void *data, const struct nt_rdma_key *key, bool is_destroyed)
{
	const struct nt_agent *agent = data;

	return nt_traffic_map_forget(agent->attach, key, is_destroyed);
}

static bool next(void *data, enum nt_rdma_table table, const struct nt_rdma_key *key,
		 struct nt_rdma_key *ret_key)
{
	const struct nt_agent *agent = data;

	return nt_traffic_map_next(agent->attach, table, key, ret_key);
}

static bool exists(void *data, uint32_t pid)
{
	(void)data;
	return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

static void watch(void *data, uint32_t pid, const struct nt_rdma_watch *watch)
{
	const struct nt_agent *agent = data;

	nt_traffic_map_watch(agent->attach, pid, watch);
}

static bool totals(void *data, uint32_t pid, struct nt_verbs_totals *ret_totals)
{
	const struct nt_agent *agent = data;

	return nt_attach_verbs(agent->attach, pid, ret_totals);
}

static bool address(void *data, const char *device, uint32_t port, uint32_t index,
		    uint8_t ret_gid[NT_VERBS_GID], uint32_t *ret_lid)
{
	(void)data;
	return nt_port_address_read(INFINIBAND, device, port, index, ret_gid, ret_lid);
}

/* ---- input ----------------------------------------------------------------------------------- */

void nt_agent_verbs(void *data, const struct nt_event_verbs *verbs)
{
	const uint32_t pid = verbs->h.pid;
	struct nt_agent *agent = data;

	if (!nt_governor_event(agent->governor, pid) && agent->config->budget > 0 &&
	    nt_own_links_has(agent->own_links, pid))
		nt_governor_meet(agent->governor, pid);
	if (agent->rdma)
		nt_rdma_event(agent->rdma, verbs);
	nt_agent_charge(agent, pid);
}

void nt_agent_executed(void *data, uint32_t pid, uint64_t boot_ns)
{
	struct nt_agent *agent = data;

	if (agent->rdma)
		nt_rdma_exec(agent->rdma, pid, boot_ns);
}

const struct nt_rdma_window *nt_agent_rdma_window(void *data, uint32_t pid)
{
	struct nt_agent *agent = data;

	return nt_rdma_take_window(agent->rdma, pid, nt_clock_boot_ns());
}

bool nt_agent_rdma_made(struct nt_agent *agent, int library, uint32_t pid, uint64_t start_ns,
			int result, struct nt_rank_probe *probe)
{
	if (library != NT_LIBRARY_RDMA_POST && library != NT_LIBRARY_RDMA_POLL)
		return false;
	if (result < 0 && result != -ESRCH)
		nt_debug("process %u: its RDMA traffic cannot be observed (%d)", pid, result);
	nt_rdma_made(agent->rdma, library, pid, start_ns, result, probe, nt_clock_boot_ns());
	return true;
}

/* Half-way measures of the governor: a function that is hot is observed in looks, which is shed here. */
void nt_agent_govern_rdma(struct nt_agent *agent, uint32_t pid, const struct nt_governor_plan *plan)
{
	const uint16_t post = (uint16_t)row_of(NT_LIBRARY_RDMA_POST);
	const uint16_t poll = (uint16_t)row_of(NT_LIBRARY_RDMA_POLL);
	const bool is_shed = plan->governed &&
			     ((plan->shed >> NT_SUBJECT_RDMA & 1) ||
			      nt_governor_is_hot(plan, post) || nt_governor_is_hot(plan, poll));

	nt_rdma_govern(agent->rdma, pid, is_shed, plan->governed);
}

int nt_agent_open_rdma(struct nt_agent *agent)
{
	const struct nt_rdma_hooks hooks = {
		.find = find,
		.attach = attach,
		.detach = detach,
		.traffic = traffic,
		.forget = forget,
		.next = next,
		.exists = exists,
		.watch = watch,
		.owner = owner_of,
		.totals = totals,
		.address = address,
		.data = agent,
	};
	struct nt_rdma_options options;

	agent->provider_client = (struct nt_inspector_client){.done = on_provider, .data = agent};
	nt_rdma_options_set(&options, nt_attach_mode(agent->attach) == NT_ATTACH_PERF);
	return nt_rdma_new(&options, &hooks, &agent->rdma);
}
