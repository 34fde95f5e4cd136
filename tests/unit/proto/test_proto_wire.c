/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages come through as they went in, whatever another version put there. */
#include "proto/wire_map.h"

#include "tests/unit/proto/wire_bytes.h"

/* ---- golden bytes ---------------------------------------------------------------------------- */

/* Differences go both ways and wrap; columns of zeros are not there. */
static void rows_by_column_hold_any_number(void **state)
{
	struct nt_sample sample[] = {
		{.comm = UINT64_MAX, .number = 7, .op = NT_OP_GROUP_END, .bytes = 0},
		{.comm = 0, .number = UINT64_MAX, .op = NT_OP_ALL_REDUCE, .bytes = 0},
		{.comm = 1ULL << 63, .number = 0, .op = NT_OP_UNKNOWN, .bytes = 0},
	};
	struct nt_signature recent[] = {{.type = UINT32_MAX}, {.type = 0}, {.type = 5}};
	struct nt_comm_window comm = {.recent = recent, .recents = 3, .name = ""};
	struct nt_message in = {
		.body = NT_BODY_WINDOW,
		.window = {.sample = sample, .samples = 3, .comm = &comm, .comms = 1},
	};
	nt_auto(nt_message) struct nt_message *out = decode_again(&in);

	(void)state;
	assert_int_equal(out->window.samples, 3);
	assert_memory_equal(out->window.sample, sample, sizeof(sample));
	assert_int_equal(out->window.comm[0].recents, 3);
	assert_int_equal(out->window.comm[0].recent[0].type, UINT32_MAX);
	assert_int_equal(out->window.comm[0].recent[1].type, 0);
	assert_int_equal(out->window.comm[0].recent[2].type, 5);
}

/* Also where it says the same in every row; only what is nothing in all of them is left out. */
static void a_column_that_says_anything_is_told(void **state)
{
	struct nt_sample sample[3] = {{0}};
	struct nt_message in = {
		.body = NT_BODY_WINDOW,
		.window = {.sample = sample, .samples = 3},
	};
	nt_autobuf struct nt_buf zeros = {0};

	(void)state;
	assert_int_equal(nt_message_encode(&in, &zeros), 0);
	for (int i = 0; i < 3; i++) {
		for (uint64_t value = 1; value < 3; value++) {
			nt_auto(nt_message) struct nt_message *out = NULL;
			nt_autobuf struct nt_buf told = {0};

			for (int j = 0; j < 3; j++)
				sample[j] = (struct nt_sample){.number = j >= i ? value : 0};
			assert_int_equal(nt_message_encode(&in, &told), 0);
			/* Its tag, its length and a difference for each row. */
			assert_int_equal(told.len, zeros.len + 5);
			out = decode_again(&in);
			assert_int_equal(out->window.samples, 3);
			assert_memory_equal(out->window.sample, sample, sizeof(sample));
		}
	}
}

static void an_operation_of_no_name_is_unknown_in_a_column_too(void **state)
{
	struct nt_sample sample[] = {{.op = (enum nt_op)1000}, {.op = NT_OP_ALL_REDUCE}};
	struct nt_message in = {
		.body = NT_BODY_WINDOW,
		.window = {.sample = sample, .samples = 2},
	};
	nt_auto(nt_message) struct nt_message *out = decode_again(&in);

	(void)state;
	assert_int_equal(out->window.sample[0].op, NT_OP_UNKNOWN);
	assert_int_equal(out->window.sample[1].op, NT_OP_ALL_REDUCE);
}

static void no_rows_over_their_cap_are_sent(void **state)
{
	struct nt_sample *sample = calloc(NT_WIRE_MAX_SAMPLES + 1, sizeof(*sample));
	struct nt_message in = {
		.body = NT_BODY_WINDOW,
		.window = {.sample = sample, .samples = NT_WIRE_MAX_SAMPLES},
	};
	nt_autobuf struct nt_buf at = {0}, over = {0};

	(void)state;
	assert_non_null(sample);
	assert_int_equal(nt_message_encode(&in, &at), 0);
	in.window.samples++;
	assert_int_equal(nt_message_encode(&in, &over), -EMSGSIZE);
	free(sample);
}

