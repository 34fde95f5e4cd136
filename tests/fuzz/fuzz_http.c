/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A request as the HTTP server has it from its library: lines with method, target and headers. It finds
 * its route, or is refused in a problem document. The library's calls stand in below. In values of
 * headers, `\a` stands for the id of a session of scope admin, `\b` for its CSRF token, `\v` for the id
 * of a session of scope read: an input cannot guess them.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/http/cookie.h"
#include "common/http/httpd_impl.h"
#include "common/system/clock.h"
#include "proto/json.h"
#include "tests/fuzz/lib/cost.h"

enum {
	MAX_HEADERS = 16,
	MAX_STAND_INS = 3, /* in a header */
};

/* Of the request under way; name and value end with a NUL. */
static struct {
	char *name, *value;
} header[MAX_HEADERS];
static size_t headers;

const char *__wrap_MHD_lookup_connection_value(struct MHD_Connection *connection,
					       enum MHD_ValueKind kind, const char *key);
int __wrap_MHD_get_connection_values_n(struct MHD_Connection *connection, enum MHD_ValueKind kind,
				       MHD_KeyValueIteratorN take, void *data);
const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(struct MHD_Connection *connection,
							       enum MHD_ConnectionInfoType type);

const char *__wrap_MHD_lookup_connection_value(struct MHD_Connection *connection,
					       enum MHD_ValueKind kind, const char *key)
{
	(void)connection;
	(void)kind;
	for (size_t i = 0; i < headers; i++)
		if (!strcasecmp(header[i].name, key))
			return header[i].value;
	return NULL;
}

int __wrap_MHD_get_connection_values_n(struct MHD_Connection *connection, enum MHD_ValueKind kind,
				       MHD_KeyValueIteratorN take, void *data)
{
	(void)connection;
	for (size_t i = 0; i < headers; i++)
		(void)take(data, kind, header[i].name, strlen(header[i].name), header[i].value,
			   strlen(header[i].value));
	return (int)headers;
}

const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(struct MHD_Connection *connection,
							       enum MHD_ConnectionInfoType type)
{
	(void)connection;
	(void)type;
	return NULL;
}

static int handle(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	(void)data;
	(void)request;
	(void)reply;
	return 0;
}

static const struct nt_httpd_route routes[] = {
	{"GET", "/", NT_HTTPD_OPEN, "text/html; charset=utf-8", NULL, handle},
	{"GET", "/a/{id}/b/{id}/{id}/{id}/{id}", NT_HTTPD_OPEN, "application/json", "", handle},
	{"GET", "/jobs/{id}/ranks", NT_HTTPD_READ, "application/json", "limit after", handle},
	{"POST", "/jobs/{id}/ranks", NT_HTTPD_ADMIN, "application/json", "limit", handle},
	{"DELETE", "/jobs", NT_HTTPD_ADMIN, "application/json", NULL, handle},
};

/* The next line, ended in place; NULL: there is none. */
static char *next_line(char **at)
{
	char *line = *at, *end;

	if (!line)
		return NULL;
	end = strchr(line, '\n');
	*at = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	return line;
}

static struct nt_httpd httpd;
static char admin_id[NT_SESSION_TEXT_BYTES], admin_csrf[NT_SESSION_TEXT_BYTES],
	read_id[NT_SESSION_TEXT_BYTES];

