/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /api/v1/session: exchanges a token for a cookie. An EventSource of a page sends no token. */
#include <errno.h>

#include "aggregator/api/api_impl.h"
#include "proto/json.h"

static int reply_session(struct nt_httpd_reply *reply, const struct nt_httpd_session *session)
{
	json_t *expires =
		session->expires_real_ns ? nt_json_time(session->expires_real_ns) : json_null();

	return nt_api_reply_object(reply,
				   json_pack("{s:s, s:s, s:o}", "scope",
					     session->scope == NT_TOKEN_ADMIN ? "admin" : "read",
					     "csrf", session->csrf, "expires", expires));
}

static int reply_no_session(const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	return nt_httpd_problem(reply, request, 404, "no_session",
				"the request has no session cookie");
}

int nt_api_begin_session(void *data, const struct nt_httpd_request *request,
			 struct nt_httpd_reply *reply)
{
	struct nt_httpd_session session;
	int r = nt_httpd_session_begin(request, reply, &session);

	(void)data;
	if (r == -EACCES)
		return nt_httpd_problem(reply, request, 403, "cookie_not_accepted",
					"a session is begun with a token, not with a cookie");
	return r < 0 ? r : reply_session(reply, &session);
}

int nt_api_session(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	struct nt_httpd_session session;

	(void)data;
	if (nt_httpd_session_get(request, &session) < 0)
		return reply_no_session(request, reply);
	return reply_session(reply, &session);
}

int nt_api_end_session(void *data, const struct nt_httpd_request *request,
		       struct nt_httpd_reply *reply)
{
	(void)data;
	if (nt_httpd_session_end(request, reply) < 0)
		return reply_no_session(request, reply);
	reply->status = 204;
	reply->content_type = NULL;
	return 0;
}
