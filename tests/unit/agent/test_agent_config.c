/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the agent's options refuse, with which words, and how it then ends. */
#include "agent/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct nt_agent_config config;
static struct nt_opt_error error;

static int tear_down(void **state)
{
	(void)state;
	nt_opt_free(&nt_agent_program, &config);
	memset(&config, 0, sizeof(config));
	memset(&error, 0, sizeof(error));
	(void)unsetenv("NT_BUS");
	(void)unsetenv("NT_CGROUP");
	return 0;
}

static int load(const char *option, const char *value)
{
	const char *words[] = {"neutracer-agent", option, value, "--config", "/dev/null", NULL};

	if (!option) {
		words[1] = "--config";
		words[2] = "/dev/null";
		words[3] = NULL;
	}
	return nt_opt_load(&nt_agent_program, option ? 5 : 3, (char **)words, &config, &error);
}

static void assert_says(enum nt_exit exit, const char *text)
{
	assert_int_equal(error.exit, exit);
	if (!strstr(error.text, text))
		fail_msg("'%s' does not say '%s'", error.text, text);
}

static void a_bus_of_no_known_form_is_refused_with_its_key_and_the_forms(void **state)
{
	static const char *const bad[] = {"carrier:pigeon",     "spool:",   "spool", "kafka:h:9",
					  "kafka://",           "",         "/tmp",  "kafka://h:0",
					  "kafka://h:9/no way", "kafka://h"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(load("--bus", bad[i]), -EINVAL);
	assert_int_equal(load("--bus", bad[0]), -EINVAL);
	assert_says(NT_EXIT_USAGE, "--bus: 'carrier:pigeon' is not spool:DIR or "
				   "kafka://HOST:PORT,...[/PREFIX]");
	assert_int_equal(setenv("NT_BUS", "carrier:pigeon", 1), 0);
	assert_int_equal(load(NULL, NULL), -EINVAL);
	assert_says(NT_EXIT_CONFIG, "NT_BUS: 'carrier:pigeon' is not spool:DIR or ");
}

static void a_bus_of_either_form_is_taken(void **state)
{
	(void)state;
	assert_int_equal(load("--bus", "spool:relative/dir"), 0);
	assert_string_equal(config.bus, "spool:relative/dir");
	assert_int_equal(load("--bus", "kafka://a:9092,[::1]:9093/site-2"), 0);
	assert_string_equal(config.bus, "kafka://a:9092,[::1]:9093/site-2");
}

static void a_directory_that_is_no_cgroup_is_refused_wherever_it_is_named(void **state)
{
	(void)state;
	assert_int_equal(load("--cgroup", "/none"), -EINVAL);
	assert_says(NT_EXIT_USAGE, "--cgroup: '/none' is not a directory of a mounted cgroup tree");
	assert_int_equal(load("--cgroup", "/dev/null"), -EINVAL);
	assert_int_equal(load("--cgroup", "/tmp"), -EINVAL);
	assert_int_equal(setenv("NT_CGROUP", "/none", 1), 0);
	assert_int_equal(load(NULL, NULL), -EINVAL);
	assert_says(NT_EXIT_CONFIG, "NT_CGROUP: '/none' is not a directory of");
}

static void a_node_name_is_taken_whole_or_refused(void **state)
{
	char name[NT_AGENT_MAX_NODE + 2];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[NT_AGENT_MAX_NODE + 1] = '\0';
	assert_int_equal(load("--node", name), -ERANGE);
	assert_says(NT_EXIT_USAGE, "a text of 1 to 255 bytes");
	name[NT_AGENT_MAX_NODE] = '\0';
	assert_int_equal(load("--node", name), 0);
	assert_string_equal(config.node, name);
	assert_int_equal(load("--node", ""), -ERANGE);
}

#define TEST(f) cmocka_unit_test_teardown(f, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_bus_of_no_known_form_is_refused_with_its_key_and_the_forms),
		TEST(a_bus_of_either_form_is_taken),
		TEST(a_directory_that_is_no_cgroup_is_refused_wherever_it_is_named),
		TEST(a_node_name_is_taken_whole_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
