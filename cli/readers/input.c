/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "cli/readers/pickle.h"

enum {
	HEAD_BYTES = 64 << 10, /* of a file, to detect its format */
};

static void close_gz(gzFile *file)
{
	if (*file)
		(void)gzclose_r(*file);
}

int nt_input_read(const char *path, struct nt_buf *buf, struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(close_gz))) gzFile file = gzopen(path, "rbe");
	int r;

	if (!file) {
		r = errno ? -errno : -ENOMEM;
		(void)nt_trace_refuse(ret_error, "%s: %s", path, strerrordesc_np(-r));
		return r;
	}
	buf->max = NT_INPUT_MAX_BYTES;
	for (;;) {
		int n;

		r = nt_buf_reserve(buf, 1 << 16);
		if (r == -ENOBUFS)
			return nt_trace_refuse(ret_error, "%s: larger than %d bytes", path,
					       NT_INPUT_MAX_BYTES);
		if (r < 0)
			return r;
		n = gzread(file, buf->data + buf->len, 1 << 16);
		if (n < 0)
			return nt_trace_refuse(ret_error, "%s: damaged compression", path);
		if (n == 0) {
			(void)gzerror(file, &r);
			return r == Z_BUF_ERROR
				       ? nt_trace_refuse(
						 ret_error,
						 "%s: cut short at byte %zu of what it unpacks to",
						 path, buf->len)
				       : 0;
		}
		buf->len += (size_t)n;
	}
}

int nt_input_json(const char *path, const struct nt_buf *buf, json_t **ret_root,
		  struct nt_trace_error *ret_error)
{
	json_error_t why = {0};
	json_t *root = json_loadb((const char *)buf->data, buf->len, 0, &why);

	if (!root)
		return nt_trace_refuse(ret_error, "%s:%d: no JSON at byte %d: %s", path, why.line,
				       why.position, why.text);
	*ret_root = root;
	return 0;
}

/* The position behind the string at `at`. */
static size_t skip_string(const char *text, size_t len, size_t at)
{
	for (at++; at < len && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at < len ? at + 1 : len;
}

/* Whether the string at `at` is that key: the last duplicate counts, as in the parser. */
static bool is_key(const char *text, size_t len, size_t at, const char *key)
{
	size_t end = skip_string(text, len, at);

	if (end - at != strlen(key) + 2 || memcmp(text + at + 1, key, strlen(key)) != 0)
		return false;
	while (end < len && strchr(" \t\r\n", text[end]))
		end++;
	return end < len && text[end] == ':';
}

size_t nt_input_line(const struct nt_buf *text, const char *key, size_t at)
{
	const char *data = (const char *)text->data;
	const int list_depth = key ? 2 : 1;
	size_t line = 1, member = 0, found = 0;
	bool inside = !key, begins = false;
	int depth = 0;

	for (size_t i = 0; i < text->len; i++) {
		const char c = data[i];
		const bool space = c == ' ' || c == '\t' || c == '\r' || c == '\n';

		line += c == '\n';
		if (begins && !space) {
			if (member == at)
				found = line;
			begins = false;
		}
		if (c == '"') {
			if (depth == 1 && key && is_key(data, text->len, i, key)) {
				inside = true;
				found = at == SIZE_MAX ? line : 0;
			}
			i = skip_string(data, text->len, i) - 1;
		} else if (c == '{' || c == '[') {
			depth++;
			begins = inside && depth == list_depth && c == '[';
			member = begins ? 0 : member;
		} else if (c == '}' || c == ']') {
			depth--;
			inside = inside && depth >= list_depth;
		} else if (c == ',' && inside && depth == list_depth) {
			member++;
			begins = true;
		} else if (c == ',' && depth < list_depth) {
			inside = false;
		}
	}
	return found;
}

int nt_input_refuse_at(struct nt_trace_error *error, const char *path, const struct nt_buf *text,
		       const char *key, size_t at, const char *what)
{
	const struct nt_trace_error why = *error;
	const size_t line = text ? nt_input_line(text, key, at) : 0;
	char where[32] = "", number[32] = "";

	if (line)
		(void)snprintf(where, sizeof(where), ":%zu", line);
	if (at != SIZE_MAX)
		(void)snprintf(number, sizeof(number), " %zu", at);
	return nt_trace_refuse(error, "%s%s: %s%s: %s", path, where, what, number, why.text);
}

static bool is_one_of(const char *key, size_t len, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == len && memcmp(key, names[i], len) == 0)
			return true;
	return false;
}

/* Strings of the first level: keys, and values that never have these names. */
static bool has_flight_key(const char *text, size_t len)
{
	static const char *const known[] = {"entries", "pg_config", "pg_status",
					    "comm_lib_version"};
	static const char *const other[] = {"traceEvents"};
	int depth = 0;

	for (size_t i = 0; i < len; i++) {
		size_t start = i + 1;

		if (text[i] == '{' || text[i] == '[') {
			depth++;
		} else if (text[i] == '}' || text[i] == ']') {
			depth--;
		} else if (text[i] == '"') {
			for (i++; i < len && text[i] != '"'; i++)
				i += text[i] == '\\';
			if (depth != 1 || i >= len)
				continue;
			if (is_one_of(text + start, i - start, other, 1))
				return false;
			if (is_one_of(text + start, i - start, known, 4))
				return true;
		}
	}
	return false;
}

bool nt_input_is_flight(const char *path)
{
	__attribute__((cleanup(close_gz))) gzFile file = gzopen(path, "rbe");
	nt_autofree char *head = malloc(HEAD_BYTES);
	size_t len, at = 0;
	int n;

	n = file && head ? gzread(file, head, HEAD_BYTES) : 0;
	if (n <= 0)
		return false;
	len = (size_t)n;
	/* The calls may precede all other entries. */
	if (nt_pickle_is((const uint8_t *)head, len))
		return memmem(head, len, "pg_config", strlen("pg_config")) ||
		       memmem(head, len, "profiling_name", strlen("profiling_name"));
	while (at < len && strchr(" \t\r\n", head[at]))
		at++;
	return at < len && head[at] == '{' && has_flight_key(head, len);
}
