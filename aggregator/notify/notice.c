/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/notice.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/system/clock.h"
#include "proto/json.h"
#include "proto/text.h"

enum {
	SHOWN_CULPRITS = 3,
	SHOWN_RANKS = 8,
	SHOWN_EVIDENCE = 3,
	SHOWN_FRAMES = 4,
	NAME_BYTES = 120, /* of one name inside a value */
};

static const char *const severity_names[NT_NOTICE_SEVERITIES] = {"info", "warning", "critical"};

const char *nt_notice_severity_name(enum nt_notice_severity severity)
{
	return severity_names[severity];
}

enum nt_notice_severity nt_notice_severity_of(const char *name)
{
	for (int i = 0; i < NT_NOTICE_SEVERITIES; i++)
		if (!strcmp(name, severity_names[i]))
			return (enum nt_notice_severity)i;
	return NT_NOTICE_INFO;
}

/* ---- writing a bounded text ------------------------------------------------------------------ */

struct notice_line {
	char *text;
	size_t size, len;
};

/* Cut at a character. */
__attribute__((format(printf, 2, 3))) static void put(struct notice_line *line, const char *fmt,
						      ...)
{
	char piece[NT_NOTICE_URL];
	size_t room = line->size - 1 - line->len, len;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(piece, sizeof(piece), fmt, ap);
	va_end(ap);
	len = strlen(piece);
	if (len > room)
		len = room;
	while (len && !nt_utf8_is_valid(piece, len))
		len--;
	memcpy(line->text + line->len, piece, len);
	line->len += len;
	line->text[line->len] = '\0';
}

/* A name from outside, without what could forge a line. */
static void put_name(struct notice_line *line, const char *name)
{
	char clean[NAME_BYTES + 1];

	(void)nt_text_clean(name, strlen(name), clean, NAME_BYTES);
	put(line, "%s", clean);
}

static struct notice_line open_field(struct nt_notice *notice, const char *name)
{
	struct nt_notice_field *field = &notice->field[notice->fields];

	field->name = name;
	field->value[0] = '\0';
	return (struct notice_line){.text = field->value, .size = sizeof(field->value)};
}

/* A field without a value is left out. */
static void close_field(struct nt_notice *notice, const struct notice_line *line)
{
	if (line->len && notice->fields < NT_NOTICE_FIELDS - 1)
		notice->fields++;
}

static void copy_clean(const json_t *object, const char *name, char *to, size_t size)
{
	const char *text = nt_json_get_text(object, name, "");

	(void)nt_text_clean(text, strlen(text), to, size - 1);
}

/* ---- who ------------------------------------------------------------------------------------- */

static void put_part(struct notice_line *line, const json_t *culprit, const char *member,
		     const char *before)
{
	const char *name = nt_json_get_text(culprit, member, "");

	if (!*name)
		return;
	put(line, "%s", before);
	put_name(line, name);
}

static void put_ranks(struct notice_line *line, const json_t *culprit)
{
	const json_t *ranks = json_object_get(culprit, "ranks");
	const json_t *rank;
	size_t i;

	json_array_foreach(ranks, i, rank)
	{
		if (i == SHOWN_RANKS) {
			put(line, " and %zu others", json_array_size(ranks) - i);
			break;
		}
		put(line, "%s%lld", i ? ", " : ", ranks ", (long long)json_integer_value(rank));
	}
}

static void put_culprit(struct notice_line *line, const json_t *culprit)
{
	const json_t *rank = json_object_get(culprit, "rank");
	const char *kind = nt_json_get_text(culprit, "kind", "rank");
	bool is_node = !strcmp(kind, "node");

	put_name(line, kind);
	if (json_is_integer(rank))
		put(line, " %lld", (long long)json_integer_value(rank));
	put_part(line, culprit, "name", " ");
	put_part(line, culprit, "node", is_node ? " " : " on node ");
	put_part(line, culprit, "peer", " to ");
	put_part(line, culprit, "pod", ", pod ");
	put_part(line, culprit, "container", ", container ");
	put_part(line, culprit, "gpu", ", GPU ");
	put_ranks(line, culprit);
}

