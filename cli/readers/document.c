/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/document.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Once through a document. */
struct pass {
	const struct nt_document *document;
	struct nt_json_scan *scan;
	size_t wanted; /* which of several lists of that name, from 1 */
	size_t lists;
	bool members; /* to be given */
	bool repeated; /* the list is given for the second time */
	bool again; /* the list must be read again */
	int refused; /* by a function of the document */
};

static const struct nt_json_pick *find_member(const struct pass *pass, const char *key)
{
	const struct nt_json_pick *pick = pass->members ? pass->document->members : NULL;

	while (pick && pick->key && strcmp(pick->key, key) != 0)
		pick++;
	return pick && pick->key ? pick : NULL;
}

/* What refuses the content does not end the pass. */
static int accept(struct pass *pass, int r)
{
	pass->again |= r == 1;
	if (r == -EBADMSG)
		pass->refused = r;
	return r == -EBADMSG || r == 1 ? 0 : r;
}

static int read_elements(struct pass *pass)
{
	const struct nt_document *document = pass->document;
	const struct nt_json_value *element;
	const char *key;
	uint64_t line;
	int r = nt_json_scan_enter(pass->scan);

	for (size_t i = 0; r == 0; i++) {
		r = nt_json_scan_next(pass->scan, &key, &line);
		if (r <= 0)
			break;
		if (pass->refused) {
			r = nt_json_scan_skip(pass->scan);
			continue;
		}
		r = nt_json_scan_take(pass->scan, document->element, &element);
		r = r ?: accept(pass, document->give(document->data, i, line, element));
	}
	return r;
}

static int read_list(struct pass *pass)
{
	enum nt_json_kind kind = NT_JSON_NULL;
	uint64_t line;
	int r = nt_json_scan_peek(pass->scan, &kind, &line);

	if (r < 0)
		return r;
	if (++pass->lists != pass->wanted)
		return nt_json_scan_skip(pass->scan);
	r = accept(pass, pass->document->begin(pass->document->data, kind == NT_JSON_ARRAY,
					       pass->repeated));
	if (r < 0)
		return r;
	return kind == NT_JSON_ARRAY ? read_elements(pass) : nt_json_scan_skip(pass->scan);
}

static int read_member(struct pass *pass, const char *key, uint64_t line)
{
	const struct nt_document *document = pass->document;
	const struct nt_json_pick *pick = find_member(pass, key);
	const struct nt_json_value *value;
	int r;

	if (strcmp(key, document->list) == 0)
		return read_list(pass);
	if (!pick)
		return nt_json_scan_skip(pass->scan);
	r = nt_json_scan_take(pass->scan, pick->inner, &value);
	return r ?: accept(pass, document->member(document->data, pick->key, line, value));
}

static int read_root(struct pass *pass)
{
	enum nt_json_kind kind = NT_JSON_NULL;
	const char *key;
	uint64_t line;
	int r = nt_json_scan_peek(pass->scan, &kind, &line);

	if (r < 0)
		return r;
	if (kind == NT_JSON_ARRAY) {
		r = read_list(pass);
		return r ?: nt_json_scan_end(pass->scan);
	}
	r = nt_json_scan_enter(pass->scan);
	while (r == 0) {
		r = nt_json_scan_next(pass->scan, &key, &line);
		if (r <= 0)
			break;
		r = read_member(pass, key, line);
	}
	return r ?: nt_json_scan_end(pass->scan);
}

/* Damaged compression explains a malformed document, and may be found behind it. */
static int find_damage(struct nt_input *input)
{
	char bytes[4096];
	ptrdiff_t n;

	while ((n = nt_input_next(input, bytes, sizeof(bytes))) > 0)
		;
	return (int)n;
}

static int describe(const struct pass *pass, struct nt_input *input, int r,
		    struct nt_trace_error *error)
{
	const char *path = pass->document->path;
	uint64_t line = 0, byte = 0;
	const char *why = nt_json_scan_why(pass->scan, &line, &byte);

	if (r != -EBADMSG || !*why)
		return r;
	r = find_damage(input);
	return r < 0 ? r
		     : nt_trace_refuse(error,
				       "%s:%" PRIu64 ": invalid JSON at byte %" PRIu64 ": %s", path,
				       line, byte, why);
}

static int run(struct pass *pass, struct nt_input *input, struct nt_trace_error *error)
{
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	int r = nt_input_rewind(input);

	r = r ?: nt_json_scan_new(nt_input_next, input, &scan);
	if (r < 0)
		return r;
	pass->scan = scan;
	r = read_root(pass);
	r = r < 0 ? describe(pass, input, r, error) : 0;
	pass->scan = NULL;
	return r;
}

int nt_document_read(const struct nt_document *document, struct nt_input *input,
		     struct nt_trace_error *ret_error)
{
	struct pass pass = {.document = document, .wanted = 1, .members = true};

	for (;;) {
		int r = run(&pass, input, ret_error);

		if (r < 0)
			return r;
		if (pass.lists > pass.wanted)
			pass = (struct pass){.document = document, .wanted = pass.lists};
		else if (pass.again && !pass.repeated)
			pass = (struct pass){
				.document = document, .wanted = pass.wanted, .repeated = true};
		else
			return pass.refused;
	}
}

int nt_document_refuse(const char *path, uint64_t line, const char *what, size_t at,
		       struct nt_trace_error *error)
{
	const struct nt_trace_error why = *error;
	char where[32] = "", number[32] = "";

	if (line)
		(void)snprintf(where, sizeof(where), ":%" PRIu64, line);
	if (at != SIZE_MAX)
		(void)snprintf(number, sizeof(number), " %zu", at);
	return nt_trace_refuse(error, "%s%s: %s%s: %s", path, where, what, number, why.text);
}
