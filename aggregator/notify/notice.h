/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A notice: what a message says, for people, independent of the receiver. It is built once from a
 * message of the outbox; the formats only lay it out. Its texts are UTF-8 without control
 * characters, and bounded.
 */
#ifndef NT_AGGREGATOR_NOTIFY_NOTICE_H
#define NT_AGGREGATOR_NOTIFY_NOTICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_NOTICE_FIELDS = 10,
	NT_NOTICE_TITLE = 400, /* bytes, with the NUL */
	NT_NOTICE_TEXT = 800, /* bytes of a value, with the NUL */
	NT_NOTICE_BODY = 4096, /* bytes of a summary or of a template's text, with the NUL */
	NT_NOTICE_NAME = 256, /* bytes of a job's or node's name, with the NUL */
	NT_NOTICE_URL = 1024,
	NT_NOTICE_DIGEST_LINES = 8, /* messages that a digest lists */
};

enum nt_notice_state {
	NT_NOTICE_FIRING,
	NT_NOTICE_STILL_FIRING, /* a reminder */
	NT_NOTICE_RESOLVED,
};

enum nt_notice_severity {
	NT_NOTICE_INFO,
	NT_NOTICE_WARNING,
	NT_NOTICE_CRITICAL,
	NT_NOTICE_SEVERITIES,
};

struct nt_notice_field {
	const char *name; /* a constant: "Who" */
	char value[NT_NOTICE_TEXT];
};

struct nt_notice {
	enum nt_notice_state state;
	enum nt_notice_severity severity;
	bool is_sample; /* of `neutracer alert test`: no job is concerned */
	uint64_t flaps; /* beginnings and ends so far of what flaps; 0: it does not */
	bool is_digest; /* stands for several messages; has no incident */
	char title[NT_NOTICE_TITLE]; /* "FIRING (critical) llm-70b: compute, rank 11 on gpu-07" */
	char culprit[NT_NOTICE_TITLE]; /* "rank 11 on gpu-07"; "": none */
	char summary[NT_NOTICE_BODY]; /* lines of one of a template end with \n */
	struct nt_notice_field field[NT_NOTICE_FIELDS]; /* the most important first */
	size_t fields;
	char link[NT_NOTICE_URL]; /* "": none */
	/* For receivers that keep incidents; "" in a digest. */
	char incident[64]; /* its id */
	char job[NT_NOTICE_NAME], namespace[NT_NOTICE_NAME], node[NT_NOTICE_NAME];
	char class[32], cause[NT_NOTICE_NAME];
	uint64_t since_ns, until_ns; /* real time; 0: none */
	/* The severities that firing messages of this incident had, as bits; 0: not known. */
	unsigned int severities;
};

/* "FIRING" … */
const char *nt_notice_state_name(const struct nt_notice *notice);
const char *nt_notice_severity_name(enum nt_notice_severity severity);
/* NT_NOTICE_INFO if the name is unknown. */
enum nt_notice_severity nt_notice_severity_of(const char *name);

/*
 * Builds the notice of a message's body. link: prefix of the link, to which the id is appended;
 * NULL: no link. -EBADMSG: it is no message. -ENOMEM.
 */
NT_MUST_CHECK int nt_notice_read(const char *body, size_t len, const char *link, bool is_reminder,
				 struct nt_notice *ret_notice);

/* A notice that stands for all of these; the first ones are listed, the rest is counted. */
void nt_notice_digest(const struct nt_notice *const *notice, size_t count,
		      struct nt_notice *ret_digest);

#endif