static void add_who(struct nt_notice *notice, const json_t *incident)
{
	const json_t *culprits = json_object_get(incident, "culprits");
	struct notice_line line = open_field(notice, "Who");
	const json_t *culprit;
	size_t i;

	json_array_foreach(culprits, i, culprit)
	{
		if (i == SHOWN_CULPRITS) {
			put(&line, "; and %zu others", json_array_size(culprits) - i);
			break;
		}
		put(&line, "%s", i ? "; " : "");
		put_culprit(&line, culprit);
	}
	close_field(notice, &line);
}

/* ---- what, since, cost ----------------------------------------------------------------------- */

static void add_what(struct nt_notice *notice)
{
	struct notice_line line = open_field(notice, "What");

	put(&line, "%s", notice->class);
	if (*notice->cause)
		put(&line, ": %s", notice->cause);
	close_field(notice, &line);
}

static void add_job(struct nt_notice *notice, const json_t *incident)
{
	const json_t *attempt = json_object_get(incident, "attempt");
	struct notice_line line = open_field(notice, "Job");

	put(&line, "%s", notice->job);
	if (*notice->namespace)
		put(&line, ", namespace %s", notice->namespace);
	if (json_integer_value(attempt) > 1)
		put(&line, ", attempt %lld", (long long)json_integer_value(attempt));
	close_field(notice, &line);
}

static void add_since(struct nt_notice *notice)
{
	struct notice_line line = open_field(notice, "Since");
	char text[NT_CLOCK_TEXT];

	if (!notice->since_ns)
		return;
	put(&line, "%s", nt_clock_format(notice->since_ns, 0, text));
	if (notice->state == NT_NOTICE_RESOLVED && notice->until_ns)
		put(&line, " until %s", nt_clock_format(notice->until_ns, 0, text));
	close_field(notice, &line);
}

static void add_flaps(struct nt_notice *notice)
{
	struct notice_line line = open_field(notice, "Flaps");

	if (!notice->flaps)
		return;
	put(&line,
	    "began or ended %llu times; no further message until it is quiet or worse, and then "
	    "one of its end",
	    (unsigned long long)notice->flaps);
	close_field(notice, &line);
}

static void put_amount(struct notice_line *line, const json_t *cost, const char *member, int digits,
		       const char *unit)
{
	const json_t *value = json_object_get(cost, member);

	if (!json_is_number(value))
		return;
	put(line, "%s%.*f ", line->len ? "; " : "", digits, json_number_value(value));
	put_name(line, unit);
}

static void add_cost(struct nt_notice *notice, const json_t *incident)
{
	const json_t *cost = json_object_get(incident, "cost");
	double slowdown = nt_json_get_number(incident, "slowdown", 0);
	struct notice_line line = open_field(notice, "Cost");

	if (slowdown > 1)
		put(&line, "steps take %.2f times as long", slowdown);
	put_amount(&line, cost, "gpu_hours", 1, "GPU hours so far");
	put_amount(&line, cost, "money", 2, nt_json_get_text(cost, "currency", ""));
	put_amount(&line, cost, "energy_kwh", 1, "kWh");
	put_amount(&line, cost, "co2_kg", 1, "kg of CO2");
	close_field(notice, &line);
}

/* ---- evidence -------------------------------------------------------------------------------- */

static void put_evidence(struct notice_line *line, const json_t *evidence)
{
	const json_t *peers = json_object_get(evidence, "peers");
	const char *unit = nt_json_get_text(evidence, "unit", "");

	put_name(line, nt_json_get_text(evidence, "what", ""));
	put(line, ": %.4g ", nt_json_get_number(evidence, "value", 0));
	put_name(line, unit);
	if (!json_is_number(peers))
		return;
	put(line, ", its peers %.4g ", json_number_value(peers));
	put_name(line, unit);
}

static void add_evidence(struct nt_notice *notice, const json_t *incident)
{
	const json_t *list = json_object_get(incident, "evidence");
	struct notice_line line = open_field(notice, "Evidence");
	const json_t *evidence;
	size_t i;

	json_array_foreach(list, i, evidence)
	{
		if (i == SHOWN_EVIDENCE)
			break;
		put(&line, "%s", i ? "; " : "");
		put_evidence(&line, evidence);
	}
	close_field(notice, &line);
}

