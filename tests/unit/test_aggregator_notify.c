/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/notify.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "aggregator/notify/webhook.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/httpd.h"
#include "common/num.h"
#include "tests/api/picture.h"
#include "tests/unit/scratch.h"

/* A test vector of the Standard Webhooks libraries. */
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

enum {
	MAX_CALLS = 16,
	PATIENCE_S = 20,
};

/* ---- a receiver ---------------------------------------------------------------------------------- */

struct call {
	char id[160], time[32], signature[64], body[4096], type[64];
};

static struct receiver {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct call call[MAX_CALLS];
	size_t calls;
	/* The answers to the first calls; then 204. 0: none at all, until released. */
	unsigned int script[MAX_CALLS];
	uint32_t retry_after_s;
	size_t reply_bytes;
	bool released;
} receiver = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

static void copy_header(const struct nt_httpd_request *request, const char *name, char *to,
			size_t size)
{
	const char *value = nt_httpd_header(request, name);

	(void)snprintf(to, size, "%s", value ? value : "(none)");
}

static int take_call(void *data, const struct nt_httpd_request *request,
		     struct nt_httpd_reply *reply)
{
	struct call *call;
	size_t len;
	const char *body = nt_httpd_body(request, &len);

	(void)data;
	pthread_mutex_lock(&receiver.lock);
	call = &receiver.call[receiver.calls % MAX_CALLS];
	reply->status = receiver.script[receiver.calls % MAX_CALLS];
	copy_header(request, "webhook-id", call->id, sizeof(call->id));
	copy_header(request, "webhook-timestamp", call->time, sizeof(call->time));
	copy_header(request, "webhook-signature", call->signature, sizeof(call->signature));
	copy_header(request, "Content-Type", call->type, sizeof(call->type));
	(void)snprintf(call->body, sizeof(call->body), "%.*s", (int)len, body ? body : "");
	receiver.calls++;
	pthread_cond_broadcast(&receiver.changed);
	while (!reply->status && !receiver.released)
		pthread_cond_wait(&receiver.changed, &receiver.lock);
	if (!reply->status)
		reply->status = 204;
	if (reply->status == 429)
		reply->retry_after_s = receiver.retry_after_s;
	len = receiver.reply_bytes;
	pthread_mutex_unlock(&receiver.lock);
	for (size_t i = 0; i < len; i += 4096) {
		char page[4096] = "";

		assert_int_equal(nt_buf_append(&reply->body, page, sizeof(page)), 0);
	}
	return 0;
}

static const struct nt_httpd_route routes[] = {
	{"POST", "/hook/{secret}", NT_HTTPD_OPEN, "text/plain", NULL, take_call},
};

/* Until so many calls have come; fails after 20 s. */
static void await_calls(size_t count)
{
	struct timespec until;
	int r = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&receiver.lock);
	while (receiver.calls < count && r == 0)
		r = pthread_cond_timedwait(&receiver.changed, &receiver.lock, &until);
	pthread_mutex_unlock(&receiver.lock);
	assert_int_equal(r, 0);
}

static void release_calls(void)
{
	pthread_mutex_lock(&receiver.lock);
	receiver.released = true;
	pthread_cond_broadcast(&receiver.changed);
	pthread_mutex_unlock(&receiver.lock);
}

/* ---- fixtures ------------------------------------------------------------------------------------ */

static char dir[SCRATCH_BYTES], url[64];
static struct nt_httpd *httpd;
static struct nt_store *store;
static struct nt_notify *notify;
static const char *const names[] = {"webhook"};

static int open_store_of(const char *const *name, size_t count)
{
	char path[SCRATCH_BYTES + 16];
	struct nt_store_error error;

	(void)snprintf(path, sizeof(path), "%s/store.db", dir);
	return nt_store_open(
		&(struct nt_store_options){.path = path, .receiver = name, .receivers = count},
		&store, &error);
}

static int open_store(void)
{
	return open_store_of(names, 1);
}

static void reopen_store_of(const char *const *name, size_t count)
{
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_store_of(name, count), 0);
}

static int set_up(void **state)
{
	const struct nt_httpd_options options = {
		.listen = "127.0.0.1:0",
		.route = routes,
		.routes = 1,
	};
	struct nt_httpd_error error;

	(void)state;
	receiver.calls = receiver.reply_bytes = 0;
	receiver.released = false;
	for (size_t i = 0; i < MAX_CALLS; i++)
		receiver.script[i] = 204;
	if (scratch_make(dir) || open_store() || nt_httpd_start(&options, &httpd, &error))
		return -1;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/hook/s3cret", nt_httpd_port(httpd));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	release_calls();
	nt_notify_stop(notify);
	nt_httpd_stop(httpd);
	nt_store_close(store);
	notify = NULL;
	httpd = NULL;
	store = NULL;
	scratch_remove(dir);
	return 0;
}

