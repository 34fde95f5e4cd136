/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/format/format_markdown.h"

#include <stdio.h>
#include <string.h>

const char *nt_format_markdown_wide(char c)
{
	switch (c) {
	case '<':
		return "＜";
	case '>':
		return "＞";
	case '[':
		return "［";
	case ']':
		return "］";
	case '*':
		return "＊";
	case '`':
		return "｀";
	case '#':
		return "＃";
	case '!':
		return "！";
	case '@':
		return "＠";
	case '\\':
		return "＼";
	default:
		return NULL;
	}
}

static int add_field(struct nt_format_text *text, const struct nt_notice_field *field)
{
	int r = nt_format_text_add_markup(text, "**");

	if (r == 0)
		r = nt_format_text_add_markup(text, field->name);
	if (r == 0)
		r = nt_format_text_add_markup(text, "**: ");
	return r == 0 ? nt_format_text_add(text, field->value) : r;
}

static int add_link(struct nt_format_text *text, const char *link)
{
	nt_autobuf struct nt_buf markup = {0};
	int r = nt_buf_printf(&markup, "[Details](%s)", link);

	return r == 0 ? nt_format_text_add_markup(text, (const char *)markup.data) : r;
}

/* Lines of a template's text become lines of the message. */
static int add_lines(struct nt_format_text *text, const char *lines, const char *end)
{
	int r = 0;

	while (r == 0 && *lines) {
		char line[NT_NOTICE_BODY];
		size_t len = strcspn(lines, "\n");

		(void)snprintf(line, sizeof(line), "%.*s", (int)len, lines);
		r = nt_format_text_add(text, line);
		lines += len;
		if (r == 0 && *lines == '\n' && *++lines)
			r = nt_format_text_add_markup(text, end);
	}
	return r;
}

int nt_format_markdown_add(struct nt_format_text *text, const struct nt_notice *notice,
			   const char *end)
{
	int r = add_lines(text, notice->summary, end);

	/* Before the fields: a cut does not take it away. */
	if (r == 0 && notice->link[0])
		r = nt_format_text_add_markup(text, end);
	if (r == 0 && notice->link[0])
		r = add_link(text, notice->link);
	for (size_t i = 0; r == 0 && i < notice->fields; i++) {
		r = nt_format_text_add_markup(text, end);
		if (r == 0)
			r = add_field(text, &notice->field[i]);
	}
	return r;
}