static void put_frame(struct notice_line *line, const json_t *frame)
{
	const json_t *number = json_object_get(frame, "line");
	const char *file = nt_json_get_text(frame, "file", "");

	put_name(line, nt_json_get_text(frame, "function", "?"));
	if (!*file)
		return;
	put(line, " (");
	put_name(line, file);
	if (json_is_integer(number))
		put(line, ":%lld", (long long)json_integer_value(number));
	put(line, ")");
}

/* The innermost frames of the culprit's first stack. */
static void add_stack(struct nt_notice *notice, const json_t *incident)
{
	struct notice_line line = open_field(notice, "Stack");
	const json_t *stack, *frame;
	size_t i, k;

	json_array_foreach(json_object_get(incident, "stacks"), i, stack)
	{
		const json_t *frames = json_object_get(stack, "frames");

		if (!json_is_true(json_object_get(stack, "culprit")) || !json_array_size(frames))
			continue;
		json_array_foreach(frames, k, frame)
		{
			if (k == SHOWN_FRAMES)
				break;
			put(&line, "%s", k ? " < " : "");
			put_frame(&line, frame);
		}
		break;
	}
	close_field(notice, &line);
}

/* ---- the whole ------------------------------------------------------------------------------- */

const char *nt_notice_state_name(const struct nt_notice *notice)
{
	static const char *const texts[] = {
		[NT_NOTICE_FIRING] = "FIRING",
		[NT_NOTICE_STILL_FIRING] = "STILL FIRING",
		[NT_NOTICE_RESOLVED] = "RESOLVED",
	};

	if (notice->flaps && notice->state != NT_NOTICE_RESOLVED)
		return "FLAPPING";
	return texts[notice->state];
}

static void write_culprit(struct nt_notice *notice, const json_t *incident)
{
	const json_t *culprits = json_object_get(incident, "culprits");
	const json_t *first = json_array_get(culprits, 0);
	const json_t *rank = json_object_get(first, "rank");
	struct notice_line line = {.text = notice->culprit, .size = sizeof(notice->culprit)};

	if (!first)
		return;
	put_name(&line, nt_json_get_text(first, "kind", "rank"));
	if (json_is_integer(rank))
		put(&line, " %lld", (long long)json_integer_value(rank));
	put_part(&line, first, "name", " ");
	put_part(&line, first, "node", json_is_integer(rank) ? " on " : " ");
	put_part(&line, first, "peer", " to ");
	if (json_array_size(culprits) > 1)
		put(&line, " and %zu others", json_array_size(culprits) - 1);
}

static void write_title(struct nt_notice *notice)
{
	struct notice_line line = {.text = notice->title, .size = sizeof(notice->title)};

	put(&line, "%s%s ", notice->is_sample ? "TEST " : "", nt_notice_state_name(notice));
	if (notice->state != NT_NOTICE_RESOLVED)
		put(&line, "(%s) ", severity_names[notice->severity]);
	put_name(&line, notice->job);
	put(&line, ": %s%s%s", notice->class, *notice->culprit ? ", " : "", notice->culprit);
}

/* Only ids that need no escapes in a URL. */
static bool is_plain_id(const char *id)
{
	size_t len = strlen(id);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)id[i]) && id[i] != '-' && id[i] != '_')
			return false;
	return len > 0;
}

static void add_look(struct nt_notice *notice, const char *link)
{
	struct notice_line line = open_field(notice, "Look");

	if (!is_plain_id(notice->incident))
		return;
	put(&line, "neutracer incidents %s", notice->incident);
	close_field(notice, &line);
	if (!link || strlen(link) + strlen(notice->incident) >= sizeof(notice->link))
		return;
	line = (struct notice_line){.text = notice->link, .size = sizeof(notice->link)};
	put(&line, "%s%s", link, notice->incident);
}

