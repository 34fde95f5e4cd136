/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/term/text.h"
#include "common/base/buf.h"
#include "common/base/version.h"
#include "common/http/token.h"
#include "common/options/defaults.h"
#include "proto/json.h"

enum {
	REPLY_MAX_BYTES = NT_JSON_MAX_BYTES,
	CONNECT_TIMEOUT_S = 5,
	TOTAL_TIMEOUT_S = 60,
	SILENCE_TIMEOUT_S = 45, /* of a stream, which has a ping each 15 s */
	PAGE = 1000,
};

struct nt_client {
	struct nt_client_options options; /* borrowed */
	CURL *curl;
	CURLM *multi; /* of the request without blocking; NULL before the first one */
	struct nt_buf reply; /* of that request */
	bool begun;
	struct curl_slist *headers;
	int token_error; /* why there is no token; 0: there is one */
	char curl_error[CURL_ERROR_SIZE];
};

static int __attribute__((format(printf, 4, 5)))
fail(struct nt_client_error *error, enum nt_exit exit, int r, const char *fmt, ...)
{
	va_list ap;

	error->status = 0;
	error->exit = r == -ENOMEM ? NT_EXIT_SYSTEM : exit;
	va_start(ap, fmt);
	(void)vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return r;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int add_header(struct nt_client *client, const char *header)
{
	struct curl_slist *headers = curl_slist_append(client->headers, header);

	if (!headers)
		return -ENOMEM;
	client->headers = headers;
	return 0;
}

/* The server may not need a token: a missing one is no failure yet. */
static int add_token(struct nt_client *client)
{
	nt_autofree char *token = NULL;
	char header[NT_TOKEN_MAX_BYTES + 32];
	int r;

	client->token_error = nt_token_read(client->options.token_file, &token);
	if (client->token_error < 0)
		return client->token_error == -ENOMEM ? -ENOMEM : 0;
	(void)snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
	r = add_header(client, header);
	OPENSSL_cleanse(header, sizeof(header));
	OPENSSL_cleanse(token, strlen(token));
	return r;
}

static bool is_http_url(const char *url)
{
	return !strncmp(url, "http://", 7) || !strncmp(url, "https://", 8);
}

const struct nt_opt_form nt_client_url_form = {
	is_http_url, "the URL of an aggregator, such as " NT_DEFAULT_SERVER};

int nt_client_open(const struct nt_client_options *options, struct nt_client **ret_client,
		   struct nt_client_error *ret_error)
{
	nt_auto(nt_client) struct nt_client *client = NULL;

	client = calloc(1, sizeof(*client));
	if (!client || curl_global_init(CURL_GLOBAL_DEFAULT))
		return fail(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	client->options = *options;
	client->curl = curl_easy_init();
	if (!client->curl ||
	    add_header(client, "Accept: application/json, text/event-stream") < 0 ||
	    add_header(client, "Content-Type: application/json") < 0 || add_token(client) < 0)
		return fail(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	*ret_client = nt_take(client);
	return 0;
}

static void cancel(struct nt_client *client)
{
	if (client->begun)
		(void)curl_multi_remove_handle(client->multi, client->curl);
	client->begun = false;
	nt_buf_clear(&client->reply);
}

void nt_client_close(struct nt_client *client)
{
	if (!client)
		return;
	cancel(client);
	curl_easy_cleanup(client->curl);
	if (client->multi)
		(void)curl_multi_cleanup(client->multi);
	nt_buf_release(&client->reply);
	curl_slist_free_all(client->headers);
	free(client);
}

/* ---- requests -------------------------------------------------------------------------------- */

static size_t on_data(char *data, size_t size, size_t count, void *context)
{
	return nt_buf_append(context, data, size * count) < 0 ? 0 : size * count;
}

/* body: NULL for a GET. */
static int set_up(struct nt_client *client, const char *path, const struct nt_buf *body,
		  struct nt_buf *reply)
{
	nt_autobuf struct nt_buf url = {0};
	CURL *curl = client->curl;
	size_t len = strlen(client->options.server);
	CURLcode failed = 0;

	while (len && client->options.server[len - 1] == '/')
		len--;
	if (nt_buf_printf(&url, "%.*s%s", (int)len, client->options.server, path) < 0)
		return -ENOMEM;
	client->curl_error[0] = '\0';
	curl_easy_reset(curl);
	failed |= curl_easy_setopt(curl, CURLOPT_URL, (const char *)url.data);
	failed |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	failed |= curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	failed |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	failed |= curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers);
	failed |= curl_easy_setopt(curl, CURLOPT_USERAGENT, "neutracer/" NT_VERSION);
	failed |= curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
	failed |= curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TOTAL_TIMEOUT_S);
	failed |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	failed |= curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
	failed |= curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->curl_error);
	if (client->options.ca_file)
		failed |= curl_easy_setopt(curl, CURLOPT_CAINFO, client->options.ca_file);
	if (client->options.cert_file)
		failed |= curl_easy_setopt(curl, CURLOPT_SSLCERT, client->options.cert_file);
	if (client->options.key_file)
		failed |= curl_easy_setopt(curl, CURLOPT_SSLKEY, client->options.key_file);
	if (body) {
		failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDS, (const char *)body->data);
		failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)body->len);
	}
	return failed ? -ENOMEM : 0;
}

