/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/cluster.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "engine/ingest.h"
#include "tests/sim/cluster/air.h"
#include "tests/sim/cluster/node/node.h"

enum {
	AFTER_NS = 1000000000, /* the agents go on for so long when the last step is done */
};

struct run {
	const struct cl_scenario *s;
	struct cl_play *play;
	struct cl_air *air;
	struct cl_node **node; /* owned, and what is in it */
	struct nt_ingest *ingest;
	struct nt_engine *engine;
	struct nt_bus *bus; /* or NULL */
	struct nt_judgement *judgement;
	struct cl_outcome outcome;
	int64_t now_ns;
	int error; /* of a handler */
};

static void on_incident(void *data, const struct nt_wire_incident *incident)
{
	struct run *run = data;
	int r = nt_judgement_add(run->judgement, incident);

	if (r < 0 && !run->error)
		run->error = r;
}

static void on_frame(void *data, const struct nt_job *job, const struct nt_frame *frame)
{
	struct run *run = data;

	(void)job;
	run->outcome.frames++;
	run->outcome.incomplete += frame->completeness < 1;
}

static void on_refused(void *data, const struct nt_bus_record *record, const char *reason)
{
	(void)data;
	(void)record;
	(void)reason; /* counted by the ingest */
}

static void note_steps(struct run *run, const struct nt_message *message)
{
	const struct nt_window *window = &message->window;
	int64_t end_ns;

	if (message->body != NT_BODY_WINDOW || !window->steps)
		return;
	end_ns = (int64_t)nt_message_real_ns(message, window->end_boot_ns);
	if (end_ns > run->outcome.reported_ns)
		run->outcome.reported_ns = end_ns;
}

static int arrive(void *data, const struct nt_bus_record *record)
{
	struct run *run = data;
	struct nt_message *message = NULL;
	int r = 0;

	if (run->bus)
		r = nt_bus_publish(run->bus, record);
	if (r < 0)
		return r;
	r = nt_ingest_take(run->ingest, record, 0, false, &message);
	if (r <= 0)
		return r;
	note_steps(run, message);
	return nt_engine_push(run->engine, message, false);
}

static int tick(struct run *run)
{
	int r = 0;

	run->now_ns += CL_TICK_NS;
	cl_air_set_time(run->air, run->now_ns);
	for (uint32_t i = 0; i < cl_scenario_nodes(run->s) && r == 0; i++)
		r = cl_node_tick(run->node[i], run->now_ns);
	return r < 0 ? r : cl_air_deliver(run->air, run->now_ns, arrive, run);
}

/* What becomes of agents, at the beginning of the step. */
static int change_agents(struct run *run, uint32_t step)
{
	int r = 0;

	for (uint32_t i = 0; i < cl_scenario_nodes(run->s) && step && r == 0; i++) {
		if (cl_scenario_agent_step(run->s, i) == step)
			r = cl_node_revive(run->node[i], run->now_ns);
	}
	for (size_t i = 0; i < run->s->faults && r == 0; i++) {
		const struct cl_fault *f = &run->s->fault[i];

		if (f->from != step || (f->kind != CL_AGENT_DIES && f->kind != CL_AGENT_RESTARTS))
			continue;
		cl_node_kill(run->node[f->target]);
		if (f->kind == CL_AGENT_RESTARTS)
			r = cl_node_revive(run->node[f->target], run->now_ns);
	}
	return r;
}

static void note_fault(struct run *run, uint32_t step)
{
	for (size_t i = 0; i < run->s->faults; i++) {
		if (run->s->fault[i].from == step && !run->outcome.fault_ns)
			run->outcome.fault_ns = (int64_t)CL_EPOCH_NS + run->now_ns;
	}
}

static int play_all(struct run *run)
{
	int r = 0;

	for (uint32_t step = 0; step < run->s->steps && r == 0; step++) {
		note_fault(run, step);
		r = change_agents(run, step);
		r = r ?: cl_play_step(run->play);
		while (r == 0 && run->now_ns + CL_TICK_NS <= cl_play_known_ns(run->play))
			r = tick(run);
	}
	for (int64_t end_ns = run->now_ns + AFTER_NS; r == 0 && run->now_ns < end_ns;)
		r = tick(run);
	r = r ?: cl_air_deliver(run->air, INT64_MAX, arrive, run);
	r = r ?: nt_engine_finish(run->engine);
	return r ?: run->error;
}

static int make(struct run *run)
{
	struct nt_engine_options options = nt_engine_options_default();
	const struct nt_engine_handler handler = {on_incident, on_frame, run};
	uint32_t nodes = cl_scenario_nodes(run->s);
	int r = cl_play_new(run->s, &run->play);

	options.limits.ranks = CL_MAX_RANKS;
	r = r ?: cl_air_new(run->s, &run->air);
	r = r ?: nt_ingest_new(on_refused, run, &run->ingest);
	r = r ?: nt_engine_new(&options, &handler, &run->engine);
	if (r < 0)
		return r;
	run->node = calloc(nodes, sizeof(struct cl_node *));
	if (!run->node)
		return -ENOMEM;
	for (uint32_t i = 0; i < nodes && r == 0; i++)
		r = cl_node_new(run->s, run->play, i, cl_air_bus(run->air), &run->node[i]);
	return r;
}

static void release(struct run *run)
{
	for (uint32_t i = 0; run->node && i < cl_scenario_nodes(run->s); i++)
		cl_node_free(run->node[i]);
	free(run->node);
	nt_engine_free(run->engine);
	nt_ingest_free(run->ingest);
	cl_air_free(run->air);
	cl_play_free(run->play);
}

int cl_run(const struct cl_scenario *scenario, struct nt_bus *bus, struct nt_judgement *judgement,
	   struct cl_outcome *ret_outcome)
{
	struct run run = {.s = scenario, .bus = bus, .judgement = judgement};
	int r = make(&run);

	r = r ?: play_all(&run);
	r = r ?: cl_cost_of_faults(scenario, run.outcome.cost);
	r = r
		    ?: cl_cost_of_all(scenario, run.outcome.reported_ns - (int64_t)CL_EPOCH_NS,
				      run.now_ns, &run.outcome.lost_s);
	if (r == 0) {
		const struct nt_ingest_counters *counters = nt_ingest_counters(run.ingest);

		for (uint32_t i = 0; i < cl_scenario_nodes(scenario); i++)
			run.outcome.calls += cl_node_calls(run.node[i]);
		run.outcome.messages = counters->messages;
		run.outcome.refused =
			counters->undecodable + counters->impossible + counters->unknown;
		run.outcome.missing = counters->dedup.gaps - counters->dedup.filled;
		run.outcome.start_ns = (int64_t)CL_EPOCH_NS;
		run.outcome.end_ns = (int64_t)CL_EPOCH_NS + run.now_ns;
		*ret_outcome = run.outcome;
	}
	release(&run);
	return r;
}
