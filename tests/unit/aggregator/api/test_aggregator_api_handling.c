/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Acknowledgements, silences and notes over REST. */
#include <errno.h>

#include "aggregator/store/store_impl.h"
#include "tests/unit/aggregator/api.h"

static struct http_reply send_to(const char *method, const char *target, const char *body)
{
	return http_request(nt_api_port(api), method, target, "Content-Type: application/json\r\n",
			    body);
}

static json_t *send_status(const char *method, const char *target, const char *body, int status)
{
	http_auto struct http_reply reply = send_to(method, target, body);
	json_t *document = NULL;

	if (reply.status != status)
		print_message("%s %s %s: %s\n", method, target, body ? body : "", reply.body);
	assert_int_equal(reply.status, status);
	assert_int_equal(nt_json_load(reply.body, strlen(reply.body), &document), 0);
	return document;
}

static void check_status(const char *method, const char *target, const char *body, int status)
{
	nt_autojson json_t *document = send_status(method, target, body, status);

	assert_non_null(document);
}

static const json_t *handling(const json_t *incident, const char *name)
{
	return json_object_get(json_object_get(incident, "handling"), name);
}

static void an_acknowledgement_is_shown_and_taken_back(void **state)
{
	nt_autojson json_t *after = NULL, *list = NULL, *back = NULL;
	const json_t *acknowledged;

	(void)state;
	put("a1", "firing");
	after = send_status("POST", "/api/v1/incidents/a1/acknowledge", "{\"by\":\"anna\"}", 200);
	acknowledged = handling(after, "acknowledged");
	assert_string_equal(nt_json_get_text(acknowledged, "by", ""), "anna");
	assert_non_null(nt_json_get_text(acknowledged, "at", NULL));
	list = get_status("/api/v1/incidents", 200);
	acknowledged = handling(json_array_get(json_object_get(list, "items"), 0), "acknowledged");
	assert_string_equal(nt_json_get_text(acknowledged, "by", ""), "anna");
	back = send_status("DELETE", "/api/v1/incidents/a1/acknowledge", NULL, 200);
	assert_true(json_is_null(handling(back, "acknowledged")));
}

static void a_note_is_shown_with_the_incident(void **state)
{
	nt_autojson json_t *after = NULL;
	const json_t *notes;

	(void)state;
	put("a1", "firing");
	check_status("POST", "/api/v1/incidents/a1/annotate", "{\"text\":\"one\"}", 200);
	after = send_status("POST", "/api/v1/incidents/a1/annotate",
			    "{\"text\":\"two \u00e9\",\"by\":\"bo\"}", 200);
	notes = json_object_get(after, "notes");
	assert_int_equal(json_array_size(notes), 2);
	assert_string_equal(nt_json_get_text(json_array_get(notes, 0), "text", ""), "one");
	assert_true(json_is_null(json_object_get(json_array_get(notes, 0), "by")));
	assert_string_equal(nt_json_get_text(json_array_get(notes, 1), "text", ""), "two \u00e9");
}

static void notes_end_at_the_cap(void **state)
{
	(void)state;
	put("a1", "firing");
	for (int i = 0; i < NT_STORE_MAX_NOTES; i++)
		check_status("POST", "/api/v1/incidents/a1/annotate", "{\"text\":\"x\"}", 200);
	check_status("POST", "/api/v1/incidents/a1/annotate", "{\"text\":\"x\"}", 409);
}

static void a_silence_has_an_end(void **state)
{
	nt_autojson json_t *after = NULL, *back = NULL;

	(void)state;
	put("a1", "firing");
	after = send_status("POST", "/api/v1/incidents/a1/silence", "{\"for_seconds\":3600}", 200);
	assert_non_null(nt_json_get_text(handling(after, "silenced"), "until", NULL));
	back = send_status("DELETE", "/api/v1/incidents/a1/silence", NULL, 200);
	assert_true(json_is_null(handling(back, "silenced")));
}

/* Whether the incident is unchanged since the first call. */
static bool is_unchanged(void)
{
	static char condition[128];
	http_auto struct http_reply reply =
		http_request(nt_api_port(api), "GET", "/api/v1/incidents/a1", condition, NULL);
	const char *tag = strstr(reply.head, "\r\nETag: ");

	assert_non_null(tag);
	if (!*condition)
		(void)snprintf(condition, sizeof(condition), "If-None-Match: %.*s\r\n",
			       (int)strcspn(tag + 8, "\r"), tag + 8);
	return reply.status == 304;
}

