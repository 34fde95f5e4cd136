/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/wire.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/file.h"
#include "proto/wire_map.h"
#include "tests/golden/wire/messages.h"

/* ---- helpers --------------------------------------------------------------------------------- */

struct golden {
	const char *name;
	const struct nt_message *message;
};

static const struct golden goldens[] = {
	{"window", &golden_window},       {"node", &golden_node},   {"detail", &golden_detail},
	{"incident", &golden_incident},   {"state", &golden_state}, {"control", &golden_control},
	{"heartbeat", &golden_heartbeat},
};

enum {
	GOLDENS = sizeof(goldens) / sizeof(goldens[0]),
};

static void read_golden(const char *name, struct nt_buf *buf)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "tests/golden/wire/%s.bin", name);
	assert_int_equal(nt_file_read(path, NT_WIRE_MAX_BYTES, buf), 0);
}

static struct nt_message *decode(const struct nt_buf *buf)
{
	struct nt_message *message = NULL;

	assert_int_equal(nt_message_decode(buf->data, buf->len, &message), 0);
	assert_non_null(message);
	return message;
}

static void assert_refused(const struct nt_buf *buf)
{
	struct nt_message *message = NULL;

	assert_int_equal(nt_message_decode(buf->data, buf->len, &message), -EBADMSG);
	assert_null(message);
}

static struct nt_message *decode_again(const struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {0};

	assert_int_equal(nt_message_encode(message, &buf), 0);
	return decode(&buf);
}

/* Protobuf by hand, for what the encoder would not write. */
static void put_varint(struct nt_buf *buf, uint64_t n)
{
	do {
		uint8_t byte = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));

		assert_int_equal(nt_buf_append(buf, &byte, 1), 0);
		n >>= 7;
	} while (n);
}

static void put_number(struct nt_buf *buf, uint32_t field, uint64_t n)
{
	put_varint(buf, field << 3);
	put_varint(buf, n);
}

static void put_fixed64(struct nt_buf *buf, uint32_t field, const void *bytes)
{
	put_varint(buf, field << 3 | 1);
	assert_int_equal(nt_buf_append(buf, bytes, 8), 0);
}

static void put_bytes(struct nt_buf *buf, uint32_t field, const void *data, size_t len)
{
	put_varint(buf, field << 3 | 2);
	put_varint(buf, len);
	assert_int_equal(nt_buf_append(buf, data, len), 0);
}

static void wrap(struct nt_buf *buf, uint32_t field)
{
	struct nt_buf outer = {0};

	put_bytes(&outer, field, buf->data, buf->len);
	nt_buf_release(buf);
	*buf = outer;
}

enum {
	/* Numbers of proto/neutracer.proto. */
	ENVELOPE_AGENT = 1,
	ENVELOPE_WINDOW = 16,
	ENVELOPE_NODE = 17,
	ENVELOPE_DETAIL = 18,
	ENVELOPE_INCIDENT = 19,
	ENVELOPE_STATE = 20,
	WINDOW_RANK = 1,
	WINDOW_OWN_TIER = 7,
	WINDOW_COMM = 21,
	WINDOW_SAMPLE = 22,
	WINDOW_PEER = 25,
	WINDOW_STEP_OWN = 30,
	WINDOW_STEP_DURATION = 31,
	COMM_LIBRARY = 4,
	COMM_OP = 7,
	COMM_RECENT = 12,
	OP_OP = 1,
	OP_DURATION = 6,
	PEER_DURATION = 6,
	SKETCH_BUCKET = 1,
	SKETCH_COUNT = 2,
	NODE_METRIC = 2,
	NODE_JOB = 3,
	METRIC_VALUE = 2,
	DETAIL_WORD = 10,
	DETAIL_STACK = 11,
	INCIDENT_CULPRIT = 9,
	INCIDENT_SLOWDOWN = 13,
	INCIDENT_EVIDENCE = 18,
	INCIDENT_DELIVERY = 20,
	CULPRIT_PEERS = 8,
	CULPRIT_RANKS = 10,
	STATE_DATA = 4,
	STATE_POSITION = 5,
};

/* ---- golden bytes ---------------------------------------------------------------------------- */

static void messages_encode_to_the_golden_bytes(void **state)
{
	(void)state;
	for (int i = 0; i < GOLDENS; i++) {
		nt_autobuf struct nt_buf want = {0}, got = {0};

		read_golden(goldens[i].name, &want);
		assert_int_equal(nt_message_encode(goldens[i].message, &got), 0);
		assert_int_equal(got.len, want.len);
		assert_memory_equal(got.data, want.data, want.len);
	}
}