static void start_to(const char *to, struct nt_notify_options options)
{
	const struct nt_notify_receiver one = {.name = "webhook", .url = to, .secret = SECRET};

	options.store = store;
	options.receiver = &one;
	options.receivers = 1;
	if (!options.first_retry_ns)
		options.first_retry_ns = NT_MILLISECOND;
	assert_int_equal(nt_notify_start(&options, &notify), 0);
	nt_store_on_queued(store, nt_notify_wake, notify);
}

static void start(void)
{
	start_to(url, (struct nt_notify_options){0});
}

static void put(const char *id, const char *state, uint64_t version)
{
	struct nt_incident incident = nt_test_incident(id, state, &nt_test_rank_5, 1);
	const struct nt_sink sink = nt_store_sink(store);

	incident.version = version;
	assert_int_equal(sink.incident(sink.data, &incident), 0);
}

/* Until nothing waits in the outbox. */
static void await_empty(void)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	struct nt_store_stats stats;

	for (int i = 0; i < PATIENCE_S * 500; i++) {
		nt_store_stats(store, &stats);
		if (!stats.outbox_now)
			return;
		(void)nanosleep(&pause, NULL);
	}
	fail_msg("%llu messages still wait", (unsigned long long)stats.outbox_now);
}

static uint64_t time_of(const struct call *call)
{
	uint64_t time_s = 0;

	assert_int_equal(nt_num_u64(call->time, strlen(call->time), 1, UINT64_MAX, &time_s), 0);
	return time_s;
}

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
	assert_true(nt_webhook_url_is_valid("http://host/path"));
	assert_true(nt_webhook_url_is_valid("https://host:1/path?key=value"));
	assert_false(nt_webhook_url_is_valid("file:///etc/passwd"));
	assert_false(nt_webhook_url_is_valid("gopher://host/"));
	assert_false(nt_webhook_url_is_valid("host/path"));
	assert_false(nt_webhook_url_is_valid(""));
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

static void one_firing_and_one_resolved_message_arrive_signed(void **state)
{
	struct nt_notify_stats stats;
	struct nt_webhook_key key;
	char text[NT_WEBHOOK_SIGNATURE];
	const struct call *call = receiver.call;

	(void)state;
	start();
	for (uint64_t version = 1; version < 6; version++)
		put("a1", "firing", version);
	await_calls(1);
	put("a1", "resolved", 6);
	await_calls(2);
	await_empty();
	assert_int_equal(receiver.calls, 2);
	assert_string_equal(call[0].id, "msg_a1_firing_critical");
	assert_string_equal(call[1].id, "msg_a1_resolved");
	assert_non_null(strstr(call[0].body, "{\"type\":\"incident.firing\""));
	assert_non_null(strstr(call[1].body, "{\"type\":\"incident.resolved\""));
	assert_int_equal(nt_webhook_key_read(SECRET, &key), 0);
	for (int i = 0; i < 2; i++) {
		nt_webhook_sign(&key, call[i].id, time_of(&call[i]), call[i].body,
				strlen(call[i].body), text);
		assert_string_equal(call[i].signature, text);
	}
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.sent, 2);
	assert_int_equal(stats.retried, 0);
}

static void a_receiver_in_trouble_gets_the_same_message_until_it_takes_it(void **state)
{
	struct nt_notify_stats stats;

	(void)state;
	receiver.script[0] = 500;
	receiver.script[1] = 503;
	receiver.script[2] = 408;
	start();
	put("a1", "firing", 1);
	await_calls(4);
	await_empty();
	assert_int_equal(receiver.calls, 4);
	for (int i = 1; i < 4; i++) {
		assert_string_equal(receiver.call[i].id, receiver.call[0].id);
		assert_string_equal(receiver.call[i].body, receiver.call[0].body);
	}
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.sent, 1);
	assert_int_equal(stats.retried, 3);
}

static void a_message_that_is_refused_is_sent_once_and_its_resolution_never(void **state)
{
	struct nt_notify_stats stats;

	(void)state;
	receiver.script[0] = 404;
	start();
	put("a1", "firing", 1);
	put("a1", "resolved", 2);
	await_calls(1);
	await_empty();
	assert_int_equal(receiver.calls, 1);
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.failed, 1);
}

static void a_message_is_given_up_in_the_end(void **state)
{
	struct nt_notify_stats stats;

	(void)state;
	for (size_t i = 0; i < MAX_CALLS; i++)
		receiver.script[i] = 500;
	start_to(url, (struct nt_notify_options){.give_up_ns = 200 * NT_MILLISECOND,
						 .first_retry_ns = 50 * NT_MILLISECOND});
	put("a1", "firing", 1);
	await_empty();
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.expired, 1);
	assert_int_equal(stats.sent, 0);
}

static void a_retry_waits_as_long_as_the_receiver_asks(void **state)
{
	struct nt_outbox_message message;
	uint64_t next_ns, now_ns = nt_clock_real_ns();

	(void)state;
	receiver.script[0] = 429;
	receiver.retry_after_s = 1000;
	start();
	put("a1", "firing", 1);
	await_calls(1);
	nt_notify_stop(notify);
	notify = NULL;
	assert_int_equal(nt_store_outbox_next(store, "webhook", now_ns, &message, &next_ns), 0);
	assert_true(next_ns >= now_ns + 1000 * NT_SECOND);
}

