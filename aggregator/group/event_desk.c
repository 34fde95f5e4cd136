/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/event_desk.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "proto/json.h"

enum {
	/* Control characters take six bytes in JSON; all texts of an event together fit. */
	TEXT_BYTES = 1000,
};

/* A job in the last snapshot. */
struct known_job {
	UT_hash_handle hh;
	char id[NT_JOB_ID_LEN + 1];
	enum nt_job_state state;
	uint64_t look; /* the last one that had it */
	bool is_lost; /* no memory to add it to the table */
};

/* A level that was in force in the last look. */
struct known_level {
	UT_hash_handle hh;
	char name[NT_LEVEL_TARGET + 1]; /* of its request and target */
	struct nt_level_entry entry;
	uint64_t look;
	bool is_lost;
};

struct nt_event_desk {
	struct nt_event_ring *ring;
	struct nt_board *board;
	struct known_job *job; /* by id; only of the deciding thread, as is `looks` */
	uint64_t looks;
	struct known_level *level; /* by name; of the deciding thread, as is level_looks */
	uint64_t level_looks;
	atomic_ullong failed;
};

int nt_event_desk_new(struct nt_board *board, struct nt_event_desk **ret_desk)
{
	nt_auto(nt_event_desk) struct nt_event_desk *desk = calloc(1, sizeof(*desk));
	int r;

	if (!desk)
		return -ENOMEM;
	desk->board = board;
	r = nt_event_ring_new(NULL, &desk->ring);
	if (r < 0)
		return r;
	*ret_desk = nt_take(desk);
	return 0;
}

void nt_event_desk_free(struct nt_event_desk *desk)
{
	struct known_level *level, *next_level;
	struct known_job *job, *next;

	if (!desk)
		return;
	HASH_ITER(hh, desk->job, job, next)
	{
		HASH_DEL(desk->job, job);
		free(job);
	}
	HASH_ITER(hh, desk->level, level, next_level)
	{
		HASH_DEL(desk->level, level);
		free(level);
	}
	nt_event_ring_free(desk->ring);
	free(desk);
}

struct nt_event_ring *nt_event_desk_ring(const struct nt_event_desk *desk)
{
	return desk->ring;
}

/* ---- posting --------------------------------------------------------------------------------- */

/* Consumes the data, which may be NULL. */
static void post(struct nt_event_desk *desk, struct nt_event *event, json_t *data)
{
	nt_autojson json_t *own = data;
	nt_autofree char *text = own ? json_dumps(own, JSON_COMPACT) : NULL;

	if (!text) {
		atomic_fetch_add(&desk->failed, 1);
		return;
	}
	event->data = text;
	/* The ring counts what it refuses. */
	(void)nt_event_ring_post(desk->ring, event);
}

static int set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

/* The beginning of a text, cut between characters. */
static json_t *short_text(const char *text)
{
	char cut[TEXT_BYTES + 1];
	size_t len = strlen(text);

	if (len <= TEXT_BYTES)
		return nt_json_text(text);
	len = TEXT_BYTES;
	while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	memcpy(cut, text, len);
	cut[len] = '\0';
	return nt_json_text(cut);
}

/* The names by which nt_snapshot_job_matches() finds a job. */
struct job_topics {
	char short_name[NT_EVENT_TOPIC_BYTES];
};

static void set_topics(struct nt_event *event, struct job_topics *topics, const char *name,
		       const char *key, const char *id)
{
	const size_t len = nt_snapshot_name_without_part(name);
	const char *const all[] = {name, key, id};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (*all[i] && strlen(all[i]) < NT_EVENT_TOPIC_BYTES)
			event->topic[count++] = all[i];
	if (len >= sizeof(topics->short_name) || !name[len])
		return;
	memcpy(topics->short_name, name, len);
	topics->short_name[len] = '\0';
	event->topic[count] = topics->short_name;
}

/* ---- incidents and nodes --------------------------------------------------------------------- */

/* "": the newest snapshot has no such job. */
static void find_job_id(const struct nt_event_desk *desk, const struct nt_wire_incident *incident,
			char ret_id[NT_JOB_ID_LEN + 1])
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(desk->board);

	ret_id[0] = '\0';
	if (!snapshot)
		return;
	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (job->attempt == incident->attempt && !strcmp(job->key, incident->job_key))
			memcpy(ret_id, job->id, sizeof(job->id));
	}
	nt_snapshot_release(snapshot);
}

