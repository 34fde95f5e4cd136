/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A request as the HTTP server has it from its library: lines with method, target and headers. It finds
 * its route, or is refused in a problem document. The library's calls stand in below.
 */
#include <assert.h>
#include <string.h>

#include "common/http/httpd_impl.h"
#include "proto/json.h"
#include "tests/fuzz/lib/cost.h"

enum {
	MAX_HEADERS = 16,
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

static void check_problem(const struct nt_httpd_request *request)
{
	nt_autojson json_t *problem = NULL;

	assert(request->refusal.status >= 400 && request->refusal.status < 500);
	assert(nt_json_load(request->refusal.body.data, request->refusal.body.len, &problem) == 0);
}

static int run(const uint8_t *data, size_t size)
{
	static struct nt_httpd httpd;
	nt_autofree char *text = strndup((const char *)data, size);
	struct nt_httpd_request request = {.id = "fuzz"};
	char *at = text, *line, *target;
	int r;

	assert(text);
	httpd = (struct nt_httpd){
		.route = routes,
		.routes = sizeof(routes) / sizeof(routes[0]),
		.max_body_bytes = 64 << 10,
	};
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
		header[headers++].value = colon + 1;
	}
	r = nt_httpd_check(&httpd, &request);
	assert(r == 0);
	assert(request.refusal.status || request.route);
	if (request.refusal.status)
		check_problem(&request);
	for (size_t i = 0; i <= NT_HTTPD_MAX_SEGMENTS; i++)
		assert(nt_httpd_segment(&request, i));
	assert(memchr(request.allow, '\0', sizeof(request.allow)));
	nt_buf_release(&request.refusal.body);
	return 0;
}

FUZZ_TARGET(run, .peak = {64 << 10, 16}, .steps = {20000, 60})