static uint64_t read_time(const json_t *incident, const char *name)
{
	const char *text = nt_json_get_text(incident, name, "");
	uint64_t real_ns;

	return nt_clock_parse(text, strlen(text), &real_ns) < 0 ? 0 : real_ns;
}

static uint64_t read_count(const json_t *object, const char *name)
{
	json_int_t count = json_integer_value(json_object_get(object, name));

	return count > 0 ? (uint64_t)count : 0;
}

static enum nt_notice_state state_of(const json_t *message, bool is_reminder)
{
	if (!strcmp(nt_json_get_text(message, "type", ""), "incident.resolved"))
		return NT_NOTICE_RESOLVED;
	return is_reminder ? NT_NOTICE_STILL_FIRING : NT_NOTICE_FIRING;
}

static void fill_notice(struct nt_notice *notice, const json_t *message, const json_t *incident,
			const char *link)
{
	const json_t *node = json_array_get(json_object_get(incident, "culprits"), 0);

	notice->flaps = read_count(json_object_get(message, "flapping"), "changes");
	notice->is_sample = json_is_true(json_object_get(message, "test"));
	notice->severity = nt_notice_severity_of(nt_json_get_text(incident, "severity", ""));
	copy_clean(incident, "id", notice->incident, sizeof(notice->incident));
	copy_clean(incident, "job", notice->job, sizeof(notice->job));
	copy_clean(incident, "namespace", notice->namespace, sizeof(notice->namespace));
	copy_clean(incident, "class", notice->class, sizeof(notice->class));
	copy_clean(incident, "cause", notice->cause, sizeof(notice->cause));
	copy_clean(incident, "summary", notice->summary, NT_NOTICE_TEXT);
	copy_clean(node, "node", notice->node, sizeof(notice->node));
	notice->since_ns = read_time(incident, "since");
	notice->until_ns = read_time(incident, "until");
	write_culprit(notice, incident);
	write_title(notice);
	add_who(notice, incident);
	add_what(notice);
	add_since(notice);
	add_flaps(notice);
	add_cost(notice, incident);
	add_evidence(notice, incident);
	add_job(notice, incident);
	add_look(notice, link);
	add_stack(notice, incident);
}

int nt_notice_read(const char *body, size_t len, const char *link, bool is_reminder,
		   struct nt_notice *ret_notice)
{
	nt_autojson json_t *message = NULL;
	const json_t *incident;
	int r = nt_json_load(body, len, &message);

	if (r < 0)
		return r;
	incident = json_object_get(message, "data");
	if (!json_is_object(incident))
		return -EBADMSG;
	*ret_notice = (struct nt_notice){.state = state_of(message, is_reminder)};
	fill_notice(ret_notice, message, incident, link);
	return 0;
}

void nt_notice_digest(const struct nt_notice *const *notice, size_t count,
		      struct nt_notice *ret_digest)
{
	size_t resolved = 0,
	       listed = count < NT_NOTICE_DIGEST_LINES ? count : NT_NOTICE_DIGEST_LINES;
	struct nt_notice *digest = ret_digest;
	struct notice_line title = {.text = digest->title, .size = sizeof(digest->title)};
	struct notice_line line;

	*digest = (struct nt_notice){.is_digest = true};
	for (size_t i = 0; i < count; i++) {
		resolved += notice[i]->state == NT_NOTICE_RESOLVED;
		if (notice[i]->severity > digest->severity)
			digest->severity = notice[i]->severity;
	}
	digest->state = resolved == count ? NT_NOTICE_RESOLVED : notice[0]->state;
	put(&title, "DIGEST: %zu firing, %zu resolved", count - resolved, resolved);
	line = (struct notice_line){.text = digest->summary, .size = sizeof(digest->summary)};
	put(&line, "%zu messages in one, as this receiver takes only so many in a minute.", count);
	for (size_t i = 0; i < listed; i++) {
		line = open_field(digest, notice[i]->state == NT_NOTICE_RESOLVED ? "Over" : "New");
		put(&line, "%s", notice[i]->title);
		close_field(digest, &line);
	}
	if (listed == count)
		return;
	line = open_field(digest, "And");
	put(&line, "%zu others: neutracer incidents", count - listed);
	close_field(digest, &line);
}
