/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What people do with incidents: they acknowledge, silence and annotate them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/hash.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	MAX_SILENCE_S = NT_STORE_MAX_SILENCE_NS / NT_SECOND,
	MAX_BY = NT_STORE_MAX_AUTHOR / 4, /* characters of up to four bytes */
	MAX_TEXT = NT_STORE_MAX_NOTE / 4,
};

static int set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

/* ---- showing --------------------------------------------------------------------------------- */

/* Consumes until, which may be NULL. */
static json_t *act_json(uint64_t real_ns, const char *by, json_t *until)
{
	nt_autojson json_t *own_until = until;
	nt_autojson json_t *object = NULL;
	int failed = 0;

	if (!real_ns)
		return json_null();
	object = json_object();
	failed |= set(object, "at", nt_json_time(real_ns));
	failed |= set(object, "by", nt_json_text(by));
	if (own_until)
		failed |= json_object_set(object, "until", own_until);
	return failed ? NULL : nt_take(object);
}

int nt_api_add_handling(json_t *incident, const struct nt_store_handling *handling)
{
	json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "acknowledged",
		      act_json(handling->acknowledged_real_ns, handling->acknowledged_by, NULL));
	failed |= set(object, "silenced",
		      act_json(handling->silenced_until_real_ns ? handling->silenced_real_ns : 0,
			       handling->silenced_by,
			       nt_json_time(handling->silenced_until_real_ns)));
	failed |= set(object, "notes", json_integer(handling->notes));
	failed |= set(incident, "handling", object);
	return failed ? -ENOMEM : 0;
}

static json_t *notes_json(const struct nt_store_note *note, int count)
{
	nt_autojson json_t *list = json_array();

	for (int i = 0; i < count; i++) {
		nt_autojson json_t *object = act_json(note[i].real_ns, note[i].by, NULL);

		if (set(object, "text", nt_json_text(note[i].text)) ||
		    json_array_append(list, object))
			return NULL;
	}
	return nt_take(list);
}

/* What was done at two aggregators at once is joined without a new revision. */
static uint64_t hash_of(const struct nt_store_handling *handling)
{
	uint64_t hash = nt_hash_u64(NT_HASH_SEED, handling->revision);

	hash = nt_hash_u64(hash, handling->acknowledged_real_ns);
	hash = nt_hash_text(hash, handling->acknowledged_by);
	hash = nt_hash_u64(hash, handling->silenced_real_ns);
	hash = nt_hash_text(hash, handling->silenced_by);
	return nt_hash_mix(nt_hash_u64(hash, handling->silenced_until_real_ns));
}

int nt_api_reply_incident(const struct nt_api *api, struct nt_httpd_reply *reply,
			  const struct nt_wire_incident *incident)
{
	nt_autofree struct nt_store_note *note = calloc(NT_STORE_MAX_NOTES, sizeof(*note));
	nt_autojson json_t *object = nt_json_incident(incident);
	struct nt_store_handling handling = {0};
	int count = 0, r = 0;

	if (!note || !object)
		return -ENOMEM;
	if (api->options.store) {
		r = nt_store_get_handling(api->options.store, incident->id, &handling);
		if (r == 0 && handling.notes)
			count = nt_store_list_notes(api->options.store, incident->id, note);
		if (r < 0 || count < 0)
			return r < 0 ? r : count;
	}
	if (nt_api_add_handling(object, &handling) < 0 ||
	    set(object, "notes", notes_json(note, count)))
		return -ENOMEM;
	(void)snprintf(reply->etag, sizeof(reply->etag), "%.48s-%" PRIu64 "-%" PRIx64, incident->id,
		       incident->version, handling.revision ? hash_of(&handling) : 0);
	return nt_api_reply_object(reply, nt_take(object));
}

/* ---- acting ---------------------------------------------------------------------------------- */

static bool is_one_line(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

/* A text of 1 to `most` characters without control characters. Absent: *ret_text is NULL. */
static bool read_text(const json_t *body, const char *name, size_t most, const char **ret_text)
{
	const json_t *value = json_object_get(body, name);
	size_t characters = 0;

	*ret_text = json_string_value(value);
	if (!value)
		return true;
	if (!*ret_text || strlen(*ret_text) != json_string_length(value))
		return false;
	for (const char *at = *ret_text; *at; at++)
		characters += ((unsigned char)*at & 0xc0) != 0x80;
	return characters > 0 && characters <= most && is_one_line(*ret_text);
}

/* None of them is null. */
static bool has_only(const json_t *body, const char *const *names, size_t count)
{
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_object_get(body, names[i]);

		known += value && !json_is_null(value);
	}
	return json_object_size(body) == known;
}

/* "until", or "for_seconds" from now on. */
static const char *read_until(const json_t *body, struct nt_store_action *action)
{
	const json_t *until = json_object_get(body, "until");
	uint64_t seconds = 0;
	bool has_seconds;
	int r;

	if (!nt_api_read_number(body, "for_seconds", MAX_SILENCE_S, &seconds, &has_seconds) ||
	    (has_seconds && !seconds))
		return "'for_seconds' is a whole number of seconds from 1 to 2592000";
	if (has_seconds == (until != NULL))
		return "either 'until' or 'for_seconds' must be given";
	if (has_seconds) {
		action->until_real_ns = action->real_ns + seconds * NT_SECOND;
		return NULL;
	}
	r = json_is_string(until)
		    ? nt_clock_parse(json_string_value(until), json_string_length(until),
				     &action->until_real_ns)
		    : -EINVAL;
	if (r < 0 && r != -ERANGE)
		return "'until' is a time of RFC 3339: 2026-11-21T03:00:00Z";
	/* One outside the range of our clock is not in the next 30 days either. */
	if (r < 0)
		action->until_real_ns = 0;
	return NULL;
}