static void what_waits_is_delivered_by_the_next_notifier(void **state)
{
	(void)state;
	put("a1", "firing", 1);
	put("a1", "resolved", 2);
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_store(), 0);
	start();
	await_calls(2);
	await_empty();
	assert_string_equal(receiver.call[0].id, "msg_a1_firing_critical");
	assert_string_equal(receiver.call[1].id, "msg_a1_resolved");
}

static void the_end_does_not_wait_for_a_receiver_that_hangs(void **state)
{
	struct nt_outbox_message message;
	uint64_t begun_ns, next_ns;

	(void)state;
	receiver.script[0] = 0;
	start();
	put("a1", "firing", 1);
	await_calls(1);
	begun_ns = nt_clock_mono_ns();
	nt_notify_stop(notify);
	notify = NULL;
	assert_true(nt_clock_mono_ns() - begun_ns < 6 * NT_SECOND);
	/* It may have been taken, or not: it is due again, under the same id. */
	assert_int_equal(
		nt_store_outbox_next(store, "webhook", nt_clock_real_ns(), &message, &next_ns), 1);
	assert_string_equal(message.id, receiver.call[0].id);
	assert_int_equal(message.attempts, 2);
	nt_outbox_message_release(&message);
}

static void a_message_to_nobody_fails(void **state)
{
	struct nt_notify_stats stats;

	(void)state;
	put("a1", "firing", 1);
	reopen_store_of((const char *const[]){"other"}, 1);
	assert_int_equal(nt_notify_start(&(struct nt_notify_options){.store = store}, &notify), 0);
	await_empty();
	nt_notify_stats(notify, &stats);
	assert_int_equal(stats.failed, 1);
	assert_int_equal(receiver.calls, 0);
}

static void nobody_waits_for_the_receiver_of_another(void **state)
{
	const struct nt_notify_receiver two[] = {
		{.name = "hangs", .url = url},
		{.name = "webhook", .url = url},
	};
	struct nt_notify_options options = {.receiver = two, .receivers = 2};

	(void)state;
	reopen_store_of((const char *const[]){"hangs", "webhook"}, 2);
	options.store = store;
	receiver.script[0] = 0;
	assert_int_equal(nt_notify_start(&options, &notify), 0);
	nt_store_on_queued(store, nt_notify_wake, notify);
	put("a1", "firing", 1);
	/* Whichever of the two came first hangs. */
	await_calls(2);
	assert_string_equal(receiver.call[0].id, receiver.call[1].id);
	release_calls();
	await_empty();
}

static void a_bad_url_or_secret_is_refused(void **state)
{
	const struct nt_notify_receiver bad[] = {
		{.name = "webhook", .url = "ftp://host/"},
		{.name = "webhook", .url = "http://host/", .secret = "whsec_?"},
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct nt_notify_options options = {
			.store = store,
			.receiver = &bad[i],
			.receivers = 1,
		};

		assert_int_equal(nt_notify_start(&options, &notify), -EINVAL);
		assert_null(notify);
	}
}

static void a_secret_is_the_first_line_of_its_file(void **state)
{
	nt_autofree char *text = NULL;
	char path[SCRATCH_BYTES + 16];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/secret", dir);
	assert_int_equal(nt_notify_read_secret(path, &text), -ENOENT);
	assert_int_equal(nt_file_create(path, 0600, "https://x/y\r\nrest\n", 18), 0);
	assert_int_equal(nt_notify_read_secret(path, &text), 0);
	assert_string_equal(text, "https://x/y");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(nt_file_create(path, 0600, "\n", 1), 0);
	assert_int_equal(nt_notify_read_secret(path, &(char *){NULL}), -EINVAL);
}

static int set_up_curl(void **state)
{
	(void)state;
	return curl_global_init(CURL_GLOBAL_DEFAULT) ? -1 : 0;
}

static int tear_down_curl(void **state)
{
	(void)state;
	curl_global_cleanup();
	return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

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
		TEST(one_firing_and_one_resolved_message_arrive_signed),
		TEST(a_receiver_in_trouble_gets_the_same_message_until_it_takes_it),
		TEST(a_message_that_is_refused_is_sent_once_and_its_resolution_never),
		TEST(a_message_is_given_up_in_the_end),
		TEST(a_retry_waits_as_long_as_the_receiver_asks),
		TEST(what_waits_is_delivered_by_the_next_notifier),
		TEST(the_end_does_not_wait_for_a_receiver_that_hangs),
		TEST(a_message_to_nobody_fails),
		TEST(nobody_waits_for_the_receiver_of_another),
		TEST(a_bad_url_or_secret_is_refused),
		TEST(a_secret_is_the_first_line_of_its_file),
	};

	return cmocka_run_group_tests(tests, set_up_curl, tear_down_curl);
}
