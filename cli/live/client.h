/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A client of the aggregator's REST interface. Error texts include the remedy. */
#ifndef NT_CLI_LIVE_CLIENT_H
#define NT_CLI_LIVE_CLIENT_H

#include <jansson.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/options/opt_table.h"

enum {
	NT_CLIENT_MAX_ITEMS = 1 << 20, /* of one list */
};

struct nt_client_options {
	const char *server; /* http://HOST:PORT or https://… */
	const char *token_file;
	const char *ca_file; /* PEM; NULL: the system's trusted certificates */
	const char *cert_file, *key_file; /* PEM: the certificate of the client; NULL: none */
};

struct nt_client_error {
	enum nt_exit exit;
	long status; /* of HTTP; 0: there was no response */
	char text[1024]; /* one or two lines */
};

struct nt_client;

/* The form of `server`. */
extern const struct nt_opt_form nt_client_url_form;

NT_MUST_CHECK int nt_client_open(const struct nt_client_options *options,
				 struct nt_client **ret_client, struct nt_client_error *ret_error);
void nt_client_close(struct nt_client *client);
NT_DEFINE_AUTO(nt_client, nt_client_close)

/*
 * Fetches the document at a path such as "/api/v1/jobs/ID". The caller owns *ret_json. -ENOENT for
 * a 404, -ECONNREFUSED and the like, -EACCES for 401 and 403, -EPROTO for other replies.
 */
NT_MUST_CHECK int nt_client_get(struct nt_client *client, const char *path, json_t **ret_json,
				struct nt_client_error *ret_error);

/* Posts the document, which must be an object. Otherwise as above; -EACCES also without scope admin. */
NT_MUST_CHECK int nt_client_post(struct nt_client *client, const char *path, const json_t *body,
				 json_t **ret_json, struct nt_client_error *ret_error);

/* Deletes what is at the path. Otherwise as above. */
NT_MUST_CHECK int nt_client_delete(struct nt_client *client, const char *path, json_t **ret_json,
				   struct nt_client_error *ret_error);

/*
 * Passes the body of a GET on as it arrives, for a stream without end. 0: the server has ended it,
 * or take() has, by returning other than 0. Errors as above; -EPROTO also if nothing was received
 * for 45 s.
 */
NT_MUST_CHECK int nt_client_stream(struct nt_client *client, const char *path,
				   int (*take)(void *data, const char *bytes, size_t len),
				   void *data, struct nt_client_error *ret_error);

/*
 * Fetches all items of a list, page by page; the path may have parameters. The caller owns
 * *ret_items. max 0: NT_CLIENT_MAX_ITEMS.
 */
NT_MUST_CHECK int nt_client_list(struct nt_client *client, const char *path, size_t max,
				 json_t **ret_items, struct nt_client_error *ret_error);

/*
 * The same GET without blocking: begin, then poll until take does not return -EINPROGRESS. One at a
 * time; a new one cancels the one before. A name that is being resolved cannot be cancelled:
 * nt_client_close() waits for it.
 */
NT_MUST_CHECK int nt_client_begin(struct nt_client *client, const char *path,
				  struct nt_client_error *ret_error);
/* Returns once the transfer proceeds, one of the fds is readable, or the time is over. */
void nt_client_poll(struct nt_client *client, const int *fd, size_t fds, int timeout_ms);
/* As nt_client_get(); -EINPROGRESS: not complete yet, -ENOENT also without nt_client_begin(). */
NT_MUST_CHECK int nt_client_take(struct nt_client *client, json_t **ret_json,
				 struct nt_client_error *ret_error);

/* Appends prefix and one encoded path segment. -ENOMEM. */
NT_MUST_CHECK int nt_client_segment(struct nt_buf *path, const char *prefix, const char *segment);

/* Appends "?name=value" or "&name=value", encoded, to a path. value NULL: nothing. -ENOMEM. */
NT_MUST_CHECK int nt_client_parameter(struct nt_buf *path, const char *name, const char *value);

#endif
