/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of receivers: what is read, and what is refused in which words. */
#include "aggregator/notify/receiver_config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/system/clock.h"
#include "common/system/file.h"
#include "tests/api/snapshot_scene.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES], before[512];

static void write_file(const char *name, const char *text)
{
	char path[SCRATCH_BYTES + 32];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)unlink(path);
	assert_int_equal(nt_file_create(path, 0600, text, strlen(text)), 0);
}

/* Relative paths are those of the working directory, so the test is in `dir`. */
static int set_up(void **state)
{
	(void)state;
	if (!getcwd(before, sizeof(before)) || scratch_make(dir) || chdir(dir))
		return -1;
	write_file("url", "https://hooks.example/s3cret\nmore\n");
	write_file("key", "k3y\n");
	write_file("empty", "\n");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (chdir(before))
		return -1;
	scratch_remove(dir);
	return 0;
}

static struct nt_receiver_configs *read_text(const char *text)
{
	struct nt_receiver_configs *configs = NULL;
	struct nt_opt_error error = {0};

	write_file("r.yaml", text);
	if (nt_receiver_configs_read("r.yaml", &configs, &error) < 0)
		fail_msg("%s", error.text);
	return configs;
}

static void all_keys_are_read(void **state)
{
	nt_auto(nt_receiver_configs) struct nt_receiver_configs *configs = read_text(
		"incident-url: https://n.example/i/\n"
		"receivers:\n"
		"- {name: team, kind: slack, url-file: url, repeat: 4h, rate: 7,\n"
		"   routes: [{severity: info, class: hang, job: 'a*', namespace: n}, {}]}\n"
		"- {name: am, kind: alertmanager, urls: ['http://a:1', 'http://b:2']}\n"
		"- {name: pager, kind: pagerduty, secret-file: key, title: '{job}', text: \"a\\nb\"}\n"
		"- {name: og, kind: opsgenie, secret-file: key, heartbeat: 5m, heartbeat-name: n}\n");
	const struct nt_receiver_config *one = configs->receiver;

	(void)state;
	assert_int_equal(configs->count, 4);
	assert_string_equal(one[2].title, "{job}");
	assert_string_equal(one[2].text, "a\nb");
	assert_null(one[1].title);
	assert_int_equal(one[2].heartbeat_ns, 0);
	assert_int_equal(one[3].heartbeat_ns, 5 * NT_MINUTE);
	assert_string_equal(one[3].heartbeat, "n");
	assert_string_equal(configs->incident_url, "https://n.example/i/");
	assert_string_equal(one[0].name, "team");
	assert_int_equal(one[0].kind, NT_RECEIVER_SLACK);
	assert_string_equal(one[0].url[0], "https://hooks.example/s3cret");
	assert_int_equal(one[0].repeat_ns, 4 * NT_HOUR);
	assert_int_equal(one[0].rate, 7);
	assert_int_equal(one[0].routes, 2);
	assert_int_equal(one[0].route[0].severity, NT_NOTICE_INFO);
	assert_string_equal(one[0].route[0].job, "a*");
	assert_int_equal(one[0].route[1].severity, NT_NOTICE_WARNING);
	assert_null(one[0].route[1].job);
	assert_int_equal(one[1].urls, 2);
	assert_string_equal(one[1].url[1], "http://b:2");
	assert_int_equal(one[1].repeat_ns, NT_MINUTE);
	assert_string_equal(one[1].secret, "");
	assert_string_equal(one[2].url[0], "https://events.pagerduty.com/v2/enqueue");
	assert_string_equal(one[2].secret, "k3y");
	assert_int_equal(one[2].repeat_ns, 0);
}

static void an_empty_file_names_nobody(void **state)
{
	nt_auto(nt_receiver_configs) struct nt_receiver_configs *configs = read_text("");

	(void)state;
	assert_int_equal(configs->count, 0);
}

