/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A server whose routes echo a request, carry an entity tag, or fail. */
#ifndef NT_TESTS_UNIT_COMMON_HTTPD_ECHO_H
#define NT_TESTS_UNIT_COMMON_HTTPD_ECHO_H

#include "common/http/httpd.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/duration.h"
#include "tests/unit/common/http.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES], token_file[SCRATCH_BYTES + 8];
static struct nt_httpd *httpd;

/* Replies with the request: "segment|query|length of the body". */
static inline int echo(void *data, const struct nt_httpd_request *request,
		       struct nt_httpd_reply *reply)
{
	const char *q = nt_httpd_query(request, "q");
	size_t len;

	assert_ptr_equal(data, &httpd);
	(void)nt_httpd_body(request, &len);
	return nt_buf_printf(&reply->body, "%s|%s|%zu", nt_httpd_segment(request, 0), q ? q : "-",
			     len);
}

static inline int tagged(void *data, const struct nt_httpd_request *request,
			 struct nt_httpd_reply *reply)
{
	(void)data;
	(void)request;
	(void)snprintf(reply->etag, sizeof(reply->etag), "v1");
	return nt_buf_printf(&reply->body, "tagged");
}

static inline int broken(void *data, const struct nt_httpd_request *request,
			 struct nt_httpd_reply *reply)
{
	(void)data;
	(void)request;
	assert_int_equal(nt_buf_printf(&reply->body, "half an answer"), 0);
	return -EIO;
}

enum {
	LARGE_BYTES = 24 << 20, /* more than sockets hold */
};

static inline int large(void *data, const struct nt_httpd_request *request,
			struct nt_httpd_reply *reply)
{
	(void)data;
	(void)request;
	assert_int_equal(nt_buf_reserve(&reply->body, LARGE_BYTES), 0);
	memset(reply->body.data, '.', LARGE_BYTES);
	reply->body.len = LARGE_BYTES;
	return 0;
}

static const struct nt_httpd_route routes[] = {
	{"GET", "/open", NT_HTTPD_OPEN, "text/plain; charset=utf-8", "q", echo},
	{"GET", "/vital", NT_HTTPD_OPEN, "text/plain", NULL, echo, true},
	{"GET", "/things/{id}", NT_HTTPD_READ, "text/plain", "q limit", echo},
	{"POST", "/things/{id}", NT_HTTPD_ADMIN, "text/plain", NULL, echo},
	{"GET", "/tagged", NT_HTTPD_OPEN, "text/plain", NULL, tagged},
	{"GET", "/large", NT_HTTPD_OPEN, "text/plain", NULL, large},
	{"GET", "/broken", NT_HTTPD_OPEN, "text/plain", NULL, broken},
};

static inline struct nt_httpd_options options(void)
{
	return (struct nt_httpd_options){
		.listen = "127.0.0.1:0",
		.route = routes,
		.routes = sizeof(routes) / sizeof(routes[0]),
		.data = &httpd,
		.max_body_bytes = 100,
		.header_timeout_ns = 10 * NT_MINUTE,
		.request_timeout_ns = 10 * NT_MINUTE,
	};
}

static inline int start(const struct nt_httpd_options *with)
{
	struct nt_httpd_error error;
	int r = nt_httpd_start(with, &httpd, &error);

	if (r < 0)
		print_message("%s\n", error.text);
	return r;
}

static inline int set_up_files(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	(void)snprintf(token_file, sizeof(token_file), "%s/token", dir);
	return 0;
}

static inline int set_up(void **state)
{
	struct nt_httpd_options with = options();

	return set_up_files(state) || start(&with);
}

static inline int tear_down(void **state)
{
	(void)state;
	nt_httpd_stop(httpd);
	httpd = NULL;
	scratch_remove(dir);
	return 0;
}

static inline struct http_reply get(const char *target, const char *headers)
{
	return http_request(nt_httpd_port(httpd), "GET", target, headers, NULL);
}

/* Checks the status, and the code of a problem. */
static inline void check(struct http_reply reply, int status, const char *code)
{
	http_auto struct http_reply own = reply;

	assert_int_equal(own.status, status);
	assert_true(http_has(&own, "X-Request-Id: "));
	if (!code)
		return;
	assert_true(http_has(&own, "Content-Type: application/problem+json\r\n"));
	assert_non_null(own.body);
	assert_non_null(strstr(own.body, code));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

#define TEST_FILES(fn) cmocka_unit_test_setup_teardown(fn, set_up_files, tear_down)

#endif
