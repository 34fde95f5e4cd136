/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/kube/kube.h"
#include "common/system/clock.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/scratch.h"

struct seen {
	char head[KUBE_REQUEST], body[KUBE_REQUEST];
	const char *status, *reply;
};

static bool answer(struct kube_server *server, int fd, const struct kube_request *request)
{
	struct seen *seen = server->data;

	memcpy(seen->head, request->head, sizeof(seen->head));
	memcpy(seen->body, request->body, sizeof(seen->body));
	return kube_reply(fd, seen->status, seen->reply);
}

static struct nt_kube *open_kube(const struct kube_server *server, const char *token_file)
{
	const struct nt_kube_options options = {
		.api = (char *)server->url,
		.token_file = (char *)token_file,
		.ca_file = (char *)"",
	};
	struct nt_kube *kube = NULL;

	assert_int_equal(nt_kube_new(&options, &kube), 0);
	return kube;
}

static void write_token(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	(void)fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void a_get_asks_for_json_and_gives_back_status_and_body(void **state)
{
	struct seen seen = {.status = "200 OK", .reply = "{\"items\":[]}"};
	struct kube_server server = {.handle = answer, .data = &seen};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};

	(void)state;
	kube_start(&server, 0);
	kube = open_kube(&server, "");
	assert_int_equal(nt_kube_call(kube,
				      &(struct nt_kube_request){.path = "/api/v1/pods?limit=5"},
				      &reply),
			 0);
	assert_int_equal(reply.status, 200);
	assert_int_equal(reply.body.len, 12);
	assert_memory_equal(reply.body.data, "{\"items\":[]}", 12);
	assert_string_equal(reply.reason, "");
	assert_ptr_equal(strstr(seen.head, "GET /api/v1/pods?limit=5 HTTP/1.1\r\n"), seen.head);
	assert_non_null(strstr(seen.head, "\r\nAccept: application/json"));
	assert_null(strstr(seen.head, "Authorization"));
	assert_null(strstr(seen.head, "Content-Type"));
	kube_end(&server);
}

static void what_is_sent_has_the_type_of_its_method(void **state)
{
	static const struct {
		enum nt_kube_method method;
		const char *given, *line, *type;
	} cases[] = {
		{NT_KUBE_POST, NULL, "POST /x HTTP/1.1\r\n", "\r\nContent-Type: application/json"},
		{NT_KUBE_PUT, NULL, "PUT /x HTTP/1.1\r\n", "\r\nContent-Type: application/json"},
		{NT_KUBE_PATCH, NULL, "PATCH /x HTTP/1.1\r\n",
		 "\r\nContent-Type: application/strategic-merge-patch+json"},
		{NT_KUBE_PATCH, "application/merge-patch+json", "PATCH /x HTTP/1.1\r\n",
		 "\r\nContent-Type: application/merge-patch+json"},
	};
	struct seen seen = {.status = "201 Created", .reply = "{}"};
	struct kube_server server = {.handle = answer, .data = &seen};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;

	(void)state;
	kube_start(&server, 0);
	kube = open_kube(&server, "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		nt_autokubereply struct nt_kube_reply reply = {0};

		assert_int_equal(
			nt_kube_call(kube,
				     &(struct nt_kube_request){.method = cases[i].method,
							       .path = "/x",
							       .body = "{\"a\":1}",
							       .body_len = 7,
							       .content_type = cases[i].given},
				     &reply),
			0);
		assert_int_equal(reply.status, 201);
		assert_ptr_equal(strstr(seen.head, cases[i].line), seen.head);
		assert_non_null(strstr(seen.head, cases[i].type));
		assert_string_equal(seen.body, "{\"a\":1}");
	}
	assert_int_equal(atomic_load(&server.connections), 1); /* it is kept */
	kube_end(&server);
}

static void a_refusal_is_an_answer_with_the_servers_reason(void **state)
{
	struct seen seen = {
		.status = "403 Forbidden",
		.reply = "{\"kind\":\"Status\",\"message\":\"pods is \\u001b forbidden\"}",
	};
	struct kube_server server = {.handle = answer, .data = &seen};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};

	(void)state;
	kube_start(&server, 0);
	kube = open_kube(&server, "");
	assert_int_equal(nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &reply), 0);
	assert_int_equal(reply.status, 403);
	assert_string_equal(reply.reason, "pods is ? forbidden");
	kube_end(&server);
}

