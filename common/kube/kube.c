/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/kube/kube.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/base/ascii.h"
#include "common/base/version.h"
#include "common/system/clock.h"
#include "common/system/file.h"

#define ACCOUNT    "/var/run/secrets/kubernetes.io/serviceaccount"
#define TIMEOUT_NS (30 * NT_SECOND)

enum {
	CONNECT_TIMEOUT_MS = 5000,
	/* detects a dead server of a watch after a minute */
	KEEP_IDLE_S = 30,
	KEEP_INTERVAL_S = 10,
	POLL_MS = 1000,
};

struct nt_kube {
	char *url, *token_file, *ca_file; /* files: NULL for none */
	bool token_is_account;
	bool is_secret; /* the connection is encrypted */
	CURLM *multi;
	CURL *curl;
	atomic_bool stopped;
	char curl_error[CURL_ERROR_SIZE];
	char error[NT_KUBE_REASON];
};

/* ---- opening -------------------------------------------------------------------------------- */

static bool is_url(const char *url)
{
	CURLU *parsed = curl_url();
	char *scheme = NULL, *query = NULL;
	bool valid;

	valid = parsed && !curl_url_set(parsed, CURLUPART_URL, url, 0) &&
		!curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) &&
		(!strcmp(scheme, "http") || !strcmp(scheme, "https")) &&
		curl_url_get(parsed, CURLUPART_QUERY, &query, 0) == CURLUE_NO_QUERY;
	curl_free(scheme);
	curl_free(query);
	curl_url_cleanup(parsed);
	return valid;
}

static bool is_url_or_none(const char *url)
{
	return !*url || is_url(url);
}

const struct nt_opt_form nt_kube_url_form = {is_url_or_none, "http[s]://HOST[:PORT]"};

static int set_url(const char *given, char **ret_url)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT_HTTPS");
	nt_autofree char *url = NULL;

	if (!port || !*port)
		port = getenv("KUBERNETES_SERVICE_PORT");
	if (given && !*given)
		return -ENOENT;
	if (given) {
		url = strdup(given);
	} else {
		if (!host || !*host)
			return -ENOENT;
		if (asprintf(&url, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host,
			     port && *port ? port : "443") < 0)
			url = NULL;
	}
	if (!url)
		return -ENOMEM;
	for (size_t len = strlen(url); len && url[len - 1] == '/'; len--)
		url[len - 1] = '\0';
	if (!is_url(url))
		return -EINVAL;
	*ret_url = nt_take(url);
	return 0;
}

/* NULL: none. A service account's file may be missing, as beside a proxy; a named one may not. */
static int set_file(const char *given, const char *account, const char *name, char **ret_file)
{
	nt_autofree char *file = NULL;

	if (given && !*given)
		return 0;
	if (given)
		file = strdup(given);
	else if (asprintf(&file, "%s/%s", account ? account : ACCOUNT, name) < 0)
		file = NULL;
	if (!file)
		return -ENOMEM;
	if (given || access(file, F_OK) == 0)
		*ret_file = nt_take(file);
	return 0;
}

int nt_kube_new(const struct nt_kube_options *options, struct nt_kube **ret_kube)
{
	nt_auto(nt_kube) struct nt_kube *kube = calloc(1, sizeof(*kube));
	int r;

	if (!kube || curl_global_init(CURL_GLOBAL_DEFAULT))
		return -ENOMEM;
	r = set_url(options->api, &kube->url);
	if (r < 0)
		return r;
	kube->is_secret = strncasecmp(kube->url, "https:", 6) == 0;
	kube->token_is_account = !options->token_file;
	r = set_file(options->token_file, options->account, "token", &kube->token_file);
	if (r == 0)
		r = set_file(options->ca_file, options->account, "ca.crt", &kube->ca_file);
	if (r < 0)
		return r;
	kube->multi = curl_multi_init();
	kube->curl = curl_easy_init();
	if (!kube->multi || !kube->curl)
		return -ENOMEM;
	*ret_kube = nt_take(kube);
	return 0;
}

