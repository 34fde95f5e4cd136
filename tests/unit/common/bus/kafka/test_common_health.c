/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char servers[] = "one:9092";
static const char guess[] = "do they expect TLS";

static int set_up(void **state)
{
	struct nt_kafka_health *health = malloc(sizeof(*health));

	*state = health;
	if (!health)
		return -1;
	nt_kafka_health_init(health);
	return 0;
}

static int tear_down(void **state)
{
	nt_kafka_health_release(*state);
	free(*state);
	return 0;
}

static void assert_says(struct nt_kafka_health *health, const char *text)
{
	struct nt_bus_health now;

	nt_kafka_health_get(health, &now);
	assert_int_equal(now.cause, NT_BUS_UNREACHABLE);
	if (!strstr(now.text, text))
		fail_msg("it says: %s", now.text);
}

static void refuse(struct nt_kafka_health *health)
{
	nt_kafka_health_hint(health, NT_BUS_UNREACHABLE, "no broker answers at %s: %s", servers,
			     "Connection refused");
}

static void who_hangs_up_and_never_spoke_may_expect_tls(void **state)
{
	nt_kafka_health_alone(*state, servers);
	assert_says(*state, guess);
}

static void who_refuses_the_connection_is_not_asked_for_tls(void **state)
{
	refuse(*state);
	nt_kafka_health_alone(*state, servers);
	assert_says(*state, "no broker answers at one:9092: Connection refused");
}

static void a_guess_gives_way_to_a_reason_that_comes_later(void **state)
{
	nt_kafka_health_alone(*state, servers);
	refuse(*state);
	assert_says(*state, "no broker answers at one:9092: Connection refused");
}

static void who_hangs_up_and_spoke_before_does_not_expect_tls(void **state)
{
	nt_kafka_health_succeed(*state);
	nt_kafka_health_alone(*state, servers);
	assert_says(*state, "no broker at one:9092 is left: the connection was closed");
	refuse(*state);
	assert_says(*state, "Connection refused");
}

static void a_hint_about_one_broker_is_no_news_while_others_answer(void **state)
{
	struct nt_bus_health now;

	nt_kafka_health_alone(*state, servers);
	nt_kafka_health_succeed(*state);
	refuse(*state);
	nt_kafka_health_get(*state, &now);
	assert_int_equal(now.cause, NT_BUS_WELL);
}

static void a_refused_password_is_not_hidden_by_the_hanging_up(void **state)
{
	struct nt_bus_health now;

	nt_kafka_health_fail(*state, NT_BUS_REFUSED, "the brokers refuse the user");
	nt_kafka_health_alone(*state, servers);
	nt_kafka_health_get(*state, &now);
	assert_int_equal(now.cause, NT_BUS_REFUSED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static void who_is_refused_after_an_outage_is_not_told_of_the_outage(void **state)
{
	struct nt_bus_health now;

	refuse(*state);
	nt_kafka_health_alone(*state, servers);
	nt_kafka_health_fail(*state, NT_BUS_REFUSED, "the brokers refuse the user");
	nt_kafka_health_alone(*state, servers);
	nt_kafka_health_get(*state, &now);
	assert_int_equal(now.cause, NT_BUS_REFUSED);
	/* And when they are gone again, of that. */
	refuse(*state);
	nt_kafka_health_alone(*state, servers);
	assert_says(*state, "Connection refused");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_hangs_up_and_never_spoke_may_expect_tls),
		TEST(who_refuses_the_connection_is_not_asked_for_tls),
		TEST(a_guess_gives_way_to_a_reason_that_comes_later),
		TEST(who_hangs_up_and_spoke_before_does_not_expect_tls),
		TEST(a_hint_about_one_broker_is_no_news_while_others_answer),
		TEST(a_refused_password_is_not_hidden_by_the_hanging_up),
		TEST(who_is_refused_after_an_outage_is_not_told_of_the_outage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