static void a_message_has_a_mebibyte_and_not_a_byte_more(void **state)
{
	static uint32_t ranks[NT_WIRE_MAX_CULPRITS];
	struct nt_culprit culprit[13] = {{0}};
	struct nt_message in = {
		.body = NT_BODY_INCIDENT,
		.incident = {.culprit = culprit, .culprits = 13},
	};
	char name[200] = "";
	size_t len = 0, left;
	int r;

	(void)state;
	memset(ranks, 0xff, sizeof(ranks)); /* five bytes each */
	for (int i = 0; i < 12; i++)
		culprit[i] =
			(struct nt_culprit){.ranks = ranks, .rank_count = NT_WIRE_MAX_CULPRITS};
	left = NT_WIRE_MAX_BYTES - 12 * 5 * NT_WIRE_MAX_CULPRITS;
	culprit[12] = (struct nt_culprit){.ranks = ranks, .rank_count = left / 5 - 50};
	culprit[12].name = name;
	/* Letter by letter, until it is full. */
	for (size_t i = 0; i < sizeof(name) - 1; i++) {
		nt_autobuf struct nt_buf buf = {0};

		r = nt_message_encode(&in, &buf);
		if (r < 0)
			break;
		len = buf.len;
		name[i] = 'x';
	}
	assert_int_equal(r, -EMSGSIZE);
	assert_int_equal(len, NT_WIRE_MAX_BYTES);
}

static void unknown_fields_are_ignored_wherever_they_are(void **state)
{
	nt_autobuf struct nt_buf window = {0}, buf = {0};
	nt_auto(nt_message) struct nt_message *message = NULL;

	(void)state;
	put_number(&buf, 1000, 7); /* in a rank */
	put_number(&buf, 1, 3);
	wrap(&buf, WINDOW_RANK);
	put_bytes(&buf, 1001, "later", 5); /* in a window */
	put_number(&buf, 4, 9);
	wrap(&buf, ENVELOPE_WINDOW);
	put_number(&buf, 500, UINT64_MAX); /* in the envelope: all that there is */
	put_fixed64(&buf, 501, "12345678");
	put_bytes(&buf, 502, "", 0);
	put_varint(&buf, 503 << 3 | 5);
	assert_int_equal(nt_buf_append(&buf, "1234", 4), 0);
	message = decode(&buf);
	assert_int_equal(message->body, NT_BODY_WINDOW);
	assert_int_equal(message->window.rank.rank, 3);
	assert_int_equal(message->window.steps, 9);
}

static void a_body_of_a_later_version_is_none(void **state)
{
	nt_autobuf struct nt_buf buf = {0}, out = {0};
	nt_auto(nt_message) struct nt_message *message = NULL;

	(void)state;
	put_number(&buf, 1, 1);
	wrap(&buf, 30);
	put_bytes(&buf, ENVELOPE_AGENT, "a", 1);
	message = decode(&buf);
	assert_int_equal(message->body, NT_BODY_NONE);
	assert_string_equal(message->agent, "a");
	assert_int_equal(nt_message_encode(message, &out), -EINVAL);
}

/* ---- plain messages -------------------------------------------------------------------------- */

static void an_empty_body_has_empty_texts_and_no_arrays(void **state)
{
	(void)state;
	for (int i = NT_BODY_WINDOW; i <= NT_BODY_HEARTBEAT; i++) {
		struct nt_message in = {.body = (enum nt_body)i};
		nt_auto(nt_message) struct nt_message *out = decode_again(&in);

		assert_int_equal(out->body, i);
		assert_string_equal(out->agent, "");
		assert_string_equal(out->key, "");
		if (i == NT_BODY_WINDOW) {
			assert_string_equal(out->window.rank.node, "");
			assert_string_equal(out->window.host.state, "");
			assert_int_equal(out->window.comms, 0);
			assert_null(out->window.comm);
		} else if (i == NT_BODY_INCIDENT) {
			assert_string_equal(out->incident.cost.currency, "");
			assert_null(out->incident.culprit);
		}
	}
}