static void the_servers_wish_for_patience_is_told(void **state)
{
	struct seen seen = {.status = "429 Too Many Requests\r\nRetry-After: 7", .reply = "no"};
	struct kube_server server = {.handle = answer, .data = &seen};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};

	(void)state;
	kube_start(&server, 0);
	kube = open_kube(&server, "");
	assert_int_equal(nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &reply), 0);
	assert_int_equal(reply.status, 429);
	assert_int_equal(reply.retry_after_ns, 7 * NT_SECOND);
	assert_string_equal(reply.reason, ""); /* no JSON */
	kube_end(&server);
}

/* ---- the token ------------------------------------------------------------------------------ */

static void the_token_is_read_anew_for_each_request(void **state)
{
	struct seen seen = {.status = "200 OK", .reply = "{}"};
	struct kube_server server = {.handle = answer, .data = &seen};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(path, sizeof(path), "%s/token", dir);
	write_token(path, "first.token\n");
	kube_start(&server, 0);
	kube = open_kube(&server, path);
	for (int i = 0; i < 2; i++) {
		nt_autokubereply struct nt_kube_reply reply = {0};

		assert_int_equal(
			nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &reply), 0);
		assert_non_null(strstr(seen.head, i ? "\r\nAuthorization: Bearer second.token"
						    : "\r\nAuthorization: Bearer first.token"));
		write_token(path, "second.token");
	}
	kube_end(&server);
	scratch_remove(dir);
}

static void
the_accounts_token_goes_nowhere_in_clear_text_and_a_named_one_where_it_is_told(void **state)
{
	struct seen seen = {.status = "200 OK", .reply = "{}"};
	struct kube_server server = {.handle = answer, .data = &seen};
	char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(path, sizeof(path), "%s/token", dir);
	write_token(path, "secret");
	kube_start(&server, 0);
	for (int named = 0; named < 2; named++) {
		const struct nt_kube_options options = {
			.api = server.url, .token_file = named ? path : NULL, .account = dir};
		nt_autokubereply struct nt_kube_reply reply = {0};
		nt_auto(nt_kube) struct nt_kube *kube = NULL;

		assert_int_equal(nt_kube_new(&options, &kube), 0);
		assert_int_equal(
			nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &reply), 0);
		assert_int_equal(strstr(seen.head, "Authorization: Bearer secret") != NULL, named);
	}
	kube_end(&server);
	scratch_remove(dir);
}

static void a_token_that_cannot_be_used_sends_no_request(void **state)
{
	struct seen seen = {.status = "200 OK", .reply = "{}"};
	struct kube_server server = {.handle = answer, .data = &seen};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};
	char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(path, sizeof(path), "%s/token", dir);
	kube_start(&server, 0);
	kube = open_kube(&server, path);
	assert_int_equal(nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &reply),
			 -ENOENT);
	assert_string_equal(nt_kube_error(kube), "the token's file cannot be read");
	write_token(path, "a\r\nX-Other: b");
	assert_int_equal(nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &reply),
			 -EBADMSG);
	assert_int_equal(atomic_load(&server.requests), 0);
	kube_end(&server);
	scratch_remove(dir);
}

/* ---- streams and caps ----------------------------------------------------------------------- */

static bool stream(struct kube_server *server, int fd, const struct kube_request *request)
{
	(void)request;
	if (!kube_stream(fd) || !kube_piece(fd, "one\n", 4) || !kube_piece(fd, "two\n", 4))
		return false;
	(void)kube_is_left(server, fd, 20000);
	return false;
}

struct heard {
	char text[64];
	size_t len;
	struct nt_kube *stops; /* once all has come; NULL: nothing does */
	int begun;
	int error;
};

static int hear(void *context, const char *data, size_t len)
{
	struct heard *heard = context;

	assert_int_equal(heard->begun, 1);
	assert_true(heard->len + len < sizeof(heard->text));
	memcpy(heard->text + heard->len, data, len);
	heard->len += len;
	if (heard->len == 8 && heard->stops)
		nt_kube_stop(heard->stops);
	return heard->len == 8 ? heard->error : 0;
}

