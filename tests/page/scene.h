/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Invented reports for tests of the page: names that attack it, and more than a page can hold. */
#ifndef NT_TESTS_PAGE_SCENE_H
#define NT_TESTS_PAGE_SCENE_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay/replay.h"
#include "cli/report/html.h"
#include "cli/report/report.h"

/* Each would do harm in another place of the page. */
static const char *const scene_attack[] = {
	"</script><script>alert('script')</script>",
	"\"><img src=x onerror=alert('img')>",
	"' onmouseover='alert(1)' x='",
	"</title></style><svg onload=alert('svg')>",
	"<a href=\"https://example.com/\">click</a>",
	"\xff\xfe broken \xe2\x80\xae turned \x1b[31m red \x01\x7f",
	"<!-- --><base href=//example.com/>]]>",
	"&lt;script&gt; &amp; &#x3c;b&#x3e;",
};

enum {
	SCENE_ATTACKS = sizeof(scene_attack) / sizeof(scene_attack[0]),
};

static inline const char *scene_name(size_t i)
{
	return scene_attack[i % SCENE_ATTACKS];
}

/* A report with its judgement. What it points to is never freed but by scene_free(). */
struct scene {
	struct nt_report report;
	struct nt_judgement *judgement;
	uint64_t seed;
};

static inline void *scene_keep(void *data)
{
	assert(data);
	return data;
}

static inline uint32_t scene_random(struct scene *scene)
{
	scene->seed = scene->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(scene->seed >> 33);
}

static inline void scene_init(struct scene *scene, const char *source)
{
	const struct nt_rules rules = nt_rules_default();
	int r;

	*scene = (struct scene){.seed = 1};
	r = nt_judgement_new(&scene->judgement);
	r = r ? r : nt_judgement_watch(scene->judgement, &rules);
	if (r < 0)
		abort();
	scene->report = (struct nt_report){
		.source = source,
		.jobs = 1,
		.start_ns = 1763694000ULL * 1000000000,
		.judgement = scene->judgement,
	};
}

static inline void scene_free(struct scene *scene)
{
	nt_judgement_free(scene->judgement);
}

/* A job of so many ranks and columns, each of so many windows. `noise`: cells that nothing packs. */
static inline struct nt_windows_job *scene_job(struct scene *scene, const char *name, size_t ranks,
					       size_t columns, size_t span, bool noise)
{
	struct nt_windows *windows = scene->judgement->windows;
	struct nt_windows_job *job;

	windows->job =
		scene_keep(reallocarray(windows->job, windows->jobs + 1, sizeof(*windows->job)));
	job = &windows->job[windows->jobs];
	*job = (struct nt_windows_job){.id = windows->jobs,
				       .attempt = 1,
				       .windows = columns * span,
				       .ranks = ranks,
				       .columns = columns,
				       .span = span};
	windows->jobs++;
	(void)snprintf(job->name, sizeof(job->name), "%s", name);
	(void)snprintf(job->key, sizeof(job->key), "%s", name);
	for (size_t i = 0; i < columns; i++)
		job->column[i] = (struct nt_windows_column){
			scene->report.start_ns + i * span * 500000000,
			scene->report.start_ns + (i + 1) * span * 500000000};
	scene->report.end_ns = job->column[columns - 1].end_ns;
	scene->report.frames += columns * span;
	scene->report.ranks += ranks;
	job->nodes = ranks / 8 + 1;
	job->node = scene_keep(calloc(job->nodes, sizeof(*job->node)));
	for (size_t i = 0; i < job->nodes; i++)
		job->node[i] = scene_keep(strndup(scene_name(i), NT_WINDOWS_NAME - 1));
	job->rank = scene_keep(calloc(ranks, sizeof(*job->rank)));
	for (size_t i = 0; i < ranks; i++) {
		struct nt_windows_rank *rank = &job->rank[i];

		*rank = (struct nt_windows_rank){
			.rank = (uint32_t)i,
			.node = (uint32_t)i / 8,
			.judged = columns * span,
			.marked = noise ? 1 + scene_random(scene) % 9 : 0,
			.worst = {(uint32_t)i, i % 2, 412e6, 314e6, 0.2},
			.worst_ns = scene->report.start_ns,
			.cell = scene_keep(calloc(1, NT_WINDOWS_MAX_COLUMNS)),
		};
		for (size_t c = 0; c < columns; c++)
			rank->cell[c] = (uint8_t)(noise ? scene_random(scene) % 256
							: NT_CELL_EVEN + scene_random(scene) % 3);
	}
	return job;
}

