/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /api/v1/receivers and their metrics, with a receiver that does not answer. */
#include <time.h>

#include "tests/unit/aggregator/api.h"

static struct nt_notify *notify;

/* Nothing listens on the discard port. */
static int set_up_receiver(void **state)
{
	static const struct nt_notify_receiver receivers[] = {
		{.name = "pager",
		 .kind = NT_RECEIVER_PAGERDUTY,
		 .url = "http://127.0.0.1:9/s3cret",
		 .secret = "key"},
		{.name = "webhook", .url = "http://127.0.0.1:9/"},
	};

	if (set_up_board(state))
		return -1;
	nt_board_post(board, nt_test_snapshot());
	if (nt_notify_start(&(struct nt_notify_options){.store = store,
							.receiver = receivers,
							.receivers = 2},
			    &notify))
		return -1;
	return start((struct nt_api_options){.notify = notify});
}

static int tear_down_receiver(void **state)
{
	int r;

	/* It uses the notifier. */
	nt_api_stop(api);
	api = NULL;
	nt_notify_stop(notify);
	notify = NULL;
	r = tear_down(state);
	return r;
}

static int post_test(const char *name)
{
	char target[96];
	http_auto struct http_reply reply = {0};
	int status;

	(void)snprintf(target, sizeof(target), "/api/v1/receivers/%s/test", name);
	reply = http_request(nt_api_port(api), "POST", target, "Content-Type: application/json\r\n",
			     "{}");
	status = reply.status;
	return status;
}

static void receivers_are_listed_with_their_results(void **state)
{
	nt_autojson json_t *list = get("/api/v1/receivers");
	const json_t *one = json_array_get(json_object_get(list, "items"), 0);

	(void)state;
	assert_string_equal(names(list, "name"), "pager webhook ");
	assert_string_equal(names(list, "kind"), "pagerduty webhook ");
	assert_int_equal(json_object_size(json_object_get(one, "messages")), NT_NOTIFY_RESULTS);
	assert_true(json_is_null(json_object_get(one, "test")));
}

static void a_test_is_done_by_and_by(void **state)
{
	const struct timespec pause = {.tv_nsec = 2000000};

	(void)state;
	assert_int_equal(post_test("nobody"), 404);
	assert_int_equal(post_test("pager"), 202);
	for (int i = 0; i < 10000; i++) {
		nt_autojson json_t *list = get("/api/v1/receivers");
		const json_t *one = json_array_get(json_object_get(list, "items"), 0);
		const json_t *test = json_object_get(one, "test");

		assert_int_equal(nt_json_get_number(test, "number", 0), 1);
		if (!strcmp(text(test, "state"), "done")) {
			assert_string_equal(text(test, "outcome"), "failed");
			assert_true(json_is_null(json_object_get(test, "status")));
			assert_non_null(strstr(text(test, "reason"), "onnect"));
			assert_null(strstr(text(test, "reason"), "s3cret"));
			return;
		}
		(void)nanosleep(&pause, NULL);
	}
	fail_msg("the test is not done");
}

static void metrics_count_by_receiver_and_result(void **state)
{
	http_auto struct http_reply plain =
		http_request(nt_api_port(api), "GET", "/metrics", "", NULL);
	http_auto struct http_reply open = http_request(
		nt_api_port(api), "GET", "/metrics",
		"Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n", NULL);

	(void)state;
	assert_non_null(strstr(plain.body, "# TYPE neutracer_aggregator_receiver_messages_total "
					   "counter\n"));
	assert_non_null(strstr(plain.body,
			       "\nneutracer_aggregator_receiver_messages_total{receiver=\"pager\","
			       "kind=\"pagerduty\",result=\"sent\"} 0\n"));
	assert_non_null(
		strstr(open.body, "# TYPE neutracer_aggregator_receiver_messages counter\n"));
	assert_non_null(strstr(open.body, "result=\"repeat-failed\"} 0\n"));
	assert_string_equal(open.body + strlen(open.body) - 6, "# EOF\n");
}

static void without_receivers_the_list_is_empty(void **state)
{
	nt_autojson json_t *list = get("/api/v1/receivers");

	(void)state;
	assert_string_equal(names(list, "name"), "");
	assert_int_equal(post_test("pager"), 404);
}

#define TEST_RECEIVER(fn) cmocka_unit_test_setup_teardown(fn, set_up_receiver, tear_down_receiver)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_RECEIVER(receivers_are_listed_with_their_results),
		TEST_RECEIVER(a_test_is_done_by_and_by),
		TEST_RECEIVER(metrics_count_by_receiver_and_result),
		TEST(without_receivers_the_list_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