static void begin_session(const char *token, char id[NT_SESSION_TEXT_BYTES])
{
	struct nt_token_holder holder;
	struct nt_session session;

	assert(nt_tokens_find(httpd.tokens, token, strlen(token), 0, &holder));
	assert(nt_sessions_begin(&httpd.sessions, holder.sum, nt_clock_mono_ns(), id, &session) ==
	       0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The tokens "administrator-01" and "reader-012345678", and their sessions: no cost of an input. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char tokens[] = "administrator-01 admin\nreader-012345678 read\n";
	/* Stays open: the path leads to whatever has this number. Long unchanged: read once. */
	const int fd = memfd_create("tokens", MFD_CLOEXEC);
	const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct nt_token_error error;
	char path[64];

	(void)argc;
	(void)argv;
	assert(fd >= 0 && write(fd, tokens, sizeof(tokens) - 1) == sizeof(tokens) - 1);
	assert(futimens(fd, old) == 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	nt_limiter_init(&httpd.limiter, UINT32_MAX);
	nt_sessions_init(&httpd.sessions);
	assert(nt_tokens_open(path, &httpd.tokens, &error) == 0);
	begin_session("administrator-01", admin_id);
	nt_session_csrf(admin_id, admin_csrf);
	begin_session("reader-012345678", read_id);
	httpd.route = routes;
	httpd.routes = sizeof(routes) / sizeof(routes[0]);
	httpd.max_body_bytes = 64 << 10;
	return 0;
}

static char *expand(const char *text)
{
	nt_autobuf struct nt_buf buf = {0};
	int left = MAX_STAND_INS;
	char *copy;

	for (; *text; text++) {
		const char *with = *text == '\a'   ? admin_id
				   : *text == '\b' ? admin_csrf
				   : *text == '\v' ? read_id
						   : NULL;

		if (left == 0 || !with)
			with = NULL;
		else
			left--;
		assert(nt_buf_append(&buf, with ? with : text, with ? strlen(with) : 1) == 0);
	}
	assert(nt_buf_append(&buf, "", 1) == 0);
	copy = strdup((const char *)buf.data);
	assert(copy);
	return copy;
}

/* Nobody passes who may not. */
static void check_access(const struct nt_httpd_request *request)
{
	bool is_read = !strcmp(request->method, "GET") || !strcmp(request->method, "HEAD");
	const char *csrf = nt_httpd_header(request, "X-CSRF-Token");
	const struct nt_httpd_identity *identity = nt_httpd_identity(request);
	const char *authorization = nt_httpd_header(request, "Authorization");

	if (request->route->access == NT_HTTPD_OPEN)
		return;
	assert(identity->scope != NT_TOKEN_NONE);
	assert(request->route->access != NT_HTTPD_ADMIN || identity->scope == NT_TOKEN_ADMIN);
	assert(request->is_write == !is_read);
	if (!identity->by_cookie)
		return;
	assert(!authorization || strncasecmp(authorization, "Bearer ", 7) != 0);
	assert(is_read || (csrf && nt_session_csrf_matches(request->session, csrf)));
	assert(identity->scope == NT_TOKEN_READ || !strncmp(request->session, admin_id, 64));
}

static void check_cookie(void)
{
	const char *text = __wrap_MHD_lookup_connection_value(NULL, MHD_HEADER_KIND, "Cookie");
	const char *value;
	size_t len;

	if (!text || nt_cookie_find(text, strlen(text), "neutracer_session", &value, &len) < 0)
		return;
	assert(value >= text && value + len <= text + strlen(text));
	assert(!memchr(value, ';', len));
}

static void check_problem(const struct nt_httpd_request *request)
{
	nt_autojson json_t *problem = NULL;

	assert(request->refusal.status >= 400 && request->refusal.status < 500);
	assert(nt_json_load(request->refusal.body.data, request->refusal.body.len, &problem) == 0);
}

static int run(const uint8_t *data, size_t size)
{
	nt_autofree char *text = strndup((const char *)data, size);
	struct nt_httpd_request request = {.id = "fuzz", .httpd = &httpd};
	char *at = text, *line, *target;
	int r;

	assert(text);
	request.method = next_line(&at);
	target = next_line(&at);
	if (!target)
		return 0;
	request.target_error = nt_target_parse(target, strlen(target), &request.target);
	headers = 0;
	while (headers < MAX_HEADERS && (line = next_line(&at))) {
		char *colon = strchr(line, ':');

		if (!colon)
			continue;
		*colon = '\0';
		header[headers].name = line;
		header[headers++].value = expand(colon + 1);
	}
	r = nt_httpd_check(&httpd, &request);
	assert(r == 0);
	assert(request.refusal.status || request.route);
	if (request.refusal.status)
		check_problem(&request);
	else
		check_access(&request);
	check_cookie();
	for (size_t i = 0; i <= NT_HTTPD_MAX_SEGMENTS; i++)
		assert(nt_httpd_segment(&request, i));
	assert(memchr(request.allow, '\0', sizeof(request.allow)));
	nt_buf_release(&request.refusal.body);
	while (headers)
		free(header[--headers].value);
	return 0;
}

FUZZ_TARGET(run, .peak = {64 << 10, 16}, .steps = {20000, 60})