static void no_bytes_are_a_message_without_a_body(void **state)
{
	nt_auto(nt_message) struct nt_message *message = NULL;

	(void)state;
	assert_int_equal(nt_message_decode("", 0, &message), 0);
	assert_int_equal(message->body, NT_BODY_NONE);
	assert_string_equal(message->key, "");
}

static void an_empty_window_costs_next_to_nothing(void **state)
{
	struct nt_message in = {.body = NT_BODY_WINDOW};
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_int_equal(nt_message_encode(&in, &buf), 0);
	assert_int_equal(buf.len, 3);
}

static void what_has_but_one_field_is_not_left_out(void **state)
{
	uint32_t bucket[] = {0}, count[] = {0};
	struct nt_peer_time peer = {.duration = {.bucket = bucket, .count = count, .buckets = 1}};
	struct nt_message in = {
		.body = NT_BODY_WINDOW,
		.window = {.peer = &peer, .peers = 1, .inside = {.in_call = true}},
	};
	nt_auto(nt_message) struct nt_message *out = decode_again(&in);

	(void)state;
	assert_int_equal(out->window.peer[0].duration.buckets, 1);
	assert_true(out->window.inside.in_call);
}

static void encoding_appends_and_leaves_the_buffer_alone_on_failure(void **state)
{
	struct nt_message in = {.body = NT_BODY_HEARTBEAT, .heartbeat_ranks = 8};
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_int_equal(nt_buf_append(&buf, "before", 6), 0);
	assert_int_equal(nt_message_encode(&in, &buf), 0);
	assert_true(buf.len > 6);
	assert_memory_equal(buf.data, "before", 6);
	buf.len = 6;
	in.body = NT_BODY_NONE;
	assert_int_equal(nt_message_encode(&in, &buf), -EINVAL);
	in.body = (enum nt_body)99;
	assert_int_equal(nt_message_encode(&in, &buf), -EINVAL);
	assert_int_equal(buf.len, 6);
	in.body = NT_BODY_HEARTBEAT;
	buf.max = 8;
	assert_int_equal(nt_message_encode(&in, &buf), -ENOBUFS);
	assert_int_equal(buf.len, 6);
	nt_message_free(NULL);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void text_is_mended_on_both_ways(void **state)
{
	char agent[] = "a\nb\x1b[31m\xff\xc3=\xe2\x80\xaegpj\xc2\x9bz\xc3\xa9";
	struct nt_message in = {.agent = agent, .body = NT_BODY_HEARTBEAT};
	nt_auto(nt_message) struct nt_message *encoded = decode_again(&in), *decoded = NULL;
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_string_equal(encoded->agent, "a?b?[31m\?\?=?gpj?z\xc3\xa9");
	put_bytes(&buf, ENVELOPE_AGENT, agent, strlen(agent));
	decoded = decode(&buf);
	assert_string_equal(decoded->agent, "a?b?[31m\?\?=?gpj?z\xc3\xa9");
}

static void long_text_is_cut_between_characters(void **state)
{
	char text[NT_WIRE_MAX_TEXT + 100];
	nt_autobuf struct nt_buf buf = {0};
	nt_auto(nt_message) struct nt_message *message = NULL;
	struct nt_message in = {.key = text, .body = NT_BODY_HEARTBEAT};

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text + NT_WIRE_MAX_TEXT - 1, "\xc3\xa9", 2);
	put_bytes(&buf, ENVELOPE_AGENT, text, sizeof(text));
	message = decode(&buf);
	assert_int_equal(strlen(message->agent), NT_WIRE_MAX_TEXT - 1);
	nt_message_free(nt_take(message));

	memcpy(text + NT_WIRE_MAX_TEXT - 2, "\xc3\xa9yz", 4);
	text[sizeof(text) - 1] = '\0';
	message = decode_again(&in);
	assert_int_equal(strlen(message->key), NT_WIRE_MAX_TEXT);
	assert_memory_equal(message->key + NT_WIRE_MAX_TEXT - 2, "\xc3\xa9", 3);
}

/* ---- time and names -------------------------------------------------------------------------- */

