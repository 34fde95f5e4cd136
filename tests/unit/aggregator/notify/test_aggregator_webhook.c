/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One webhook: signature, secret, URL, and what its answer decides. */
#include <errno.h>

#include "common/system/clock.h"
#include "common/system/file.h"
#include "tests/unit/aggregator/webhook_receiver.h"

/* ---- signing and sending -------------------------------------------------------------------------- */

static void a_signature_is_that_of_the_standard(void **state)
{
	static const char body[] = "{\"test\": 2432232314}";
	char text[NT_WEBHOOK_SIGNATURE];
	struct nt_webhook_key key;

	(void)state;
	assert_int_equal(nt_webhook_key_read(SECRET, &key), 0);
	nt_webhook_sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, sizeof(body) - 1,
			text);
	assert_string_equal(text, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

static void a_secret_is_base64_after_its_prefix_or_plain_text(void **state)
{
	struct nt_webhook_key key;

	(void)state;
	assert_int_equal(nt_webhook_key_read("whsec_YWJjZA==", &key), 0);
	assert_int_equal(key.len, 4);
	assert_memory_equal(key.bytes, "abcd", 4);
	assert_int_equal(nt_webhook_key_read("plain", &key), 0);
	assert_int_equal(key.len, 5);
	assert_int_equal(nt_webhook_key_read(NULL, &key), 0);
	assert_int_equal(key.len, 0);
	assert_int_equal(nt_webhook_key_read("whsec_not base64!!!!", &key), -EINVAL);
	assert_int_equal(nt_webhook_key_read("whsec_abc", &key), -EINVAL);
}

static void only_http_and_https_are_urls(void **state)
{
	(void)state;
	assert_true(nt_http_url_is_valid("http://host/path"));
	assert_true(nt_http_url_is_valid("https://host:1/path?key=value"));
	assert_false(nt_http_url_is_valid("file:///etc/passwd"));
	assert_false(nt_http_url_is_valid("gopher://host/"));
	assert_false(nt_http_url_is_valid("host/path"));
	assert_false(nt_http_url_is_valid(""));
}

static struct nt_attempt send_one(unsigned int status, uint64_t timeout_ns)
{
	static const struct nt_webhook_key none;
	const struct nt_webhook_post post = {
		.url = url,
		.id = "msg_1",
		.body = "{}",
		.body_len = 2,
		.key = &none,
		.time_s = 1,
		.connect_timeout_ns = timeout_ns,
		.total_timeout_ns = timeout_ns,
	};
	struct nt_attempt answer = {.outcome = NT_ATTEMPT_ABORTED};

	receiver.calls = 0;
	receiver.script[0] = status;
	assert_int_equal(nt_webhook_send(&post, &answer), 0);
	return answer;
}

static void an_answer_decides_whether_to_try_again(void **state)
{
	static const struct {
		unsigned int status;
		enum nt_attempt_outcome outcome;
	} cases[] = {
		{200, NT_ATTEMPT_TAKEN},   {204, NT_ATTEMPT_TAKEN},   {302, NT_ATTEMPT_REFUSED},
		{400, NT_ATTEMPT_REFUSED}, {404, NT_ATTEMPT_REFUSED}, {408, NT_ATTEMPT_LATER},
		{410, NT_ATTEMPT_REFUSED}, {429, NT_ATTEMPT_LATER},   {500, NT_ATTEMPT_LATER},
		{503, NT_ATTEMPT_LATER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_attempt answer = send_one(cases[i].status, 5 * NT_SECOND);

		assert_int_equal(answer.outcome, cases[i].outcome);
		assert_int_equal(answer.status, cases[i].status);
		assert_int_equal(receiver.calls, 1);
	}
	assert_string_equal(receiver.call[0].signature, "(none)");
	assert_string_equal(receiver.call[0].type, "application/json");
}

static void a_receiver_says_when_to_come_back(void **state)
{
	(void)state;
	receiver.retry_after_s = 17;
	assert_int_equal(send_one(429, 5 * NT_SECOND).retry_after_ns, 17 * NT_SECOND);
}

static void an_answer_of_any_size_is_taken_and_not_read_to_its_end(void **state)
{
	(void)state;
	receiver.reply_bytes = 4 << 20;
	assert_int_equal(send_one(200, 5 * NT_SECOND).outcome, NT_ATTEMPT_TAKEN);
}

static void a_receiver_that_does_not_answer_in_time_is_tried_later(void **state)
{
	(void)state;
	assert_int_equal(send_one(0, 300 * NT_MILLISECOND).outcome, NT_ATTEMPT_LATER);
}

static void a_receiver_that_is_not_there_is_tried_later(void **state)
{
	uint16_t port = nt_httpd_port(httpd);

	(void)state;
	nt_httpd_stop(httpd);
	httpd = NULL;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
	assert_int_equal(send_one(200, 5 * NT_SECOND).outcome, NT_ATTEMPT_LATER);
}

/* ---- delivering ---------------------------------------------------------------------------------- */

static void a_secret_is_the_first_line_of_its_file(void **state)
{
	nt_autofree char *text = NULL;
	char path[SCRATCH_BYTES + 16];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/secret", dir);
	assert_int_equal(nt_receiver_secret_read(path, &text), -ENOENT);
	assert_int_equal(nt_file_create(path, 0600, "https://x/y\r\nrest\n", 18), 0);
	assert_int_equal(nt_receiver_secret_read(path, &text), 0);
	assert_string_equal(text, "https://x/y");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(nt_file_create(path, 0600, "\n", 1), 0);
	assert_int_equal(nt_receiver_secret_read(path, &(char *){NULL}), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_signature_is_that_of_the_standard),
		TEST(a_secret_is_base64_after_its_prefix_or_plain_text),
		TEST(only_http_and_https_are_urls),
		TEST(an_answer_decides_whether_to_try_again),
		TEST(a_receiver_says_when_to_come_back),
		TEST(an_answer_of_any_size_is_taken_and_not_read_to_its_end),
		TEST(a_receiver_that_does_not_answer_in_time_is_tried_later),
		TEST(a_receiver_that_is_not_there_is_tried_later),
		TEST(a_secret_is_the_first_line_of_its_file),
	};

	return cmocka_run_group_tests(tests, set_up_curl, tear_down_curl);
}
