/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Who sends a request, and what that permits. A token in the request itself takes precedence over a
 * cookie; a header Authorization of another scheme is that of a proxy. A browser adds the cookie by itself, so a write needs the CSRF token of its session, too.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/http/cookie.h"
#include "common/http/httpd_impl.h"
#include "common/system/clock.h"

#define COOKIE "neutracer_session"

static bool is_read(const char *method)
{
	return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

static void set_identity(struct nt_httpd_request *request, const struct nt_token_holder *holder)
{
	request->identity.scope = holder->scope;
	memcpy(request->identity.name, holder->name, sizeof(holder->name));
	memcpy(request->token_sum, holder->sum, sizeof(holder->sum));
}

static bool is_bearer(const char *header)
{
	return header && !strncasecmp(header, "Bearer", 6) && (!header[6] || header[6] == ' ');
}

static void find_token(struct nt_httpd *httpd, struct nt_httpd_request *request, const char *header)
{
	struct nt_token_holder holder;
	const char *bearer;

	if (header[6] != ' ')
		return;
	bearer = header + 7 + strspn(header + 7, " ");
	if (nt_tokens_find(httpd->tokens, bearer, strlen(bearer), nt_clock_mono_ns(), &holder))
		set_identity(request, &holder);
}

/* The session of the request's cookie, if both it and its token are valid. */
static bool find_session(struct nt_httpd *httpd, struct nt_httpd_request *request,
			 struct nt_token_holder *ret_holder)
{
	const char *cookies = nt_httpd_header(request, "Cookie"), *id;
	uint64_t now_ns = nt_clock_mono_ns();
	struct nt_session session;
	size_t len;

	if (!cookies || nt_cookie_find(cookies, strlen(cookies), COOKIE, &id, &len) < 0 ||
	    !nt_sessions_find(&httpd->sessions, id, len, now_ns, &session))
		return false;
	if (!nt_tokens_find_sum(httpd->tokens, session.token_sum, now_ns, ret_holder)) {
		nt_sessions_end(&httpd->sessions, id, len); /* its token was revoked */
		return false;
	}
	request->session = id;
	request->session_expires_ns = session.expires_ns;
	return true;
}

/* Whether failures of this address are over their limit; then the refusal is filled. */
static bool is_over_limit(struct nt_httpd *httpd, struct nt_httpd_request *request, int *ret_r)
{
	const union MHD_ConnectionInfo *peer =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	uint32_t wait_s = 1;

	if (nt_limiter_allow(&httpd->limiter, peer ? peer->client_addr : NULL, nt_clock_mono_ns(),
			     &wait_s))
		return false;
	atomic_fetch_add(&httpd->auth_limited, 1);
	request->is_write = false; /* else the limit would not protect the log */
	request->refusal.retry_after_s = wait_s;
	*ret_r = nt_httpd_problem(
		&request->refusal, request, 429, "too_many_failures",
		"too many requests without a valid token or certificate from this address");
	return true;
}

static int refuse_unknown(struct nt_httpd *httpd, struct nt_httpd_request *request, bool tried)
{
	int r;

	if (is_over_limit(httpd, request, &r))
		return r;
	atomic_fetch_add(&httpd->auth_failures, 1);
	return nt_httpd_problem(&request->refusal, request, 401,
				tried ? "invalid_token" : "no_token",
				"%s; send \"Authorization: Bearer TOKEN\" with a token from the "
				"aggregator's token file",
				tried ? "the token is invalid" : "this request requires a token");
}

static int refuse_certificate(struct nt_httpd *httpd, struct nt_httpd_request *request,
			      const char *why)
{
	int r;

	if (is_over_limit(httpd, request, &r))
		return r;
	atomic_fetch_add(&httpd->certs_refused, 1);
	return nt_httpd_problem(&request->refusal, request, 403, "client_certificate", "%s", why);
}

/* A proxy may end TLS. A client that states so wrongly harms itself alone. */
static bool is_secure(const struct nt_httpd *httpd, const struct nt_httpd_request *request)
{
	const char *scheme = nt_httpd_header(request, "X-Forwarded-Proto");

	return httpd->key.len || (scheme && !strcmp(scheme, "https"));
}

/* Whether the header Origin, if there is one, names this server. */
static bool is_own_origin(const struct nt_httpd *httpd, const struct nt_httpd_request *request)
{
	const char *origin = nt_httpd_header(request, "Origin");
	const char *host = nt_httpd_header(request, "Host");

	if (!origin)
		return true;
	if (!strncmp(origin, "https://", 8))
		origin += 8;
	else if (!is_secure(httpd, request) && !strncmp(origin, "http://", 7))
		origin += 7;
	else
		return false;
	return host && !strcasecmp(origin, host);
}

/* Browsers send it. "none": the user entered the address. */
static bool is_own_site(const struct nt_httpd_request *request)
{
	const char *site = nt_httpd_header(request, "Sec-Fetch-Site");

	return !site || !strcmp(site, "same-origin") ||
	       (!strcmp(site, "none") && is_read(request->method));
}

static int check_cookie_use(struct nt_httpd *httpd, struct nt_httpd_request *request)
{
	const char *csrf = nt_httpd_header(request, "X-CSRF-Token");

	if (!is_own_site(request) || !is_own_origin(httpd, request))
		return nt_httpd_problem(&request->refusal, request,
					is_read(request->method) ? 401 : 403, "cross_site",
					"a session cookie is not accepted in a request of another "
					"site");
	if (is_read(request->method) || (csrf && nt_session_csrf_matches(request->session, csrf)))
		return 0;
	return nt_httpd_problem(&request->refusal, request, 403, "csrf",
				"with a session cookie this request requires the header "
				"X-CSRF-Token; GET /api/v1/session has its value");
}

static bool is_open(const struct nt_httpd_request *request)
{
	const struct nt_httpd_route *route = request->route;

	return route->access == NT_HTTPD_OPEN &&
	       !(route->guarded && nt_httpd_query(request, route->guarded));
}

int nt_httpd_authorize(struct nt_httpd *httpd, struct nt_httpd_request *request)
{
	const char *header = nt_httpd_header(request, "Authorization");
	struct nt_token_holder holder;
	const char *wrong;
	int r;

	request->is_write = request->route->access != NT_HTTPD_OPEN && !is_read(request->method);
	if (is_open(request))
		return 0;
	wrong = nt_httpd_check_certificate(httpd, request);
	if (wrong)
		return refuse_certificate(httpd, request, wrong);
	if (!httpd->tokens)
		return 0;
	if (is_bearer(header)) {
		find_token(httpd, request, header);
	} else if (find_session(httpd, request, &holder)) {
		request->identity.by_cookie = true;
		set_identity(request, &holder);
	}
	if (request->identity.scope == NT_TOKEN_NONE)
		return refuse_unknown(httpd, request, header || nt_httpd_header(request, "Cookie"));
	if (request->identity.by_cookie) {
		r = check_cookie_use(httpd, request);
		if (r < 0 || request->refusal.status)
			return r;
	}
	if (request->identity.scope == NT_TOKEN_READ && request->route->access == NT_HTTPD_ADMIN)
		return nt_httpd_problem(
			&request->refusal, request, 403, "scope_read",
			"this request requires a token of scope admin; the token has scope read");
	return 0;
}

const struct nt_httpd_identity *nt_httpd_identity(const struct nt_httpd_request *request)
{
	return &request->identity;
}

struct nt_credential nt_httpd_credential(const struct nt_httpd_request *request)
{
	struct nt_credential credential = {
		.by_token = request->identity.scope != NT_TOKEN_NONE,
		.by_session = request->session != NULL,
	};

	memcpy(credential.token_sum, request->token_sum, sizeof(credential.token_sum));
	if (request->session)
		nt_session_sum(request->session, credential.session_sum);
	return credential;
}

bool nt_httpd_still_authorizes(void *data, const struct nt_credential *credential)
{
	struct nt_httpd *httpd = data;
	uint64_t now_ns = nt_clock_mono_ns();
	struct nt_token_holder holder;
	struct nt_session session;

	return !credential->by_token ||
	       (nt_tokens_find_sum(httpd->tokens, credential->token_sum, now_ns, &holder) &&
		(!credential->by_session ||
		 nt_sessions_find_sum(&httpd->sessions, credential->session_sum, now_ns,
				      &session)));
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void describe(const char *id, enum nt_token_scope scope, uint64_t expires_ns,
		     struct nt_httpd_session *ret_session)
{
	uint64_t mono_ns = nt_clock_mono_ns(), real_ns = nt_clock_real_ns();

	ret_session->scope = scope;
	ret_session->expires_real_ns = real_ns + (expires_ns > mono_ns ? expires_ns - mono_ns : 0);
	nt_session_csrf(id, ret_session->csrf);
}

/* Without tokens everything is permitted to everybody, and no session is needed. */
static void describe_open(struct nt_httpd_session *ret_session)
{
	*ret_session = (struct nt_httpd_session){.scope = NT_TOKEN_ADMIN};
}

static void set_cookie(const struct nt_httpd_request *request, struct nt_httpd_reply *reply,
		       const char *id, const char *more)
{
	(void)snprintf(reply->cookie, sizeof(reply->cookie),
		       COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict%s%s", id,
		       is_secure(request->httpd, request) ? "; Secure" : "", more);
}

int nt_httpd_session_begin(const struct nt_httpd_request *request, struct nt_httpd_reply *reply,
			   struct nt_httpd_session *ret_session)
{
	struct nt_httpd *httpd = request->httpd;
	char id[NT_SESSION_TEXT_BYTES];
	struct nt_session session;
	const char *cookies = nt_httpd_header(request, "Cookie"), *old;
	size_t len;
	int r;

	if (!httpd->tokens) {
		describe_open(ret_session);
		return 0;
	}
	if (request->identity.scope == NT_TOKEN_NONE || request->identity.by_cookie)
		return -EACCES;
	r = nt_sessions_begin(&httpd->sessions, request->token_sum, nt_clock_mono_ns(), id,
			      &session);
	if (r < 0)
		return r;
	if (cookies && nt_cookie_find(cookies, strlen(cookies), COOKIE, &old, &len) == 0)
		nt_sessions_end(&httpd->sessions, old, len);
	set_cookie(request, reply, id, "");
	describe(id, request->identity.scope, session.expires_ns, ret_session);
	return 0;
}

int nt_httpd_session_get(const struct nt_httpd_request *request,
			 struct nt_httpd_session *ret_session)
{
	if (!request->httpd->tokens) {
		describe_open(ret_session);
		return 0;
	}
	if (!request->session)
		return -ENOENT;
	describe(request->session, request->identity.scope, request->session_expires_ns,
		 ret_session);
	return 0;
}

int nt_httpd_session_end(const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	if (!request->session)
		return -ENOENT;
	nt_sessions_end(&request->httpd->sessions, request->session, NT_SESSION_TEXT_BYTES - 1);
	set_cookie(request, reply, "", "; Max-Age=0");
	return 0;
}