static void boot_times_become_real_times_and_never_wrap(void **state)
{
	struct nt_message message = {.boot_ns = 1000, .real_ns = 5000};

	(void)state;
	assert_int_equal(nt_message_real_ns(&message, 1000), 5000);
	assert_int_equal(nt_message_real_ns(&message, 1200), 5200);
	assert_int_equal(nt_message_real_ns(&message, 800), 4800);
	assert_int_equal(nt_message_real_ns(&message, 0), 4000);
	assert_int_equal(nt_message_real_ns(&message, UINT64_MAX), UINT64_MAX);
	message.real_ns = 10;
	assert_int_equal(nt_message_real_ns(&message, 0), 0);
	assert_int_equal(nt_message_real_ns(&message, 990), 0);
	assert_int_equal(nt_message_real_ns(&message, 991), 1);
	message = (struct nt_message){.boot_ns = UINT64_MAX, .real_ns = UINT64_MAX};
	assert_int_equal(nt_message_real_ns(&message, UINT64_MAX), UINT64_MAX);
	assert_int_equal(nt_message_real_ns(&message, 0), 0);
}

static void everything_has_a_name(void **state)
{
	(void)state;
	for (int i = 1; i < NT_OP_END; i++)
		assert_string_not_equal(nt_op_name((enum nt_op)i), "unknown");
	for (int i = 1; i < NT_TIER_END; i++)
		assert_string_not_equal(nt_tier_name((enum nt_tier)i), "unknown");
	for (int i = 1; i < NT_LIBRARY_END; i++)
		assert_string_not_equal(nt_library_name((enum nt_library)i), "unknown");
	assert_string_equal(nt_op_name(NT_OP_ALL_REDUCE), "all-reduce");
	assert_string_equal(nt_op_name(NT_OP_WAIT_SIGNAL), "wait-signal");
	assert_string_equal(nt_op_name(NT_OP_END), "unknown");
	assert_string_equal(nt_op_name((enum nt_op) - 1), "unknown");
	assert_string_equal(nt_tier_name(NT_TIER_T2), "T2");
	assert_string_equal(nt_tier_name(NT_TIER_END), "unknown");
	assert_string_equal(nt_library_name(NT_LIBRARY_HCCL), "hccl");
	assert_string_equal(nt_library_name(NT_LIBRARY_END), "unknown");
}

static void five_operations_synchronise(void **state)
{
	int n = 0;

	(void)state;
	for (int i = 0; i < NT_OP_END; i++)
		n += nt_op_synchronises((enum nt_op)i);
	assert_int_equal(n, 5);
	assert_true(nt_op_synchronises(NT_OP_ALL_REDUCE));
	assert_true(nt_op_synchronises(NT_OP_ALL_GATHER));
	assert_true(nt_op_synchronises(NT_OP_REDUCE_SCATTER));
	assert_true(nt_op_synchronises(NT_OP_ALL_TO_ALL));
	assert_true(nt_op_synchronises(NT_OP_BARRIER));
}

/* What another field of the message holds is not taken for them. */
static void a_message_without_rows_has_no_columns(void **state)
{
	struct nt_comm_op op = {.calls = 7, .duration = {.sum_ns = 5}};
	struct nt_comm_window comm = {.id = 9, .op = &op, .ops = 1};
	const struct nt_message in = {
		.body = NT_BODY_WINDOW,
		.window = {.rank = {.rank = 3},
			   .comm = &comm,
			   .comms = 1,
			   .host = {.on_cpu_ns = 11},
			   .inside = {.in_call = true}},
	};
	nt_auto(nt_message) struct nt_message *out = decode_again(&in);

	(void)state;
	assert_int_equal(out->window.samples, 0);
	assert_null(out->window.sample);
	assert_int_equal(out->window.host.on_cpu_ns, 11);
	assert_int_equal(out->window.comms, 1);
	assert_int_equal(out->window.comm[0].recents, 0);
	assert_null(out->window.comm[0].recent);
	assert_int_equal(out->window.comm[0].op[0].duration.sum_ns, 5);
}

