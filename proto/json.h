/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The JSON objects of REST, webhooks, the command and `neutracer analyze --json`, in one form.
 * Invalid UTF-8 is replaced; numbers that are not finite, and unknown texts and times, are null.
 * Readers ignore unknown members.
 */
#ifndef NT_PROTO_JSON_H
#define NT_PROTO_JSON_H

#include <jansson.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_JSON_MAX_BYTES = 32 << 20, /* of a document that nt_json_load() reads */
	NT_JSON_MAX_DEPTH = 32,
};

static inline void nt_json_freep(json_t **json)
{
	json_decref(*json);
}
#define nt_autojson __attribute__((cleanup(nt_json_freep)))

/* New references, or NULL if out of memory. NULL and "" become null. */
json_t *nt_json_text(const char *text);
json_t *nt_json_number(double value);
/* RFC 3339 in UTC, with milliseconds unless it is a whole second; 0 is a time, not null. */
json_t *nt_json_time(uint64_t real_ns);

/* The incident object of docs/verdicts.md. NULL if out of memory. */
json_t *nt_json_incident(const struct nt_wire_incident *incident);
json_t *nt_json_own_source(enum nt_own_source value);

/*
 * A slow rank: the fields of one of the incident's culprits, plus job, attempt, class, cause,
 * slowdown, since, tier, confidence and incident. NULL if out of memory.
 */
json_t *nt_json_slow_rank(const struct nt_wire_incident *incident,
			  const struct nt_culprit *culprit);

/* True for the kinds that accuse: rank, node, nic or path. */
bool nt_json_culprit_accuses(const struct nt_culprit *culprit);

/*
 * Appends the text of `json`, in one line or indented, with a newline at the end. Members keep
 * their order and reals have at most nine significant digits. -ENOMEM, -ENOBUFS at the cap of buf.
 */
NT_MUST_CHECK int nt_json_dump(const json_t *json, bool indent, struct nt_buf *buf);

/*
 * Reads one document, which must be an object or an array. -EBADMSG if it is not JSON, deeper than
 * NT_JSON_MAX_DEPTH or larger than NT_JSON_MAX_BYTES. The caller owns *ret_json.
 */
NT_MUST_CHECK int nt_json_load(const void *text, size_t len, json_t **ret_json);

/* Members of an object; the fallback if one is missing or of another type. */
const char *nt_json_get_text(const json_t *object, const char *name, const char *fallback);
double nt_json_get_number(const json_t *object, const char *name, double fallback);

#endif