static void golden_bytes_decode_and_encode_to_themselves(void **state)
{
	(void)state;
	for (int i = 0; i < GOLDENS; i++) {
		nt_autobuf struct nt_buf want = {0}, got = {0};
		nt_auto(nt_message) struct nt_message *message = NULL;

		read_golden(goldens[i].name, &want);
		message = decode(&want);
		assert_int_equal(message->body, goldens[i].message->body);
		assert_int_equal(nt_message_encode(message, &got), 0);
		assert_int_equal(got.len, want.len);
		assert_memory_equal(got.data, want.data, want.len);
	}
}

static bool value_is_filled(const struct nt_wire_field *field, const char *here)
{
	static const char zeros[8];
	const char *at = here + field->here, *text;
	size_t count;
	bool flag;

	switch (field->kind) {
	case NT_WIRE_U32:
	case NT_WIRE_ENUM:
		return memcmp(at, zeros, sizeof(uint32_t)) != 0;
	case NT_WIRE_U64:
	case NT_WIRE_I64:
	case NT_WIRE_F64:
		return memcmp(at, zeros, sizeof(uint64_t)) != 0;
	case NT_WIRE_BOOL:
		memcpy(&flag, at, sizeof(flag));
		return flag;
	case NT_WIRE_TEXT:
		memcpy(&text, at, sizeof(text));
		return *text != '\0';
	default:
		memcpy(&count, here + field->here_count, sizeof(count));
		return count > 0;
	}
}

static bool is_filled(const struct nt_wire_shape *shape, const char *here)
{
	for (size_t i = 0; i < shape->fields; i++) {
		const struct nt_wire_field *field = &shape->field[i];
		const char *sub = here + field->here;
		bool filled = field->kind == NT_WIRE_ONE || value_is_filled(field, here);

		if (filled && field->kind == NT_WIRE_MANY)
			memcpy(&sub, here + field->here, sizeof(sub));
		if (filled && field->shape)
			filled = is_filled(field->shape, sub);
		if (!filled) {
			print_error("field %zu of %s is empty\n", i, shape->there->name);
			return false;
		}
	}
	return true;
}

/* A row forgotten in the map would be a field that is silently dropped. */
static void the_map_has_every_field_and_the_golden_messages_fill_it(void **state)
{
	(void)state;
	for (int i = 0; i < GOLDENS; i++) {
		nt_autobuf struct nt_buf buf = {0};
		nt_auto(nt_message) struct nt_message *message = NULL;
		const struct nt_wire_body *body = &nt_wire_bodies[goldens[i].message->body];

		read_golden(goldens[i].name, &buf);
		message = decode(&buf);
		assert_true(is_filled(&nt_wire_envelope, (const char *)message));
		assert_true(is_filled(body->shape, (const char *)message + body->here));
		assert_int_equal(body->shape->fields, body->shape->there->n_fields);
		for (size_t j = 0; j < body->shape->fields; j++) {
			const struct nt_wire_shape *sub = body->shape->field[j].shape;

			if (sub)
				assert_int_equal(sub->fields, sub->there->n_fields);
		}
	}
}

