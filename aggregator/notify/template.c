/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/template.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/system/clock.h"

const char nt_template_names[] =
	"{state}, {severity}, {title}, {summary}, {culprit}, {class}, {cause}, {job}, {namespace}, "
	"{node}, {incident}, {link}, {who}, {what}, {since}, {flaps}, {cost}, {evidence}, {look}, "
	"{stack}";

static const char ellipsis[] = "…";

/* ---- placeholders ---------------------------------------------------------------------------- */

/* "who" is the value of the field "Who". */
static const char *field_of(const struct nt_notice *notice, const char *name, size_t len)
{
	for (size_t i = 0; i < notice->fields; i++) {
		const char *field = notice->field[i].name;

		if (strlen(field) == len && (field[0] | 0x20) == name[0] &&
		    !memcmp(field + 1, name + 1, len - 1))
			return notice->field[i].value;
	}
	return "";
}

static const char *value_of(const struct nt_notice *notice, const char *name, size_t len)
{
	const struct {
		const char *name, *value;
	} values[] = {
		{"state", nt_notice_state_name(notice)},
		{"severity", nt_notice_severity_name(notice->severity)},
		{"title", notice->title},
		{"summary", notice->summary},
		{"culprit", notice->culprit},
		{"class", notice->class},
		{"cause", notice->cause},
		{"job", notice->job},
		{"namespace", notice->namespace},
		{"node", notice->node},
		{"incident", notice->incident},
		{"link", notice->link},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (strlen(values[i].name) == len && !memcmp(values[i].name, name, len))
			return values[i].value;
	return field_of(notice, name, len);
}

static bool is_known(const char *name, size_t len)
{
	char word[NT_TEMPLATE_WORD];

	if (!len || len > sizeof(word) - 3)
		return false;
	(void)snprintf(word, sizeof(word), "{%.*s}", (int)len, name);
	return strstr(nt_template_names, word) != NULL;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* A part of a template: a placeholder's name, or text as it is. */
struct template_part {
	const char *text;
	size_t len;
	bool is_placeholder;
};

/* The part at *at, which moves behind it. False: the end, or *ret_broken. */
static bool next_part(const char **at, struct template_part *ret_part, bool *ret_broken)
{
	const char *text = *at;
	size_t len = strcspn(text, "{}");

	*ret_broken = false;
	*ret_part = (struct template_part){.text = text, .len = len};
	if (!len && *text && text[0] == text[1]) {
		ret_part->len = 1;
		len = 2;
	} else if (!len && *text == '{') {
		ret_part->text = text + 1;
		ret_part->len = strcspn(text + 1, "{}");
		ret_part->is_placeholder = true;
		len = ret_part->len + 2;
		*ret_broken = text[len - 1] != '}';
	} else if (!len) {
		*ret_broken = *text == '}';
		return false;
	}
	if (*ret_broken)
		return false;
	*at = text + len;
	return true;
}

int nt_template_check(const char *template, char ret_word[NT_TEMPLATE_WORD])
{
	struct template_part part;
	bool is_broken;

	ret_word[0] = '\0';
	while (next_part(&template, &part, &is_broken)) {
		if (!part.is_placeholder || is_known(part.text, part.len))
			continue;
		(void)snprintf(
			ret_word, NT_TEMPLATE_WORD, "{%.*s}",
			(int)(part.len < NT_TEMPLATE_WORD - 3 ? part.len : NT_TEMPLATE_WORD - 3),
			part.text);
		return -EINVAL;
	}
	return is_broken ? -EINVAL : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct template_output {
	char *text;
	size_t size, len;
	bool is_cut;
};

/* Keeps room for the ellipsis. */
static void put_text(struct template_output *output, const char *text, size_t len)
{
	size_t room = output->size - sizeof(ellipsis) - output->len, taken = len;

	if (output->is_cut)
		return;
	if (len > room) {
		taken = room;
		while (taken && !nt_utf8_is_valid(text, taken))
			taken--;
		output->is_cut = true;
	}
	memcpy(output->text + output->len, text, taken);
	output->len += taken;
	if (output->is_cut)
		memcpy(output->text + output->len, ellipsis, sizeof(ellipsis) - 1);
	output->len += output->is_cut ? sizeof(ellipsis) - 1 : 0;
	output->text[output->len] = '\0';
}

void nt_template_write(const char *template, const struct nt_notice *notice, char *to, size_t size)
{
	struct template_output output = {.text = to, .size = size};
	struct template_part part;
	bool is_broken;

	to[0] = '\0';
	while (next_part(&template, &part, &is_broken)) {
		const char *value = part.text;

		if (part.is_placeholder) {
			value = value_of(notice, part.text, part.len);
			value = *value ? value : "-";
			part.len = strlen(value);
		}
		put_text(&output, value, part.len);
	}
}

void nt_template_apply(const char *title, const char *text, struct nt_notice *notice)
{
	char own_title[NT_NOTICE_TITLE], own_text[NT_NOTICE_BODY];

	/* Both before either is replaced: each may name the other. */
	if (title)
		nt_template_write(title, notice, own_title, sizeof(own_title));
	if (text)
		nt_template_write(text, notice, own_text, sizeof(own_text));
	if (title)
		memcpy(notice->title, own_title, sizeof(own_title));
	if (!text)
		return;
	memcpy(notice->summary, own_text, sizeof(own_text));
	notice->fields = 0;
}
