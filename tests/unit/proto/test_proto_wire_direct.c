/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The short way of decoding means what the long one does, and leaves to it what it does not know. */
#include "tests/unit/proto/wire_ways.h"

static void whole_messages_of_every_kind_go_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < GOLDENS; i++) {
		nt_autobuf struct nt_buf bytes = {0};

		assert_int_equal(nt_message_encode(goldens[i].message, &bytes), 0);
		assert_true(check_both(&bytes));
	}
}

/* A signature is no news: the message is read as without it, and no slower. */
static void a_signature_behind_a_message_is_passed_over(void **state)
{
	static const char trailer[] = "\x42\x24"
				      "idid0123456789abcdef0123456789abcdef";

	(void)state;
	for (size_t i = 0; i < GOLDENS; i++) {
		nt_autobuf struct nt_buf bytes = {0}, signed_bytes = {0}, again = {0};

		assert_int_equal(nt_message_encode(goldens[i].message, &bytes), 0);
		add(&signed_bytes, bytes.data, bytes.len);
		add(&signed_bytes, trailer, sizeof(trailer) - 1);
		assert_true(goes_directly(&signed_bytes));
		assert_true(check_both(&signed_bytes));
		encode(&signed_bytes, &again);
		assert_int_equal(again.len, bytes.len);
		assert_memory_equal(again.data, bytes.data, bytes.len);
		add(&signed_bytes, trailer, sizeof(trailer) - 1);
		assert_false(
			goes_directly(&signed_bytes)); /* two: the long way, which takes the last */
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

static void assert_texts_of_rank(const struct nt_rank_id *rank)
{
	const char *const text[] = {rank->node,      rank->job,    rank->namespace, rank->pod,
				    rank->container, rank->gpu,    rank->cgroup,    rank->comm,
				    rank->replica,   rank->pod_uid};

	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		assert_string_equal(text[i], "");
}

/* What is not there has empty texts, none of which is NULL, whichever way it came. */
static void what_is_not_told_is_empty_on_both_ways(void **state)
{
	(void)state;
	for (uint32_t field = ENVELOPE_WINDOW; field <= ENVELOPE_HEARTBEAT; field++) {
		for (int longer = 0; longer < 2; longer++) {
			nt_auto(nt_message) struct nt_message *message = NULL;
			nt_autobuf struct nt_buf bytes = {0};

			put_bytes(&bytes, field, "", 0);
			if (longer)
				add(&bytes, unknown_field, sizeof(unknown_field));
			assert_int_equal(goes_directly(&bytes), !longer);
			message = decode(&bytes);
			assert_string_equal(message->agent, "");
			assert_string_equal(message->key, "");
			if (field == ENVELOPE_WINDOW) {
				assert_texts_of_rank(&message->window.rank);
				assert_string_equal(message->window.host.state, "");
				assert_int_equal(message->window.samples, 0);
			} else if (field == ENVELOPE_DETAIL) {
				assert_texts_of_rank(&message->detail.rank);
				assert_string_equal(message->detail.call, "");
			} else if (field == ENVELOPE_INCIDENT) {
				assert_string_equal(message->incident.cost.currency, "");
				assert_string_equal(message->incident.summary, "");
			}
		}
	}
}

/* ---- at the caps ----------------------------------------------------------------------------- */

static void arrays_are_taken_directly_at_their_cap_and_not_over_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		for (uint32_t less = 0; less < 3; less++) {
			nt_autobuf struct nt_buf at = {0};

			put_array(&at, &caps[i], caps[i].max - less, true);
			assert_true(check_both(&at));
		}
		for (uint32_t more = 1; more < 3; more++) {
			nt_autobuf struct nt_buf over = {0};

			put_array(&over, &caps[i], caps[i].max + more, true);
			assert_false(goes_directly(&over));
			assert_refused(&over);
		}
	}
}

static void data_are_taken_directly_up_to_their_cap(void **state)
{
	static const uint8_t data[NT_WIRE_MAX_STATE_BYTES + 1];
	static const size_t sizes[] = {0, 1, NT_WIRE_MAX_STATE_BYTES, NT_WIRE_MAX_STATE_BYTES + 1};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		nt_autobuf struct nt_buf bytes = {0};

		put_bytes(&bytes, STATE_DATA, data, sizes[i]);
		wrap(&bytes, ENVELOPE_STATE);
		assert_int_equal(check_both(&bytes), i < 3);
		if (i == 3)
			assert_refused(&bytes);
	}
}