static int explain_transport(const struct nt_client *client, CURLcode result,
			     struct nt_client_error *error)
{
	const char *reason =
		client->curl_error[0] ? client->curl_error : curl_easy_strerror(result);

	switch (result) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
		return fail(error, NT_EXIT_NETWORK, -ECONNREFUSED,
			    "cannot connect to the aggregator at %s: %s\n"
			    "Start neutracer-aggregator, or set its address with "
			    "--server URL.",
			    client->options.server, reason);
	case CURLE_COULDNT_RESOLVE_HOST:
		return fail(error, NT_EXIT_NETWORK, -EHOSTUNREACH,
			    "cannot resolve the host of %s: %s\nCheck --server URL.",
			    client->options.server, reason);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CONNECT_ERROR:
		return fail(error, NT_EXIT_NETWORK, -EPROTO,
			    "no secure connection to %s: %s\n"
			    "Name the authority that signed its certificate with --ca-file FILE.",
			    client->options.server, reason);
	case CURLE_SSL_CERTPROBLEM:
		return fail(error, NT_EXIT_NETWORK, -EPROTO,
			    "the certificate of the client cannot be used: %s\n"
			    "Name a certificate and its key with --cert-file and --key-file.",
			    reason);
	default:
		return fail(error, NT_EXIT_NETWORK, -EPROTO, "invalid response from %s: %s",
			    client->options.server, reason);
	}
}

static int explain_denied(const struct nt_client *client, struct nt_client_error *error)
{
	const char *file = client->options.token_file;

	if (client->token_error == -EACCES)
		return fail(
			error, NT_EXIT_NETWORK, -EACCES,
			"permission denied for the token file '%s'\n"
			"Run as the user of the aggregator or as root, or use a copy of it with "
			"--token-file FILE.",
			file);
	if (client->token_error < 0)
		return fail(error, NT_EXIT_NETWORK, -EACCES,
			    "%s requires a token, and there is none in '%s': %s\n"
			    "Use the aggregator's token file with --token-file FILE.",
			    client->options.server, file, strerrordesc_np(-client->token_error));
	return fail(error, NT_EXIT_NETWORK, -EACCES,
		    "%s rejects the token in '%s'\n"
		    "Use the aggregator's own token file with --token-file FILE.",
		    client->options.server, file);
}

static int explain_status(const struct nt_client *client, long status, const struct nt_buf *reply,
			  struct nt_client_error *error)
{
	nt_autojson json_t *problem = NULL;
	char detail[256] = "";

	if (status == 401 || status == 429)
		return explain_denied(client, error);
	if (reply->len && nt_json_load(reply->data, reply->len, &problem) == 0) {
		(void)snprintf(detail, sizeof(detail), "%s",
			       nt_json_get_text(problem, "detail", ""));
		nt_text_defuse(detail); /* it is printed on a terminal */
	}
	if (status == 403 && !strcmp(nt_json_get_text(problem, "code", ""), "client_certificate"))
		return fail(error, NT_EXIT_NETWORK, -EACCES,
			    "%s refuses the request: %s\n"
			    "Name a certificate and its key with --cert-file and --key-file.",
			    client->options.server, detail);
	if (status == 403)
		return fail(error, NT_EXIT_NETWORK, -EACCES,
			    "the token in '%s' does not permit this: %s\n"
			    "Name a file with another token with --token-file FILE.",
			    client->options.token_file, detail);
	if (status == 404 && problem)
		return fail(error, NT_EXIT_INPUT, -ENOENT, "%s", detail);
	if (status == 400)
		return fail(error, NT_EXIT_USAGE, -EINVAL, "%s", detail);
	if (status == 409 && problem)
		return fail(error, NT_EXIT_INPUT, -EBUSY, "%s", detail);
	return fail(error, NT_EXIT_NETWORK, -EPROTO, "%s returned HTTP %ld%s%s",
		    client->options.server, status,
		    *detail ? ": " : ", which an aggregator does not return", detail);
}

