/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/dead_man.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"
#include "proto/text.h"

enum {
	NAME_BYTES = 256, /* of a job or a namespace, with the NUL */
	TEXT_BYTES = 256,
	ID_BYTES = 64,
};

#define BUS    "bus"
#define AGENTS "agents"

/* What is silent, or was. */
struct target {
	char key[NT_JOB_ID_LEN + 8]; /* "bus", "agents", "job-ID" */
	char id[ID_BYTES]; /* of its incident; "": it has not fired */
	char job[NAME_BYTES], namespace[NAME_BYTES], cause[TEXT_BYTES], summary[TEXT_BYTES];
	uint64_t since_mono_ns, since_real_ns;
	uint64_t version; /* of the last report; later ones are higher, whatever the clock does */
	bool is_silent; /* in this look */
};

struct nt_dead_man {
	struct nt_dead_man_options options;
	struct target target[NT_DEAD_MAN_TARGETS];
	size_t targets, left_out;
	atomic_size_t left_out_last; /* of the last look */
	uint64_t mono_ns, real_ns; /* of this look */
};

int nt_dead_man_new(const struct nt_dead_man_options *options, struct nt_dead_man **ret_dead_man)
{
	struct nt_dead_man *dead_man = calloc(1, sizeof(*dead_man));

	if (!dead_man)
		return -ENOMEM;
	dead_man->options = *options;
	*ret_dead_man = dead_man;
	return 0;
}

void nt_dead_man_free(struct nt_dead_man *dead_man)
{
	free(dead_man);
}

size_t nt_dead_man_left_out(const struct nt_dead_man *dead_man)
{
	return atomic_load(&dead_man->left_out_last);
}

/* ---- targets --------------------------------------------------------------------------------- */

static void copy_text(const char *text, char *to, size_t size)
{
	(void)nt_text_clean(text, strlen(text), to, size - 1);
}

static bool is_job_key(const char *key)
{
	return strcmp(key, BUS) != 0 && strcmp(key, AGENTS) != 0;
}

/* NULL at the cap. Jobs leave room for what silences all of them. */
static struct target *find_target(struct nt_dead_man *dead_man, const char *key)
{
	const size_t reserved = is_job_key(key) ? NT_DEAD_MAN_RESERVED : 0;
	struct target *target;

	for (size_t i = 0; i < dead_man->targets; i++)
		if (!strcmp(dead_man->target[i].key, key))
			return &dead_man->target[i];
	if (dead_man->targets + reserved >= NT_DEAD_MAN_TARGETS) {
		dead_man->left_out++;
		return NULL;
	}
	target = &dead_man->target[dead_man->targets++];
	*target = (struct target){
		.since_mono_ns = dead_man->mono_ns,
		.since_real_ns = dead_man->real_ns,
	};
	(void)snprintf(target->key, sizeof(target->key), "%s", key);
	return target;
}

static bool is_job(const struct target *target)
{
	return is_job_key(target->key);
}

void nt_dead_man_adopt(struct nt_dead_man *dead_man, const struct nt_wire_incident *incident)
{
	struct target *target = find_target(dead_man, incident->job_key);

	if (!target)
		return;
	(void)snprintf(target->id, sizeof(target->id), "%s", incident->id);
	copy_text(incident->job, target->job, sizeof(target->job));
	copy_text(incident->namespace, target->namespace, sizeof(target->namespace));
	copy_text(incident->cause, target->cause, sizeof(target->cause));
	copy_text(incident->summary, target->summary, sizeof(target->summary));
	target->since_real_ns = incident->since_real_ns;
	target->version = incident->version;
}

/* ---- what is silent -------------------------------------------------------------------------- */

static void note_bus(struct nt_dead_man *dead_man, const char *problem)
{
	struct target *target = find_target(dead_man, BUS);

	if (!target)
		return;
	target->is_silent = true;
	copy_text(problem, target->cause, sizeof(target->cause));
	(void)snprintf(target->job, sizeof(target->job), "neutracer");
	(void)snprintf(target->summary, sizeof(target->summary),
		       "the aggregator cannot reach the bus, so nothing is detected: %.150s",
		       target->cause);
}

static size_t count_nodes(const struct nt_snapshot *snapshot, size_t *ret_silent)
{
	size_t nodes = 0;

	*ret_silent = 0;
	for (size_t i = 0; i < snapshot->nodes; i++) {
		if (!snapshot->node[i].ranks)
			continue;
		nodes++;
		*ret_silent += snapshot->node[i].silent;
	}
	return nodes;
}

