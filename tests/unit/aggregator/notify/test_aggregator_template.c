/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Templates: what is refused, what is written, and that each service's escapes and limits hold. */
#include "aggregator/notify/template.h"
#include "tests/unit/aggregator/notify/format/format_case.h"

static struct nt_notice notice;

static const char *write_as(const char *template)
{
	static char text[NT_NOTICE_BODY];

	nt_template_write(template, &notice, text, sizeof(text));
	return text;
}

static void placeholders_are_replaced_and_unknown_values_are_a_dash(void **state)
{
	const struct nt_wire_incident incident = case_incident("firing");

	(void)state;
	case_notice(&incident, &notice);
	assert_string_equal(write_as("{state} {severity} {job}/{namespace}: {class} ({cause})"),
			    "FIRING critical llm-70b/train: compute (clock-held-down: power)");
	assert_string_equal(write_as("{culprit}, {incident}, {node}"),
			    "rank 5 on gpu-07, 00000000000000f1, gpu-07");
	assert_string_equal(write_as("{cost}; {flaps}; {stack}"),
			    "steps take 1.31 times as long; 12.4 GPU hours so far; 31.00 USD; -; "
			    "all_reduce (train.py:112) < step (train.py:80)");
	assert_string_equal(write_as("{link}"), "https://neutracer.example/i/00000000000000f1");
	assert_string_equal(write_as("{{job}} 100 % {{{job}}}"), "{job} 100 % {llm-70b}");
	assert_string_equal(write_as(""), "");
}

/* Each name of the list is one. */
static void every_placeholder_that_is_listed_exists(void **state)
{
	const struct nt_wire_incident incident = case_incident("firing");
	char word[NT_TEMPLATE_WORD], list[512];
	char *rest = list;

	(void)state;
	case_notice(&incident, &notice);
	notice.field[notice.fields++] = (struct nt_notice_field){"Flaps", "x"};
	(void)snprintf(list, sizeof(list), "%s", nt_template_names);
	for (char *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
		name += *name == ' ';
		assert_int_equal(nt_template_check(name, word), 0);
		assert_string_not_equal(write_as(name), "-");
	}
}

static void a_placeholder_that_does_not_exist_is_named(void **state)
{
	static const struct {
		const char *template, *word;
	} cases[] = {
		{"{culprits}", "{culprits}"},
		{"a {job} b {}", "{}"},
		{"{ job }", "{ job }"},
		{"{job}, {namespace", ""},
		{"{job", ""},
		{"job}", ""},
		{"{job{job}}", ""},
		{"{%s}", "{%s}"},
		{"{state}, {severity}", NULL},
		{"{, {}", ""},
		{"{a-name-that-is-longer-than-any-that-there-is-or-will-be}",
		 "{a-name-that-is-longer-than-any-that-t}"},
	};
	char word[NT_TEMPLATE_WORD];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = nt_template_check(cases[i].template, word);

		assert_int_equal(r, cases[i].word ? -EINVAL : 0);
		if (cases[i].word)
			assert_string_equal(word, cases[i].word);
	}
}

static void a_text_that_is_too_long_is_cut_at_a_character(void **state)
{
	(void)state;
	for (size_t size = 8; size < 40; size++) {
		char text[40];
		size_t len;

		nt_template_write("aé€💥aé€💥aé€💥aé€💥", &notice, text, size);
		len = strlen(text);
		assert_true(len < size && nt_utf8_is_valid(text, len));
		assert_true(len + 4 >= size || !strstr(text, "…"));
	}
	nt_template_write("123", &notice, notice.title, 8);
	assert_string_equal(notice.title, "123");
}

static void a_text_stands_for_the_fields_and_may_name_the_title(void **state)
{
	const struct nt_wire_incident incident = case_incident("firing");

	(void)state;
	case_notice(&incident, &notice);
	nt_template_apply("[{job}]", "{title}\n{since}", &notice);
	assert_string_equal(notice.title, "[llm-70b]");
	assert_string_equal(notice.summary, "FIRING (critical) llm-70b: compute, rank 5 on gpu-07\n"
					    "2026-11-21T03:00:12Z");
	assert_int_equal(notice.fields, 0);
	case_notice(&incident, &notice);
	nt_template_apply("[{job}]", NULL, &notice);
	assert_true(notice.fields > 5);
}