static inline struct nt_wire_incident *scene_incident(struct scene *scene, const char *job,
						      const char *severity, const char *class)
{
	struct nt_judgement *judgement = scene->judgement;
	struct nt_judged *judged;

	judgement->judged = scene_keep(reallocarray(judgement->judged, judgement->incidents + 1,
						    sizeof(*judgement->judged)));
	judged = &judgement->judged[judgement->incidents++];
	*judged = (struct nt_judged){0};
	judged->incident = (struct nt_wire_incident){
		.id = "i",
		.state = "firing",
		.severity = severity,
		.class = class,
		.cause = "",
		.job = job,
		.namespace = "",
		.job_key = job,
		.summary = "",
		.attempt = 1,
		.since_real_ns = scene->report.start_ns + 60000000000,
		.slowdown = 1.3,
		.confidence = 0.98,
		.completeness = 1,
		.tier = NT_TIER_T2,
	};
	return &judged->incident;
}

static inline struct nt_culprit scene_culprit(uint32_t rank, const char *name)
{
	return (struct nt_culprit){.kind = "rank",
				   .rank = rank,
				   .has_rank = true,
				   .node = name,
				   .pod = name,
				   .container = name,
				   .gpu = name,
				   .peer = "",
				   .name = ""};
}

/* A rank that is slow from the middle on, and what is said of it; every name attacks the page. */
static inline void scene_attacked(struct scene *scene)
{
	static struct nt_culprit culprit[SCENE_ATTACKS];
	static struct nt_wire_evidence evidence[SCENE_ATTACKS];
	static struct nt_wire_incident_stack stack[SCENE_ATTACKS];
	static struct nt_wire_stack_frame frame[SCENE_ATTACKS];
	struct nt_windows_job *job;

	scene_init(scene, scene_name(1));
	for (size_t i = 0; i < SCENE_ATTACKS; i++) {
		struct nt_wire_incident *incident;

		job = scene_job(scene, scene_name(i), 16, 60, 1, false);
		for (size_t c = 30; c < 60; c++)
			job->rank[i].cell[c] = NT_CELL_EVEN + 35;
		job->rank[i].marked = 30;
		culprit[i] = scene_culprit((uint32_t)i, scene_name(i / 1));
		/* As a node of the picture: names are those of the attack of its place. */
		culprit[i].node = job->node[i / 8];
		evidence[i] = (struct nt_wire_evidence){
			scene_name(i), scene_name(i + 1), scene_name(i + 2), 412, 314, 3, 9};
		incident =
			scene_incident(scene, scene_name(i), i ? "warning" : "critical", "compute");
		incident->since_real_ns = job->column[30].start_ns;
		incident->summary = scene_name(i);
		incident->cause = scene_name(i);
		incident->culprit = &culprit[i];
		incident->culprits = 1;
		incident->evidence = &evidence[i];
		incident->evidences = 1;
		frame[i] =
			(struct nt_wire_stack_frame){scene_name(i), scene_name(i + 1), 42, i % 2};
		stack[i] = (struct nt_wire_incident_stack){
			.rank = (uint32_t)i,
			.is_culprit = i % 2,
			.real_ns = job->column[40].start_ns,
			.stack =
				{
					.tid = 4711,
					.name = scene_name(i),
					.state = scene_name(i + 1),
					.wait = scene_name(i + 2),
					.interpreter = scene_name(i),
					.python_reason = scene_name(i + 1),
					.native_reason = scene_name(i + 2),
					.holds_gil = true,
					.gc_running = true,
					.frame = &frame[i],
					.frames = 1,
					.left_out = 5,
				},
		};
		incident->stack = &stack[i];
		incident->stacks = 1;
	}
	scene->report.jobs = SCENE_ATTACKS;
}

