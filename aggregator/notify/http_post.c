/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/http_post.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>

#include "common/base/parse_number.h"
#include "common/base/version.h"
#include "common/system/clock.h"
#include "proto/text.h"

enum {
	MAX_GRPC_STATUS = 16,
	MAX_WAIT_S = 86400, /* of a Retry-After; longer ones are ignored */
};

/* Seconds until the quota of an Atlassian or Feishu service is renewed. */
static const char quota_header[] = "x-ogw-ratelimit-reset:";

struct transfer {
	CURL *curl;
	struct curl_slist *headers;
	struct nt_http_post_reply *reply;
	uint64_t quota_s;
	const atomic_bool *abort;
	int error;
};

static void end_transfer(struct transfer *transfer)
{
	curl_easy_cleanup(transfer->curl);
	curl_slist_free_all(transfer->headers);
}

bool nt_http_url_is_valid(const char *url)
{
	CURLU *parsed = curl_url();
	char *scheme = NULL;
	bool valid;

	valid = parsed && !curl_url_set(parsed, CURLUPART_URL, url, 0) &&
		!curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) &&
		(!strcmp(scheme, "http") || !strcmp(scheme, "https"));
	curl_free(scheme);
	curl_url_cleanup(parsed);
	return valid;
}

void nt_http_post_reply_release(struct nt_http_post_reply *reply)
{
	nt_buf_release(&reply->body);
}

/* Ends the transfer at the cap: what a receiver has to say is short. */
static size_t on_data(char *data, size_t size, size_t count, void *context)
{
	struct transfer *transfer = context;
	struct nt_buf *body = &transfer->reply->body;
	size_t room = NT_HTTP_POST_MAX_REPLY - body->len, len = size * count;

	transfer->error = nt_buf_append(body, data, len < room ? len : room);
	return transfer->error < 0 || len > room ? 0 : len;
}

/* A header or a trailer: "grpc-status: 0". */
static void read_grpc_status(struct transfer *transfer, const char *data, size_t len)
{
	static const char name[] = "grpc-status:";
	size_t begin = sizeof(name) - 1, end = len;
	uint64_t status;

	if (len < begin || strncasecmp(data, name, begin) != 0)
		return;
	while (begin < end && data[begin] == ' ')
		begin++;
	while (end > begin && (data[end - 1] == '\r' || data[end - 1] == '\n'))
		end--;
	if (nt_parse_u64(data + begin, end - begin, 0, MAX_GRPC_STATUS, &status) == 0)
		transfer->reply->grpc_status = (long)status;
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
	struct transfer *transfer = context;
	const size_t name = sizeof(quota_header) - 1;
	size_t len = size * count, begin = name, end = len;

	read_grpc_status(transfer, data, len);
	if (len <= name || strncasecmp(data, quota_header, name) != 0)
		return len;
	while (begin < end && data[begin] == ' ')
		begin++;
	while (end > begin && (data[end - 1] == '\r' || data[end - 1] == '\n'))
		end--;
	(void)!nt_parse_u64(data + begin, end - begin, 0, MAX_WAIT_S, &transfer->quota_s);
	return len;
}

static int on_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total,
		       curl_off_t up_now)
{
	const struct transfer *transfer = context;

	(void)total;
	(void)now;
	(void)up_total;
	(void)up_now;
	return transfer->abort && atomic_load(transfer->abort);
}

static int add_header(struct transfer *transfer, const char *line)
{
	struct curl_slist *headers = curl_slist_append(transfer->headers, line);

	if (!headers)
		return -ENOMEM;
	transfer->headers = headers;
	return 0;
}

static int set_options(struct transfer *transfer, const struct nt_http_post *post)
{
	CURL *curl = transfer->curl;
	CURLcode failed = 0;

	failed |= curl_easy_setopt(curl, CURLOPT_URL, post->url);
	failed |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	failed |= curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	failed |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->body_len);
	failed |= curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post->body);
	failed |= curl_easy_setopt(curl, CURLOPT_HTTPHEADER, transfer->headers);
	failed |= curl_easy_setopt(curl, CURLOPT_USERAGENT, "neutracer/" NT_VERSION);
	failed |= curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
				   (long)(post->connect_timeout_ns / NT_MILLISECOND));
	failed |= curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
				   (long)(post->total_timeout_ns / NT_MILLISECOND));
	failed |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	failed |= curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
	failed |= curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	failed |= curl_easy_setopt(curl, CURLOPT_HEADERDATA, transfer);
	failed |= curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	failed |= curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
	failed |= curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	return failed ? -ENOMEM : 0;
}

