/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The scores of nodes: vectors in, incidents and states out. */
#include "aggregator/service_impl.h"

#include <string.h>

#include "aggregator/group/node_incident.h"
#include "common/system/clock.h"
#include "common/system/log.h"

enum {
	MOST_LOGGED = 10, /* nodes learned anew, a minute: a vector can claim any boot */
};

/* ---- incidents ------------------------------------------------------------------------------- */

/* The newest job of the key, with its name; without one the key. */
static struct nt_node_job find_job(struct nt_service *service, const char *key)
{
	struct nt_node_job job = {.name = key, .namespace = "", .key = key};

	for (struct nt_shard *shard = service->shard; shard; shard = shard->hh.next) {
		struct nt_job_key *keys = nt_jobs_keys(nt_engine_jobs(shard->engine)), *found;

		HASH_FIND_STR(keys, key, found);
		for (struct nt_job *one = found ? found->job : NULL; one; one = one->next) {
			if (one->attempt < job.attempt)
				continue;
			job.attempt = one->attempt;
			job.namespace = one->namespace;
			if (one->name && *one->name)
				job.name = one->name;
		}
	}
	return job;
}

/* The job of a node incident: that of its peers, else its first one. */
static struct nt_node_job job_of(struct nt_service *service, const struct nt_fleet_node *node)
{
	if (!node->jobs)
		return (struct nt_node_job){.name = "", .namespace = "", .key = ""};
	return find_job(
		service,
		node->job[node->peers && node->peer_job < node->jobs ? node->peer_job : 0].key);
}

static void take_alarm(void *data, const struct nt_fleet *fleet, const struct nt_fleet_node *node,
		       enum nt_fleet_change change, uint64_t real_ns)
{
	struct nt_service *service = data;
	const struct nt_shard *shard = nt_service_find(service, node->shard);
	const struct nt_node_job job = job_of(service, node);
	nt_autoarena struct nt_arena arena = {0};
	struct nt_wire_incident incident;

	if (!shard)
		return;
	if (nt_node_incident_describe(fleet, node, &job, change, real_ns, &arena, &incident) < 0) {
		service->sink_errors++;
		return;
	}
	service->handler.incident(service->handler.data, shard, &incident);
	/* Slow ranks on the node name it in their next change. */
	for (struct nt_shard *one = service->shard; one; one = one->hh.next)
		if (change != NT_FLEET_ALARM_ENDED)
			nt_engine_mark_node(one->engine, node->name);
}

static void log_restart(void *data, const struct nt_fleet_node *node)
{
	struct nt_service *service = data;
	const uint64_t now_ns = nt_clock_mono_ns();

	if (!service->restarts_since_ns || now_ns - service->restarts_since_ns >= NT_MINUTE) {
		service->restarts_since_ns = now_ns;
		service->restarts_logged = 0;
	}
	if (service->restarts_logged == MOST_LOGGED)
		return;
	service->restarts_logged++;
	nt_info("node '%s' is learned anew (%s): it cannot alarm until then%s", node->name,
		nt_fleet_reason_name(node->reason),
		service->restarts_logged == MOST_LOGGED ? "; more of this minute are only counted"
							: "");
}

void nt_service_join_nodes(void *data, const struct nt_wire_incident *incident)
{
	struct nt_service *service = data;

	if (strcmp(incident->severity, "critical") != 0)
		return;
	for (size_t i = 0; i < incident->culprits; i++)
		nt_node_desk_join(service->node_desk, incident->culprit[i].node);
}

/* ---- vectors --------------------------------------------------------------------------------- */

static bool owns(void *data, uint32_t shard)
{
	return nt_service_find(data, shard);
}

int nt_service_open_nodes(struct nt_service *service)
{
	const struct nt_node_desk_handler handler = {owns, take_alarm, log_restart, service};
	struct nt_fleet_options options = service->options.fleet;
	int r;

	if (!options.max_nodes)
		options.max_nodes = service->options.engine.limits.nodes
					    ? service->options.engine.limits.nodes
					    : NT_JOBS_MAX_NODES;
	r = nt_node_desk_new(&options, &handler, &service->node_desk);
	if (r == 0)
		service->options.engine.fleet = nt_node_desk_fleet(service->node_desk);
	return r;
}

int nt_service_take_vector(void *data, const struct nt_shard *shard,
			   const struct nt_message *message)
{
	struct nt_service *service = data;

	return nt_node_desk_take(service->node_desk, message, shard->number);
}

/* All topics have as many partitions: a node's shard is that of its partition of the node topic. */
int nt_service_take_fed_vector(void *data, const struct nt_message *message, uint32_t partition)
{
	struct nt_service *service = data;

	return nt_node_desk_take(service->node_desk, message, nt_service_number(partition));
}

/* ---- state ----------------------------------------------------------------------------------- */

int nt_service_load_nodes(struct nt_service *service, struct nt_shard *shard,
			  nt_node_state_log_fn find, void *data)
{
	return nt_node_state_load(service->node_desk, shard->number, service->options.states, find,
				  data, &shard->node_state);
}

int nt_service_save_nodes(struct nt_service *service, bool all)
{
	const bool shares = service->bus_producer && service->options.shared;
	struct nt_state_log_port log = {0};
	const struct nt_node_state_port port = {
		.states = service->options.states,
		.log = shares ? &log : NULL,
		.owner = service->options.address ? service->options.address : "",
	};
	int first = 0;

	if (shares)
		log = nt_bus_producer_port(service->bus_producer);
	/* After a failure the others would wait for the same brokers or disk. */
	for (struct nt_shard *shard = service->shard; shard && first == 0; shard = shard->hh.next)
		first = nt_node_state_save(service->node_desk, shard->number, all, &port,
					   &shard->node_state);
	if (first < 0 && service->save_errors++ == 0)
		(void)nt_err(first, "save the scores of nodes; later failures are only counted");
	return first;
}