/* 16,384 ranks over 4,096 windows: one node slow from the middle on, one rank that hiccups. */
static inline void scene_large(struct scene *scene)
{
	static uint32_t ranks[8];
	static struct nt_culprit culprit[2];
	static struct nt_wire_evidence evidence = {
		"own work of the step", "ms", "ratio", 412, 314, 3.1, 9};
	struct nt_windows_job *job;
	struct nt_wire_incident *incident;

	scene_init(scene, "large");
	job = scene_job(scene, "llm-70b", 16384, 512, 8, false);
	for (size_t i = 0; i < job->nodes; i++) {
		free(job->node[i]);
		if (asprintf(&job->node[i], "gpu-%zu", i) < 0)
			abort();
	}
	for (uint32_t i = 0; i < 8; i++) {
		ranks[i] = 9000 + i;
		for (size_t c = 256; c < 512; c++)
			job->rank[9000 + i].cell[c] = NT_CELL_EVEN + 25;
		job->rank[9000 + i].marked = 2048;
	}
	for (size_t c = 0; c < 512; c += 7)
		job->rank[300].cell[c] = 255;
	job->rank[300].marked = 74;
	culprit[0] = scene_culprit(0, "gpu-1125");
	culprit[0].kind = "node";
	culprit[0].has_rank = false;
	culprit[0].ranks = ranks;
	culprit[0].rank_count = 8;
	incident = scene_incident(scene, "llm-70b", "critical", "compute");
	incident->since_real_ns = job->column[256].start_ns;
	incident->summary = "node gpu-1125 computes 31 % slower than the others since 03:17:04";
	incident->culprit = &culprit[0];
	incident->culprits = 1;
	incident->evidence = &evidence;
	incident->evidences = 1;
	incident = scene_incident(scene, "llm-70b", "info", "job-wide");
	incident->since_real_ns = job->column[100].start_ns;
	incident->until_real_ns = job->column[140].start_ns;
	incident->state = "resolved";
	incident->summary = "all ranks took 20 % longer from 03:06:40 to 03:09:20";
}

/* One verdict on names without a place to break them, and a reason why there are no more. */
static inline void scene_long(struct scene *scene)
{
	static struct nt_culprit culprit;
	static char name[201];
	const struct nt_coverage coverage = {.stepped = 8, .ranks = 4, .needed = 7};
	struct nt_wire_incident *incident;

	memset(name, 'n', sizeof(name) - 1);
	scene_init(scene, name);
	(void)scene_job(scene, name, 4, 20, 1, false);
	incident = scene_incident(scene, name, "critical", "compute");
	culprit = scene_culprit(2, name);
	incident->culprit = &culprit;
	incident->culprits = 1;
	incident->summary = name;
	incident->cause = name;
	if (nt_judgement_add_job(scene->judgement, name, "another", &coverage) < 0)
		abort();
}

/* More of everything than a page takes, every name as long as can be and of what grows the most. */
static inline void scene_worst(struct scene *scene)
{
	enum { CULPRITS = 1024, INCIDENTS = 1000, NAME = 255, RANKS = 16384 };
	static char name[NAME + 1], text[4096];
	static uint32_t number[RANKS];
	static struct nt_culprit culprit[CULPRITS];
	static struct nt_wire_evidence evidence[8];
	static struct nt_trace_collective collective[1000];

	memset(name, '"', NAME);
	memset(text, '"', sizeof(text) - 1);
	for (uint32_t i = 0; i < RANKS; i++)
		number[i] = 2 * i + 100000;
	for (uint32_t i = 0; i < CULPRITS; i++) {
		culprit[i] = scene_culprit(128 * i, name);
		culprit[i].peer = culprit[i].name = name;
		culprit[i].peers = number;
		culprit[i].peer_count = 63;
	}
	for (uint32_t i = 0; i < 8; i++)
		evidence[i] =
			(struct nt_wire_evidence){name, name, name, 1e300, 1e-300, 1e300, 1000000};
	scene_init(scene, text);
	for (int i = 0; i < 12; i++) {
		struct nt_windows_job *job =
			scene_job(scene, name, RANKS, NT_WINDOWS_MAX_COLUMNS, 4096, true);

		for (size_t node = 0; node < job->nodes; node++) {
			free(job->node[node]);
			job->node[node] = scene_keep(strndup(name, NT_WINDOWS_NAME - 1));
		}
	}
	scene->report.jobs = 12;
	for (int i = 0; i < INCIDENTS; i++) {
		struct nt_wire_incident *incident =
			scene_incident(scene, name, "critical", "compute");

		incident->summary = text;
		incident->cause = incident->state = name;
		incident->until_real_ns = incident->since_real_ns + 60000000000;
		incident->culprit = culprit;
		incident->culprits = CULPRITS;
		incident->evidence = evidence;
		incident->evidences = 8;
		incident->cost = (struct nt_cost){
			.gpu_hours = 1e300, .money = 1e300, .has_money = true, .currency = name};
	}
	for (int i = 0; i < 1000; i++) {
		collective[i] = (struct nt_trace_collective){.number = UINT64_MAX,
							     .ranks = SIZE_MAX,
							     .last_rank = UINT32_MAX,
							     .lateness_ns = UINT64_MAX};
		memset(collective[i].name, '"', sizeof(collective[i].name) - 1);
	}
	scene->report.collective = collective;
	scene->report.collectives = 1000;
}

#endif
