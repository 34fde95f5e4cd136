/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The short way of decoding means what the long one does, and leaves to it what it does not know. */
#include "proto/wire_direct.h"

#include "tests/unit/wire_bytes.h"

enum {
	/* Numbers of proto/neutracer.proto. */
	ENVELOPE_HEARTBEAT = 22,
	HEARTBEAT_RANKS = 1,
	WINDOW_END = 3,
	WINDOW_STEPS = 4,
};

/* A field that no version has: the message goes the long way, and says the same. */
static const uint8_t unknown_field[] = {0xb8, 0x02, 0x00};

static bool goes_directly(const struct nt_buf *bytes)
{
	nt_autoarena struct nt_arena arena = {0};
	struct nt_message message = {0};

	return nt_wire_direct(bytes->data, bytes->len, &arena, &message);
}

static void add(struct nt_buf *buf, const void *data, size_t size)
{
	assert_int_equal(nt_buf_append(buf, data, size), 0);
}

static void encode(const struct nt_buf *bytes, struct nt_buf *ret_again)
{
	nt_auto(nt_message) struct nt_message *message = NULL;

	assert_int_equal(nt_message_decode(bytes->data, bytes->len, &message), 0);
	if (message->body != NT_BODY_NONE)
		assert_int_equal(nt_message_encode(message, ret_again), 0);
}

/* What is taken directly is taken the long way too, and is the same. */
static bool check_both(const struct nt_buf *bytes)
{
	nt_autobuf struct nt_buf with = {0}, direct = {0}, longer = {0};

	if (!goes_directly(bytes))
		return false;
	add(&with, bytes->data, bytes->len);
	add(&with, unknown_field, sizeof(unknown_field));
	assert_false(goes_directly(&with));
	encode(bytes, &direct);
	encode(&with, &longer);
	assert_int_equal(direct.len, longer.len);
	if (direct.len)
		assert_memory_equal(direct.data, longer.data, direct.len);
	return true;
}

static void whole_messages_of_every_kind_go_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < GOLDENS; i++) {
		nt_autobuf struct nt_buf bytes = {0};

		assert_int_equal(nt_message_encode(goldens[i].message, &bytes), 0);
		assert_true(check_both(&bytes));
	}
}

static void broken_messages_are_judged_alike(void **state)
{
	size_t taken = 0;

	(void)state;
	for (size_t i = 0; i < GOLDENS; i++) {
		nt_autobuf struct nt_buf bytes = {0};

		assert_int_equal(nt_message_encode(goldens[i].message, &bytes), 0);
		for (size_t at = 0; at < bytes.len; at++) {
			const uint8_t kept = bytes.data[at];

			for (unsigned int bit = 0; bit < 8; bit++) {
				bytes.data[at] = (uint8_t)(kept ^ 1U << bit);
				taken += check_both(&bytes);
			}
			bytes.data[at] = kept;
		}
		for (; bytes.len; bytes.len--)
			taken += check_both(&bytes);
	}
	assert_true(taken > 1000);
}

static void fields_twice_or_in_another_order_go_the_long_way(void **state)
{
	nt_autobuf struct nt_buf twice = {0}, turned = {0};
	nt_auto(nt_message) struct nt_message *last = NULL, *message = NULL;

	(void)state;
	put_number(&twice, HEARTBEAT_RANKS, 3);
	put_number(&twice, HEARTBEAT_RANKS, 4);
	wrap(&twice, ENVELOPE_HEARTBEAT);
	assert_false(goes_directly(&twice));
	last = decode(&twice);
	assert_int_equal(last->heartbeat_ranks, 4);

	put_number(&turned, WINDOW_STEPS, 7);
	put_number(&turned, WINDOW_END, 5);
	wrap(&turned, ENVELOPE_WINDOW);
	assert_false(goes_directly(&turned));
	message = decode(&turned);
	assert_int_equal(message->window.steps, 7);
	assert_int_equal(message->window.end_boot_ns, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_messages_of_every_kind_go_both_ways),
		cmocka_unit_test(broken_messages_are_judged_alike),
		cmocka_unit_test(fields_twice_or_in_another_order_go_the_long_way),
	};

	golden_fill();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