static int set_grpc(struct transfer *transfer, const struct nt_http_post *post)
{
	CURL *curl = transfer->curl;
	CURLcode failed = 0;

	if (!post->grpc_socket)
		return 0;
	failed |= curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, post->grpc_socket);
	failed |= curl_easy_setopt(curl, CURLOPT_PROXY, "");
	failed |= curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
				   (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	return failed ? -ENOMEM : 0;
}

static int add_headers(struct transfer *transfer, const struct nt_http_post *post)
{
	int r = add_header(transfer, post->grpc_socket ? "Content-Type: application/grpc"
						       : "Content-Type: application/json");

	if (r == 0 && post->grpc_socket)
		r = add_header(transfer, "TE: trailers");
	for (size_t i = 0; r == 0 && i < post->headers; i++)
		r = add_header(transfer, post->header[i]);
	return r;
}

static void read_result(struct transfer *transfer, CURLcode result)
{
	struct nt_http_post_reply *reply = transfer->reply;
	curl_off_t retry_after_s = 0;

	(void)curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &reply->status);
	(void)curl_easy_getinfo(transfer->curl, CURLINFO_RETRY_AFTER, &retry_after_s);
	if (retry_after_s <= 0 || retry_after_s >= MAX_WAIT_S)
		retry_after_s = reply->status == 429 ? (curl_off_t)transfer->quota_s : 0;
	reply->retry_after_ns = (uint64_t)retry_after_s * NT_SECOND;
	reply->aborted = result == CURLE_ABORTED_BY_CALLBACK;
	reply->reason = curl_easy_strerror(result);
}

int nt_http_post_send(const struct nt_http_post *post, struct nt_http_post_reply *ret_reply)
{
	__attribute__((cleanup(end_transfer))) struct transfer transfer = {
		.abort = post->abort,
		.reply = ret_reply,
	};
	CURLcode result;
	int r;

	transfer.curl = curl_easy_init();
	if (!transfer.curl)
		return -ENOMEM;
	ret_reply->grpc_status = -1;
	r = add_headers(&transfer, post);
	if (r == 0)
		r = set_options(&transfer, post);
	if (r == 0)
		r = set_grpc(&transfer, post);
	if (r < 0)
		return r;
	result = curl_easy_perform(transfer.curl);
	if (transfer.error < 0)
		return transfer.error;
	read_result(&transfer, result);
	r = nt_buf_append(&ret_reply->body, "", 1);
	if (r == 0)
		ret_reply->body.len--;
	return r;
}

static enum nt_attempt_outcome outcome_of(const struct nt_http_post_reply *reply)
{
	/* A 2xx status counts as success, even if reading the body failed. */
	if (reply->status >= 200 && reply->status < 300)
		return NT_ATTEMPT_TAKEN;
	if (reply->aborted)
		return NT_ATTEMPT_ABORTED;
	if (reply->status < 200 || reply->status == 408 || reply->status == 429 ||
	    reply->status >= 500)
		return NT_ATTEMPT_LATER;
	return NT_ATTEMPT_REFUSED;
}

void nt_http_post_judge(const struct nt_http_post_reply *reply, struct nt_attempt *ret_attempt)
{
	*ret_attempt = (struct nt_attempt){
		.outcome = outcome_of(reply),
		.status = reply->status,
		.retry_after_ns = reply->retry_after_ns,
		.reason = reply->status >= 200 ? "the receiver's answer" : reply->reason,
	};
	if (reply->body.data)
		(void)nt_text_clean((const char *)reply->body.data, reply->body.len,
				    ret_attempt->answer, sizeof(ret_attempt->answer) - 1);
}
