/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages as bytes: the golden files decode and encode to themselves, and fill every field. */
#include "proto/wire_map.h"

#include <math.h>

#include "tests/unit/proto/wire_bytes.h"

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

/* Windows of before rows were told by column. */
static void the_first_form_of_a_window_still_says_the_same(void **state)
{
	nt_autobuf struct nt_buf old = {0}, want = {0}, got = {0};
	nt_auto(nt_message) struct nt_message *message = NULL;

	(void)state;
	read_golden("window", &old);
	read_golden("window_columns", &want);
	message = decode(&old);
	assert_int_equal(message->window.samples, 2);
	assert_int_equal(message->window.comm[1].recents, 2);
	assert_int_equal(nt_message_encode(message, &got), 0);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
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

		if (filled && (field->kind == NT_WIRE_MANY || field->kind == NT_WIRE_COLUMNS))
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

		if (goldens[i].superseded)
			continue;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_encode_to_the_golden_bytes),
		cmocka_unit_test(golden_bytes_decode_and_encode_to_themselves),
		cmocka_unit_test(the_first_form_of_a_window_still_says_the_same),
		cmocka_unit_test(the_map_has_every_field_and_the_golden_messages_fill_it),
		cmocka_unit_test(decoded_fields_are_where_they_belong),
	};

	golden_fill();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
