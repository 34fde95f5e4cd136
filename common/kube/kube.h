/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A client of the Kubernetes API, for a program inside the cluster or beside it: who asks has the
 * token of a service account, which is read anew for each request because it rotates. Calls block,
 * up to their timeout, so they belong on a thread of their own; only nt_kube_stop() may come from
 * another one.
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
	NT_KUBE_REPLY_BYTES = 1 << 20, /* of a body that is kept, where the request names no cap */
	NT_KUBE_TOKEN_BYTES = 64 << 10,
};

/* Files are a service account's where they are NULL, and none where they are "". */
struct nt_kube_options {
	char *api; /* https://HOST:PORT; NULL: the one that the environment of a pod names */
	char *token_file; /* a service account's goes nowhere in clear text */
	char *ca_file; /* certificates (PEM) that the server is trusted by */
	const char *account; /* directory of the service account; NULL: where the kubelet puts it */
};

/* In a table of a config of this type, which has a struct nt_kube_options of that name. */
/* clang-format off */
#define NT_KUBE_OPTIONS(type, field)                                                               \
	{.name = "kube-api", .kind = NT_OPT_STRING, .offset = offsetof(type, field.api),           \
	 .arg = "URL", .form = &nt_kube_url_form,                                                  \
	 .help = "the Kubernetes API server (default: the one of the cluster that this runs in, "  \
		 "if any); '' for none"},                                                          \
	{.name = "kube-token-file", .kind = NT_OPT_STRING,                                         \
	 .offset = offsetof(type, field.token_file), .arg = "FILE",                                \
	 .help = "token for that server (default: the service account's), read again for each "    \
		 "request; '' for none"},                                                          \
	{.name = "kube-ca-file", .kind = NT_OPT_STRING, .offset = offsetof(type, field.ca_file),   \
	 .arg = "FILE",                                                                            \
	 .help = "certificates (PEM) that it is trusted by (default: the service account's)"}
/* clang-format on */

extern const struct nt_opt_form nt_kube_url_form;

struct nt_kube;

/* -ENOENT: there is no API server to ask, here or by request. -EINVAL: that is no URL. -ENOMEM. */
NT_MUST_CHECK int nt_kube_new(const struct nt_kube_options *options, struct nt_kube **ret_kube);
void nt_kube_free(struct nt_kube *kube);
NT_DEFINE_AUTO(nt_kube, nt_kube_free)

/* Where requests go: a URL, for the log. */
const char *nt_kube_server(const struct nt_kube *kube);

/* From any thread: the call that runs, and all later ones, end with -ECANCELED. */
void nt_kube_stop(struct nt_kube *kube);
bool nt_kube_is_stopped(const struct nt_kube *kube);

enum nt_kube_method {
	NT_KUBE_GET,
	NT_KUBE_POST,
	NT_KUBE_PUT,
	NT_KUBE_PATCH, /* strategic merge, where the request names no other kind */
	NT_KUBE_DELETE,
};

struct nt_kube_request {
	enum nt_kube_method method;
	const char *path; /* from the "/" on, with its query; see nt_kube_escape() */
	const void *body; /* JSON; NULL: none */
	size_t body_len;
	const char *content_type; /* NULL: as the method has it */
	uint64_t timeout_ns; /* of the whole; 0: 30 s */
	size_t max_bytes; /* of the reply; 0: NT_KUBE_REPLY_BYTES, or with `data` no cap */
	/* Takes a successful reply piece by piece, instead of its body. < 0 ends the call with it. */
	int (*data)(void *context, const char *data, size_t len);
	void (*begun)(void *context); /* a reply has begun, and is a success; NULL: who cares */
	void *context;
};

struct nt_kube_reply {
	long status; /* of HTTP */
	uint64_t retry_after_ns; /* as the server asks; 0: it does not */
	char reason[NT_KUBE_REASON]; /* the server's own where it refuses: printable, or "" */
	struct nt_buf body;
};

/*
 * 0: the server has answered, whatever its status. Else *ret_reply has no status, or that of a reply
 * that broke off: -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT, -ECONNRESET, -EPROTO (above all: not to
 * be trusted), -EFBIG, -ECANCELED, -ENOMEM, what `data` returned, or why the token could not be
 * read. nt_kube_error() says more. ret_reply is released by the caller, in all cases.
 */
NT_MUST_CHECK int nt_kube_call(struct nt_kube *kube, const struct nt_kube_request *request,
			       struct nt_kube_reply *ret_reply);
void nt_kube_reply_release(struct nt_kube_reply *reply);
#define nt_autokubereply __attribute__((cleanup(nt_kube_reply_release)))

/* Of the last call that failed: one printable line, without the token. */
const char *nt_kube_error(const struct nt_kube *kube);

/* Appends text as one piece of a path or a query, with a NUL behind as nt_buf_printf() does. */
NT_MUST_CHECK int nt_kube_escape(struct nt_buf *buf, const char *text);

#endif
