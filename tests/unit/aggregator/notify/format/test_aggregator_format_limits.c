/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of each service, at texts of any length; signatures by published vectors. */
#include "aggregator/notify/format/format_text.h"
#include "aggregator/notify/format/signature.h"
#include "tests/unit/aggregator/notify/format/format_case.h"

/* ---- text ------------------------------------------------------------------------------------ */

static const char *escape_less(char c)
{
	return c == '<' ? "&lt;" : NULL;
}

static void a_cut_falls_between_characters(void **state)
{
	(void)state;
	for (size_t max = 3; max < 30; max++) {
		nt_autoformattext struct nt_format_text text = {.max = max};

		assert_int_equal(nt_format_text_add(&text, "aé€💥aé€💥aé€💥"), 0);
		assert_true(text.is_cut);
		assert_true(text.buf.len <= max);
		/* No character of the text is longer than four bytes. */
		assert_true(text.buf.len + 4 > max);
		assert_true(nt_utf8_is_valid(nt_format_text_get(&text), text.buf.len));
		assert_string_equal(nt_format_text_get(&text) + text.buf.len - 3, "…");
	}
}

static void a_cut_never_falls_inside_an_escape(void **state)
{
	(void)state;
	for (size_t max = 3; max < 20; max++) {
		nt_autoformattext struct nt_format_text text = {.max = max, .escape = escape_less};

		assert_int_equal(nt_format_text_add(&text, "<<<<<<<<"), 0);
		assert_int_equal(text.buf.len, (max - 3) / 4 * 4 + 3);
	}
}

static void what_javascript_counts_twice_counts_twice(void **state)
{
	nt_autoformattext struct nt_format_text text = {.max = 5, .unit = NT_FORMAT_UTF16};

	(void)state;
	assert_int_equal(nt_format_text_add(&text, "💥💥💥"), 0);
	assert_string_equal(nt_format_text_get(&text), "💥💥…");
}

static void a_text_that_fits_with_the_ellipsis_is_whole(void **state)
{
	nt_autoformattext struct nt_format_text whole = {.max = 8}, cut = {.max = 7};

	(void)state;
	assert_int_equal(nt_format_text_add(&whole, "12345"), 0);
	assert_string_equal(nt_format_text_get(&whole), "12345");
	assert_int_equal(nt_format_text_add(&cut, "12345"), 0);
	assert_string_equal(nt_format_text_get(&cut), "1234…");
}

static void markup_is_whole_or_absent(void **state)
{
	nt_autoformattext struct nt_format_text text = {.max = 8};

	(void)state;
	assert_int_equal(nt_format_text_add(&text, "1234"), 0);
	assert_int_equal(nt_format_text_add_markup(&text, "**"), 0);
	assert_int_equal(nt_format_text_add(&text, "x"), 0);
	assert_string_equal(nt_format_text_get(&text), "1234…");
}

/* ---- services -------------------------------------------------------------------------------- */

static void fill(char *text, size_t size, const char *character)
{
	size_t n = strlen(character), len = 0;

	for (; len + n < size; len += n)
		memcpy(text + len, character, n);
	text[len] = '\0';
}

/* All texts are as long as a notice allows, of one character. */
static struct nt_notice *full_notice(const char *character)
{
	static struct nt_notice notice;
	static const char *const names[NT_NOTICE_FIELDS] = {
		"Who", "What", "Since", "Cost", "Evidence", "Job", "Look", "Stack", "New", "And"};

	notice = (struct nt_notice){.severity = NT_NOTICE_CRITICAL, .fields = NT_NOTICE_FIELDS};
	fill(notice.title, sizeof(notice.title), character);
	fill(notice.summary, sizeof(notice.summary), character);
	fill(notice.job, sizeof(notice.job), character);
	fill(notice.node, sizeof(notice.node), character);
	fill(notice.namespace, sizeof(notice.namespace), character);
	fill(notice.class, sizeof(notice.class), character);
	(void)snprintf(notice.incident, sizeof(notice.incident), "f1");
	for (size_t i = 0; i < NT_NOTICE_FIELDS; i++) {
		notice.field[i].name = names[i];
		fill(notice.field[i].value, sizeof(notice.field[i].value), character);
	}
	return &notice;
}