/* Whether no node with ranks has sent anything. */
static bool note_cluster(struct nt_dead_man *dead_man, const struct nt_snapshot *snapshot)
{
	size_t silent, nodes = count_nodes(snapshot, &silent);
	struct target *target;

	if (!nodes || silent < nodes)
		return false;
	target = find_target(dead_man, AGENTS);
	if (!target)
		return true;
	target->is_silent = true;
	(void)snprintf(target->job, sizeof(target->job), "neutracer");
	(void)snprintf(target->cause, sizeof(target->cause), "all agents are silent");
	(void)snprintf(target->summary, sizeof(target->summary),
		       "no agent sends data, of %zu nodes with running ranks: nothing is detected",
		       nodes);
	return true;
}

static void note_job(struct nt_dead_man *dead_man, const struct nt_snapshot_job *job)
{
	char key[sizeof(((struct target *)0)->key)];
	struct target *target;

	(void)snprintf(key, sizeof(key), "job-%s", job->id);
	target = find_target(dead_man, key);
	if (!target)
		return;
	target->is_silent = true;
	copy_text(job->name, target->job, sizeof(target->job));
	copy_text(job->namespace ? job->namespace : "", target->namespace,
		  sizeof(target->namespace));
	(void)snprintf(target->cause, sizeof(target->cause), "all agents of the job are silent");
	(void)snprintf(target->summary, sizeof(target->summary),
		       "no agent on the %u nodes of the job sends data: nothing of it is detected",
		       job->nodes);
}

/* Jobs of other aggregators are theirs to raise. */
static void note_jobs(struct nt_dead_man *dead_man, const struct nt_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (!job->is_summary && job->state == NT_JOB_UNOBSERVED)
			note_job(dead_man, job);
	}
}

/* ---- incidents ------------------------------------------------------------------------------- */

static int put(struct nt_dead_man *dead_man, struct target *target, bool is_over)
{
	const uint64_t version =
		dead_man->real_ns > target->version ? dead_man->real_ns : target->version + 1;
	const struct nt_wire_incident incident = {
		.id = target->id,
		.state = is_over ? "resolved" : "firing",
		.severity = is_job(target) ? "warning" : "critical",
		.class = NT_DEAD_MAN_CLASS,
		.cause = target->cause,
		.job = target->job,
		.namespace = target->namespace,
		.job_key = target->key,
		.attempt = 1,
		.since_real_ns = target->since_real_ns,
		.seen_real_ns = dead_man->real_ns,
		.until_real_ns = is_over ? dead_man->real_ns : 0,
		.version = version,
		.confidence = 1,
		.cost = {.gpu_hours_unknown = true},
		.summary = target->summary,
	};

	const int r = dead_man->options.put(dead_man->options.data, &incident);

	if (r == 0)
		target->version = version;
	return r;
}

static void fire(struct nt_dead_man *dead_man, struct target *target)
{
	if (*target->id || dead_man->mono_ns - target->since_mono_ns < dead_man->options.after_ns)
		return;
	(void)snprintf(target->id, sizeof(target->id), "own-%s-%" PRIx64, target->key,
		       (uint64_t)(target->since_real_ns / NT_SECOND));
	if (put(dead_man, target, false) < 0)
		target->id[0] = '\0';
}

/* Whether the target is done. */
static bool resolve(struct nt_dead_man *dead_man, struct target *target)
{
	return !*target->id || put(dead_man, target, true) == 0;
}

/* is_known: whether it could be seen that the target sends data again. */
static void judge(struct nt_dead_man *dead_man, bool cluster_known, bool jobs_known)
{
	for (size_t i = dead_man->targets; i-- > 0;) {
		struct target *target = &dead_man->target[i];
		bool is_known =
			!strcmp(target->key, BUS) || (is_job(target) ? jobs_known : cluster_known);

		if (target->is_silent) {
			fire(dead_man, target);
			continue;
		}
		/* What is not known begins anew, unless it has fired. */
		if ((is_known || !*target->id) && resolve(dead_man, target))
			*target = dead_man->target[--dead_man->targets];
	}
}

void nt_dead_man_look(struct nt_dead_man *dead_man, const struct nt_dead_man_view *view,
		      uint64_t mono_ns, uint64_t real_ns)
{
	bool cluster_known = !view->bus_problem && !view->is_behind && view->snapshot;
	bool is_cluster_silent = false;

	dead_man->mono_ns = mono_ns;
	dead_man->real_ns = real_ns;
	dead_man->left_out = 0;
	for (size_t i = 0; i < dead_man->targets; i++)
		dead_man->target[i].is_silent = false;
	if (view->bus_problem)
		note_bus(dead_man, view->bus_problem);
	if (cluster_known)
		is_cluster_silent = note_cluster(dead_man, view->snapshot);
	if (cluster_known && !is_cluster_silent)
		note_jobs(dead_man, view->snapshot);
	judge(dead_man, cluster_known, cluster_known && !is_cluster_silent);
	atomic_store(&dead_man->left_out_last, dead_man->left_out);
}
