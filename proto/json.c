/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/system/clock.h"
#include "common/system/json_append.h"

/* Names are untrusted; jansson takes UTF-8 only. Each invalid byte becomes U+FFFD. */
static json_t *mended_text(const char *text)
{
	nt_autobuf struct nt_buf mended = {0};
	size_t len = strlen(text);

	while (len) {
		size_t length = nt_utf8_length(text, len);
		int r = length ? nt_buf_append(&mended, text, length)
			       : nt_buf_append(&mended, "\xef\xbf\xbd", 3);

		if (r < 0)
			return NULL;
		text += length ? length : 1;
		len -= length ? length : 1;
	}
	return json_stringn((const char *)mended.data, mended.len);
}

json_t *nt_json_text(const char *text)
{
	json_t *json;

	if (!text || !*text)
		return json_null();
	json = json_string(text);
	return json ? json : mended_text(text);
}

json_t *nt_json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *nt_json_time(uint64_t real_ns)
{
	char text[NT_CLOCK_TEXT];
	uint64_t ms = real_ns / NT_MILLISECOND;

	return json_string(nt_clock_format(ms * NT_MILLISECOND, ms % 1000 ? 3 : 0, text));
}

/* Consumes value, which may be NULL: lack of memory is detected at the end. */
static int set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

static json_t *numbers(const uint32_t *number, size_t count)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		if (json_array_append_new(array, json_integer(number[i])))
			return NULL;
	}
	return nt_take(array);
}

static bool is_kind(const struct nt_culprit *culprit, const char *kind)
{
	return culprit->kind && !strcmp(culprit->kind, kind);
}

static bool has_ranks(const struct nt_culprit *culprit)
{
	return culprit->rank_count || is_kind(culprit, "node") ||
	       is_kind(culprit, "communicator") || is_kind(culprit, "stage");
}

/* Members that only some kinds have are left out elsewhere. */
static int set_culprit(json_t *object, const struct nt_culprit *culprit)
{
	int failed = 0;

	failed |= set(object, "kind", nt_json_text(culprit->kind));
	failed |=
		set(object, "rank", culprit->has_rank ? json_integer(culprit->rank) : json_null());
	failed |= set(object, "node", nt_json_text(culprit->node));
	failed |= set(object, "pod", nt_json_text(culprit->pod));
	failed |= set(object, "container", nt_json_text(culprit->container));
	failed |= set(object, "gpu", nt_json_text(culprit->gpu));
	failed |= set(object, "peers", numbers(culprit->peers, culprit->peer_count));
	if (is_kind(culprit, "path"))
		failed |= set(object, "peer", nt_json_text(culprit->peer));
	if (has_ranks(culprit))
		failed |= set(object, "ranks", numbers(culprit->ranks, culprit->rank_count));
	if (culprit->name && *culprit->name)
		failed |= set(object, "name", nt_json_text(culprit->name));
	if (culprit->pod_uid && *culprit->pod_uid)
		failed |= set(object, "pod_uid", nt_json_text(culprit->pod_uid));
	return failed;
}

static json_t *culprits(const struct nt_wire_incident *incident)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < incident->culprits; i++) {
		nt_autojson json_t *object = json_object();

		if (set_culprit(object, &incident->culprit[i]) || json_array_append(array, object))
			return NULL;
	}
	return nt_take(array);
}

static json_t *cost(const struct nt_cost *cost)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "gpu_hours",
		      cost->gpu_hours_unknown ? json_null() : nt_json_number(cost->gpu_hours));
	failed |= set(object, "currency", nt_json_text(cost->has_money ? cost->currency : NULL));
	failed |= set(object, "money", cost->has_money ? nt_json_number(cost->money) : json_null());
	failed |= set(object, "energy_kwh",
		      cost->has_energy ? nt_json_number(cost->energy_kwh) : json_null());
	failed |= set(object, "co2_kg", cost->has_co2 ? nt_json_number(cost->co2_kg) : json_null());
	return failed ? NULL : nt_take(object);
}

static json_t *evidence(const struct nt_wire_incident *incident)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < incident->evidences; i++) {
		const struct nt_wire_evidence *one = &incident->evidence[i];
		nt_autojson json_t *object = json_object();
		int failed = 0;

		failed |= set(object, "what", nt_json_text(one->what));
		failed |= set(object, "unit", nt_json_text(one->unit));
		failed |= set(object, "value", nt_json_number(one->value));
		failed |= set(object, "peers", nt_json_number(one->peers));
		failed |= set(object, "width", nt_json_number(one->width));
		failed |= set(object, "method", nt_json_text(one->method));
		failed |= set(object, "windows", json_integer(one->windows));
		if (failed || json_array_append(array, object))
			return NULL;
	}
	return nt_take(array);
}

static json_t *frames(const struct nt_wire_stack *stack)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < stack->frames; i++) {
		const struct nt_wire_stack_frame *frame = &stack->frame[i];
		nt_autojson json_t *object = json_object();
		int failed = 0;

		failed |= set(object, "function", nt_json_text(frame->function));
		failed |= set(object, "file", nt_json_text(frame->file));
		failed |=
			set(object, "line", frame->line ? json_integer(frame->line) : json_null());
		failed |= set(object, "native", json_boolean(frame->native));
		if (failed || json_array_append(array, object))
			return NULL;
	}
	return nt_take(array);
}