/* UTF-16 units. */
static size_t units_of(const json_t *text)
{
	const char *value = json_string_value(text);
	size_t len = json_string_length(text), units = 0;

	assert_non_null(value);
	while (len) {
		size_t n = nt_utf8_length(value, len);

		assert_true(n > 0);
		units += n == 4 ? 2 : 1;
		value += n;
		len -= n;
	}
	return units;
}

static size_t units_at(const json_t *object, const char *name)
{
	return units_of(json_object_get(object, name));
}

static void check_slack(const json_t *body, size_t bytes)
{
	const json_t *blocks = json_object_get(body, "blocks"), *block, *field;
	size_t i, k, all = units_at(body, "text");

	(void)bytes;
	assert_true(json_array_size(blocks) <= 50);
	json_array_foreach(blocks, i, block)
	{
		const json_t *text = json_object_get(block, "text");
		const json_t *fields = json_object_get(block, "fields");
		bool header = !strcmp(nt_json_get_text(block, "type", ""), "header");

		if (text) {
			assert_true(units_at(text, "text") <= (header ? 150 : 3000));
			all += units_at(text, "text");
		}
		assert_true(json_array_size(fields) <= 10);
		json_array_foreach(fields, k, field)
		{
			assert_true(units_at(field, "text") <= 2000);
			all += units_at(field, "text");
		}
	}
	assert_true(all <= 12000);
}

static void check_feishu(const json_t *body, size_t bytes)
{
	(void)body;
	assert_true(bytes <= 20000);
}

static void check_wecom(const json_t *body, size_t bytes)
{
	const json_t *markdown = json_object_get(body, "markdown");
	size_t len = json_string_length(json_object_get(markdown, "content"));

	(void)bytes;
	assert_true(len <= 4096 && len > 4096 - 16);
}

static void check_teams(const json_t *body, size_t bytes)
{
	nt_autojson json_t *text = json_string("");
	size_t units = 0;
	nt_autofree char *dumped = json_dumps(body, JSON_COMPACT);

	(void)bytes;
	assert_non_null(dumped);
	assert_int_equal(json_string_set(text, dumped), 0);
	units = units_of(text);
	assert_true(2 * units <= 28 << 10);
}

static void check_pagerduty(const json_t *body, size_t bytes)
{
	assert_true(bytes <= 512000);
	assert_true(units_at(json_object_get(body, "payload"), "summary") <= 1024);
}

static void check_opsgenie(const json_t *body, size_t bytes)
{
	const json_t *tag, *detail;
	const char *name;
	size_t i, all = 0;

	(void)bytes;
	assert_true(units_at(body, "message") <= 130);
	assert_true(units_at(body, "alias") <= 512);
	assert_true(units_at(body, "description") <= 15000);
	assert_true(units_at(body, "entity") <= 512);
	assert_true(json_array_size(json_object_get(body, "tags")) <= 20);
	json_array_foreach(json_object_get(body, "tags"), i, tag) assert_true(units_of(tag) <= 50);
	json_object_foreach(json_object_get(body, "details"), name, detail) all +=
		strlen(name) + units_of(detail);
	assert_true(all <= 8000);
}

static void check_nothing(const json_t *body, size_t bytes)
{
	(void)body;
	(void)bytes;
}

static void every_service_gets_what_it_accepts(void **state)
{
	/* Of one to four bytes; with escapes in JSON, and in the formats. */
	static const char *const characters[] = {"a",  "é", "€", "💥", "\"",
						 "\\", "<", "&", "*", "_"};
	static void (*const check[NT_RECEIVER_KINDS])(const json_t *body, size_t bytes) = {
		[NT_RECEIVER_ALERTMANAGER] = check_nothing, [NT_RECEIVER_SLACK] = check_slack,
		[NT_RECEIVER_FEISHU] = check_feishu,        [NT_RECEIVER_DINGTALK] = check_feishu,
		[NT_RECEIVER_WECOM] = check_wecom,          [NT_RECEIVER_TEAMS] = check_teams,
		[NT_RECEIVER_PAGERDUTY] = check_pagerduty,  [NT_RECEIVER_OPSGENIE] = check_opsgenie,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
		const struct nt_notice *notice = full_notice(characters[i]);

		for (int kind = NT_RECEIVER_ALERTMANAGER; kind < NT_RECEIVER_NVSENTINEL; kind++) {
			nt_autoformatpost struct nt_format_post post = {0};
			nt_autojson json_t *body = NULL;

			case_write((enum nt_receiver_kind)kind, notice, &post);
			body = case_json(&post);
			check[kind](body, post.body.len);
		}
	}
}