static void a_wrong_value_is_named_with_what_is_allowed(void **state)
{
	static const struct {
		const char *receiver, *want;
	} cases[] = {
		{"kind: slack, url-file: url", "receiver 1: name is not given"},
		{"name: A, kind: slack", "receiver 1: name: 'A' is not a name of a-z, 0-9 and '-'"},
		{"name: a, kind: slack, url-file: url, title: '{who} {culprits}'",
		 "receiver 'a': title: there is no {culprits}; allowed are {state}, {severity}, "
		 "{title}, {summary}, {culprit}, {class}, {cause}, {job}, {namespace}, {node}, "
		 "{incident}, {link}, {who}, {what}, {since}, {flaps}, {cost}, {evidence}, {look}, "
		 "{stack}"},
		{"name: a, kind: slack, url-file: url, text: '{job'",
		 "receiver 'a': text: a brace has no other one"},
		{"name: a, kind: slack, url-file: url, title: \"a\\nb\"",
		 "receiver 'a': title: has a control character"},
		{"name: a, kind: webhook, url: 'http://a', text: x",
		 "title, text: kind webhook sends the incident itself"},
		{"name: a, kind: slack, url-file: url, text: ''",
		 "text: has 0 bytes, allowed are 1 to 2000"},
		{"name: a, kind: slack, url-file: url, heartbeat: 1m",
		 "heartbeat: kind slack has none"},
		{"name: a, kind: pagerduty, secret-file: key, heartbeat: 1m",
		 "heartbeat: kind pagerduty has none"},
		{"name: a, kind: webhook, url: 'http://a', heartbeat: 100ms", "heartbeat"},
		{"name: a, kind: webhook, url: 'http://a', heartbeat: 1m, heartbeat-name: n",
		 "heartbeat-name: is for kind opsgenie only"},
		{"name: webhook, kind: slack", "other than 'webhook' and 'kubernetes'"},
		{"name: a", "receiver 'a': kind is not given: one of webhook alertmanager"},
		{"name: a, kind: slak", "receiver 'a': kind: 'slak' is not one of webhook, alert"},
		{"name: a, kind: slack", "receiver 'a': url-file is not given"},
		{"name: a, kind: slack, url: 'https://x/y'", "the URL of kind slack is a secret"},
		{"name: a, kind: slack, url-file: none", "url-file: cannot read 'none': No such"},
		{"name: a, kind: slack, url-file: empty", "url-file: 'empty' is empty"},
		{"name: a, kind: slack, url-file: key", "url-file: the value is not an http or"},
		{"name: a, kind: webhook, url: 'ftp://x/'", "url: 'ftp://x/' is not an http or"},
		{"name: a, kind: webhook, urls: ['http://x/', 'http://y/']", "alertmanager only"},
		{"name: a, kind: webhook, url: 'http://x/', url-file: url",
		 "only one of url, urls"},
		{"name: a, kind: pagerduty", "secret-file is not given: kind pagerduty needs"},
		{"name: a, kind: wecom, url-file: url, secret-file: key", "wecom has no secret"},
		{"name: a, kind: pagerduty, secret-file: key, repeat: 1h", "keeps incidents"},
		{"name: a, kind: slack, url-file: url, repeat: 59s", "'59s' is less than 1m"},
		{"name: a, kind: slack, url-file: url, repeat: 8d", "'8d' is not a duration"},
		{"name: a, kind: slack, url-file: url, rate: 0", "from 1 to 6000"},
		{"name: a, kind: slack, url-file: url, rate: 6001", "from 1 to 6000"},
		{"name: a, kind: slack, url-file: url, routes: [{severity: x}]",
		 "routes: severity: 'x' is not one of info, warning, critical"},
		{"name: a, kind: slack, urlfile: url", "unknown key 'urlfile', did you mean"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_receiver_configs *configs = NULL;
		struct nt_opt_error error = {0};
		char text[256];

		(void)snprintf(text, sizeof(text), "receivers:\n- {%s}\n", cases[i].receiver);
		write_file("r.yaml", text);
		assert_true(nt_receiver_configs_read("r.yaml", &configs, &error) < 0);
		assert_null(configs);
		assert_int_equal(error.exit, NT_EXIT_CONFIG);
		if (!strstr(error.text, cases[i].want) || !strstr(error.text, "r.yaml"))
			fail_msg("'%s' is not in: %s", cases[i].want, error.text);
		assert_null(strstr(error.text, "s3cret"));
		assert_null(strstr(error.text, "k3y"));
	}
}

/* Up to 14 receivers, each with 32 routes. */
static void caps_are_held(void **state)
{
	nt_autobuf struct nt_buf text = {0};
	struct nt_receiver_configs *configs = NULL;
	struct nt_opt_error error = {0};

	(void)state;
	assert_int_equal(nt_buf_printf(&text, "receivers:\n"), 0);
	for (int i = 0; i < NT_RECEIVER_CONFIG_MAX; i++)
		assert_int_equal(
			nt_buf_printf(&text, "- {name: n%d, kind: webhook, url: 'http://x/'}\n", i),
			0);
	nt_receiver_configs_free(read_text((const char *)text.data));
	assert_int_equal(nt_buf_printf(&text, "- {name: last, kind: webhook, url: 'http://x/'}\n"),
			 0);
	write_file("r.yaml", (const char *)text.data);
	assert_int_equal(nt_receiver_configs_read("r.yaml", &configs, &error), -EINVAL);
	assert_non_null(strstr(error.text, "receivers: at most 14, here are 15"));
}

static void two_of_one_name_are_refused(void **state)
{
	struct nt_receiver_configs *configs = NULL;
	struct nt_opt_error error = {0};

	(void)state;
	write_file("r.yaml", "receivers:\n- {name: a, kind: webhook, url: 'http://x/'}\n"
			     "- {name: a, kind: webhook, url: 'http://y/'}\n");
	assert_int_equal(nt_receiver_configs_read("r.yaml", &configs, &error), -EINVAL);
	assert_non_null(strstr(error.text, "receiver 'a': name: there are two"));
}

static void a_link_has_no_markup(void **state)
{
	static const char *const bad[] = {"javascript:x", "https://x/>|", "https://x/)",
					  "https://a b/"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct nt_receiver_configs *configs = NULL;
		struct nt_opt_error error = {0};
		char text[128];

		(void)snprintf(text, sizeof(text), "incident-url: \"%s\"\n", bad[i]);
		write_file("r.yaml", text);
		assert_int_equal(nt_receiver_configs_read("r.yaml", &configs, &error), -EINVAL);
	}
}

static void a_receiver_gets_what_its_routes_take(void **state)
{
	nt_auto(nt_receiver_configs) struct nt_receiver_configs *configs = read_text(
		"receivers:\n"
		"- {name: a, kind: webhook, url: 'http://x/', routes: [{class: hang}]}\n");
	struct nt_wire_incident incident = nt_test_incident("a1", "firing", &nt_test_rank_5, 1);

	(void)state;
	assert_false(nt_receiver_configs_accept(configs, "a", &incident));
	assert_true(nt_receiver_configs_accept(configs, "webhook", &incident));
	assert_true(nt_receiver_configs_accept(NULL, "webhook", &incident));
	incident.class = "hang";
	assert_true(nt_receiver_configs_accept(configs, "a", &incident));
}

#define TEST_FILE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_FILE(all_keys_are_read),
		TEST_FILE(an_empty_file_names_nobody),
		TEST_FILE(a_wrong_value_is_named_with_what_is_allowed),
		TEST_FILE(caps_are_held),
		TEST_FILE(two_of_one_name_are_refused),
		TEST_FILE(a_link_has_no_markup),
		TEST_FILE(a_receiver_gets_what_its_routes_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
