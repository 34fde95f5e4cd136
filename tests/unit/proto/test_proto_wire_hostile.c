/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages that are too large, or hold what must not get in. */
#include "tests/unit/proto/wire_caps.h"

#include <math.h>

/* ---- limits ---------------------------------------------------------------------------------- */

static void columns_must_be_of_one_length_and_tell_alone(void **state)
{
	nt_autobuf struct nt_buf even = {0}, uneven = {0}, twice = {0}, wide = {0}, odd = {0};
	nt_auto(nt_message) struct nt_message *message = NULL, *unknown = NULL;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		put_number(&even, SAMPLE_COLUMNS_NUMBER, 2);
		put_number(&uneven, SAMPLE_COLUMNS_NUMBER, 2);
		put_number(&twice, SAMPLE_COLUMNS_NUMBER, 2);
		put_number(&odd, SAMPLE_COLUMNS_NUMBER, 2);
	}
	for (uint32_t i = 0; i < 3; i++)
		put_number(&odd, SAMPLE_COLUMNS_OP, 2 * 1000);
	wrap(&odd, WINDOW_SAMPLE_COLUMNS);
	wrap(&odd, ENVELOPE_WINDOW);
	unknown = decode(&odd);
	assert_int_equal(unknown->window.sample[2].op, NT_OP_UNKNOWN);
	assert_int_equal(unknown->window.sample[2].number, 3);

	wrap(&even, WINDOW_SAMPLE_COLUMNS);
	wrap(&even, ENVELOPE_WINDOW);
	message = decode(&even);
	assert_int_equal(message->window.samples, 3);

	put_number(&uneven, SAMPLE_COLUMNS_OP, 2);
	wrap(&uneven, WINDOW_SAMPLE_COLUMNS);
	wrap(&uneven, ENVELOPE_WINDOW);
	assert_refused(&uneven);

	wrap(&twice, WINDOW_SAMPLE_COLUMNS);
	put_bytes(&twice, WINDOW_SAMPLE, "", 0);
	wrap(&twice, ENVELOPE_WINDOW);
	assert_refused(&twice);

	put_number(&wide, SIGNATURE_COLUMNS_TYPE, 1ULL << 33);
	wrap(&wide, COMM_RECENT_COLUMNS);
	wrap(&wide, WINDOW_COMM);
	wrap(&wide, ENVELOPE_WINDOW);
	assert_refused(&wide);
}

static void arrays_pass_at_their_cap_and_are_refused_over_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		nt_autobuf struct nt_buf at = {0}, over = {0};
		nt_auto(nt_message) struct nt_message *message = NULL;

		put_array(&at, &caps[i], caps[i].max, false);
		message = decode(&at);
		put_array(&over, &caps[i], caps[i].max + 1, false);
		assert_refused(&over);
	}
}

static void the_encoder_keeps_the_caps_of_the_decoder(void **state)
{
	static struct nt_sample samples[NT_WIRE_MAX_SAMPLES + 1];
	static uint64_t numbers[NT_WIRE_MAX_STACK + 1];
	static uint8_t data[NT_WIRE_MAX_STATE_BYTES + 1];
	struct nt_message window = {
		.body = NT_BODY_WINDOW,
		.window = {.sample = samples, .samples = NT_WIRE_MAX_SAMPLES},
	};
	struct nt_message detail = {
		.body = NT_BODY_DETAIL,
		.detail = {.stack = numbers, .stacks = NT_WIRE_MAX_STACK},
	};
	struct nt_message kept = {
		.body = NT_BODY_STATE,
		.state = {.data = data, .size = NT_WIRE_MAX_STATE_BYTES},
	};
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_int_equal(nt_message_encode(&window, &buf), 0);
	assert_int_equal(nt_message_encode(&detail, &buf), 0);
	assert_int_equal(nt_message_encode(&kept, &buf), 0);
	nt_buf_clear(&buf);
	window.window.samples++;
	detail.detail.stacks++;
	kept.state.size++;
	assert_int_equal(nt_message_encode(&window, &buf), -EMSGSIZE);
	assert_int_equal(nt_message_encode(&detail, &buf), -EMSGSIZE);
	assert_int_equal(nt_message_encode(&kept, &buf), -EMSGSIZE);
	assert_int_equal(buf.len, 0);
	/* An array that is not there is our caller's mistake, not a crash. */
	window.window.samples = 1;
	window.window.sample = NULL;
	assert_int_equal(nt_message_encode(&window, &buf), -EINVAL);
}

static void too_much_state_is_refused(void **state)
{
	static uint8_t data[NT_WIRE_MAX_STATE_BYTES + 1];
	nt_autobuf struct nt_buf at = {0}, over = {0};
	nt_auto(nt_message) struct nt_message *message = NULL;

	(void)state;
	put_bytes(&at, STATE_DATA, data, sizeof(data) - 1);
	wrap(&at, ENVELOPE_STATE);
	message = decode(&at);
	assert_int_equal(message->state.size, NT_WIRE_MAX_STATE_BYTES);
	put_bytes(&over, STATE_DATA, data, sizeof(data));
	wrap(&over, ENVELOPE_STATE);
	assert_refused(&over);
}