static void decoded_fields_are_where_they_belong(void **state)
{
	nt_autobuf struct nt_buf window = {0}, incident = {0}, kept = {0};
	nt_auto(nt_message) struct nt_message *w = NULL, *i = NULL, *s = NULL;

	(void)state;
	read_golden("window", &window);
	w = decode(&window);
	assert_string_equal(w->agent, "node-07");
	assert_int_equal(w->boot, 0xb0070102030405ff);
	assert_int_equal(w->window.rank.rank, 11);
	assert_string_equal(w->window.rank.comm, "python3");
	assert_int_equal(w->window.own_tier, NT_TIER_T2);
	assert_int_equal(w->window.comms, 2);
	assert_int_equal(w->window.comm[0].library, NT_LIBRARY_NCCL);
	assert_int_equal(w->window.comm[1].op[1].op, NT_OP_GROUP_END);
	assert_int_equal(w->window.comm[0].op[0].duration.buckets, 3);
	assert_int_equal(w->window.comm[0].op[0].duration.bucket[2], 255);
	assert_int_equal(w->window.step_samples, 2);
	assert_int_equal(w->window.step_own_ns[1], golden_window.window.step_own_ns[1]);
	assert_int_equal(w->window.step_duration_ns[0], golden_window.window.step_duration_ns[0]);

	read_golden("incident", &incident);
	i = decode(&incident);
	assert_string_equal(i->incident.class, "compute");
	assert_int_equal(i->incident.culprits, 2);
	assert_int_equal(i->incident.culprit[0].peer_count, 3);
	assert_int_equal(i->incident.culprit[0].peers[2], UINT32_MAX);
	assert_true(fabs(i->incident.slowdown - 1.3125) < 1e-12);
	assert_true(i->incident.cost.has_co2);
	assert_string_equal(i->incident.summary, golden_incident.incident.summary);

	read_golden("state", &kept);
	s = decode(&kept);
	assert_int_equal(s->state.size, 8);
	assert_memory_equal(s->state.data, "\0\1\377state", 8);
	assert_int_equal(s->state.position[1].offset, UINT64_MAX - 1);
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

/* ---- limits ---------------------------------------------------------------------------------- */

struct cap {
	uint32_t path[4]; /* fields, the envelope's first; 0 ends it */
	uint32_t field;
	uint32_t max;
	enum { EMPTY_MESSAGES, NUMBERS, TEXTS } what;
};

static const struct cap caps[] = {
	{{ENVELOPE_WINDOW}, WINDOW_COMM, NT_WIRE_MAX_COMMS, EMPTY_MESSAGES},
	{{ENVELOPE_WINDOW}, WINDOW_SAMPLE, NT_WIRE_MAX_SAMPLES, EMPTY_MESSAGES},
	{{ENVELOPE_WINDOW}, WINDOW_PEER, NT_WIRE_MAX_PEERS, EMPTY_MESSAGES},
	{{ENVELOPE_WINDOW, WINDOW_COMM}, COMM_OP, NT_WIRE_MAX_OPS, EMPTY_MESSAGES},
	{{ENVELOPE_WINDOW, WINDOW_COMM}, COMM_RECENT, NT_WIRE_MAX_RECENT, EMPTY_MESSAGES},
	{{ENVELOPE_NODE}, NODE_METRIC, NT_WIRE_MAX_METRICS, EMPTY_MESSAGES},
	{{ENVELOPE_NODE}, NODE_JOB, NT_WIRE_MAX_JOBS, TEXTS},
	{{ENVELOPE_DETAIL}, DETAIL_WORD, NT_WIRE_MAX_WORDS, NUMBERS},
	{{ENVELOPE_DETAIL}, DETAIL_STACK, NT_WIRE_MAX_STACK, NUMBERS},
	{{ENVELOPE_INCIDENT}, INCIDENT_CULPRIT, NT_WIRE_MAX_CULPRITS, EMPTY_MESSAGES},
	{{ENVELOPE_INCIDENT}, INCIDENT_EVIDENCE, NT_WIRE_MAX_EVIDENCE, EMPTY_MESSAGES},
	{{ENVELOPE_INCIDENT}, INCIDENT_DELIVERY, NT_WIRE_MAX_DELIVERIES, EMPTY_MESSAGES},
	{{ENVELOPE_INCIDENT, INCIDENT_CULPRIT}, CULPRIT_PEERS, NT_WIRE_MAX_CULPRITS, NUMBERS},
	{{ENVELOPE_INCIDENT, INCIDENT_CULPRIT}, CULPRIT_RANKS, NT_WIRE_MAX_CULPRITS, NUMBERS},
	{{ENVELOPE_STATE}, STATE_POSITION, NT_WIRE_MAX_POSITIONS, EMPTY_MESSAGES},
};

static void put_array(struct nt_buf *buf, const struct cap *cap, uint32_t n)
{
	int depth = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (cap->what == NUMBERS)
			put_number(buf, cap->field, i);
		else
			put_bytes(buf, cap->field, "text", cap->what == TEXTS ? 4 : 0);
	}
	while (depth < 4 && cap->path[depth])
		depth++;
	while (depth > 0)
		wrap(buf, cap->path[--depth]);
}

static void arrays_pass_at_their_cap_and_are_refused_over_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		nt_autobuf struct nt_buf at = {0}, over = {0};
		nt_auto(nt_message) struct nt_message *message = NULL;

		put_array(&at, &caps[i], caps[i].max);
		message = decode(&at);
		put_array(&over, &caps[i], caps[i].max + 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_encode_to_the_golden_bytes),
		cmocka_unit_test(golden_bytes_decode_and_encode_to_themselves),
		cmocka_unit_test(the_map_has_every_field_and_the_golden_messages_fill_it),
		cmocka_unit_test(decoded_fields_are_where_they_belong),
		cmocka_unit_test(unknown_fields_are_ignored_wherever_they_are),
		cmocka_unit_test(a_body_of_a_later_version_is_none),
		cmocka_unit_test(an_empty_body_has_empty_texts_and_no_arrays),
		cmocka_unit_test(no_bytes_are_a_message_without_a_body),
		cmocka_unit_test(an_empty_window_costs_next_to_nothing),
		cmocka_unit_test(what_has_but_one_field_is_not_left_out),
		cmocka_unit_test(encoding_appends_and_leaves_the_buffer_alone_on_failure),
		cmocka_unit_test(text_is_mended_on_both_ways),
		cmocka_unit_test(long_text_is_cut_between_characters),
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
		cmocka_unit_test(boot_times_become_real_times_and_never_wrap),
		cmocka_unit_test(everything_has_a_name),
		cmocka_unit_test(five_operations_synchronise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
