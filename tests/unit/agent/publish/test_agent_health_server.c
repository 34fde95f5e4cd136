/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publish/health_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/system/clock.h"
#include "tests/unit/common/http.h"

static const struct nt_metric table[] = {
	{"neutracer_agent_test_total", NT_METRIC_COUNTER, "A number.", NULL},
};

static struct nt_metrics *metrics;
static struct nt_health_server *server;

static int setup(void **state)
{
	struct nt_httpd_error error;

	(void)state;
	assert_int_equal(nt_metrics_new(table, 1, &metrics), 0);
	return nt_health_server_start("127.0.0.1:0", metrics, &server, &error);
}

static int teardown(void **state)
{
	(void)state;
	nt_health_server_stop(server);
	nt_metrics_free(metrics);
	server = NULL;
	metrics = NULL;
	return 0;
}

static void check(const char *target, int status, const char *words)
{
	http_auto struct http_reply reply =
		http_request(nt_health_server_port(server), "GET", target, "", NULL);

	assert_int_equal(reply.status, status);
	if (!strstr(reply.body, words))
		fail_msg("%s answers: %s", target, reply.body);
}

static void it_lives_and_is_not_ready_while_it_attaches_to_what_runs(void **state)
{
	(void)state;
	check("/healthz", 200, "\"status\":\"ok\"");
	check("/readyz", 503, "still attaching");
}

static void it_is_ready_when_the_loop_goes_round(void **state)
{
	(void)state;
	nt_health_server_turned(server, nt_clock_mono_ns());
	check("/healthz", 200, "\"ok\":true");
	check("/readyz", 200, "\"ok\":true");
}

static void a_loop_that_stands_still_is_neither_alive_nor_ready(void **state)
{
	const uint64_t now_ns = nt_clock_mono_ns();

	(void)state;
	if (now_ns < 2 * NT_MINUTE)
		skip(); /* a machine that has just booted has no such past */
	nt_health_server_turned(server, now_ns - 59 * NT_SECOND);
	check("/healthz", 200, "\"ok\":true");
	nt_health_server_turned(server, now_ns - 61 * NT_SECOND);
	check("/healthz", 503, "the loop is stuck");
	check("/readyz", 503, "the loop is stuck");
	nt_health_server_turned(server, nt_clock_mono_ns());
	check("/healthz", 200, "\"ok\":true");
}

static void metrics_come_in_the_format_that_is_asked_for(void **state)
{
	http_auto struct http_reply plain =
		http_request(nt_health_server_port(server), "GET", "/metrics", "", NULL);
	http_auto struct http_reply open = http_request(
		nt_health_server_port(server), "GET", "/metrics",
		"Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n", NULL);

	(void)state;
	assert_int_equal(plain.status, 200);
	assert_non_null(strstr(plain.head, "text/plain; version=0.0.4"));
	assert_non_null(strstr(plain.body, "\nneutracer_agent_test_total 0\n"));
	assert_null(strstr(plain.body, "# EOF"));
	assert_int_equal(open.status, 200);
	assert_non_null(strstr(open.head, "application/openmetrics-text"));
	assert_non_null(strstr(open.body, "# EOF\n"));
}

static void what_it_does_not_offer_is_refused(void **state)
{
	http_auto struct http_reply gone =
		http_request(nt_health_server_port(server), "GET", "/api/v1/jobs", "", NULL);
	http_auto struct http_reply post =
		http_request(nt_health_server_port(server), "POST", "/metrics", "", "");
	http_auto struct http_reply much =
		http_request(nt_health_server_port(server), "GET", "/metrics", "", "much");

	(void)state;
	assert_int_equal(gone.status, 404);
	assert_int_equal(post.status, 405);
	assert_int_equal(much.status, 413);
}

static void an_address_that_cannot_be_bound_is_named(void **state)
{
	struct nt_health_server *other = NULL;
	struct nt_httpd_error error;
	char taken[32];

	(void)state;
	(void)snprintf(taken, sizeof(taken), "127.0.0.1:%u",
		       (unsigned int)nt_health_server_port(server));
	assert_true(nt_health_server_start(taken, metrics, &other, &error) < 0);
	assert_null(other);
	if (!strstr(error.text, "already in use"))
		fail_msg("%s", error.text);
}

static void nobody_has_to_ask(void **state)
{
	(void)state;
	nt_health_server_turned(NULL, 1);
	nt_health_server_stop(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			it_lives_and_is_not_ready_while_it_attaches_to_what_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(it_is_ready_when_the_loop_goes_round, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_loop_that_stands_still_is_neither_alive_nor_ready,
						setup, teardown),
		cmocka_unit_test_setup_teardown(metrics_come_in_the_format_that_is_asked_for, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_it_does_not_offer_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(an_address_that_cannot_be_bound_is_named, setup,
						teardown),
		cmocka_unit_test(nobody_has_to_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
