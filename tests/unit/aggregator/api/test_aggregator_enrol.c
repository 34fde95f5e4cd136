/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys for nodes: what an API server says of a token, and what comes of it. */
#include "aggregator/api/enrol.h"

#include <errno.h>
#include <time.h>

#include "common/system/clock.h"
#include "tests/unit/aggregator/api.h"
#include "tests/unit/kube_server.h"

#define SECRET "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
#define STATUS(audience, user, extra)                                                              \
	"{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"audiences\":[\"" audience  \
	"\"],\"user\":{\"username\":\"" user "\",\"extra\":{" extra "}}}}"
#define ON_NODE(node)                                                                              \
	"\"authentication.kubernetes.io/pod-name\":[\"agent-x\"],"                                 \
	"\"authentication.kubernetes.io/node-name\":[" node "]"
#define AGENT "system:serviceaccount:neutracer:neutracer-agent"

/* An API server that knows some tokens. */
struct reviewer {
	const char *status; /* of every reply; NULL: 201 */
	atomic_uint reviews;
	atomic_bool holds; /* answers none until it is released */
};

static const struct {
	const char *token, *answer, *reason; /* reason NULL: granted to gpu-07 */
} tokens[] = {
	{"good", STATUS("neutracer", AGENT, ON_NODE("\"gpu-07\"")), NULL},
	{"invalid", "{\"status\":{\"error\":\"[invalid bearer token]\"}}", "the token is invalid"},
	{"other-audience", STATUS("vault", AGENT, ON_NODE("\"gpu-07\"")),
	 "the token is for another audience"},
	{"other-account",
	 STATUS("neutracer", "system:serviceaccount:neutracer:default", ON_NODE("\"gpu-07\"")),
	 "the token belongs to another service account"},
	{"other-namespace",
	 STATUS("neutracer", "system:serviceaccount:team:neutracer-agent", ON_NODE("\"gpu-07\"")),
	 "the token belongs to another service account"},
	{"old-cluster", STATUS("neutracer", AGENT, "\"x\":[\"y\"]"),
	 "the token names no node: it must be bound to a pod, in Kubernetes 1.30 or "
	 "later"},
	{"two-nodes", STATUS("neutracer", AGENT, ON_NODE("\"gpu-07\",\"gpu-08\"")),
	 "the token names no node: it must be bound to a pod, in Kubernetes 1.30 or "
	 "later"},
	{"not-text", STATUS("neutracer", AGENT, ON_NODE("7")),
	 "the token names no node: it must be bound to a pod, in Kubernetes 1.30 or "
	 "later"},
	{"elsewhere", STATUS("neutracer", AGENT, ON_NODE("\"gpu-08\"")),
	 "the token belongs to node 'gpu-08'"},
};

static bool review(struct kube_server *server, int fd, const struct kube_request *request)
{
	struct reviewer *reviewer = server->data;
	nt_autojson json_t *asked = json_loads(request->body, 0, NULL);
	const json_t *spec = json_object_get(asked, "spec");
	const char *token = nt_json_get_text(spec, "token", "");

	atomic_fetch_add(&reviewer->reviews, 1);
	while (atomic_load(&reviewer->holds) && !kube_is_left(server, fd, 1))
		;
	if (reviewer->status)
		return kube_reply(fd, reviewer->status, "{\"message\":\"no reviews for you\"}");
	if (strncmp(request->head, "POST /apis/authentication.k8s.io/v1/tokenreviews HTTP", 53) ||
	    strcmp(nt_json_get_text(asked, "kind", ""), "TokenReview") ||
	    strcmp(json_string_value(json_array_get(json_object_get(spec, "audiences"), 0)),
		   "neutracer"))
		return kube_reply(fd, "400 Bad Request", "{}");
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
		if (!strcmp(tokens[i].token, token))
			return kube_reply(fd, "201 Created", tokens[i].answer);
	return kube_reply(fd, "201 Created", tokens[1].answer);
}

static struct nt_node_secrets *make_secrets(void)
{
	struct nt_node_secrets *secrets = NULL;
	struct nt_node_key_error error;

	assert_int_equal(nt_node_secrets_parse(SECRET, strlen(SECRET), &secrets, &error), 0);
	return secrets;
}

static struct nt_enrol *start_enrol(const struct kube_server *server,
				    const struct nt_node_secrets *secrets)
{
	const struct nt_kube_options kube = {
		.api = (char *)server->url, .token_file = (char *)"", .ca_file = (char *)""};
	struct nt_enrol *enrol = NULL;

	assert_int_equal(nt_enrol_start(&(struct nt_enrol_options){.kube = &kube,
								   .secrets = secrets,
								   .account = "neutracer/"
									      "neutracer-agent",
								   .audience = "neutracer",
								   .pause_ns = 1},
					&enrol),
			 0);
	return enrol;
}

