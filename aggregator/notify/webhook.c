/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/webhook.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/notify/http_post.h"
#include "common/base/buf.h"

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

enum {
	HEADER_BYTES = 256,
	HEADERS = 3,
};

static size_t write_headers(const struct nt_webhook_post *post, char header[HEADERS][HEADER_BYTES])
{
	char signature[NT_WEBHOOK_SIGNATURE];
	size_t n = 0;

	(void)snprintf(header[n++], HEADER_BYTES, "webhook-id: %.200s", post->id);
	(void)snprintf(header[n++], HEADER_BYTES, "webhook-timestamp: %" PRIu64, post->time_s);
	if (!post->key->len)
		return n;
	nt_webhook_sign(post->key, post->id, post->time_s, post->body, post->body_len, signature);
	if (!signature[0])
		return 0;
	(void)snprintf(header[n++], HEADER_BYTES, "webhook-signature: %s", signature);
	return n;
}

int nt_webhook_send(const struct nt_webhook_post *post, struct nt_attempt *ret_answer)
{
	nt_autopostreply struct nt_http_post_reply reply = {0};
	char header[HEADERS][HEADER_BYTES];
	const char *line[HEADERS];
	size_t headers = write_headers(post, header);
	int r;

	for (size_t i = 0; i < headers; i++)
		line[i] = header[i];
	r = !headers ? -ENOMEM
		     : nt_http_post_send(
			       &(struct nt_http_post){
				       .url = post->url,
				       .body = post->body,
				       .body_len = post->body_len,
				       .header = line,
				       .headers = headers,
				       .connect_timeout_ns = post->connect_timeout_ns,
				       .total_timeout_ns = post->total_timeout_ns,
				       .abort = post->abort,
			       },
			       &reply);
	if (r == 0)
		nt_http_post_judge(&reply, ret_answer);
	return r;
}