static json_t *incident_data(const struct nt_wire_incident *incident, const char *change,
			     const char *job_id)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "id", nt_json_text(incident->id));
	failed |= set(object, "change", json_string(change));
	failed |= set(object, "state", nt_json_text(incident->state));
	failed |= set(object, "severity", nt_json_text(incident->severity));
	failed |= set(object, "class", nt_json_text(incident->class));
	failed |= set(object, "cause", short_text(incident->cause));
	failed |= set(object, "job", short_text(incident->job));
	failed |= set(object, "job_id", nt_json_text(job_id));
	failed |= set(object, "attempt", json_integer(incident->attempt));
	failed |= set(object, "namespace", short_text(incident->namespace));
	failed |= set(object, "since", nt_json_time(incident->since_real_ns));
	failed |=
		set(object, "until",
		    incident->until_real_ns ? nt_json_time(incident->until_real_ns) : json_null());
	failed |= set(object, "slowdown", nt_json_number(incident->slowdown));
	failed |= set(object, "summary", short_text(incident->summary));
	return failed ? NULL : nt_take(object);
}

static json_t *node_data(const struct nt_wire_incident *incident, const char *node)
{
	const bool is_over = !strcmp(incident->state, "resolved");
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "node", short_text(node));
	failed |= set(object, "state", json_string(is_over ? "quiet" : "alarm"));
	failed |= set(object, "incident", nt_json_text(incident->id));
	return failed ? NULL : nt_take(object);
}

void nt_event_desk_incident(struct nt_event_desk *desk, const struct nt_wire_incident *incident,
			    const char *change)
{
	struct nt_event event = {.kind = "incident"};
	struct job_topics topics;
	char job_id[NT_JOB_ID_LEN + 1];

	find_job_id(desk, incident, job_id);
	set_topics(&event, &topics, incident->job, incident->job_key, job_id);
	post(desk, &event, incident_data(incident, change, job_id));
	if (strcmp(incident->class, "node") != 0 ||
	    (strcmp(change, "opened") != 0 && strcmp(change, "resolved") != 0))
		return;
	event.kind = "node";
	for (size_t i = 0; i < incident->culprits; i++)
		if (*incident->culprit[i].node)
			post(desk, &event, node_data(incident, incident->culprit[i].node));
}

void nt_event_desk_stored(void *data, const struct nt_wire_incident *incident, bool is_new)
{
	const bool is_over = !strcmp(incident->state, "resolved");

	nt_event_desk_incident(data, incident,
			       is_over  ? "resolved"
			       : is_new ? "opened"
					: "changed");
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static json_t *job_data(const struct nt_snapshot_job *job, const char *change)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "id", nt_json_text(job->id));
	failed |= set(object, "change", json_string(change));
	failed |= set(object, "name", short_text(job->name));
	failed |= set(object, "namespace", short_text(job->namespace));
	failed |= set(object, "attempt", json_integer(job->attempt));
	failed |= set(object, "state", json_string(nt_job_state_name(job->state)));
	failed |= set(object, "since", nt_json_time(job->since_ns));
	failed |= set(object, "ended", job->ended_ns ? nt_json_time(job->ended_ns) : json_null());
	return failed ? NULL : nt_take(object);
}

/* NULL: no memory; the job counts as new in the next look. */
static struct known_job *add_job(struct nt_event_desk *desk, const struct nt_snapshot_job *job)
{
	struct known_job *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	memcpy(known->id, job->id, sizeof(known->id));
	known->state = job->state;
	HASH_ADD_STR(desk->job, id, known);
	if (!known->is_lost)
		return known;
	free(known);
	return NULL;
}

static void look_at_job(struct nt_event_desk *desk, const struct nt_snapshot_job *job)
{
	struct nt_event event = {.kind = "job"};
	const char *change = "began";
	struct known_job *known;
	struct job_topics topics;

	HASH_FIND_STR(desk->job, job->id, known);
	if (!known) {
		known = add_job(desk, job);
		if (!known) {
			atomic_fetch_add(&desk->failed, 1);
			return;
		}
	} else if (known->state != job->state) {
		change = job->state == NT_JOB_ENDED ? "ended" : "changed";
	} else {
		change = NULL;
	}
	known->state = job->state;
	known->look = desk->looks;
	/* What is there at the start is in the list of jobs. */
	if (!change || desk->looks == 1)
		return;
	set_topics(&event, &topics, job->name, job->key, job->id);
	post(desk, &event, job_data(job, change));
}

void nt_event_desk_look(struct nt_event_desk *desk, const struct nt_snapshot *snapshot)
{
	struct known_job *known, *next;

	if (!desk)
		return;
	desk->looks++;
	for (size_t i = 0; i < snapshot->jobs; i++)
		look_at_job(desk, snapshot->job[i]);
	HASH_ITER(hh, desk->job, known, next)
	{
		if (known->look == desk->looks)
			continue;
		HASH_DEL(desk->job, known);
		free(known);
	}
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* The newest job of the key. NULL: the snapshot has none. */
static const struct nt_snapshot_job *find_key(const struct nt_snapshot *snapshot, const char *key)
{
	const struct nt_snapshot_job *found = NULL;

	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (!strcmp(job->key, key) && (!found || job->since_ns > found->since_ns))
			found = job;
	}
	return found;
}