/* Asks until there is an answer; half a minute is for a machine in distress. */
static enum nt_enrol_answer ask(struct nt_enrol *enrol, const char *token, const char *node,
				struct nt_node_key *key, char reason[NT_ENROL_REASON])
{
	const uint64_t start_ns = nt_clock_mono_ns();
	enum nt_enrol_answer answer;

	while ((answer = nt_enrol_request(enrol, token, strlen(token), node, key, reason)) ==
	       NT_ENROL_WAITS) {
		assert_true(nt_clock_mono_ns() - start_ns < 30 * NT_SECOND);
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return answer;
}

static void an_agent_gets_the_key_of_the_node_that_the_api_server_states(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = make_secrets();
	struct reviewer reviewer = {0};
	struct kube_server server = {.handle = review, .data = &reviewer};
	nt_auto(nt_enrol) struct nt_enrol *enrol = NULL;
	struct nt_node_key key, wanted;
	struct nt_enrol_stats stats;

	(void)state;
	assert_int_equal(nt_node_secrets_derive(secrets, "gpu-07", &wanted), 0);
	kube_start(&server, 0);
	enrol = start_enrol(&server, secrets);
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		char reason[NT_ENROL_REASON] = "";
		enum nt_enrol_answer answer = ask(enrol, tokens[i].token, "gpu-07", &key, reason);

		assert_int_equal(answer, tokens[i].reason ? NT_ENROL_DENIED : NT_ENROL_GRANTED);
		if (tokens[i].reason)
			assert_string_equal(reason, tokens[i].reason);
		else
			assert_memory_equal(&key, &wanted, sizeof(key));
	}
	nt_enrol_stats(enrol, &stats);
	assert_int_equal(stats.granted, 2);
	assert_int_equal(stats.denied, 7);
	/* A second question within a minute costs the API server nothing. */
	assert_int_equal(
		nt_enrol_request(enrol, "good", 4, "gpu-07", &key, (char[NT_ENROL_REASON]){0}),
		NT_ENROL_GRANTED);
	assert_int_equal(atomic_load(&reviewer.reviews), 9);
	kube_end(&server);
}

static void an_api_server_that_reviews_nothing_gives_no_key(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = make_secrets();
	struct reviewer reviewer = {.status = "403 Forbidden"};
	struct kube_server server = {.handle = review, .data = &reviewer};
	nt_auto(nt_enrol) struct nt_enrol *enrol = NULL;
	char reason[NT_ENROL_REASON];
	struct nt_node_key key;

	(void)state;
	kube_start(&server, 0);
	enrol = start_enrol(&server, secrets);
	assert_int_equal(ask(enrol, "good", "gpu-07", &key, reason), NT_ENROL_AWAY);
	assert_string_equal(reason, "no reviews for you");
	kube_end(&server);
	assert_int_equal(ask(enrol, "another", "gpu-07", &key, reason), NT_ENROL_AWAY);
}

static void more_tokens_than_there_is_room_for_are_put_off(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = make_secrets();
	struct reviewer reviewer = {.holds = true};
	struct kube_server server = {.handle = review, .data = &reviewer};
	nt_auto(nt_enrol) struct nt_enrol *enrol = NULL;
	char reason[NT_ENROL_REASON], token[32];
	struct nt_enrol_stats stats;
	struct nt_node_key key;

	(void)state;
	kube_start(&server, 0);
	enrol = start_enrol(&server, secrets);
	for (int i = 0; i < NT_ENROL_TOKENS; i++) {
		(void)snprintf(token, sizeof(token), "token-%d", i);
		assert_int_equal(nt_enrol_request(enrol, token, strlen(token), "n", &key, reason),
				 NT_ENROL_WAITS);
	}
	assert_int_equal(nt_enrol_request(enrol, "good", 4, "gpu-07", &key, reason), NT_ENROL_BUSY);
	nt_enrol_stats(enrol, &stats);
	assert_int_equal(stats.over_cap, 1);
	/* Refused tokens make room. */
	atomic_store(&reviewer.holds, false);
	assert_int_equal(ask(enrol, "token-255", "n", &key, reason), NT_ENROL_DENIED);
	assert_int_equal(ask(enrol, "good", "gpu-07", &key, reason), NT_ENROL_GRANTED);
	kube_end(&server);
}

