/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Routes and their patterns, and the rate limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/notify/route.h"
#include "aggregator/notify/token_bucket.h"
#include "common/system/clock.h"
#include "tests/api/snapshot_scene.h"

static void a_pattern_fits_the_whole_text(void **state)
{
	(void)state;
	assert_true(nt_route_pattern_fits("llm-70b", "llm-70b"));
	assert_false(nt_route_pattern_fits("llm", "llm-70b"));
	assert_false(nt_route_pattern_fits("70b", "llm-70b"));
	assert_true(nt_route_pattern_fits("llm-*", "llm-70b"));
	assert_true(nt_route_pattern_fits("*70*", "llm-70b"));
	assert_true(nt_route_pattern_fits("llm-7?b", "llm-70b"));
	assert_false(nt_route_pattern_fits("llm-?", "llm-70b"));
	assert_true(nt_route_pattern_fits("*", ""));
	assert_false(nt_route_pattern_fits("?", ""));
	assert_true(nt_route_pattern_fits("a*b*c", "axxbyybzzc"));
	assert_false(nt_route_pattern_fits("a*b*c", "axxbyybzz"));
}

static void one_alternative_suffices(void **state)
{
	(void)state;
	assert_true(nt_route_pattern_fits("hang|missing", "missing"));
	assert_true(nt_route_pattern_fits("x|llm-*|y", "llm-70b"));
	assert_false(nt_route_pattern_fits("hang|missing", "hang|missing"));
	assert_true(nt_route_pattern_fits("x|", ""));
}

/* 2^n steps would never end. */
static void a_hostile_name_costs_no_time(void **state)
{
	static char name[65536];

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	assert_false(nt_route_pattern_fits("*a*a*a*a*a*a*a*a*a*a*a*b", name));
}

static struct nt_wire_incident incident_of(const char *severity)
{
	struct nt_wire_incident incident = nt_test_incident("a1", "firing", &nt_test_rank_5, 1);

	incident.severity = severity;
	return incident;
}

static void without_routes_information_is_left_out(void **state)
{
	struct nt_wire_incident info = incident_of("info"), warning = incident_of("warning");

	(void)state;
	assert_false(nt_route_takes(NULL, 0, &info));
	assert_true(nt_route_takes(NULL, 0, &warning));
}

static void all_conditions_of_a_route_must_hold(void **state)
{
	struct nt_wire_incident incident = incident_of("warning");
	struct nt_route route = {.severity = NT_NOTICE_WARNING,
				 .class = (char *)"compute",
				 .job = (char *)"llm-*",
				 .namespace = (char *)"train"};

	(void)state;
	assert_true(nt_route_takes(&route, 1, &incident));
	route.severity = NT_NOTICE_CRITICAL;
	assert_false(nt_route_takes(&route, 1, &incident));
	route.severity = NT_NOTICE_INFO;
	route.class = (char *)"hang";
	assert_false(nt_route_takes(&route, 1, &incident));
	route.class = NULL;
	route.job = (char *)"bert";
	assert_false(nt_route_takes(&route, 1, &incident));
	route.job = NULL;
	route.namespace = (char *)"prod";
	assert_false(nt_route_takes(&route, 1, &incident));
	route.namespace = NULL;
	assert_true(nt_route_takes(&route, 1, &incident));
}

static void one_route_suffices(void **state)
{
	struct nt_wire_incident incident = incident_of("info");
	const struct nt_route routes[] = {
		{.severity = NT_NOTICE_CRITICAL},
		{.severity = NT_NOTICE_INFO, .class = (char *)"compute"},
	};

	(void)state;
	assert_true(nt_route_takes(routes, 2, &incident));
	assert_false(nt_route_takes(routes, 1, &incident));
}

/* ---- the rate -------------------------------------------------------------------------------- */

static unsigned int take_for(struct nt_token_bucket *bucket, uint64_t begin_ns, uint64_t for_ns)
{
	unsigned int taken = 0;

	for (uint64_t now_ns = begin_ns; now_ns < begin_ns + for_ns; now_ns += NT_SECOND / 10)
		taken += nt_token_bucket_take(bucket, now_ns);
	return taken;
}

static void no_minute_has_more_than_the_rate(void **state)
{
	static const uint32_t rates[] = {1, 2, 3, 4, 16, 20, 30, 60, 120};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct nt_token_bucket bucket = nt_token_bucket_of(rates[i]);

		for (uint64_t minute = 1; minute < 4; minute++) {
			unsigned int taken = take_for(&bucket, minute * NT_MINUTE, NT_MINUTE);

			assert_true(taken >= 1 && taken <= rates[i]);
		}
	}
}

static void a_bucket_says_when_to_come_back(void **state)
{
	struct nt_token_bucket bucket = nt_token_bucket_of(4);
	uint64_t now_ns = NT_HOUR;

	(void)state;
	assert_int_equal(nt_token_bucket_left(&bucket, now_ns), 1);
	assert_int_equal(nt_token_bucket_next_ns(&bucket, now_ns), now_ns);
	assert_true(nt_token_bucket_take(&bucket, now_ns));
	assert_false(nt_token_bucket_take(&bucket, now_ns));
	assert_int_equal(nt_token_bucket_next_ns(&bucket, now_ns), now_ns + 20 * NT_SECOND);
	assert_false(nt_token_bucket_take(&bucket, now_ns + 20 * NT_SECOND - 1));
	assert_true(nt_token_bucket_take(&bucket, now_ns + 20 * NT_SECOND));
}

static void without_a_rate_there_is_no_limit(void **state)
{
	struct nt_token_bucket bucket = nt_token_bucket_of(0);

	(void)state;
	assert_int_equal(nt_token_bucket_left(&bucket, 1), UINT64_MAX);
	assert_int_equal(take_for(&bucket, 1, NT_MINUTE), 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_fits_the_whole_text),
		cmocka_unit_test(one_alternative_suffices),
		cmocka_unit_test(a_hostile_name_costs_no_time),
		cmocka_unit_test(without_routes_information_is_left_out),
		cmocka_unit_test(all_conditions_of_a_route_must_hold),
		cmocka_unit_test(one_route_suffices),
		cmocka_unit_test(no_minute_has_more_than_the_rate),
		cmocka_unit_test(a_bucket_says_when_to_come_back),
		cmocka_unit_test(without_a_rate_there_is_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
