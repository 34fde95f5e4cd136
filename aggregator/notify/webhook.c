/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/webhook.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/version.h"
#include "common/system/clock.h"

/* ---- signing --------------------------------------------------------------------------------- */

int nt_webhook_key_read(const char *secret, struct nt_webhook_key *ret_key)
{
	static const char prefix[] = "whsec_";
	struct nt_webhook_key key = {.len = 0};
	size_t len = secret ? strlen(secret) : 0;

	if (len > NT_WEBHOOK_MAX_SECRET)
		return -EINVAL;
	if (len > sizeof(prefix) - 1 && !memcmp(secret, prefix, sizeof(prefix) - 1)) {
		const char *text = secret + sizeof(prefix) - 1;
		int n;

		len -= sizeof(prefix) - 1;
		n = len % 4 ? -1
			    : EVP_DecodeBlock(key.bytes, (const unsigned char *)text, (int)len);
		if (n <= 0)
			return -EINVAL;
		/* The padding decodes to zero bytes, which do not belong to the key. */
		key.len = (size_t)n - (text[len - 1] == '=') - (text[len - 2] == '=');
	} else if (len) {
		memcpy(key.bytes, secret, len);
		key.len = len;
	}
	*ret_key = key;
	return 0;
}

void nt_webhook_sign(const struct nt_webhook_key *key, const char *id, uint64_t time_s,
		     const char *body, size_t body_len, char text[NT_WEBHOOK_SIGNATURE])
{
	nt_autobuf struct nt_buf signed_text = {0};
	unsigned char sum[SHA256_DIGEST_LENGTH];
	unsigned int sum_len = sizeof(sum);

	text[0] = '\0';
	if (nt_buf_printf(&signed_text, "%s.%" PRIu64 ".", id, time_s) < 0 ||
	    nt_buf_append(&signed_text, body, body_len) < 0 ||
	    !HMAC(EVP_sha256(), key->bytes, (int)key->len, signed_text.data, signed_text.len, sum,
		  &sum_len))
		return;
	memcpy(text, "v1,", 3);
	(void)EVP_EncodeBlock((unsigned char *)text + 3, sum, (int)sum_len);
}

/* ---- sending --------------------------------------------------------------------------------- */

bool nt_webhook_url_is_valid(const char *url)
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

struct transfer {
	CURL *curl;
	struct curl_slist *headers;
	size_t received;
	const atomic_bool *abort;
};

static void end_transfer(struct transfer *transfer)
{
	curl_easy_cleanup(transfer->curl);
	curl_slist_free_all(transfer->headers);
}

static size_t on_data(char *data, size_t size, size_t count, void *context)
{
	struct transfer *transfer = context;

	(void)data;
	transfer->received += size * count;
	return transfer->received > NT_WEBHOOK_MAX_REPLY ? 0 : size * count;
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

static int add_header(struct transfer *transfer, const char *name, const char *value)
{
	char line[512];
	struct curl_slist *headers;

	(void)snprintf(line, sizeof(line), "%s: %s", name, value);
	headers = curl_slist_append(transfer->headers, line);
	if (!headers)
		return -ENOMEM;
	transfer->headers = headers;
	return 0;
}

static int add_headers(struct transfer *transfer, const struct nt_webhook_post *post)
{
	char text[NT_WEBHOOK_SIGNATURE];
	int r;

	r = add_header(transfer, "Content-Type", "application/json");
	if (r == 0)
		r = add_header(transfer, "webhook-id", post->id);
	(void)snprintf(text, sizeof(text), "%" PRIu64, post->time_s);
	if (r == 0)
		r = add_header(transfer, "webhook-timestamp", text);
	if (r < 0 || !post->key->len)
		return r;
	nt_webhook_sign(post->key, post->id, post->time_s, post->body, post->body_len, text);
	return text[0] ? add_header(transfer, "webhook-signature", text) : -ENOMEM;
}

static int set_options(struct transfer *transfer, const struct nt_webhook_post *post)
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
	failed |= curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	failed |= curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
	failed |= curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	return failed ? -ENOMEM : 0;
}

static enum nt_attempt_outcome outcome_of(CURLcode result, long status)
{
	/* A 2xx status counts as success, even if reading the body failed. */
	if (status >= 200 && status < 300)
		return NT_ATTEMPT_TAKEN;
	if (result == CURLE_ABORTED_BY_CALLBACK)
		return NT_ATTEMPT_ABORTED;
	if (status < 200 || status == 408 || status == 429 || status >= 500)
		return NT_ATTEMPT_LATER;
	return NT_ATTEMPT_REFUSED;
}

int nt_webhook_send(const struct nt_webhook_post *post, struct nt_attempt *ret_answer)
{
	__attribute__((cleanup(end_transfer))) struct transfer transfer = {.abort = post->abort};
	curl_off_t retry_after_s = 0;
	CURLcode result;
	long status = 0;
	int r;

	transfer.curl = curl_easy_init();
	if (!transfer.curl)
		return -ENOMEM;
	r = add_headers(&transfer, post);
	if (r == 0)
		r = set_options(&transfer, post);
	if (r < 0)
		return r;
	result = curl_easy_perform(transfer.curl);
	(void)curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(transfer.curl, CURLINFO_RETRY_AFTER, &retry_after_s);
	*ret_answer = (struct nt_attempt){
		.outcome = outcome_of(result, status),
		.status = status,
		.retry_after_ns = retry_after_s > 0 && retry_after_s < 86400
					  ? (uint64_t)retry_after_s * NT_SECOND
					  : 0,
		.reason = status >= 200 ? "the receiver's answer" : curl_easy_strerror(result),
	};
	return 0;
}