static void a_message_over_the_size_limit_is_refused_on_both_ways(void **state)
{
	nt_autobuf struct nt_buf buf = {0}, out = {0};
	static char text[NT_WIRE_MAX_TEXT];
	static const char *jobs[NT_WIRE_MAX_JOBS];
	struct nt_message in = {
		.body = NT_BODY_NODE,
		.node = {.job = jobs, .jobs = NT_WIRE_MAX_JOBS},
	};

	(void)state;
	memset(text, 'j', sizeof(text) - 1);
	for (int i = 0; i < NT_WIRE_MAX_JOBS; i++)
		jobs[i] = text;
	assert_int_equal(nt_message_encode(&in, &out), -EMSGSIZE);
	assert_int_equal(out.len, 0);
	in.node.jobs /= 2;
	assert_int_equal(nt_message_encode(&in, &out), 0);

	assert_int_equal(nt_buf_reserve(&buf, NT_WIRE_MAX_BYTES + 1), 0);
	memset(buf.data, 0, NT_WIRE_MAX_BYTES + 1);
	buf.len = NT_WIRE_MAX_BYTES + 1;
	assert_refused(&buf);
}

/* Two bytes on the wire are a hundred and fifty in memory: 400 kB would be 30 MB. */
static void a_small_message_cannot_ask_for_much_memory(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	for (int i = 0; i < 200000; i++)
		put_bytes(&buf, COMM_OP, "", 0);
	wrap(&buf, WINDOW_COMM);
	wrap(&buf, ENVELOPE_WINDOW);
	assert_refused(&buf);
}

static void an_incident_with_all_its_culprits_passes(void **state)
{
	static struct nt_culprit culprits[NT_WIRE_MAX_CULPRITS];
	struct nt_message in = {
		.body = NT_BODY_INCIDENT,
		.incident = {.culprit = culprits, .culprits = NT_WIRE_MAX_CULPRITS},
	};
	nt_auto(nt_message) struct nt_message *out = NULL;

	(void)state;
	for (uint32_t i = 0; i < NT_WIRE_MAX_CULPRITS; i++)
		culprits[i] = (struct nt_culprit){
			.kind = "rank",
			.rank = i,
			.has_rank = true,
			.node = "gpu-0001",
			.pod = "llm-70b-1",
		};
	out = decode_again(&in);
	assert_int_equal(out->incident.culprits, NT_WIRE_MAX_CULPRITS);
	for (uint32_t i = 0; i < NT_WIRE_MAX_CULPRITS; i++)
		assert_int_equal(out->incident.culprit[i].rank, i);
}

/* ---- values that must not get in ------------------------------------------------------------- */

static void numbers_that_are_not_finite_are_refused_on_both_ways(void **state)
{
	const double bad[] = {NAN, -NAN, INFINITY, -INFINITY};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct nt_metric_value metric = {.name = "m", .value = bad[i]};
		struct nt_message in = {
			.body = NT_BODY_NODE,
			.node = {.metric = &metric, .metrics = 1},
		};
		nt_autobuf struct nt_buf a = {0}, b = {0}, out = {0};

		put_fixed64(&a, METRIC_VALUE, &bad[i]);
		wrap(&a, NODE_METRIC);
		wrap(&a, ENVELOPE_NODE);
		assert_refused(&a);
		put_fixed64(&b, INCIDENT_SLOWDOWN, &bad[i]);
		wrap(&b, ENVELOPE_INCIDENT);
		assert_refused(&b);
		assert_int_equal(nt_message_encode(&in, &out), -EINVAL);
	}
}

static void numbers_outside_an_enumeration_are_unknown(void **state)
{
	const uint64_t bad[] = {NT_OP_END, 1000, UINT32_MAX, UINT64_MAX, 1ULL << 31};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		nt_autobuf struct nt_buf buf = {0};
		nt_auto(nt_message) struct nt_message *message = NULL;

		put_number(&buf, OP_OP, bad[i]);
		wrap(&buf, COMM_OP);
		put_number(&buf, COMM_LIBRARY, bad[i]);
		wrap(&buf, WINDOW_COMM);
		put_number(&buf, WINDOW_OWN_TIER, bad[i]);
		wrap(&buf, ENVELOPE_WINDOW);
		message = decode(&buf);
		assert_int_equal(message->window.own_tier, NT_TIER_UNKNOWN);
		assert_int_equal(message->window.comm[0].library, NT_LIBRARY_UNKNOWN);
		assert_int_equal(message->window.comm[0].op[0].op, NT_OP_UNKNOWN);
	}
}

static void the_encoder_writes_no_number_outside_an_enumeration(void **state)
{
	struct nt_message in = {.body = NT_BODY_WINDOW, .window = {.own_tier = NT_TIER_END}};
	nt_auto(nt_message) struct nt_message *out = decode_again(&in);

	(void)state;
	assert_int_equal(out->window.own_tier, NT_TIER_UNKNOWN);
}