static json_t *stack(const struct nt_wire_incident_stack *one)
{
	const struct nt_wire_stack *thread = &one->stack;
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "rank", json_integer(one->rank));
	failed |= set(object, "culprit", json_boolean(one->is_culprit));
	failed |= set(object, "read", nt_json_time(one->real_ns));
	failed |= set(object, "thread", thread->tid ? json_integer(thread->tid) : json_null());
	failed |= set(object, "name", nt_json_text(thread->name));
	failed |= set(object, "main", json_boolean(thread->is_main));
	failed |= set(object, "state", nt_json_text(thread->state));
	failed |= set(object, "wait", nt_json_text(thread->wait));
	failed |= set(object, "interpreter", nt_json_text(thread->interpreter));
	failed |= set(object, "holds_gil", json_boolean(thread->holds_gil));
	failed |= set(object, "gc_running", json_boolean(thread->gc_running));
	failed |= set(object, "frames", frames(thread));
	failed |= set(object, "frames_left_out", json_integer(thread->left_out));
	failed |= set(object, "python_reason", nt_json_text(thread->python_reason));
	failed |= set(object, "native_reason", nt_json_text(thread->native_reason));
	return failed ? NULL : nt_take(object);
}

static json_t *stacks(const struct nt_wire_incident *incident)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < incident->stacks; i++)
		if (json_array_append_new(array, stack(&incident->stack[i])))
			return NULL;
	return nt_take(array);
}

static json_t *tier(enum nt_tier value)
{
	return value == NT_TIER_UNKNOWN ? json_null() : nt_json_text(nt_tier_name(value));
}

json_t *nt_json_own_source(enum nt_own_source value)
{
	const char *name = nt_own_source_name(value);

	return name ? nt_json_text(name) : json_null();
}

json_t *nt_json_incident(const struct nt_wire_incident *incident)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "id", nt_json_text(incident->id));
	failed |= set(object, "state", nt_json_text(incident->state));
	failed |= set(object, "severity", nt_json_text(incident->severity));
	failed |= set(object, "class", nt_json_text(incident->class));
	failed |= set(object, "cause", nt_json_text(incident->cause));
	failed |= set(object, "job", nt_json_text(incident->job));
	failed |= set(object, "attempt", json_integer(incident->attempt));
	failed |= set(object, "namespace", nt_json_text(incident->namespace));
	failed |= set(object, "culprits", culprits(incident));
	failed |= set(object, "since", nt_json_time(incident->since_real_ns));
	failed |=
		set(object, "until",
		    incident->until_real_ns ? nt_json_time(incident->until_real_ns) : json_null());
	failed |= set(object, "seen", nt_json_time(incident->seen_real_ns));
	failed |= set(object, "slowdown", nt_json_number(incident->slowdown));
	failed |= set(object, "cost", cost(&incident->cost));
	failed |= set(object, "tier", tier(incident->tier));
	failed |= set(object, "own_source", nt_json_own_source(incident->own_source));
	failed |= set(object, "confidence", nt_json_number(incident->confidence));
	failed |= set(object, "completeness", nt_json_number(incident->completeness));
	failed |= set(object, "evidence", evidence(incident));
	failed |= set(object, "summary", nt_json_text(incident->summary));
	failed |= set(object, "stacks", stacks(incident));
	return failed ? NULL : nt_take(object);
}

json_t *nt_json_slow_rank(const struct nt_wire_incident *incident, const struct nt_culprit *culprit)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set_culprit(object, culprit);
	failed |= set(object, "job", nt_json_text(incident->job));
	failed |= set(object, "namespace", nt_json_text(incident->namespace));
	failed |= set(object, "attempt", json_integer(incident->attempt));
	failed |= set(object, "class", nt_json_text(incident->class));
	failed |= set(object, "cause", nt_json_text(incident->cause));
	failed |= set(object, "slowdown", nt_json_number(incident->slowdown));
	failed |= set(object, "since", nt_json_time(incident->since_real_ns));
	failed |= set(object, "tier", tier(incident->tier));
	failed |= set(object, "confidence", nt_json_number(incident->confidence));
	failed |= set(object, "completeness", nt_json_number(incident->completeness));
	failed |= set(object, "incident", nt_json_text(incident->id));
	return failed ? NULL : nt_take(object);
}

bool nt_json_culprit_accuses(const struct nt_culprit *culprit)
{
	return is_kind(culprit, "rank") || is_kind(culprit, "node") || is_kind(culprit, "nic") ||
	       is_kind(culprit, "path");
}

int nt_json_dump(const json_t *json, bool indent, struct nt_buf *buf)
{
	const size_t len = buf->len;
	int r = nt_json_append(json,
			       JSON_REAL_PRECISION(9) | JSON_ENCODE_ANY |
				       (indent ? JSON_INDENT(2) : JSON_COMPACT),
			       buf);

	if (r == 0)
		r = nt_buf_append(buf, "\n", 1);
	if (r < 0)
		buf->len = len;
	return r;
}

/* jansson recurses up to 2048 levels on any stack; our documents are shallow. */
static bool is_too_deep(const char *text, size_t len)
{
	size_t depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == '[' || text[i] == '{') &&
			 ++depth > NT_JSON_MAX_DEPTH)
			return true;
		else if (!quoted && (text[i] == ']' || text[i] == '}') && depth)
			depth--;
	}
	return false;
}

int nt_json_load(const void *text, size_t len, json_t **ret_json)
{
	json_error_t error;
	json_t *json;

	if (len > NT_JSON_MAX_BYTES || is_too_deep(text, len))
		return -EBADMSG;
	json = json_loadb(text, len, 0, &error);
	if (!json)
		return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
	*ret_json = json;
	return 0;
}

const char *nt_json_get_text(const json_t *object, const char *name, const char *fallback)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : fallback;
}

double nt_json_get_number(const json_t *object, const char *name, double fallback)
{
	const json_t *number = json_object_get(object, name);

	return json_is_number(number) ? json_number_value(number) : fallback;
}