static int conclude(const struct nt_client *client, CURLcode result, const struct nt_buf *reply,
		    json_t **ret_json, struct nt_client_error *ret_error)
{
	long status = 0;
	int r;

	if (result)
		return explain_transport(client, result, ret_error);
	(void)curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200 && status != 202) {
		r = explain_status(client, status, reply, ret_error);
		ret_error->status = status;
		return r;
	}
	r = nt_json_load(reply->data, reply->len, ret_json);
	if (r == -ENOMEM)
		return fail(ret_error, NT_EXIT_SYSTEM, r, "out of memory");
	if (r < 0)
		return fail(ret_error, NT_EXIT_NETWORK, -EPROTO,
			    "the response of %s is not that of an aggregator; check --server URL",
			    client->options.server);
	return 0;
}

static int request(struct nt_client *client, const char *path, const struct nt_buf *body,
		   json_t **ret_json, struct nt_client_error *ret_error)
{
	nt_autobuf struct nt_buf reply = {.max = REPLY_MAX_BYTES};

	if (set_up(client, path, body, &reply) < 0)
		return fail(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	return conclude(client, curl_easy_perform(client->curl), &reply, ret_json, ret_error);
}

int nt_client_get(struct nt_client *client, const char *path, json_t **ret_json,
		  struct nt_client_error *ret_error)
{
	return request(client, path, NULL, ret_json, ret_error);
}

int nt_client_post(struct nt_client *client, const char *path, const json_t *body,
		   json_t **ret_json, struct nt_client_error *ret_error)
{
	nt_autobuf struct nt_buf text = {0};

	if (nt_json_dump(body, false, &text) < 0)
		return fail(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	return request(client, path, &text, ret_json, ret_error);
}

/* ---- without blocking ------------------------------------------------------------------------ */

int nt_client_begin(struct nt_client *client, const char *path, struct nt_client_error *ret_error)
{
	int running;

	cancel(client);
	client->reply.max = REPLY_MAX_BYTES;
	if (!client->multi)
		client->multi = curl_multi_init();
	if (!client->multi || set_up(client, path, NULL, &client->reply) < 0 ||
	    curl_multi_add_handle(client->multi, client->curl))
		return fail(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	client->begun = true;
	(void)curl_multi_perform(client->multi, &running);
	return 0;
}

void nt_client_poll(struct nt_client *client, const int *fd, size_t fds, int timeout_ms)
{
	struct curl_waitfd extra[4] = {0};
	int running;

	fds = fds < 4 ? fds : 4;
	for (size_t i = 0; i < fds; i++)
		extra[i] = (struct curl_waitfd){.fd = fd[i], .events = CURL_WAIT_POLLIN};
	if (!client->multi)
		client->multi = curl_multi_init();
	if (!client->multi)
		return;
	(void)curl_multi_poll(client->multi, extra, (unsigned int)fds, timeout_ms, NULL);
	(void)curl_multi_perform(client->multi, &running);
}

int nt_client_take(struct nt_client *client, json_t **ret_json, struct nt_client_error *ret_error)
{
	const CURLMsg *message;
	CURLcode result;
	int left, r;

	if (!client->begun)
		return fail(ret_error, NT_EXIT_SYSTEM, -ENOENT, "no request was begun");
	message = curl_multi_info_read(client->multi, &left);
	if (!message)
		return -EINPROGRESS;
	result = message->data.result;
	r = conclude(client, result, &client->reply, ret_json, ret_error);
	cancel(client);
	return r;
}

int nt_client_delete(struct nt_client *client, const char *path, json_t **ret_json,
		     struct nt_client_error *ret_error)
{
	nt_autobuf struct nt_buf reply = {.max = REPLY_MAX_BYTES};

	if (set_up(client, path, NULL, &reply) < 0 ||
	    curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, "DELETE"))
		return fail(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	return conclude(client, curl_easy_perform(client->curl), &reply, ret_json, ret_error);
}

/* ---- streams --------------------------------------------------------------------------------- */

struct stream {
	CURL *curl;
	int (*take)(void *data, const char *bytes, size_t len);
	void *data;
	struct nt_buf reply; /* of another status than 200 */
	bool is_over; /* by take() */
};

static size_t on_stream(char *data, size_t size, size_t count, void *context)
{
	struct stream *stream = context;
	long status = 0;

	(void)curl_easy_getinfo(stream->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return on_data(data, size, count, &stream->reply);
	stream->is_over = stream->take(stream->data, data, size * count) != 0;
	return stream->is_over ? 0 : size * count;
}

int nt_client_stream(struct nt_client *client, const char *path,
		     int (*take)(void *data, const char *bytes, size_t len), void *data,
		     struct nt_client_error *ret_error)
{
	CURL *curl = client->curl;
	struct stream stream = {
		.curl = curl, .take = take, .data = data, .reply = {.max = REPLY_MAX_BYTES}};
	long status = 0;
	CURLcode result;
	int r;

	if (set_up(client, path, NULL, &stream.reply) < 0 ||
	    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_stream) ||
	    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &stream) ||
	    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 0L) ||
	    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L) ||
	    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_TIMEOUT_S))
		return fail(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	result = curl_easy_perform(curl);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	r = 0;
	if (result && !stream.is_over)
		r = explain_transport(client, result, ret_error);
	else if (status != 200)
		r = explain_status(client, status, &stream.reply, ret_error);
	nt_buf_release(&stream.reply);
	return r;
}