/* The text of the first fault, or NULL. The action borrows from the body. */
static const char *read_action(const json_t *body, struct nt_store_action *action)
{
	static const char *const acknowledge[] = {"by"};
	static const char *const silence[] = {"by", "until", "for_seconds"};
	static const char *const annotate[] = {"by", "text"};
	const char *by;

	if (!json_is_object(body))
		return "the body must be a JSON object";
	if (!read_text(body, "by", MAX_BY, &by))
		return "'by' is a text of 1 to 64 characters without control characters";
	action->by = by ? by : "";
	switch (action->act) {
	case NT_STORE_SILENCE:
		return has_only(body, silence, 3)
			       ? read_until(body, action)
			       : "the members are 'by', 'until' and 'for_seconds'";
	case NT_STORE_ANNOTATE:
		if (!has_only(body, annotate, 2))
			return "the members are 'by' and 'text'";
		if (!read_text(body, "text", MAX_TEXT, &action->text) || !action->text)
			return "'text' is a text of 1 to 500 characters without control characters";
		return NULL;
	default:
		return has_only(body, acknowledge, 1) ? NULL : "the only member is 'by', a text";
	}
}

static int reply_after(const struct nt_api *api, const char *id, struct nt_httpd_reply *reply)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	int r = nt_store_get(api->options.store, id, &message);

	if (r < 0)
		return r;
	if (api->options.event_desk)
		nt_event_desk_incident(api->options.event_desk, &message->incident, "noted");
	return nt_api_reply_incident(api, reply, &message->incident);
}

static int no_such_incident(const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	return nt_httpd_problem(reply, request, 404, "no_such_incident",
				"no stored incident has this id; it may have been deleted");
}

/* Its messages are sent by the aggregator that owns its job. NULL: this one. */
static const struct nt_snapshot_job *
find_owner(const struct nt_api *api, const struct nt_snapshot *snapshot, const char *id, int *ret_r)
{
	nt_auto(nt_message) struct nt_message *message = NULL;

	*ret_r = nt_store_get(api->options.store, id, &message);
	return *ret_r == 0 && snapshot ? nt_api_find_elsewhere(snapshot, &message->incident) : NULL;
}

static int act(const struct nt_api *api, const struct nt_store_action *action,
	       const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	const char *id = nt_httpd_segment(request, 0);
	const struct nt_snapshot_job *elsewhere;
	int r;

	if (!api->options.store)
		return no_such_incident(request, reply);
	elsewhere = find_owner(api, snapshot, id, &r);
	if (elsewhere)
		return nt_api_reply_elsewhere(elsewhere, request, reply);
	if (r == 0)
		r = nt_store_act(api->options.store, id, action);
	if (r == -ENOENT)
		return no_such_incident(request, reply);
	if (r == -E2BIG)
		return nt_httpd_problem(reply, request, 409, "too_many_notes",
					"an incident has at most %d notes", NT_STORE_MAX_NOTES);
	return r < 0 ? r : reply_after(api, id, reply);
}

/* Acts that take back have no body; without one, the others have no members. */
static int handle(const struct nt_api *api, enum nt_store_act what,
		  const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	struct nt_store_action action = {.act = what, .real_ns = nt_clock_real_ns(), .by = ""};
	nt_autojson json_t *body = NULL;
	const char *fault;
	const void *text;
	size_t len;
	int r = 0;

	if (what == NT_STORE_UNACKNOWLEDGE || what == NT_STORE_UNSILENCE)
		return act(api, &action, request, reply);
	text = nt_httpd_body(request, &len);
	if (len)
		r = nt_json_load(text, len, &body);
	else
		body = json_object();
	if (r == -ENOMEM)
		return r;
	fault = read_action(body, &action);
	if (fault)
		return nt_httpd_problem(reply, request, 400, "bad_request", "%s", fault);
	if (what == NT_STORE_SILENCE &&
	    (action.until_real_ns <= action.real_ns ||
	     action.until_real_ns - action.real_ns > MAX_SILENCE_S * NT_SECOND))
		return nt_httpd_problem(reply, request, 409, "not_in_time",
					"'until' must be in the next 30 days");
	return act(api, &action, request, reply);
}

int nt_api_acknowledge(void *data, const struct nt_httpd_request *request,
		       struct nt_httpd_reply *reply)
{
	return handle(data, NT_STORE_ACKNOWLEDGE, request, reply);
}

int nt_api_unacknowledge(void *data, const struct nt_httpd_request *request,
			 struct nt_httpd_reply *reply)
{
	return handle(data, NT_STORE_UNACKNOWLEDGE, request, reply);
}

int nt_api_silence(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	return handle(data, NT_STORE_SILENCE, request, reply);
}

int nt_api_unsilence(void *data, const struct nt_httpd_request *request,
		     struct nt_httpd_reply *reply)
{
	return handle(data, NT_STORE_UNSILENCE, request, reply);
}

int nt_api_annotate(void *data, const struct nt_httpd_request *request,
		    struct nt_httpd_reply *reply)
{
	return handle(data, NT_STORE_ANNOTATE, request, reply);
}