static json_t *level_data(const struct nt_level_entry *entry, const struct nt_snapshot_job *job,
			  const char *change)
{
	static const char *const kinds[] = {"node", "job", "rank"};
	const struct nt_level_target *target = &entry->target;
	const bool is_node = target->kind == NT_LEVEL_NODE;
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "change", json_string(change));
	failed |= set(object, "kind", json_string(kinds[target->kind]));
	failed |= set(object, "node", is_node ? nt_json_text(target->name) : json_null());
	failed |= set(object, "job", job ? nt_json_text(job->id) : json_null());
	failed |= set(object, "job_name", job ? short_text(job->name) : json_null());
	failed |= set(object, "job_key", is_node ? json_null() : nt_json_text(target->name));
	failed |= set(object, "rank",
		      target->kind == NT_LEVEL_RANK ? json_integer(target->rank) : json_null());
	failed |= set(object, "level", json_integer(entry->level));
	failed |= set(object, "automatic", json_boolean(entry->request == NT_REQUEST_AUTO_LEVEL));
	failed |= set(object, "reason", nt_json_text(entry->reason));
	failed |= set(object, "set", nt_json_time(entry->set_real_ns));
	failed |= set(object, "expires", nt_json_time(entry->expires_real_ns));
	return failed ? NULL : nt_take(object);
}

static void post_level(struct nt_event_desk *desk, const struct nt_level_entry *entry,
		       const struct nt_snapshot *snapshot, const char *change)
{
	const struct nt_snapshot_job *job = NULL;
	struct nt_event event = {.kind = "level"};
	struct job_topics topics;

	if (entry->target.kind != NT_LEVEL_NODE)
		job = find_key(snapshot, entry->target.name);
	if (job)
		set_topics(&event, &topics, job->name, job->key, job->id);
	post(desk, &event, level_data(entry, job, change));
}

/* NULL: no memory, or no valid target. It counts as new in the next look. */
static struct known_level *find_level(struct nt_event_desk *desk,
				      const struct nt_level_entry *entry, bool *ret_is_new)
{
	struct known_level *known;
	char name[NT_LEVEL_TARGET + 1];

	if (!nt_level_target_format(&entry->target, name + 1))
		return NULL;
	name[0] = entry->request == NT_REQUEST_AUTO_LEVEL ? 'a' : 'o';
	HASH_FIND_STR(desk->level, name, known);
	*ret_is_new = !known;
	if (known)
		return known;
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	memcpy(known->name, name, sizeof(name));
	HASH_ADD_STR(desk->level, name, known);
	if (!known->is_lost)
		return known;
	free(known);
	return NULL;
}

static void look_at_level(struct nt_event_desk *desk, const struct nt_level_entry *entry,
			  const struct nt_snapshot *snapshot, uint64_t now_real_ns)
{
	struct known_level *known;
	bool is_new;

	if ((entry->request != NT_REQUEST_LEVEL && entry->request != NT_REQUEST_AUTO_LEVEL) ||
	    !entry->level)
		return;
	known = find_level(desk, entry, &is_new);
	if (!known) {
		atomic_fetch_add(&desk->failed, 1);
		return;
	}
	known->look = desk->level_looks;
	if (!is_new && known->entry.set_real_ns == entry->set_real_ns)
		return;
	known->entry = *entry;
	if (entry->set_real_ns + NT_MINUTE > now_real_ns)
		post_level(desk, entry, snapshot, "set");
}

void nt_event_desk_look_levels(struct nt_event_desk *desk, const struct nt_level_entry *entry,
			       size_t count, const struct nt_snapshot *snapshot,
			       uint64_t now_real_ns)
{
	struct known_level *known, *next;

	if (!desk)
		return;
	desk->level_looks++;
	for (size_t i = 0; i < count; i++)
		look_at_level(desk, &entry[i], snapshot, now_real_ns);
	HASH_ITER(hh, desk->level, known, next)
	{
		if (known->look == desk->level_looks)
			continue;
		HASH_DEL(desk->level, known);
		post_level(desk, &known->entry, snapshot, "ended");
		free(known);
	}
}

void nt_event_desk_stats(struct nt_event_desk *desk, struct nt_event_desk_stats *ret_stats)
{
	nt_event_ring_stats(desk->ring, &ret_stats->ring);
	ret_stats->failed = atomic_load(&desk->failed);
}
