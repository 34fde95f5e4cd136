/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/wire.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct nt_message *decode_again(const struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_message *decoded = NULL;

	assert_int_equal(nt_message_encode(message, &buf), 0);
	assert_int_equal(nt_message_decode(buf.data, buf.len, &decoded), 0);
	return decoded;
}

static void a_heartbeat_comes_back(void **state)
{
	struct nt_message in = {
		.agent = "node-1",
		.key = "job",
		.boot = 0x1122334455667788,
		.seq = 7,
		.boot_ns = 100,
		.real_ns = 200,
		.watermark_boot_ns = 90,
		.body = NT_BODY_HEARTBEAT,
		.heartbeat_ranks = 8,
	};
	nt_auto(nt_message) struct nt_message *out = decode_again(&in);

	(void)state;
	assert_int_equal(out->body, NT_BODY_HEARTBEAT);
	assert_string_equal(out->agent, "node-1");
	assert_string_equal(out->key, "job");
	assert_int_equal(out->boot, in.boot);
	assert_int_equal(out->seq, 7);
	assert_int_equal(out->boot_ns, 100);
	assert_int_equal(out->real_ns, 200);
	assert_int_equal(out->watermark_boot_ns, 90);
	assert_int_equal(out->heartbeat_ranks, 8);
}

static void an_empty_window_has_empty_texts_and_no_arrays(void **state)
{
	struct nt_message in = {.body = NT_BODY_WINDOW};
	nt_auto(nt_message) struct nt_message *out = decode_again(&in);

	(void)state;
	assert_int_equal(out->body, NT_BODY_WINDOW);
	assert_string_equal(out->agent, "");
	assert_string_equal(out->window.rank.node, "");
	assert_string_equal(out->window.host.state, "");
	assert_int_equal(out->window.comms, 0);
	assert_null(out->window.comm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_heartbeat_comes_back),
		cmocka_unit_test(an_empty_window_has_empty_texts_and_no_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