static void begin(void *context)
{
	((struct heard *)context)->begun++;
}

static void a_stream_is_told_as_it_comes_and_stopped_at_once(void **state)
{
	struct kube_server server = {.handle = stream};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};
	struct heard heard = {0};
	uint64_t start_ns = nt_clock_mono_ns();

	(void)state;
	kube_start(&server, 0);
	kube = heard.stops = open_kube(&server, "");
	assert_int_equal(nt_kube_call(kube,
				      &(struct nt_kube_request){.path = "/x",
								.timeout_ns = NT_MINUTE,
								.data = hear,
								.begun = begin,
								.context = &heard},
				      &reply),
			 -ECANCELED);
	assert_memory_equal(heard.text, "one\ntwo\n", 8);
	assert_true(nt_clock_mono_ns() - start_ns < 15 * NT_SECOND);
	assert_true(nt_kube_is_stopped(kube));
	assert_int_equal(nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &reply),
			 -ECANCELED);
	kube_end(&server);
}

static void who_takes_a_stream_may_end_it(void **state)
{
	struct kube_server server = {.handle = stream};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};
	struct heard heard = {.error = -EBADMSG};

	(void)state;
	kube_start(&server, 0);
	kube = open_kube(&server, "");
	assert_int_equal(
		nt_kube_call(kube,
			     &(struct nt_kube_request){
				     .path = "/x", .data = hear, .begun = begin, .context = &heard},
			     &reply),
		-EBADMSG);
	kube_end(&server);
}

static void a_stream_ends_by_its_timeout(void **state)
{
	struct kube_server server = {.handle = stream};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};
	struct heard heard = {0};

	(void)state;
	kube_start(&server, 0);
	kube = open_kube(&server, "");
	assert_int_equal(nt_kube_call(kube,
				      &(struct nt_kube_request){.path = "/x",
								.timeout_ns = 50 * NT_MILLISECOND,
								.data = hear,
								.begun = begin,
								.context = &heard},
				      &reply),
			 -ETIMEDOUT);
	kube_end(&server);
}

static void a_reply_over_its_cap_is_refused_and_one_at_it_is_not(void **state)
{
	struct seen seen = {.status = "200 OK", .reply = "12345678"};
	struct kube_server server = {.handle = answer, .data = &seen};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;

	(void)state;
	kube_start(&server, 0);
	kube = open_kube(&server, "");
	for (size_t max = 7; max <= 8; max++) {
		nt_autokubereply struct nt_kube_reply reply = {0};

		assert_int_equal(
			nt_kube_call(kube,
				     &(struct nt_kube_request){.path = "/x", .max_bytes = max},
				     &reply),
			max == 7 ? -EFBIG : 0);
	}
	kube_end(&server);
}

static void a_refusal_begins_no_stream(void **state)
{
	struct seen seen = {.status = "410 Gone", .reply = "{}"};
	struct kube_server server = {.handle = answer, .data = &seen};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};
	struct heard heard = {0};

	(void)state;
	kube_start(&server, 0);
	kube = open_kube(&server, "");
	assert_int_equal(
		nt_kube_call(kube,
			     &(struct nt_kube_request){
				     .path = "/x", .data = hear, .begun = begin, .context = &heard},
			     &reply),
		0);
	assert_int_equal(reply.status, 410);
	assert_int_equal(heard.begun, 0);
	kube_end(&server);
}

static bool hang_up(struct kube_server *server, int fd, const struct kube_request *request)
{
	(void)server;
	(void)request;
	(void)kube_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
	return false;
}

static void no_answer_is_told_from_half_a_one(void **state)
{
	struct kube_server server = {.handle = hang_up};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply half = {0}, none = {0};

	(void)state;
	kube_start(&server, 0);
	kube = open_kube(&server, "");
	assert_int_equal(nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &half),
			 -ECONNRESET);
	kube_end(&server);
	assert_int_equal(nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &none),
			 -ECONNREFUSED);
	assert_int_equal(none.status, 0);
	assert_true(nt_kube_error(kube)[0]);
}