/* ---- signatures ------------------------------------------------------------------------------ */

/* Vectors of the two services, computed with openssl dgst. */
static void signatures_are_those_of_the_vectors(void **state)
{
	char text[NT_SIGNATURE_TEXT];

	(void)state;
	assert_int_equal(nt_signature_write("1700000000\ntest", "", text), 0);
	assert_string_equal(text, "eSJQnOl8XqPTMPHWz9e5IzeHS/tqoc68g2967ekIPmg=");
	assert_int_equal(nt_signature_write("SECtest", "1700000000000\nSECtest", text), 0);
	assert_string_equal(text, "aZLLrriXgn05YbwaGR7knYsLeJADjr9NwLaNNKpxh4g=");
}

static void a_signed_request_has_its_time_in_the_unit_of_the_service(void **state)
{
	const struct nt_notice *notice = full_notice("a");
	struct nt_format_input input = {
		.notice = &notice,
		.notices = 1,
		.url = "https://oapi.dingtalk.com/robot/send?access_token=t",
		.secret = "SECtest",
		.now_ns = 1700000000 * NT_SECOND,
	};
	nt_autoformatpost struct nt_format_post dingtalk = {0}, feishu = {0};
	nt_autojson json_t *body = NULL;

	(void)state;
	assert_int_equal(nt_dingtalk_write(&input, &dingtalk), 0);
	assert_string_equal((const char *)dingtalk.url.data,
			    "https://oapi.dingtalk.com/robot/send?access_token=t"
			    "&timestamp=1700000000000"
			    "&sign=aZLLrriXgn05YbwaGR7knYsLeJADjr9NwLaNNKpxh4g%3D");
	input.secret = "test";
	assert_int_equal(nt_feishu_write(&input, &feishu), 0);
	body = case_json(&feishu);
	assert_string_equal(nt_json_get_text(body, "timestamp", ""), "1700000000");
	assert_string_equal(nt_json_get_text(body, "sign", ""),
			    "eSJQnOl8XqPTMPHWz9e5IzeHS/tqoc68g2967ekIPmg=");
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer_case {
	enum nt_receiver_kind kind;
	long status;
	const char *body;
	enum nt_attempt_outcome outcome;
	uint64_t retry_after_ns;
};

static void judge(const struct answer_case *one, struct nt_attempt *attempt)
{
	nt_autopostreply struct nt_http_post_reply reply = {.status = one->status,
							    .reason = "none"};
	const struct nt_receiver_format *format = nt_receiver_format_of(one->kind);

	assert_int_equal(nt_format_put(&reply.body, one->body), 0);
	nt_http_post_judge(&reply, attempt);
	if (format->judge)
		format->judge(&reply, attempt);
}

static void success_is_what_the_service_says(void **state)
{
	static const struct answer_case cases[] = {
		{NT_RECEIVER_SLACK, 200, "ok", NT_ATTEMPT_TAKEN},
		{NT_RECEIVER_SLACK, 200, "ok\n", NT_ATTEMPT_TAKEN},
		{NT_RECEIVER_SLACK, 200, "okay", NT_ATTEMPT_LATER},
		{NT_RECEIVER_SLACK, 200, "", NT_ATTEMPT_LATER},
		{NT_RECEIVER_SLACK, 200, "<html>proxy</html>", NT_ATTEMPT_LATER},
		{NT_RECEIVER_SLACK, 400, "invalid_blocks", NT_ATTEMPT_REFUSED},
		{NT_RECEIVER_SLACK, 429, "rate_limited", NT_ATTEMPT_LATER},
		{NT_RECEIVER_FEISHU, 200, "{\"code\":0,\"msg\":\"success\"}", NT_ATTEMPT_TAKEN},
		{NT_RECEIVER_FEISHU, 200, "{\"code\":19021,\"msg\":\"sign\"}", NT_ATTEMPT_REFUSED},
		{NT_RECEIVER_FEISHU, 400, "{\"code\":9499}", NT_ATTEMPT_REFUSED},
		{NT_RECEIVER_FEISHU, 200, "{\"code\":11232}", NT_ATTEMPT_LATER, 10 * NT_SECOND},
		{NT_RECEIVER_FEISHU, 200, "{\"code\":\"0\"}", NT_ATTEMPT_LATER},
		{NT_RECEIVER_FEISHU, 200, "", NT_ATTEMPT_LATER},
		{NT_RECEIVER_FEISHU, 502, "bad gateway", NT_ATTEMPT_LATER},
		{NT_RECEIVER_DINGTALK, 200, "{\"errcode\":0,\"errmsg\":\"ok\"}", NT_ATTEMPT_TAKEN},
		{NT_RECEIVER_DINGTALK, 200, "{\"errcode\":310000}", NT_ATTEMPT_REFUSED},
		{NT_RECEIVER_DINGTALK, 200, "{\"errcode\":-1}", NT_ATTEMPT_LATER},
		/* Of a gateway before the service. */
		{NT_RECEIVER_FEISHU, 502, "{\"code\":502}", NT_ATTEMPT_LATER, 0},
		{NT_RECEIVER_FEISHU, 429, "{\"code\":99991400}", NT_ATTEMPT_LATER, 0},
		{NT_RECEIVER_DINGTALK, 200, "{\"errcode\":130101}", NT_ATTEMPT_LATER,
		 10 * NT_MINUTE},
		{NT_RECEIVER_WECOM, 200, "{\"errcode\":0}", NT_ATTEMPT_TAKEN},
		{NT_RECEIVER_WECOM, 200, "{\"errcode\":93000}", NT_ATTEMPT_REFUSED},
		{NT_RECEIVER_WECOM, 200, "{\"errcode\":45009}", NT_ATTEMPT_LATER, NT_MINUTE},
		{NT_RECEIVER_WECOM, 200, "[1]", NT_ATTEMPT_LATER},
		{NT_RECEIVER_TEAMS, 202, "", NT_ATTEMPT_TAKEN},
		{NT_RECEIVER_TEAMS, 200,
		 "Webhook message delivery failed with error: Microsoft Teams endpoint returned "
		 "HTTP error 429",
		 NT_ATTEMPT_LATER},
		{NT_RECEIVER_TEAMS, 413, "", NT_ATTEMPT_REFUSED},
		{NT_RECEIVER_PAGERDUTY, 202, "{\"status\":\"success\"}", NT_ATTEMPT_TAKEN},
		{NT_RECEIVER_PAGERDUTY, 400, "{\"status\":\"invalid event\"}", NT_ATTEMPT_REFUSED},
		{NT_RECEIVER_OPSGENIE, 202, "{}", NT_ATTEMPT_TAKEN},
		{NT_RECEIVER_OPSGENIE, 422, "{}", NT_ATTEMPT_REFUSED},
		{NT_RECEIVER_ALERTMANAGER, 200, "", NT_ATTEMPT_TAKEN},
		{NT_RECEIVER_ALERTMANAGER, 400, "\"bad\"", NT_ATTEMPT_REFUSED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_attempt attempt;

		judge(&cases[i], &attempt);
		if (attempt.outcome != cases[i].outcome ||
		    attempt.retry_after_ns != cases[i].retry_after_ns)
			fail_msg("case %zu: outcome %d", i, attempt.outcome);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_falls_between_characters),
		cmocka_unit_test(a_cut_never_falls_inside_an_escape),
		cmocka_unit_test(what_javascript_counts_twice_counts_twice),
		cmocka_unit_test(a_text_that_fits_with_the_ellipsis_is_whole),
		cmocka_unit_test(markup_is_whole_or_absent),
		cmocka_unit_test(every_service_gets_what_it_accepts),
		cmocka_unit_test(signatures_are_those_of_the_vectors),
		cmocka_unit_test(a_signed_request_has_its_time_in_the_unit_of_the_service),
		cmocka_unit_test(success_is_what_the_service_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
