/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A client of the Kubernetes API, for a program inside the cluster or beside it. It authenticates
 * with the token of a service account, which is reread for each request because it rotates. Calls
 * block, up to their timeout, so they belong on a thread of their own; only nt_kube_stop() may be
 * called from another one.
 */
#ifndef NT_COMMON_KUBE_KUBE_H
#define NT_COMMON_KUBE_KUBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/options/opt.h"

enum {
	NT_KUBE_REASON = 256, /* bytes of a reason, with its NUL */
	NT_KUBE_REPLY_BYTES = 1 << 20, /* of a stored body, if the request sets no cap */
	NT_KUBE_TOKEN_BYTES = 64 << 10,
};

/* File names: NULL is the service account's file, "" is none. */
struct nt_kube_options {
	char *api; /* https://HOST:PORT; NULL: from the environment of a pod */
	char *token_file; /* a service account's is never sent in clear text */
	char *ca_file; /* PEM: certificates that authenticate the server */
	const char *account; /* directory of the service account; NULL: the kubelet's default */
};

/* For the table of a config `type` with a struct nt_kube_options named `field`. */
/* clang-format off */
#define NT_KUBE_OPTIONS(type, field)                                                               \
	{.name = "kube-api", .kind = NT_OPT_STRING, .offset = offsetof(type, field.api),           \
	 .arg = "URL", .form = &nt_kube_url_form,                                                  \
	 .help = "the Kubernetes API server (default: that of the cluster of this program, "       \
		 "if any); '' for none"},                                                          \
	{.name = "kube-token-file", .kind = NT_OPT_STRING,                                         \
	 .offset = offsetof(type, field.token_file), .arg = "FILE",                                \
	 .help = "token for that server (default: the service account's), read again for each "    \
		 "request; '' for none"},                                                          \
	{.name = "kube-ca-file", .kind = NT_OPT_STRING, .offset = offsetof(type, field.ca_file),   \
	 .arg = "FILE",                                                                            \
	 .help = "CA certificates (PEM) of that server (default: the service account's)"}
/* clang-format on */

extern const struct nt_opt_form nt_kube_url_form;

struct nt_kube;

/* -ENOENT: no API server is configured. -EINVAL: malformed URL. -ENOMEM. */
NT_MUST_CHECK int nt_kube_new(const struct nt_kube_options *options, struct nt_kube **ret_kube);
void nt_kube_free(struct nt_kube *kube);
NT_DEFINE_AUTO(nt_kube, nt_kube_free)

/* The URL of the server, for the log. */
const char *nt_kube_server(const struct nt_kube *kube);

/* Thread-safe: the running call and all later ones return -ECANCELED. */
void nt_kube_stop(struct nt_kube *kube);
bool nt_kube_is_stopped(const struct nt_kube *kube);

enum nt_kube_method {
	NT_KUBE_GET,
	NT_KUBE_POST,
	NT_KUBE_PUT,
	NT_KUBE_PATCH, /* strategic merge, unless content_type is set */
	NT_KUBE_DELETE,
};

struct nt_kube_request {
	enum nt_kube_method method;
	const char *path; /* from the "/" on, with its query; see nt_kube_escape() */
	const void *body; /* JSON; NULL: none */
	size_t body_len;
	const char *content_type; /* NULL: the method's default */
	uint64_t timeout_ns; /* of the whole call; 0: 30 s */
	size_t max_bytes; /* of the reply; 0: NT_KUBE_REPLY_BYTES, or with `data` no cap */
	/* Receives a successful reply in pieces, instead of its body. < 0 ends the call with it. */
	int (*data)(void *context, const char *data, size_t len);
	void (*begun)(void *context); /* a successful reply begins; may be NULL */
	void *context;
};

struct nt_kube_reply {
	long status; /* HTTP status */
	uint64_t retry_after_ns; /* Retry-After of the server; 0: none */
	char reason[NT_KUBE_REASON]; /* the server's reason of a rejection: printable, or "" */
	struct nt_buf body;
};

/*
 * 0: the server replied, with any status. Otherwise *ret_reply has no status, or that of a
 * truncated reply. Errors are -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT, -ECONNRESET, -EPROTO
 * (mostly an untrusted server), -EFBIG, -ECANCELED and -ENOMEM. Others are the result of `data`, or
 * the error of reading the token. nt_kube_error() has details. The caller always releases
 * ret_reply.
 */
NT_MUST_CHECK int nt_kube_call(struct nt_kube *kube, const struct nt_kube_request *request,
			       struct nt_kube_reply *ret_reply);
void nt_kube_reply_release(struct nt_kube_reply *reply);
#define nt_autokubereply __attribute__((cleanup(nt_kube_reply_release)))

/* The error of the last failed call: one printable line, without the token. */
const char *nt_kube_error(const struct nt_kube *kube);

/* Appends text percent-encoded for a path or a query, and a NUL as nt_buf_printf() does. */
NT_MUST_CHECK int nt_kube_escape(struct nt_buf *buf, const char *text);

#endif
