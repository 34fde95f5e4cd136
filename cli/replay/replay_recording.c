/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replays a directory of the spool bus through the aggregator's own engine. */
#include "cli/replay/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/table.h"
#include "common/bus/bus.h"
#include "engine/engine.h"
#include "engine/ingest.h"
#include "proto/text.h"

enum {
	MAX_JOBS = 1 << 16,
};

struct recorded_job {
	uint64_t hash; /* the same in all its attempts */
	uint32_t ranks, attempt;
	char name[NT_JUDGED_NAME], key[NT_JUDGED_NAME];
	struct nt_coverage coverage;
	UT_hash_handle hh;
};

struct recording_run {
	struct nt_judgement *judgement;
	struct nt_recording *recording;
	const struct nt_rules *rules;
	struct nt_engine *engine; /* borrowed */
	struct recorded_job *job;
	int error; /* of a callback, which cannot return it */
};

static void release_jobs(struct recording_run *run)
{
	struct recorded_job *job, *next;

	HASH_ITER(hh, run->job, job, next)
	{
		HASH_DEL(run->job, job);
		free(job);
	}
}

/* Finds or adds the job; NULL with run->error. */
static struct recorded_job *find_job(struct recording_run *run, uint64_t hash)
{
	struct recorded_job *job;

	HASH_FIND(hh, run->job, &hash, sizeof(hash), job);
	if (job)
		return job;
	if (HASH_COUNT(run->job) == MAX_JOBS) {
		run->error = run->error ?: -E2BIG;
		return NULL;
	}
	job = calloc(1, sizeof(*job));
	if (job) {
		job->hash = hash;
		HASH_ADD(hh, run->job, hash, sizeof(job->hash), job);
		if (nt_table_has(job))
			return job;
		free(job);
	}
	run->error = run->error ?: -ENOMEM;
	return NULL;
}

static void count_ranks(struct recording_run *run, const struct nt_job *of, uint32_t ranks)
{
	struct recorded_job *job = find_job(run, of->hash);

	if (!job || job->ranks >= ranks)
		return;
	run->recording->jobs = HASH_COUNT(run->job);
	run->recording->ranks += ranks - job->ranks;
	job->ranks = ranks;
}

static void take_incident(void *data, const struct nt_wire_incident *incident)
{
	struct recording_run *run = data;
	int r = nt_judgement_add(run->judgement, incident);

	if (r < 0 && run->error == 0)
		run->error = r;
}

static void take_frame(void *data, const struct nt_job *job, const struct nt_frame *frame)
{
	struct recording_run *run = data;
	struct nt_recording *recording = run->recording;

	if (!recording->frames || frame->start_ns < recording->start_ns)
		recording->start_ns = frame->start_ns;
	if (frame->end_ns > recording->end_ns)
		recording->end_ns = frame->end_ns;
	count_ranks(run, job, (uint32_t)frame->ranks);
	recording->frames++;
}

/* A node of a job, for its name. */
struct job_reference {
	struct nt_engine *engine;
	const struct nt_job *job;
};

static const char *name_node(void *data, uint32_t index)
{
	const struct job_reference *reference = data;

	if (index >= reference->job->nodes)
		return NULL;
	return nt_jobs_node(nt_engine_jobs(reference->engine), reference->job->node_at[index]->node)
		->name;
}

static void add_coverage(struct recording_run *run, const struct nt_job *of,
			 const struct nt_frame *frame)
{
	const char *name = of->name && *of->name ? of->name : of->owner->key;
	struct recorded_job *job = find_job(run, of->hash);

	if (!job)
		return;
	if (job->attempt != of->attempt)
		nt_coverage_restart(&job->coverage);
	job->attempt = of->attempt;
	(void)nt_text_clean(name, strlen(name), job->name, sizeof(job->name) - 1);
	(void)nt_text_clean(of->owner->key, strlen(of->owner->key), job->key, sizeof(job->key) - 1);
	nt_coverage_add(&job->coverage, run->rules, of->detect, frame);
}

/* In the order of their starts. */
static int report_coverage(const struct recording_run *run)
{
	const struct recorded_job *job;
	int r = 0;

	for (job = run->job; job && r == 0; job = job->hh.next)
		r = nt_judgement_add_job(run->judgement, job->name, job->key, &job->coverage);
	return r;
}