static void put_sketch(struct nt_buf *buf, const uint32_t *bucket, size_t buckets, size_t counts)
{
	for (size_t i = 0; i < buckets; i++)
		put_number(buf, SKETCH_BUCKET, bucket[i]);
	for (size_t i = 0; i < counts; i++)
		put_number(buf, SKETCH_COUNT, 1);
	wrap(buf, PEER_DURATION);
	wrap(buf, WINDOW_PEER);
	wrap(buf, ENVELOPE_WINDOW);
}

static void sketches_have_ascending_buckets_below_the_last_and_a_count_each(void **state)
{
	const uint32_t good[] = {0, 7, 255}, equal[] = {7, 7}, falling[] = {8, 7}, high[] = {256};
	nt_autobuf struct nt_buf a = {0}, b = {0}, c = {0}, d = {0}, e = {0}, f = {0};
	nt_auto(nt_message) struct nt_message *message = NULL;
	uint32_t bucket[] = {3, 2}, count[] = {1, 1};
	struct nt_peer_time peer = {
		.duration = {.bucket = bucket, .count = count, .buckets = 2},
	};
	struct nt_message in = {.body = NT_BODY_WINDOW, .window = {.peer = &peer, .peers = 1}};
	nt_autobuf struct nt_buf out = {0};

	(void)state;
	put_sketch(&a, good, 3, 3);
	message = decode(&a);
	assert_int_equal(message->window.peer[0].duration.buckets, 3);
	assert_int_equal(message->window.peer[0].duration.bucket[1], 7);
	put_sketch(&b, equal, 2, 2);
	assert_refused(&b);
	put_sketch(&c, falling, 2, 2);
	assert_refused(&c);
	put_sketch(&d, high, 1, 1);
	assert_refused(&d);
	put_sketch(&e, good, 3, 2);
	assert_refused(&e);
	put_sketch(&f, good, 2, 3);
	assert_refused(&f);

	assert_int_equal(nt_message_encode(&in, &out), -EINVAL);
	bucket[1] = 4;
	assert_int_equal(nt_message_encode(&in, &out), 0);
	peer.duration.bucket = NULL;
	assert_int_equal(nt_message_encode(&in, &out), -EINVAL);
}

static void steps_have_own_work_and_duration_each(void **state)
{
	nt_autobuf struct nt_buf uneven = {0}, many = {0};

	(void)state;
	put_number(&uneven, WINDOW_STEP_OWN, 1);
	put_number(&uneven, WINDOW_STEP_OWN, 1);
	put_number(&uneven, WINDOW_STEP_DURATION, 1);
	wrap(&uneven, ENVELOPE_WINDOW);
	assert_refused(&uneven);
	for (int i = 0; i < NT_WIRE_MAX_STEPS + 1; i++) {
		put_number(&many, WINDOW_STEP_OWN, 1);
		put_number(&many, WINDOW_STEP_DURATION, 1);
	}
	wrap(&many, ENVELOPE_WINDOW);
	assert_refused(&many);
}

static void damaged_bytes_are_refused_or_decoded_but_never_believed(void **state)
{
	(void)state;
	for (int i = 0; i < GOLDENS; i++) {
		nt_autobuf struct nt_buf whole = {0};

		read_golden(goldens[i].name, &whole);
		for (size_t at = 0; at < whole.len; at++) {
			struct nt_message *message = NULL;
			/* A copy of just this size, so that a read beyond it is seen. */
			nt_autofree uint8_t *cut = malloc(at ? at : 1);
			int r;

			assert_non_null(cut);
			memcpy(cut, whole.data, at);
			r = nt_message_decode(cut, at, &message);
			assert_true(r == 0 || (r == -EBADMSG && !message));
			nt_message_free(message);
			message = NULL;

			whole.data[at] ^= (uint8_t)(1 << at % 8);
			r = nt_message_decode(whole.data, whole.len, &message);
			assert_true(r == 0 || (r == -EBADMSG && !message));
			nt_message_free(message);
			whole.data[at] ^= (uint8_t)(1 << at % 8);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_must_be_of_one_length_and_tell_alone),
		cmocka_unit_test(arrays_pass_at_their_cap_and_are_refused_over_it),
		cmocka_unit_test(the_encoder_keeps_the_caps_of_the_decoder),
		cmocka_unit_test(too_much_state_is_refused),
		cmocka_unit_test(a_message_over_the_size_limit_is_refused_on_both_ways),
		cmocka_unit_test(a_small_message_cannot_ask_for_much_memory),
		cmocka_unit_test(an_incident_with_all_its_culprits_passes),
		cmocka_unit_test(numbers_that_are_not_finite_are_refused_on_both_ways),
		cmocka_unit_test(numbers_outside_an_enumeration_are_unknown),
		cmocka_unit_test(the_encoder_writes_no_number_outside_an_enumeration),
		cmocka_unit_test(sketches_have_ascending_buckets_below_the_last_and_a_count_each),
		cmocka_unit_test(steps_have_own_work_and_duration_each),
		cmocka_unit_test(damaged_bytes_are_refused_or_decoded_but_never_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
