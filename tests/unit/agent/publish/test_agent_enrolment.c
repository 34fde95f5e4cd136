/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How an agent comes by the key of its node: an aggregator is played, and keeps it waiting. */
#include "agent/publish/enrolment.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "common/system/clock.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/scratch.h"

#define ID  "01020304"
#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define NEW "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define LINE(node, key)                                                                            \
	"{\"node\":\"" node "\",\"key\":\"neutracer-node-key-v1 " node " " ID " " key "\"}"

#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t start_ns_ = nt_clock_mono_ns();                                           \
		while (!(condition)) {                                                             \
			assert_true(nt_clock_mono_ns() - start_ns_ < 30 * NT_SECOND);              \
			(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);             \
		}                                                                                  \
	} while (0)

struct answer {
	const char *status, *body;
};

/* One answer after the other; the last for good. */
struct aggregator {
	const struct answer *answer;
	unsigned int answers;
	atomic_uint requests;
	atomic_bool was_wrong; /* some request was not as it should be */
};

static bool give(struct kube_server *server, int fd, const struct kube_request *request)
{
	struct aggregator *aggregator = server->data;
	unsigned int n = atomic_fetch_add(&aggregator->requests, 1);
	const struct answer *answer =
		&aggregator->answer[n < aggregator->answers ? n : aggregator->answers - 1];

	if (strncmp(request->head, "POST /api/v1/node-keys HTTP", 27) != 0 ||
	    !strcasestr(request->head, "\r\nAuthorization: Bearer the-token\r\n") ||
	    strcmp(request->body, "{\"node\":\"gpu-07\"}") != 0)
		atomic_store(&aggregator->was_wrong, true);
	return kube_reply(fd, answer->status, answer->body);
}

struct bench {
	char dir[SCRATCH_BYTES], token[SCRATCH_BYTES + 16];
	struct aggregator aggregator;
	struct kube_server server;
	struct nt_enrolment *enrolment;
};

static void start(struct bench *b, const struct answer *answer, unsigned int answers,
		  uint64_t renew_ns)
{
	struct nt_enrolment_options options = {
		.node = "gpu-07",
		.retry_min_ns = NT_MILLISECOND,
		.retry_max_ns = 5 * NT_MILLISECOND,
		.renew_ns = renew_ns,
	};
	FILE *file;

	b->aggregator = (struct aggregator){.answer = answer, .answers = answers};
	b->server = (struct kube_server){.handle = give, .data = &b->aggregator};
	assert_int_equal(scratch_make(b->dir), 0);
	(void)snprintf(b->token, sizeof(b->token), "%s/token", b->dir);
	file = fopen(b->token, "we");
	assert_non_null(file);
	(void)fputs("the-token\n", file);
	assert_int_equal(fclose(file), 0);
	kube_start(&b->server, 0);
	options.url = b->server.url;
	options.token_file = b->token;
	assert_int_equal(nt_enrolment_start(&options, &b->enrolment), 0);
}

static void stop(struct bench *b)
{
	nt_enrolment_stop(b->enrolment);
	kube_end(&b->server);
	scratch_remove(b->dir);
}

static void a_key_that_is_given_after_a_while_is_taken_once(void **state)
{
	static const struct answer answers[] = {
		{"503 Service Unavailable", "{\"detail\":\"busy\"}"},
		{"202 Accepted", "{\"node\":\"gpu-07\",\"key\":null}"},
		{"202 Accepted", "{\"node\":\"gpu-07\",\"key\":null}"},
		{"200 OK", LINE("gpu-07", KEY)},
	};
	struct nt_enrolment_stats stats;
	char text[NT_KUBE_REASON];
	struct nt_node_key key;
	struct bench b;

	(void)state;
	start(&b, answers, 4, 0);
	UNTIL(nt_enrolment_take(b.enrolment, &key));
	assert_memory_equal(key.id, "\1\2\3\4", 4);
	assert_int_equal(key.secret[31], 0x1f);
	assert_false(nt_enrolment_take(b.enrolment, &key));
	nt_enrolment_stats(b.enrolment, &stats);
	assert_int_equal(stats.requests, 4);
	assert_int_equal(stats.granted, 1);
	assert_int_equal(stats.failed, 1);
	nt_enrolment_fault_notice(b.enrolment, text);
	assert_string_equal(text, "");
	assert_false(atomic_load(&b.aggregator.was_wrong));
	stop(&b);
}

static void a_new_secret_brings_a_new_key(void **state)
{
	static const struct answer answers[] = {
		{"200 OK", LINE("gpu-07", KEY)},
		{"200 OK", LINE("gpu-07", NEW)},
	};
	struct nt_node_key key = {0};
	struct bench b;

	(void)state;
	start(&b, answers, 2, NT_MILLISECOND);
	UNTIL(nt_enrolment_take(b.enrolment, &key) && key.secret[0] == 0xff);
	stop(&b);
}

static void what_is_no_key_of_this_node_is_not_taken(void **state)
{
	static const struct {
		struct answer answer;
		const char *text;
	} cases[] = {
		{{"403 Forbidden", "{\"detail\":\"the token belongs to node 'gpu-08'\"}"},
		 "HTTP 403: the token belongs to node 'gpu-08'"},
		{{"200 OK", LINE("gpu-08", KEY)}, "the key of node 'gpu-08', not of 'gpu-07'"},
		{{"200 OK", "{\"key\":7}"},
		 "not one line 'neutracer-node-key-v1 NODE ID KEY', as \"neutracer node-key\" "
		 "prints it"},
		{{"200 OK", "<html>"}, "the answer is no JSON"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_enrolment_stats stats;
		char text[NT_KUBE_REASON];
		struct nt_node_key key;
		struct bench b;

		start(&b, &cases[i].answer, 1, 0);
		UNTIL((nt_enrolment_stats(b.enrolment, &stats), stats.failed > 2));
		assert_false(nt_enrolment_take(b.enrolment, &key));
		nt_enrolment_fault_notice(b.enrolment, text);
		assert_string_equal(text, cases[i].text);
		stop(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_that_is_given_after_a_while_is_taken_once),
		cmocka_unit_test(a_new_secret_brings_a_new_key),
		cmocka_unit_test(what_is_no_key_of_this_node_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