void nt_kube_free(struct nt_kube *kube)
{
	if (!kube)
		return;
	curl_easy_cleanup(kube->curl);
	if (kube->multi)
		(void)curl_multi_cleanup(kube->multi);
	free(kube->url);
	free(kube->token_file);
	free(kube->ca_file);
	free(kube);
}

const char *nt_kube_server(const struct nt_kube *kube)
{
	return kube->url;
}

void nt_kube_stop(struct nt_kube *kube)
{
	atomic_store(&kube->stopped, true);
	(void)curl_multi_wakeup(kube->multi);
}

bool nt_kube_is_stopped(const struct nt_kube *kube)
{
	return atomic_load(&kube->stopped);
}

const char *nt_kube_error(const struct nt_kube *kube)
{
	return kube->error;
}

/* ---- one call ------------------------------------------------------------------------------- */

struct kube_call {
	struct nt_kube *kube;
	const struct nt_kube_request *request;
	struct nt_kube_reply *reply;
	struct curl_slist *headers;
	size_t received;
	int error; /* of the received data, sticky */
};

static void end_call(struct kube_call *call)
{
	/* They hold the token. */
	for (struct curl_slist *header = call->headers; header; header = header->next)
		OPENSSL_cleanse(header->data, strlen(header->data));
	curl_slist_free_all(call->headers);
}

static int fail(struct nt_kube *kube, int r, const char *what)
{
	nt_ascii_copy_text(kube->error, sizeof(kube->error), what);
	return r;
}

static bool is_success(const struct kube_call *call)
{
	long status = 0;

	(void)curl_easy_getinfo(call->kube->curl, CURLINFO_RESPONSE_CODE, &status);
	return status >= 200 && status < 300;
}

static size_t on_data(char *data, size_t size, size_t count, void *context)
{
	struct kube_call *call = context;
	const struct nt_kube_request *request = call->request;
	size_t len = size * count, max = request->max_bytes;

	if (request->data && is_success(call)) {
		if (max && len > max - call->received)
			call->error = -EFBIG;
		else
			call->error = request->data(request->context, data, len);
	} else {
		if (!max || request->data)
			max = NT_KUBE_REPLY_BYTES;
		if (len > max - call->received)
			call->error = -EFBIG;
		else
			call->error = nt_buf_append(&call->reply->body, data, len);
	}
	if (call->error < 0)
		return len ? 0 : 1;
	call->error = 0;
	call->received += len;
	return len;
}

/* The empty line behind the headers: a stream may stay silent for long. */
static size_t on_header(char *data, size_t size, size_t count, void *context)
{
	struct kube_call *call = context;

	if (size * count == 2 && data[0] == '\r' && is_success(call))
		call->request->begun(call->request->context);
	return size * count;
}

static int add_header(struct kube_call *call, const char *line)
{
	struct curl_slist *headers = curl_slist_append(call->headers, line);

	if (!headers)
		return -ENOMEM;
	call->headers = headers;
	return 0;
}

/* A blank or a newline inside would start another header. */
static size_t token_length(const struct nt_buf *token)
{
	size_t len = token->len;

	while (len && isspace(token->data[len - 1]))
		len--;
	for (size_t i = 0; i < len; i++) {
		if (!isgraph(token->data[i]))
			return 0;
	}
	return len;
}