static void take_judged(void *data, const struct nt_job *job, const struct nt_frame *frame)
{
	struct recording_run *run = data;
	struct job_reference reference = {run->engine, job};
	const struct nt_windows_names names = {
		.id = job->id,
		.name = job->name && *job->name ? job->name : job->owner->key,
		.key = job->owner->key,
		.attempt = job->attempt,
		.node = name_node,
		.data = &reference,
	};

	add_coverage(run, job, frame);
	if (run->judgement->windows && run->error == 0)
		run->error = nt_windows_add(run->judgement->windows, &names, job->detect, frame);
}

/* A rejected record is counted by the ingest; a recording does not store it elsewhere. */
static void pass_over(void *data, const struct nt_bus_record *record, const char *reason)
{
	(void)data;
	(void)record;
	(void)reason;
}

static int pump(struct nt_bus_reader *reader, struct nt_ingest *ingest, struct nt_engine *engine)
{
	struct nt_bus_record record;
	int r;

	while ((r = nt_bus_reader_next(reader, 0, &record)) > 0) {
		struct nt_message *message = NULL;

		r = nt_ingest_take(ingest, &record, 0, false, &message);
		if (r > 0)
			r = nt_engine_push(engine, message, false);
		if (r < 0)
			return r;
	}
	return r;
}

/*
 * A recording is complete: a torn tail will not be completed. Damaged records also show as a
 * sequence gap, but only once many records follow: the larger of both numbers is used.
 */
static void note_damage(const struct nt_bus_reader *reader, struct nt_recording *recording)
{
	struct nt_bus_stats stats = {0};
	uint64_t places, named = 0;

	nt_bus_reader_stats(reader, &stats);
	places = stats.corrupt_frames;
	recording->damages =
		nt_bus_reader_damage(reader, recording->damage, NT_RECORDING_MAX_DAMAGE);
	for (size_t i = 0; i < recording->damages; i++) {
		named += recording->damage[i].places;
		places += recording->damage[i].tail_bytes > 0;
	}
	recording->unnamed = stats.corrupt_frames - named;
	if (recording->missing < places)
		recording->missing = places;
}

static int refuse(const char *dir, const struct nt_recording *recording, uint64_t records,
		  struct nt_trace_error *error)
{
	const struct nt_bus_damage *damage = recording->damage;

	if (records)
		return nt_trace_refuse(error, "%s: none of its %" PRIu64 " messages can be read",
				       dir, records);
	if (!recording->damages)
		return -ENOENT;
	return nt_trace_refuse(
		error, "%s: damaged, nothing in it can be read: %s: %" PRIu64 " bytes%s", dir,
		damage->segment, damage->bytes + damage->tail_bytes,
		recording->damages > 1 || recording->unnamed ? ", and more segments" : "");
}

int nt_replay_recording(const char *dir, const struct nt_rules *rules,
			struct nt_judgement *judgement, struct nt_recording *ret_recording,
			struct nt_trace_error *ret_error)
{
	struct nt_engine_options options = nt_engine_options_default();
	struct nt_recording recording = {0};
	__attribute__((cleanup(release_jobs))) struct recording_run run = {
		.judgement = judgement,
		.recording = &recording,
		.rules = rules,
	};
	const struct nt_engine_handler handler = {take_incident, take_frame, &run, take_judged};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_engine) struct nt_engine *engine = NULL;
	nt_auto(nt_ingest) struct nt_ingest *ingest = NULL;
	const struct nt_ingest_counters *counters;
	nt_autofree char *url = NULL;
	int r;

	if (asprintf(&url, "spool:%s", dir) < 0)
		return -ENOMEM;
	options.rules = *rules;
	r = nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader);
	r = r ?: nt_ingest_new(pass_over, NULL, &ingest);
	r = r ?: nt_engine_new(&options, &handler, &engine);
	run.engine = engine;
	r = r ?: pump(reader, ingest, engine);
	r = r ?: nt_engine_finish(engine);
	r = r ?: run.error;
	r = r ?: report_coverage(&run);
	if (r < 0)
		return r;
	counters = nt_ingest_counters(ingest);
	recording.messages = counters->messages;
	recording.refused = counters->undecodable + counters->impossible + counters->unknown;
	recording.missing = counters->dedup.gaps - counters->dedup.filled;
	note_damage(reader, &recording);
	if (!recording.messages)
		return refuse(dir, &recording, counters->records, ret_error);
	*ret_recording = recording;
	return 0;
}