static void texts_are_cut_alike_on_both_ways(void **state)
{
	char text[NT_WIRE_MAX_TEXT + 8];

	(void)state;
	for (size_t cut = NT_WIRE_MAX_TEXT - 8; cut < NT_WIRE_MAX_TEXT; cut++) {
		for (size_t len = NT_WIRE_MAX_TEXT - 4; len <= sizeof(text); len++) {
			nt_autobuf struct nt_buf bytes = {0};

			memset(text, 'a', sizeof(text));
			/* A character of three bytes, an end too early, and one that cuts it. */
			memcpy(text + cut, "\xe2\x82\xac", 3);
			put_bytes(&bytes, NODE_NAME, text, len);
			put_bytes(&bytes, NODE_JOB, text, len);
			put_bytes(&bytes, NODE_JOB, text, cut + 1);
			wrap(&bytes, ENVELOPE_NODE);
			assert_true(check_both(&bytes));
			text[cut] = '\0';
			nt_buf_clear(&bytes);
			put_bytes(&bytes, DETAIL_CALL, text, len);
			wrap(&bytes, ENVELOPE_DETAIL);
			assert_true(check_both(&bytes));
		}
	}
}

/* Sixteen bytes at a time: one more would take as many again. */
static void a_text_takes_its_length_and_one_byte(void **state)
{
	(void)state;
	for (size_t len = 0; len < 34; len++) {
		nt_autoarena struct nt_arena arena = {0};
		nt_autobuf struct nt_buf bytes = {0};
		struct nt_message message = {0};
		char text[34];

		memset(text, 'a', sizeof(text));
		put_bytes(&bytes, ENVELOPE_AGENT, text, len);
		assert_true(nt_wire_direct(bytes.data, bytes.len, &arena, &message));
		assert_int_equal(strlen(message.agent), len);
		assert_int_equal(arena.taken, len ? (len + 1 + 15) / 16 * 16 : 0);
	}
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* With so many bytes that say nothing: as long as a number may be, and longer. */
static void put_padded(struct nt_buf *buf, uint64_t value, size_t padding)
{
	const uint8_t more = 0x80, last = 0;
	uint8_t bytes[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[n++] = (uint8_t)(value | 0x80);
	bytes[n++] = (uint8_t)(value | (padding ? 0x80 : 0));
	add(buf, bytes, n);
	for (size_t i = 1; i < padding; i++)
		add(buf, &more, 1);
	if (padding)
		add(buf, &last, 1);
}

static void a_number_has_ten_bytes_at_most(void **state)
{
	static const uint64_t values[] = {0, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		for (size_t padding = 0; padding < 11; padding++) {
			nt_autobuf struct nt_buf bytes = {0};
			size_t length = 1;

			for (uint64_t rest = values[i]; rest >= 0x80; rest >>= 7)
				length++;
			put_varint(&bytes, ENVELOPE_SEQ << 3);
			put_padded(&bytes, values[i], padding);
			assert_int_equal(check_both(&bytes), length + padding <= 10);
		}
	}
}

static void a_number_of_more_than_64_bits_is_left_to_the_long_way(void **state)
{
	uint8_t bytes[] = {
		ENVELOPE_SEQ << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};

	(void)state;
	for (unsigned int last = 0; last < 0x80; last++) {
		struct nt_buf buf = {.data = bytes, .len = sizeof(bytes)};
		nt_autoarena struct nt_arena arena = {0};
		struct nt_message message = {0};

		bytes[sizeof(bytes) - 1] = (uint8_t)last;
		assert_int_equal(goes_directly(&buf), last < 2);
		if (last == 1) {
			assert_true(nt_wire_direct(bytes, sizeof(bytes), &arena, &message));
			assert_true(message.seq == UINT64_MAX);
		}
	}
}

static void each_kind_of_number_means_the_same_both_ways(void **state)
{
	static const uint64_t values[] = {
		0,
		1,
		2,
		NT_TIER_END - 1,
		NT_TIER_END,
		NT_TIER_END + 1,
		255,
		UINT32_MAX - 1ull,
		UINT32_MAX,
		UINT32_MAX + 1ull,
		UINT32_MAX + 2ull,
		1ull << 63,
		UINT64_MAX,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		nt_autobuf struct nt_buf window = {0}, detail = {0};

		put_number(&window, WINDOW_END, values[i]);
		put_number(&window, WINDOW_STEPS, values[i]);
		put_number(&window, WINDOW_OWN_TIER, values[i]);
		put_number(&window, WINDOW_ENDED, values[i]);
		wrap(&window, ENVELOPE_WINDOW);
		assert_true(check_both(&window));
		put_number(&detail, DETAIL_RESULT, values[i]);
		wrap(&detail, ENVELOPE_DETAIL);
		assert_true(check_both(&detail));
	}
}

static void eight_bytes_are_eight(void **state)
{
	static const uint8_t word[] = {1, 2, 3, 4, 5, 6, 7, 8};

	(void)state;
	for (size_t n = 0; n <= 8; n++) {
		nt_autobuf struct nt_buf bytes = {0};
		nt_autoarena struct nt_arena arena = {0};
		struct nt_message message = {0};

		put_varint(&bytes, ENVELOPE_BOOT << 3 | 1);
		add(&bytes, word, n);
		assert_int_equal(check_both(&bytes), n == 8);
		if (n < 8) {
			assert_refused(&bytes);
			continue;
		}
		assert_true(nt_wire_direct(bytes.data, bytes.len, &arena, &message));
		assert_true(message.boot == 0x0807060504030201);
	}
}

/* ---- tags and lengths ------------------------------------------------------------------------ */

static void a_tag_has_two_bytes_and_a_length_five(void **state)
{
	(void)state;
	for (size_t padding = 0; padding < 8; padding++) {
		nt_autobuf struct nt_buf tag = {0}, length = {0}, wide = {0};

		put_padded(&tag, ENVELOPE_SEQ << 3, padding);
		put_varint(&tag, 7);
		assert_int_equal(check_both(&tag), padding < 2);
		put_varint(&length, ENVELOPE_AGENT << 3 | 2);
		put_padded(&length, 1, padding);
		add(&length, "a", 1);
		assert_int_equal(check_both(&length), padding < 5);
		put_padded(&wide, ENVELOPE_WINDOW << 3 | 2, padding);
		put_varint(&wide, 0);
		assert_int_equal(check_both(&wide), padding < 1);
	}
}

static void a_length_may_reach_to_the_end_and_not_behind_it(void **state)
{
	(void)state;
	for (size_t length = 0; length < 4; length++) {
		nt_autobuf struct nt_buf bytes = {0};

		put_varint(&bytes, ENVELOPE_AGENT << 3 | 2);
		put_varint(&bytes, length);
		add(&bytes, "ab", 2);
		if (length == 2)
			assert_true(check_both(&bytes));
		else
			assert_false(goes_directly(&bytes));
		if (length > 2)
			assert_refused(&bytes);
	}
}

static void a_field_of_another_form_is_left_to_the_long_way(void **state)
{
	static const uint32_t fields[] = {ENVELOPE_AGENT, ENVELOPE_BOOT, ENVELOPE_SEQ,
					  ENVELOPE_WINDOW, ENVELOPE_HEARTBEAT};
	static const uint32_t forms[] = {2, 1, 0, 2, 2};

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		for (uint32_t form = 0; form < 8; form++) {
			nt_autobuf struct nt_buf bytes = {0};

			put_varint(&bytes, fields[i] << 3 | form);
			/* No part, the number 0, or eight bytes. */
			add(&bytes, "\0\0\0\0\0\0\0\0", form == 1 ? 8 : 1);
			assert_int_equal(check_both(&bytes), form == forms[i]);
		}
	}
}

static void a_body_comes_last_and_is_one_that_is_known(void **state)
{
	(void)state;
	for (uint32_t field = ENVELOPE_WINDOW - 1; field < ENVELOPE_HEARTBEAT + 2; field++) {
		const bool known = field >= ENVELOPE_WINDOW && field <= ENVELOPE_HEARTBEAT;
		nt_autoarena struct nt_arena arena = {0};
		nt_autobuf struct nt_buf bytes = {0};
		struct nt_message message = {0};

		put_bytes(&bytes, field, "", 0);
		assert_int_equal(nt_wire_direct(bytes.data, bytes.len, &arena, &message), known);
		if (known) {
			assert_true(check_both(&bytes));
			assert_int_equal(message.body, NT_BODY_WINDOW + field - ENVELOPE_WINDOW);
		}
		put_number(&bytes, ENVELOPE_SEQ, 1);
		assert_false(goes_directly(&bytes));
		put_bytes(&bytes, ENVELOPE_HEARTBEAT, "", 0);
		assert_false(goes_directly(&bytes));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_messages_of_every_kind_go_both_ways),
		cmocka_unit_test(a_signature_behind_a_message_is_passed_over),
		cmocka_unit_test(broken_messages_are_judged_alike),
		cmocka_unit_test(fields_twice_or_in_another_order_go_the_long_way),
		cmocka_unit_test(what_is_not_told_is_empty_on_both_ways),
		cmocka_unit_test(arrays_are_taken_directly_at_their_cap_and_not_over_it),
		cmocka_unit_test(data_are_taken_directly_up_to_their_cap),
		cmocka_unit_test(texts_are_cut_alike_on_both_ways),
		cmocka_unit_test(a_text_takes_its_length_and_one_byte),
		cmocka_unit_test(a_number_has_ten_bytes_at_most),
		cmocka_unit_test(a_number_of_more_than_64_bits_is_left_to_the_long_way),
		cmocka_unit_test(each_kind_of_number_means_the_same_both_ways),
		cmocka_unit_test(eight_bytes_are_eight),
		cmocka_unit_test(a_tag_has_two_bytes_and_a_length_five),
		cmocka_unit_test(a_length_may_reach_to_the_end_and_not_behind_it),
		cmocka_unit_test(a_field_of_another_form_is_left_to_the_long_way),
		cmocka_unit_test(a_body_comes_last_and_is_one_that_is_known),
	};

	golden_fill();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
