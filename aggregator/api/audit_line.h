/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An entry of the audit log, and its line in the file: a JSON object. */
#ifndef NT_AGGREGATOR_API_AUDIT_LINE_H
#define NT_AGGREGATOR_API_AUDIT_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/http/httpd.h"

enum {
	NT_AUDIT_BODY_BYTES = 256, /* of the body of a request, sanitized; the rest is left out */
	NT_AUDIT_LINE_BYTES = 4096, /* at most: text in JSON takes at most six bytes for each */
};

#define NT_AUDIT_MAX_NUMBER 999999999999999999

struct nt_audit_entry {
	uint64_t number; /* in order of time, from 1 on; kept over restarts */
	uint64_t real_ns;
	unsigned int status; /* from 400 on: refused */
	bool by_cookie;
	char token[NT_TOKEN_NAME_BYTES]; /* its name; "": none was valid */
	char certificate[NT_HTTPD_CERTIFICATE_BYTES];
	char address[NT_HTTPD_ADDRESS_BYTES], method[8], path[NT_HTTPD_PATH_BYTES];
	char body[NT_AUDIT_BODY_BYTES + 1];
	char request_id[24];
};

/* The entry as in the file and in REST; the caller owns it. NULL: out of memory. */
json_t *nt_audit_entry_json(const struct nt_audit_entry *entry);

/* Its line, with a line feed. -ENOMEM. */
NT_MUST_CHECK int nt_audit_line_append(const struct nt_audit_entry *entry, struct nt_buf *buf);

/* A line without its line feed. False: it is no entry. */
bool nt_audit_line_parse(const char *text, size_t len, struct nt_audit_entry *ret_entry);

#endif