static void a_server_that_proves_nothing_gets_no_token(void **state)
{
	struct seen seen = {.status = "200 OK", .reply = "{}"};
	struct kube_server server = {.handle = answer, .data = &seen};
	nt_auto(nt_kube) struct nt_kube *kube = NULL;
	nt_autokubereply struct nt_kube_reply reply = {0};
	char url[64];

	(void)state;
	kube_start(&server, 0);
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%u", server.port);
	assert_int_equal(
		nt_kube_new(&(struct nt_kube_options){.api = url, .token_file = (char *)""}, &kube),
		0);
	assert_int_equal(nt_kube_call(kube, &(struct nt_kube_request){.path = "/x"}, &reply),
			 -EPROTO);
	assert_string_equal(seen.head, "");
	kube_end(&server);
}

/* ---- which server --------------------------------------------------------------------------- */

static void the_server_is_the_named_one_else_the_pods_else_none(void **state)
{
	static const struct {
		const char *host, *port, *given, *url;
		int r;
	} cases[] = {
		{NULL, NULL, NULL, NULL, -ENOENT},
		{"10.96.0.1", "443", NULL, "https://10.96.0.1:443", 0},
		{"10.96.0.1", NULL, NULL, "https://10.96.0.1:443", 0},
		{"fd00::1", "6443", NULL, "https://[fd00::1]:6443", 0},
		{"10.96.0.1", "443", "", NULL, -ENOENT},
		{"10.96.0.1", "443", "http://127.0.0.1:8001/", "http://127.0.0.1:8001", 0},
		{"a b", "443", NULL, NULL, -EINVAL},
		{"10.96.0.1", "x", NULL, NULL, -EINVAL},
	};

	(void)state;
	(void)unsetenv("KUBERNETES_SERVICE_PORT_HTTPS");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		nt_auto(nt_kube) struct nt_kube *kube = NULL;
		const struct nt_kube_options options = {.api = (char *)cases[i].given};

		(void)(cases[i].host ? setenv("KUBERNETES_SERVICE_HOST", cases[i].host, 1)
				     : unsetenv("KUBERNETES_SERVICE_HOST"));
		(void)(cases[i].port ? setenv("KUBERNETES_SERVICE_PORT", cases[i].port, 1)
				     : unsetenv("KUBERNETES_SERVICE_PORT"));
		assert_int_equal(nt_kube_new(&options, &kube), cases[i].r);
		if (cases[i].url)
			assert_string_equal(nt_kube_server(kube), cases[i].url);
	}
	(void)unsetenv("KUBERNETES_SERVICE_HOST");
	(void)unsetenv("KUBERNETES_SERVICE_PORT");
}

static void a_piece_of_a_path_is_escaped(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_int_equal(nt_kube_escape(&buf, "node-1.x/y=z&%"), 0);
	assert_int_equal(nt_kube_escape(&buf, "end"), 0);
	assert_string_equal((const char *)buf.data, "node-1.x%2Fy%3Dz%26%25end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_get_asks_for_json_and_gives_back_status_and_body),
		cmocka_unit_test(what_is_sent_has_the_type_of_its_method),
		cmocka_unit_test(a_refusal_is_an_answer_with_the_servers_reason),
		cmocka_unit_test(the_servers_wish_for_patience_is_told),
		cmocka_unit_test(the_token_is_read_anew_for_each_request),
		cmocka_unit_test(a_token_that_cannot_be_used_sends_no_request),
		cmocka_unit_test(
			the_accounts_token_goes_nowhere_in_clear_text_and_a_named_one_where_it_is_told),
		cmocka_unit_test(a_stream_is_told_as_it_comes_and_stopped_at_once),
		cmocka_unit_test(who_takes_a_stream_may_end_it),
		cmocka_unit_test(a_stream_ends_by_its_timeout),
		cmocka_unit_test(a_refusal_begins_no_stream),
		cmocka_unit_test(a_reply_over_its_cap_is_refused_and_one_at_it_is_not),
		cmocka_unit_test(no_answer_is_told_from_half_a_one),
		cmocka_unit_test(a_server_that_proves_nothing_gets_no_token),
		cmocka_unit_test(the_server_is_the_named_one_else_the_pods_else_none),
		cmocka_unit_test(a_piece_of_a_path_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