static void no_token_is_not_asked_for(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = make_secrets();
	static char large[NT_ENROL_TOKEN_BYTES + 1];
	struct reviewer reviewer = {0};
	struct kube_server server = {.handle = review, .data = &reviewer};
	nt_auto(nt_enrol) struct nt_enrol *enrol = NULL;
	char reason[NT_ENROL_REASON];
	struct nt_node_key key;

	(void)state;
	memset(large, 'x', sizeof(large));
	kube_start(&server, 0);
	enrol = start_enrol(&server, secrets);
	assert_int_equal(nt_enrol_request(enrol, "", 0, "n", &key, reason), NT_ENROL_DENIED);
	assert_int_equal(nt_enrol_request(enrol, large, sizeof(large), "n", &key, reason),
			 NT_ENROL_DENIED);
	assert_int_equal(nt_enrol_request(enrol, "a\0b", 3, "n", &key, reason), NT_ENROL_DENIED);
	assert_int_equal(ask(enrol, "\xff\xfe", "n", &key, reason), NT_ENROL_DENIED);
	assert_int_equal(atomic_load(&reviewer.reviews), 0);
	kube_end(&server);
}

static void an_account_is_a_namespace_and_a_name(void **state)
{
	(void)state;
	assert_true(nt_enrol_account_is_sound("neutracer/neutracer-agent"));
	assert_false(nt_enrol_account_is_sound("neutracer-agent"));
	assert_false(nt_enrol_account_is_sound("/agent"));
	assert_false(nt_enrol_account_is_sound("neutracer/"));
	assert_false(nt_enrol_account_is_sound("a/b/c"));
	assert_false(nt_enrol_account_is_sound("a:b/c"));
}

/* ---- over HTTP ------------------------------------------------------------------------------ */

static json_t *post(const char *headers, const char *body, int *ret_status)
{
	http_auto struct http_reply reply =
		http_request(nt_api_port(api), "POST", "/api/v1/node-keys", headers, body);
	json_t *json = NULL;

	*ret_status = reply.status;
	assert_int_equal(nt_json_load(reply.body, strlen(reply.body), &json), 0);
	return json;
}

#define JSON "Content-Type: application/json\r\n"

static void a_key_is_asked_for_by_a_bearer_and_a_name(void **state)
{
	static const struct {
		const char *headers, *body;
		int status;
	} cases[] = {
		{JSON, "{\"node\":\"gpu-07\"}", 401},
		{JSON "Authorization: Basic Zm9v\r\n", "{\"node\":\"gpu-07\"}", 401},
		{JSON "Authorization: Bearer good\r\n", "{\"node\":\"\"}", 400},
		{JSON "Authorization: Bearer good\r\n", "{\"node\":7}", 400},
		{JSON "Authorization: Bearer good\r\n", "[]", 400},
		{JSON "Authorization: Bearer good\r\n", "no", 400},
		{JSON "Authorization: Bearer elsewhere\r\n", "{\"node\":\"gpu-07\"}", 403},
		{JSON "Authorization: Bearer good\r\n", "{\"node\":\"gpu-07\"}", 200},
	};
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = make_secrets();
	struct reviewer reviewer = {0};
	struct kube_server server = {.handle = review, .data = &reviewer};
	nt_auto(nt_enrol) struct nt_enrol *enrol = NULL;

	(void)state;
	kube_start(&server, 0);
	enrol = start_enrol(&server, secrets);
	assert_int_equal(start((struct nt_api_options){.enrol = enrol}), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t start_ns = nt_clock_mono_ns();
		nt_autojson json_t *json = NULL;
		int status;

		for (;;) {
			json = post(cases[i].headers, cases[i].body, &status);
			if (status != 202)
				break;
			assert_true(json_is_null(json_object_get(json, "key")));
			json_decref(nt_take(json));
			assert_true(nt_clock_mono_ns() - start_ns < 30 * NT_SECOND);
		}
		assert_int_equal(status, cases[i].status);
		if (status == 200) {
			struct nt_node_key_error error;
			struct nt_node_key key;

			assert_int_equal(nt_node_key_parse(text(json, "key"),
							   strlen(text(json, "key")), "gpu-07",
							   &key, &error),
					 0);
		}
	}
	nt_api_stop(nt_take(api));
	kube_end(&server);
}

static void an_aggregator_without_an_account_offers_no_keys(void **state)
{
	nt_autojson json_t *json = NULL;
	int status;

	(void)state;
	assert_int_equal(start((struct nt_api_options){0}), 0);
	json = post(JSON "Authorization: Bearer good\r\n", "{\"node\":\"gpu-07\"}", &status);
	assert_int_equal(status, 404);
	assert_string_equal(text(json, "code"), "not_offered");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_gets_the_key_of_the_node_that_the_api_server_states),
		cmocka_unit_test(an_api_server_that_reviews_nothing_gives_no_key),
		cmocka_unit_test(more_tokens_than_there_is_room_for_are_put_off),
		cmocka_unit_test(no_token_is_not_asked_for),
		cmocka_unit_test(an_account_is_a_namespace_and_a_name),
		TEST_BOARD(a_key_is_asked_for_by_a_bearer_and_a_name),
		TEST_BOARD(an_aggregator_without_an_account_offers_no_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
