/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras_exchange.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "common/system/clock.h"
#include "tests/unit/agent/ras/ras_status.h"

enum {
	PID = 42,
};

/* All that the other side sends is there from the start; what it was sent is in *ret_sent. */
static int exchange(const char *replies, bool ends, uint64_t until_ns,
		    struct nt_ras_answer *ret_answer, char ret_sent[256])
{
	nt_autoclose int near = -1, far = -1;
	int pair[2], r;
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	near = pair[0];
	far = pair[1];
	assert_int_equal(send(far, replies, strlen(replies), 0), (ssize_t)strlen(replies));
	if (ends)
		assert_int_equal(shutdown(far, SHUT_WR), 0);
	r = nt_ras_exchange(near, PID, until_ns, ret_answer);
	n = recv(far, ret_sent, 255, 0);
	ret_sent[n > 0 ? n : 0] = '\0';
	return r;
}

static void the_status_is_all_that_is_requested(void **state)
{
	struct nt_ras_answer answer;
	char sent[256];

	(void)state;
	assert_int_equal(
		exchange("SERVER PROTOCOL 2\nOK\n" RAS_EXAMPLE, true, UINT64_MAX, &answer, sent),
		0);
	assert_string_equal(sent, "CLIENT PROTOCOL 2\nSET FORMAT json\nSTATUS\n");
	assert_int_equal(answer.comms, 3);
}

static void a_release_without_json_is_not_asked_for_its_status(void **state)
{
	struct nt_ras_answer answer;
	char sent[256];

	(void)state;
	assert_int_equal(exchange("SERVER PROTOCOL 2\nERROR: Unknown command SET FORMAT json\n",
				  false, UINT64_MAX, &answer, sent),
			 -EPROTONOSUPPORT);
	assert_string_equal(sent, "CLIENT PROTOCOL 2\nSET FORMAT json\n");
}

static void another_service_gets_one_line(void **state)
{
	struct nt_ras_answer answer;
	char sent[256], line[200];

	(void)state;
	assert_int_equal(exchange("HTTP/1.1 400 Bad Request\n", false, UINT64_MAX, &answer, sent),
			 -EPROTONOSUPPORT);
	assert_string_equal(sent, "CLIENT PROTOCOL 2\n");
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(exchange(line, false, UINT64_MAX, &answer, sent), -EPROTONOSUPPORT);
	assert_int_equal(exchange("", true, UINT64_MAX, &answer, sent), -EPROTONOSUPPORT);
}

static void one_that_does_not_answer_is_given_up(void **state)
{
	struct nt_ras_answer answer;
	char sent[256];

	(void)state;
	assert_int_equal(exchange("SERVER PROTOCOL 2\nOK\n{\"communicators\": [", false,
				  nt_clock_mono_ns() + 20 * NT_MILLISECOND, &answer, sent),
			 -ETIMEDOUT);
	assert_int_equal(exchange("SERVER PROTOCOL 2\nOK\n{\"communicators\": [", true, UINT64_MAX,
				  &answer, sent),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_is_all_that_is_requested),
		cmocka_unit_test(a_release_without_json_is_not_asked_for_its_status),
		cmocka_unit_test(another_service_gets_one_line),
		cmocka_unit_test(one_that_does_not_answer_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
