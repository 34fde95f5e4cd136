/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/metrics_text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/utf8.h"

const char *nt_metrics_content_type(enum nt_metrics_format format)
{
	if (format == NT_METRICS_OPENMETRICS)
		return "application/openmetrics-text; version=1.0.0; charset=utf-8";
	return "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- what a scrape accepts -------------------------------------------------------------------- */

/* A piece of the header, without the blanks around it. */
struct header_part {
	const char *at;
	size_t len;
};

/* The next part up to a separator or the end; moves *at behind it. False: there is none. */
static bool next_part(const char **at, const char *end, char separator,
		      struct header_part *ret_part)
{
	const char *from = *at, *to;

	if (from >= end)
		return false;
	to = memchr(from, separator, (size_t)(end - from));
	to = to ? to : end;
	*at = to + 1;
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	*ret_part = (struct header_part){from, (size_t)(to - from)};
	return true;
}

static bool part_is(const struct header_part *part, const char *text)
{
	return part->len == strlen(text) && !strncasecmp(part->at, text, part->len);
}

static bool begins_with(const struct header_part *part, const char *text)
{
	return part->len >= strlen(text) && !strncasecmp(part->at, text, strlen(text));
}

/* Thousandths of q=0.5; 0 if malformed. */
static unsigned int read_quality(const char *text, size_t len)
{
	unsigned int quality, scale = 100;

	if (!len || (text[0] != '0' && text[0] != '1'))
		return 0;
	quality = text[0] == '1' ? 1000 : 0;
	for (size_t i = 2; i < len && i < 5 && quality < 1000; i++, scale /= 10) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		quality += (unsigned int)(text[i] - '0') * scale;
	}
	return quality;
}

/* Thousandths; 0: it is not accepted, or has another version. */
static unsigned int read_range(const char *at, const char *end, bool is_openmetrics)
{
	unsigned int quality = 1000;
	struct header_part part;

	while (next_part(&at, end, ';', &part)) {
		if (begins_with(&part, "q="))
			quality = read_quality(part.at + 2, part.len - 2);
		else if (is_openmetrics && begins_with(&part, "version=") &&
			 !part_is(&part, "version=1.0.0") && !part_is(&part, "version=1.0"))
			return 0;
	}
	return quality;
}

enum nt_metrics_format nt_metrics_accepted(const char *accept)
{
	const char *at = accept, *end = accept ? accept + strlen(accept) : NULL;
	unsigned int text = 0, openmetrics = 0;
	struct header_part range, type;

	while (at && next_part(&at, end, ',', &range)) {
		const char *from = range.at, *to = range.at + range.len;
		unsigned int quality;

		if (!next_part(&from, to, ';', &type))
			continue;
		if (part_is(&type, "application/openmetrics-text")) {
			quality = read_range(from, to, true);
			openmetrics = quality > openmetrics ? quality : openmetrics;
		} else if (part_is(&type, "text/plain")) {
			quality = read_range(from, to, false);
			text = quality > text ? quality : text;
		}
	}
	return openmetrics && openmetrics >= text ? NT_METRICS_OPENMETRICS : NT_METRICS_PROMETHEUS;
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* Bytes of the name without the suffix, which it may not have. */
static size_t without(const char *name, size_t len, const char *suffix)
{
	size_t size = strlen(suffix);

	return len > size && !strncmp(name + len - size, suffix, size) ? len - size : len;
}

/* The unit that the name ends in; NULL: none. */
static const char *find_unit(const char *name, size_t len)
{
	static const char *const units[] = {"_seconds", "_bytes", "_ratio", "_celsius", "_hertz"};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (without(name, len, units[i]) < len)
			return units[i] + 1;
	return NULL;
}

int nt_metrics_write_family(const char *name, bool is_counter, const char *help,
			    enum nt_metrics_format format, struct nt_buf *out)
{
	const bool openmetrics = format == NT_METRICS_OPENMETRICS;
	const size_t len =
		openmetrics && is_counter ? without(name, strlen(name), "_total") : strlen(name);
	const char *unit = openmetrics ? find_unit(name, len) : NULL;
	int r;

	r = nt_buf_printf(out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)len, name, help, (int)len,
			  name, is_counter ? "counter" : "gauge");
	if (r == 0 && unit)
		r = nt_buf_printf(out, "# UNIT %.*s %s\n", (int)len, name, unit);
	return r;
}

int nt_metrics_write_label(const char *name, const char *value, bool is_first, struct nt_buf *out)
{
	const char *end = value + strlen(value);
	size_t written = 0;
	int r = nt_buf_printf(out, "%s%s=\"", is_first ? "" : ",", name);

	while (r == 0 && value < end) {
		size_t len = nt_utf8_length(value, (size_t)(end - value));

		if (written + (len ? len : 1) > NT_METRICS_LABEL_BYTES)
			break;
		written += len ? len : 1;
		if (!len)
			r = nt_buf_append(out, "\xef\xbf\xbd", 3);
		else if (*value == '\n')
			r = nt_buf_append(out, "\\n", 2);
		else if (*value == '"' || *value == '\\')
			r = nt_buf_printf(out, "\\%c", *value);
		else
			r = nt_buf_append(out, value, len);
		value += len ? len : 1;
	}
	return r < 0 ? r : nt_buf_append(out, "\"", 1);
}

int nt_metrics_write_end(enum nt_metrics_format format, struct nt_buf *out)
{
	return format == NT_METRICS_OPENMETRICS ? nt_buf_append(out, "# EOF\n", 6) : 0;
}