static int add_token(struct kube_call *call)
{
	static const char name[] = "Authorization: Bearer ";
	struct nt_kube *kube = call->kube;
	nt_autobuf struct nt_buf token = {.max = NT_KUBE_TOKEN_BYTES},
				 line = {.max = NT_KUBE_TOKEN_BYTES + sizeof(name)};
	size_t len;
	int r;

	if (!kube->token_file || (kube->token_is_account && !kube->is_secret))
		return 0;
	r = nt_file_read(kube->token_file, NT_KUBE_TOKEN_BYTES / 2, &token);
	if (r < 0)
		return r == -ENOMEM ? r : fail(kube, r, "the token's file cannot be read");
	len = token_length(&token);
	if (!len)
		return fail(kube, -EBADMSG, "the token's file holds no token");
	r = nt_buf_append(&line, name, sizeof(name) - 1);
	if (r == 0)
		r = nt_buf_append(&line, token.data, len);
	if (r == 0)
		r = nt_buf_append(&line, "", 1);
	if (r == 0)
		r = add_header(call, (const char *)line.data);
	OPENSSL_cleanse(token.data, token.len);
	if (line.data)
		OPENSSL_cleanse(line.data, line.len);
	return r;
}

static int add_content_type(struct kube_call *call)
{
	const struct nt_kube_request *request = call->request;
	const char *type = request->content_type;
	char line[128];

	if (!type)
		type = request->method == NT_KUBE_PATCH ? "application/strategic-merge-patch+json"
							: "application/json";
	(void)snprintf(line, sizeof(line), "Content-Type: %s", type);
	return add_header(call, line);
}

static int add_headers(struct kube_call *call)
{
	int r = add_header(call, "Accept: application/json");

	/* Disables "Expect: 100-continue". */
	if (r == 0)
		r = add_header(call, "Expect:");
	if (r == 0 && call->request->body)
		r = add_content_type(call);
	return r < 0 ? r : add_token(call);
}

static int set_request(const struct kube_call *call, const char *url)
{
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
	const struct nt_kube_request *request = call->request;
	CURL *curl = call->kube->curl;
	uint64_t timeout_ns = request->timeout_ns ? request->timeout_ns : TIMEOUT_NS;
	CURLcode failed = 0;

	failed |= curl_easy_setopt(curl, CURLOPT_URL, url);
	if (request->body) {
		failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
					   (curl_off_t)request->body_len);
		failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
	}
	failed |= curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, methods[request->method]);
	failed |= curl_easy_setopt(curl, CURLOPT_HTTPHEADER, call->headers);
	failed |= curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(timeout_ns / NT_MILLISECOND));
	failed |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	failed |= curl_easy_setopt(curl, CURLOPT_WRITEDATA, call);
	if (request->begun) {
		failed |= curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
		failed |= curl_easy_setopt(curl, CURLOPT_HEADERDATA, call);
	}
	return failed ? -ENOMEM : 0;
}

/* The environment's proxy does not apply to a cluster's API server. */
static int set_connection(struct nt_kube *kube)
{
	CURL *curl = kube->curl;
	CURLcode failed = 0;

	kube->curl_error[0] = '\0';
	failed |= curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, kube->curl_error);
	failed |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	failed |= curl_easy_setopt(curl, CURLOPT_PROXY, "");
	failed |= curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	failed |= curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	failed |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	failed |= curl_easy_setopt(curl, CURLOPT_USERAGENT, "neutracer/" NT_VERSION);
	failed |= curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	failed |= curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	failed |= curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)KEEP_IDLE_S);
	failed |= curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, (long)KEEP_INTERVAL_S);
	/* The file may be replaced. */
	failed |= curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	if (kube->ca_file)
		failed |= curl_easy_setopt(curl, CURLOPT_CAINFO, kube->ca_file);
	return failed ? -ENOMEM : 0;
}

static int perform(struct nt_kube *kube, CURLcode *ret_result)
{
	int running = 1, left;
	CURLMcode failed;
	CURLMsg *message;

	if (curl_multi_add_handle(kube->multi, kube->curl))
		return -ENOMEM;
	*ret_result = CURLE_ABORTED_BY_CALLBACK;
	while (running && !nt_kube_is_stopped(kube)) {
		failed = curl_multi_perform(kube->multi, &running);
		if (!failed && running)
			failed = curl_multi_poll(kube->multi, NULL, 0, POLL_MS, NULL);
		if (failed)
			break;
	}
	while ((message = curl_multi_info_read(kube->multi, &left))) {
		if (message->msg == CURLMSG_DONE)
			*ret_result = message->data.result;
	}
	(void)curl_multi_remove_handle(kube->multi, kube->curl);
	return 0;
}

