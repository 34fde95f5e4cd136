/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A JSON document with one long list, such as the events of a trace, read as a stream: a list of
 * any length needs the memory of one element. Members of the document may come in any order.
 */
#ifndef NT_CLI_READERS_DOCUMENT_H
#define NT_CLI_READERS_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/input.h"
#include "cli/readers/trace.h"
#include "common/base/cleanup.h"
#include "common/base/json_scan.h"

/*
 * What to read of a document, and where to. Each function returns 0, or 1 if the list must be given
 * once more, as what follows it changes its meaning; or a negative error. After -EBADMSG no more
 * elements are given, but the document is read to its end: that it is malformed further on is the
 * better reason to refuse it. The owner of the functions keeps why it refused.
 */
struct nt_document {
	const char *path;
	const char *list; /* the member that is the list; or the document itself is one */
	const struct nt_json_pick *element; /* what to store of an element */
	const struct nt_json_pick *members; /* of the document, to be given whole */
	/* A member; of several of one name the last counts. */
	int (*member)(void *data, const char *key, uint64_t line,
		      const struct nt_json_value *value);
	/*
	 * The list begins: what was given of another one does not count. is_list is false: it is
	 * none. repeated: the same list was given before.
	 */
	int (*begin)(void *data, bool is_list, bool repeated);
	int (*give)(void *data, size_t at, uint64_t line, const struct nt_json_value *element);
	void *data;
};

/*
 * -EBADMSG with *ret_error: file, line and byte; what a function returned, without *ret_error;
 * -ENOMEM.
 */
NT_MUST_CHECK int nt_document_read(const struct nt_document *document, struct nt_input *input,
				   struct nt_trace_error *ret_error);

/*
 * Prefixes *error with file, line (0: none), what it is, and its number (SIZE_MAX: none). Returns
 * -EBADMSG.
 */
int nt_document_refuse(const char *path, uint64_t line, const char *what, size_t at,
		       struct nt_trace_error *error);

#endif