/* ---- paths and lists ------------------------------------------------------------------------- */

int nt_client_segment(struct nt_buf *path, const char *prefix, const char *segment)
{
	char *encoded = curl_easy_escape(NULL, segment, 0);
	int r;

	if (!encoded)
		return -ENOMEM;
	r = nt_buf_printf(path, "%s%s", prefix, encoded);
	curl_free(encoded);
	return r;
}

int nt_client_parameter(struct nt_buf *path, const char *name, const char *value)
{
	bool first = !path->len || !memchr(path->data, '?', path->len);
	char *encoded;
	int r;

	if (!value || !*value)
		return 0;
	encoded = curl_easy_escape(NULL, value, 0);
	if (!encoded)
		return -ENOMEM;
	r = nt_buf_printf(path, "%c%s=%s", first ? '?' : '&', name, encoded);
	curl_free(encoded);
	return r;
}

/* Fetches a page; *ret_next is the cursor of the next, to be freed, or NULL. */
static int get_page(struct nt_client *client, const char *path, size_t limit, const char *cursor,
		    json_t *items, char **ret_next, struct nt_client_error *error)
{
	nt_autobuf struct nt_buf page_path = {0};
	nt_autojson json_t *page = NULL;
	const char *next;
	char number[32];
	int r;

	(void)snprintf(number, sizeof(number), "%zu", limit < PAGE ? limit : PAGE);
	if (nt_buf_printf(&page_path, "%s", path) < 0 ||
	    nt_client_parameter(&page_path, "limit", number) < 0 ||
	    nt_client_parameter(&page_path, "cursor", cursor) < 0)
		return fail(error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	r = nt_client_get(client, (const char *)page_path.data, &page, error);
	if (r < 0)
		return r;
	if (!json_is_array(json_object_get(page, "items")))
		return fail(error, NT_EXIT_NETWORK, -EPROTO,
			    "the response of %s is not that of an aggregator; check --server URL",
			    client->options.server);
	if (json_array_extend(items, json_object_get(page, "items")))
		return fail(error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	next = nt_json_get_text(page, "next", NULL);
	*ret_next = next ? strdup(next) : NULL;
	if (next && !*ret_next)
		return fail(error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	return 0;
}

int nt_client_list(struct nt_client *client, const char *path, size_t max, json_t **ret_items,
		   struct nt_client_error *ret_error)
{
	nt_autojson json_t *items = json_array();
	nt_autofree char *cursor = NULL;
	size_t most = max && max < NT_CLIENT_MAX_ITEMS ? max : NT_CLIENT_MAX_ITEMS;

	if (!items)
		return fail(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	do {
		size_t before = json_array_size(items);
		char *next = NULL;
		int r = get_page(client, path, most - before, cursor, items, &next, ret_error);

		if (r < 0)
			return r;
		free(cursor);
		cursor = next;
		if (json_array_size(items) == before)
			break; /* an empty page with a cursor would never end */
	} while (cursor && json_array_size(items) < most);
	*ret_items = nt_take(items);
	return 0;
}