static int errno_of(CURLcode result)
{
	switch (result) {
	case CURLE_OK:
		return 0;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
		return -EHOSTUNREACH;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		return -ECONNRESET;
	default:
		return -EPROTO;
	}
}

/* {"kind":"Status","message":"pods is forbidden: …"}; our own aggregators reply with a "detail". */
static void read_reason(struct nt_kube_reply *reply)
{
	json_t *status = NULL;
	const char *text;

	if (reply->status >= 200 && reply->status < 300)
		return;
	if (reply->body.len)
		status = json_loadb((const char *)reply->body.data, reply->body.len, 0, NULL);
	text = json_string_value(json_object_get(status, "message"));
	if (!text)
		text = json_string_value(json_object_get(status, "detail"));
	if (text)
		nt_ascii_copy_text(reply->reason, sizeof(reply->reason), text);
	json_decref(status);
}

static int conclude(struct kube_call *call, CURLcode result)
{
	struct nt_kube *kube = call->kube;
	curl_off_t retry_after_s = 0;

	(void)curl_easy_getinfo(kube->curl, CURLINFO_RESPONSE_CODE, &call->reply->status);
	(void)curl_easy_getinfo(kube->curl, CURLINFO_RETRY_AFTER, &retry_after_s);
	if (retry_after_s > 0 && retry_after_s < 86400)
		call->reply->retry_after_ns = (uint64_t)retry_after_s * NT_SECOND;
	if (nt_kube_is_stopped(kube))
		return fail(kube, -ECANCELED, "stopped");
	if (call->error < 0)
		return fail(kube, call->error,
			    call->error == -EFBIG ? "the answer is too large"
						  : "the answer could not be used");
	if (result)
		return fail(kube, errno_of(result),
			    kube->curl_error[0] ? kube->curl_error : curl_easy_strerror(result));
	read_reason(call->reply);
	return 0;
}

int nt_kube_call(struct nt_kube *kube, const struct nt_kube_request *request,
		 struct nt_kube_reply *ret_reply)
{
	__attribute__((cleanup(end_call))) struct kube_call call = {
		.kube = kube,
		.request = request,
		.reply = ret_reply,
	};
	nt_autobuf struct nt_buf url = {0};
	CURLcode result = CURLE_OK;
	int r;

	*ret_reply = (struct nt_kube_reply){0};
	kube->error[0] = '\0';
	if (nt_kube_is_stopped(kube))
		return fail(kube, -ECANCELED, "stopped");
	if (nt_buf_printf(&url, "%s%s", kube->url, request->path) < 0)
		return fail(kube, -ENOMEM, "out of memory");
	curl_easy_reset(kube->curl); /* keeps the connection */
	r = add_headers(&call);
	if (r == 0)
		r = set_connection(kube);
	if (r == 0)
		r = set_request(&call, (const char *)url.data);
	if (r == 0)
		r = perform(kube, &result);
	if (r < 0)
		return r == -ENOMEM ? fail(kube, r, "out of memory") : r;
	return conclude(&call, result);
}

void nt_kube_reply_release(struct nt_kube_reply *reply)
{
	nt_buf_release(&reply->body);
}

int nt_kube_escape(struct nt_buf *buf, const char *text)
{
	int r = 0;

	for (; r == 0 && *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (isalnum(c) || strchr("-._~", c))
			r = nt_buf_printf(buf, "%c", c);
		else
			r = nt_buf_printf(buf, "%%%02X", c);
	}
	return r;
}
