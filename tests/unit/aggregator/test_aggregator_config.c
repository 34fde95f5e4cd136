/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the aggregator's options refuse, with which words, and how it then ends. */
#include "aggregator/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct nt_aggregator_config config;
static struct nt_opt_error error;

static int tear_down(void **state)
{
	(void)state;
	nt_opt_free(&nt_aggregator_program, &config);
	memset(&config, 0, sizeof(config));
	memset(&error, 0, sizeof(error));
	return 0;
}

static int load(const char *option, const char *value)
{
	const char *words[] = {"neutracer-aggregator", "--config", "/dev/null", option, value};

	return nt_opt_load(&nt_aggregator_program, 5, (char **)words, &config, &error);
}

static void refuse(const char *option, const char *value, const char *text)
{
	assert_int_equal(load(option, value), -EINVAL);
	assert_int_equal(error.exit, NT_EXIT_USAGE);
	if (!strstr(error.text, text))
		fail_msg("'%s' does not say '%s'", error.text, text);
}

/* The same from the environment. */
static void refuse_from(const char *name, const char *value, const char *text)
{
	const char *words[] = {"neutracer-aggregator", "--config", "/dev/null"};

	assert_int_equal(setenv(name, value, 1), 0);
	assert_int_equal(nt_opt_load(&nt_aggregator_program, 3, (char **)words, &config, &error),
			 -EINVAL);
	assert_int_equal(unsetenv(name), 0);
	assert_int_equal(error.exit, NT_EXIT_CONFIG);
	if (!strstr(error.text, text))
		fail_msg("'%s' does not say '%s'", error.text, text);
}

/* They are refused before anything is opened. */
static void a_certificate_without_its_key_is_refused_with_the_missing_option(void **state)
{
	static const char *const cases[][3] = {
		{"--tls-cert-file", "c.pem", "--tls-cert-file requires --tls-key-file, "},
		{"--tls-key-file", "k.pem", "--tls-key-file requires --tls-cert-file, "},
		{"--tls-client-ca-file", "a.pem",
		 "--tls-client-ca-file requires --tls-cert-file and --tls-key-file"},
	};
	const char *both[] = {
		"neutracer-aggregator", "--config", "/dev/null", "--tls-cert-file", "c.pem",
		"--tls-key-file",       "k.pem"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *words[] = {"neutracer-aggregator", "--config", "/dev/null", cases[i][0],
				       cases[i][1]};

		assert_int_equal(nt_aggregator_config_load(5, (char **)words, &config, &error),
				 -EINVAL);
		assert_int_equal(error.exit, NT_EXIT_CONFIG);
		if (!strstr(error.text, cases[i][2]))
			fail_msg("'%s' does not say '%s'", error.text, cases[i][2]);
		(void)tear_down(state);
	}
	assert_int_equal(nt_aggregator_config_load(7, (char **)both, &config, &error), 0);
}

static void a_negative_number_is_refused_with_the_range(void **state)
{
	const char *words[] = {"neutracer-aggregator", "--config", "/dev/null", "--gpu-watts=-1"};

	(void)state;
	assert_int_equal(nt_aggregator_config_load(4, (char **)words, &config, &error), -ERANGE);
	assert_string_equal(error.text, "--gpu-watts: '-1' is not a number of at least 0");
}

static void an_address_without_a_port_is_refused_with_its_key(void **state)
{
	(void)state;
	refuse("--listen", "0.0.0.0", "--listen: '0.0.0.0' is not ADDRESS:PORT");
	refuse("--listen", "nowhere", "--listen: 'nowhere' is not ADDRESS:PORT");
	refuse("--listen", ":9480", "ADDRESS:PORT");
	refuse("--listen", "0.0.0.0:", "ADDRESS:PORT");
	refuse("--listen", "0.0.0.0:65536", "ADDRESS:PORT");
	refuse("--listen", "", "ADDRESS:PORT");
	refuse_from("NT_LISTEN", "0.0.0.0", "NT_LISTEN: '0.0.0.0' is not ADDRESS:PORT");
}

static void an_address_with_a_port_is_taken(void **state)
{
	static const char *const good[] = {"0.0.0.0:0", "[::1]:9480", "localhost:65535"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(load("--listen", good[i]), 0);
		assert_string_equal(config.listen, good[i]);
	}
}

static void a_user_that_there_is_not_is_refused_with_the_key(void **state)
{
	(void)state;
	refuse("--user", "no-such-user", "--user: 'no-such-user' is not a user of this machine");
	refuse_from("NT_USER", "no-such-user", "NT_USER: 'no-such-user' is not a user of");
	assert_int_equal(load("--user", "root"), 0);
	assert_int_equal(load("--user", ""), 0);
}

static void a_bus_of_no_known_form_is_refused_with_its_key_and_the_forms(void **state)
{
	(void)state;
	refuse("--bus", "carrier:pigeon",
	       "--bus: 'carrier:pigeon' is not spool:DIR or "
	       "kafka://HOST:PORT,...[/PREFIX]");
	refuse_from("NT_BUS", "carrier:pigeon", "NT_BUS: 'carrier:pigeon' is not spool:DIR or");
}

#define TEST(f) cmocka_unit_test_teardown(f, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_address_without_a_port_is_refused_with_its_key),
		TEST(a_certificate_without_its_key_is_refused_with_the_missing_option),
		TEST(a_negative_number_is_refused_with_the_range),
		TEST(an_address_with_a_port_is_taken),
		TEST(a_user_that_there_is_not_is_refused_with_the_key),
		TEST(a_bus_of_no_known_form_is_refused_with_its_key_and_the_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