static void encode_operation(enum nt_op op, enum nt_tier tier, struct nt_buf *ret_bytes)
{
	struct nt_sample samples[] = {{.number = 1, .op = NT_OP_SEND}, {.number = 2, .op = op}};
	struct nt_signature recent[] = {{.number = 1, .op = op}, {.number = 2, .op = NT_OP_SEND}};
	struct nt_comm_op row = {.op = op, .calls = 1};
	struct nt_comm_window comm = {
		.id = 9, .op = &row, .ops = 1, .recent = recent, .recents = 2};
	const struct nt_message message = {
		.body = NT_BODY_WINDOW,
		.window = {.own_tier = tier,
			   .comm = &comm,
			   .comms = 1,
			   .sample = samples,
			   .samples = 2,
			   .inside = {.in_call = true, .op = op}},
	};

	assert_int_equal(nt_message_encode(&message, ret_bytes), 0);
}

/* Not even to a reader of a later version, for whom it may mean something. */
static void a_number_outside_an_enumeration_is_sent_as_unknown(void **state)
{
	nt_autobuf struct nt_buf unknown = {0}, last = {0};

	(void)state;
	encode_operation(NT_OP_UNKNOWN, NT_TIER_UNKNOWN, &unknown);
	for (int i = 0; i < 3; i++) {
		nt_autobuf struct nt_buf beyond = {0};

		encode_operation((enum nt_op)(NT_OP_END + i), (enum nt_tier)(NT_TIER_END + i),
				 &beyond);
		assert_int_equal(beyond.len, unknown.len);
		assert_memory_equal(beyond.data, unknown.data, unknown.len);
	}
	encode_operation((enum nt_op)(NT_OP_END - 1), (enum nt_tier)(NT_TIER_END - 1), &last);
	assert_true(last.len > unknown.len);
}

/* Of the 400 bytes that a rank may take in a second: a stage in the middle of a pipeline has four. */
static void times_by_peer_take_few_bytes(void **state)
{
	struct nt_transfer transfer[4];
	struct nt_message message = {.body = NT_BODY_WINDOW, .window = {.transfer = transfer}};
	size_t len[5] = {0};

	(void)state;
	for (size_t n = 0; n <= 4; n++) {
		nt_autobuf struct nt_buf buf = {0};

		if (n)
			transfer[n - 1] = (struct nt_transfer){
				.comm = 0x923456789abcdef1,
				.peer = n < 3 ? 1 : 3,
				.op = n % 2 ? NT_OP_SEND : NT_OP_RECV,
				.calls = 8,
				.bytes = 4 << 20,
				.min_ns = 1500000 + n * 70001,
			};
		message.window.transfers = n;
		assert_int_equal(nt_message_encode(&message, &buf), 0);
		len[n] = buf.len;
		print_message("%zu: %zu bytes more\n", n, len[n] - len[0]);
	}
	assert_true(len[1] - len[0] <= 50);
	assert_true(len[4] - len[0] <= 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_by_peer_take_few_bytes),
		cmocka_unit_test(rows_by_column_hold_any_number),
		cmocka_unit_test(a_column_that_says_anything_is_told),
		cmocka_unit_test(an_operation_of_no_name_is_unknown_in_a_column_too),
		cmocka_unit_test(no_rows_over_their_cap_are_sent),
		cmocka_unit_test(a_message_has_a_mebibyte_and_not_a_byte_more),
		cmocka_unit_test(unknown_fields_are_ignored_wherever_they_are),
		cmocka_unit_test(a_body_of_a_later_version_is_none),
		cmocka_unit_test(an_empty_body_has_empty_texts_and_no_arrays),
		cmocka_unit_test(no_bytes_are_a_message_without_a_body),
		cmocka_unit_test(an_empty_window_costs_next_to_nothing),
		cmocka_unit_test(what_has_but_one_field_is_not_left_out),
		cmocka_unit_test(encoding_appends_and_leaves_the_buffer_alone_on_failure),
		cmocka_unit_test(text_is_mended_on_both_ways),
		cmocka_unit_test(long_text_is_cut_between_characters),
		cmocka_unit_test(boot_times_become_real_times_and_never_wrap),
		cmocka_unit_test(everything_has_a_name),
		cmocka_unit_test(five_operations_synchronise),
		cmocka_unit_test(a_message_without_rows_has_no_columns),
		cmocka_unit_test(a_number_outside_an_enumeration_is_sent_as_unknown),
	};

	golden_fill();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
