/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Common parts of the REST interface's lists: parameters, pages, replies. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	TAG_BYTES = 16, /* of a digest */
};

static const char classes[] =
	"compute network host storage missing hang mismatch node unknown imbalance job-wide "
	"unobserved";
static const char severities[] = "info warning critical";

static bool is_one_of(const char *words, const char *word)
{
	size_t len = strlen(word);

	while (*words) {
		size_t n = strcspn(words, " ");

		if (n == len && !memcmp(words, word, len))
			return true;
		words += n;
		words += *words == ' ';
	}
	return false;
}

/* Returns 1 and a problem if the parameter is not one of the words. */
static int read_word(const struct nt_httpd_request *request, const char *name, const char *words,
		     struct nt_httpd_reply *reply, const char **ret_word)
{
	const char *word = nt_httpd_query(request, name);
	int r;

	if (!word || is_one_of(words, word)) {
		*ret_word = word;
		return 0;
	}
	r = nt_httpd_problem(reply, request, 400, "bad_parameter", "'%s' is one of: %s", name,
			     words);
	return r < 0 ? r : 1;
}

static size_t characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

int nt_api_query_text(const struct nt_httpd_request *request, const char *name,
		      struct nt_httpd_reply *reply, const char **ret_text)
{
	const char *text = nt_httpd_query(request, name);
	int r;

	if (!text || (*text && characters(text) <= NT_API_MAX_FILTER)) {
		*ret_text = text;
		return 0;
	}
	r = nt_httpd_problem(reply, request, 400, "bad_parameter", "'%s' has 1 to %d characters",
			     name, NT_API_MAX_FILTER);
	return r < 0 ? r : 1;
}

/* A valid time outside the range of our clock, or of the store's numbers, is at its near end. */
static int read_time(const struct nt_httpd_request *request, const char *name,
		     struct nt_httpd_reply *reply, uint64_t *ret_real_ns)
{
	const char *time = nt_httpd_query(request, name);
	int r = time ? nt_clock_parse(time, strlen(time), ret_real_ns) : 0;

	if (r == -ERANGE) {
		/* Of 1970 only what an offset moves before it. */
		*ret_real_ns = strncmp(time, "1970", 4) <= 0 ? 0 : INT64_MAX;
		return 0;
	}
	if (r == 0 && *ret_real_ns > INT64_MAX)
		*ret_real_ns = INT64_MAX;
	if (r < 0) {
		r = nt_httpd_problem(reply, request, 400, "bad_parameter",
				     "'%s' is a time of RFC 3339: 2026-11-21T03:00:00Z", name);
		return r < 0 ? r : 1;
	}
	return 0;
}

static int read_numbers(const struct nt_httpd_request *request, struct nt_httpd_reply *reply,
			struct nt_api_query *query)
{
	const char *limit = nt_httpd_query(request, "limit");
	uint64_t value = NT_API_DEFAULT_LIMIT;
	int r;

	if (limit && nt_parse_u64(limit, strlen(limit), 1, NT_API_MAX_LIMIT, &value) < 0) {
		r = nt_httpd_problem(reply, request, 400, "bad_parameter",
				     "'limit' is a number from 1 to %d", NT_API_MAX_LIMIT);
		return r < 0 ? r : 1;
	}
	query->limit = value;
	query->has_at = nt_httpd_query(request, "at");
	r = read_time(request, "since", reply, &query->since_ns);
	return r ? r : read_time(request, "at", reply, &query->at_ns);
}

int nt_api_query_read(const struct nt_httpd_request *request, const char *states,
		      struct nt_httpd_reply *reply, struct nt_api_query *ret_query)
{
	struct nt_api_query query = {.cursor = nt_httpd_query(request, "cursor")};
	int r;

	r = read_numbers(request, reply, &query);
	if (r == 0)
		r = nt_api_query_text(request, "job", reply, &query.job);
	if (r == 0)
		r = nt_api_query_text(request, "node", reply, &query.node);
	if (r == 0)
		r = read_word(request, "class", classes, reply, &query.class);
	if (r == 0)
		r = read_word(request, "severity", severities, reply, &query.severity);
	if (r == 0)
		r = read_word(request, "state", states, reply, &query.state);
	if (r == 0)
		*ret_query = query;
	return r;
}

int nt_api_bad_cursor(const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	return nt_httpd_problem(reply, request, 400, "bad_cursor",
				"'cursor' must be the value of 'next' of the previous page");
}

int nt_api_reply_object(struct nt_httpd_reply *reply, json_t *object)
{
	nt_autojson json_t *own = object;

	return own ? nt_json_dump(own, false, &reply->body) : -ENOMEM;
}

/* Names in the body come from pods: it must not be possible to make two bodies of one tag. */
int nt_api_tag(struct nt_httpd_reply *reply)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int len = 0;

	if (!EVP_Digest(reply->body.data, reply->body.len, sum, &len, EVP_sha256(), NULL))
		return -ENOMEM;
	for (unsigned int i = 0; i < TAG_BYTES; i++)
		(void)snprintf(reply->etag + 2 * (size_t)i, 3, "%02x", sum[i]);
	return 0;
}

int nt_api_reply_list(struct nt_httpd_reply *reply, json_t *items, const char *next)
{
	nt_autojson json_t *own = items;
	nt_autojson json_t *list = json_object();
	int r;

	if (json_object_set(list, "items", own) ||
	    json_object_set_new(list, "next", nt_json_text(next)))
		return -ENOMEM;
	r = nt_json_dump(list, false, &reply->body);
	return r < 0 ? r : nt_api_tag(reply);
}