/* Markup of a template or a name is text everywhere. */
static void markup_of_a_template_is_escaped(void **state)
{
	static const struct {
		enum nt_receiver_kind kind;
		const char *want;
	} cases[] = {
		{NT_RECEIVER_SLACK, "&lt;!channel&gt; *llm*"},
		{NT_RECEIVER_FEISHU, "&#60;&#33;channel&#62; &#42;llm&#42;"},
		{NT_RECEIVER_DINGTALK, "＜！channel＞ ＊llm＊"},
		{NT_RECEIVER_WECOM, "＜！channel＞ ＊llm＊"},
		{NT_RECEIVER_TEAMS, "<!channel> *llm*"},
		{NT_RECEIVER_PAGERDUTY, "<!channel> *llm*"},
		{NT_RECEIVER_OPSGENIE, "<!channel> *llm*"},
		{NT_RECEIVER_ALERTMANAGER, "<!channel> *llm*"},
	};
	struct nt_wire_incident incident = case_incident("firing");

	(void)state;
	incident.job = "llm";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		nt_autoformatpost struct nt_format_post post = {0};
		nt_autojson json_t *json = NULL;

		case_notice(&incident, &notice);
		nt_template_apply(NULL, "first\n<!channel> *{job}*", &notice);
		case_write(cases[i].kind, &notice, &post);
		json = case_json(&post);
		assert_non_null(json);
		if (!strstr((const char *)post.body.data, cases[i].want))
			fail_msg("kind %d: %s", cases[i].kind, (const char *)post.body.data);
	}
}

/* 20 KB, 4,096 bytes, 28 KB of UTF-16 … with the longest text that a template can give. */
static void limits_hold_for_the_longest_text(void **state)
{
	static const size_t most[NT_RECEIVER_KINDS] = {
		[NT_RECEIVER_SLACK] = 16000,    [NT_RECEIVER_FEISHU] = 20000,
		[NT_RECEIVER_DINGTALK] = 20000, [NT_RECEIVER_WECOM] = 9000,
		[NT_RECEIVER_TEAMS] = 14336,    [NT_RECEIVER_PAGERDUTY] = 512000,
		[NT_RECEIVER_OPSGENIE] = 20000, [NT_RECEIVER_ALERTMANAGER] = 100000,
	};
	struct nt_wire_incident incident = case_incident("firing");
	char text[NT_TEMPLATE_TEXT + 1], job[240];

	(void)state;
	memset(job, '"', sizeof(job) - 1);
	job[sizeof(job) - 1] = '\0';
	incident.job = job;
	text[0] = '\0';
	for (size_t len = 0; len + 7 < sizeof(text); len += 6)
		(void)snprintf(text + len, sizeof(text) - len, "{job}\n");
	for (int kind = NT_RECEIVER_ALERTMANAGER; kind < NT_RECEIVER_KINDS; kind++) {
		nt_autoformatpost struct nt_format_post post = {0};

		case_notice(&incident, &notice);
		nt_template_apply(text, text, &notice);
		case_write((enum nt_receiver_kind)kind, &notice, &post);
		json_decref(case_json(&post));
		if (post.body.len > most[kind])
			fail_msg("kind %d: %zu bytes", kind, post.body.len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placeholders_are_replaced_and_unknown_values_are_a_dash),
		cmocka_unit_test(every_placeholder_that_is_listed_exists),
		cmocka_unit_test(a_placeholder_that_does_not_exist_is_named),
		cmocka_unit_test(a_text_that_is_too_long_is_cut_at_a_character),
		cmocka_unit_test(a_text_stands_for_the_fields_and_may_name_the_title),
		cmocka_unit_test(markup_of_a_template_is_escaped),
		cmocka_unit_test(limits_hold_for_the_longest_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