static void the_tag_changes_with_what_people_do(void **state)
{
	(void)state;
	put("a1", "firing");
	assert_false(is_unchanged());
	assert_true(is_unchanged());
	check_status("POST", "/api/v1/incidents/a1/acknowledge", "", 200);
	assert_false(is_unchanged());
}

static int get_tagged(const char *condition, char *ret_tag, size_t size)
{
	http_auto struct http_reply reply =
		http_request(nt_api_port(api), "GET", "/api/v1/incidents/a1", condition, NULL);
	const char *tag = strstr(reply.head, "\r\nETag: ");

	assert_non_null(tag);
	(void)snprintf(ret_tag, size, "If-None-Match: %.*s\r\n", (int)strcspn(tag + 8, "\r"),
		       tag + 8);
	return reply.status;
}

/* It has the same revision, and is joined. */
static void the_tag_changes_with_what_was_done_elsewhere_at_once(void **state)
{
	struct nt_wire_incident theirs = {
		.id = "a1",
		.handling = {.revision = 1,
			     .acknowledged_by = "",
			     .silenced_real_ns = nt_clock_real_ns(),
			     .silenced_by = "zoe",
			     .silenced_until_real_ns = nt_clock_real_ns() + NT_HOUR},
	};
	char tag[128], other[128];
	bool is_behind;

	(void)state;
	put("a1", "firing");
	check_status("POST", "/api/v1/incidents/a1/acknowledge", "", 200);
	assert_int_equal(get_tagged("", tag, sizeof(tag)), 200);
	assert_int_equal(get_tagged(tag, other, sizeof(other)), 304);
	assert_int_equal(nt_store_take_handling(store, &theirs, &is_behind), 0);
	assert_int_equal(get_tagged(tag, other, sizeof(other)), 200);
}

static void bodies_that_are_wrong_are_refused(void **state)
{
	static const struct {
		const char *target, *body;
		int status;
	} wrong[] = {
		{"acknowledge", "{\"by\":7}", 400},
		{"acknowledge", "{\"by\":\"\"}", 400},
		{"acknowledge", "{\"by\":\"a\\nb\"}", 400},
		{"acknowledge", "{\"by\":\"a\\u0000b\"}", 400},
		{"acknowledge", "{\"text\":\"x\"}", 400},
		{"acknowledge", "{\"by\":null}", 400},
		{"acknowledge", "[]", 400},
		{"annotate", "{}", 400},
		{"annotate", "", 400},
		{"annotate", "{\"text\":\"\"}", 400},
		{"annotate", "{\"text\":\"\\u001b[31m\"}", 400},
		{"silence", "{}", 400},
		{"silence", "{\"for_seconds\":0}", 400},
		{"silence", "{\"for_seconds\":2592001}", 400},
		{"silence", "{\"for_seconds\":1.5}", 400},
		{"silence", "{\"for_seconds\":1,\"until\":\"2099-01-01T00:00:00Z\"}", 400},
		{"silence", "{\"until\":\"tomorrow\"}", 400},
		{"silence", "{\"until\":\"2020-01-01T00:00:00Z\"}", 409},
		{"silence", "{\"until\":\"9999-01-01T00:00:00Z\"}", 409},
	};

	(void)state;
	put("a1", "firing");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char target[64];

		(void)snprintf(target, sizeof(target), "/api/v1/incidents/a1/%s", wrong[i].target);
		check_status("POST", target, wrong[i].body, wrong[i].status);
	}
}

static void a_text_over_its_cap_is_refused(void **state)
{
	char body[700];

	(void)state;
	put("a1", "firing");
	(void)snprintf(body, sizeof(body), "{\"text\":\"%0501d\"}", 0);
	check_status("POST", "/api/v1/incidents/a1/annotate", body, 400);
	(void)snprintf(body, sizeof(body), "{\"text\":\"%0500d\"}", 0);
	check_status("POST", "/api/v1/incidents/a1/annotate", body, 200);
}

static void an_unknown_incident_is_404(void **state)
{
	(void)state;
	check_status("POST", "/api/v1/incidents/nobody/acknowledge", "", 404);
	check_status("DELETE", "/api/v1/incidents/nobody/silence", NULL, 404);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_acknowledgement_is_shown_and_taken_back),
		TEST(a_note_is_shown_with_the_incident),
		TEST(notes_end_at_the_cap),
		TEST(a_silence_has_an_end),
		TEST(the_tag_changes_with_what_people_do),
		TEST(the_tag_changes_with_what_was_done_elsewhere_at_once),
		TEST(bodies_that_are_wrong_are_refused),
		TEST(a_text_over_its_cap_is_refused),
		TEST(an_unknown_incident_is_404),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
