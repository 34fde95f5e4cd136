/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/node_key.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECRET_A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define SECRET_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

static struct nt_node_secrets *secrets_of(const char *text)
{
	struct nt_node_secrets *secrets = NULL;
	struct nt_node_key_error error;

	assert_int_equal(nt_node_secrets_parse(text, strlen(text), &secrets, &error), 0);
	return secrets;
}

/* A message of that node under a key, signed by what its node has from the secrets. */
static struct nt_bus_record sign(const struct nt_node_secrets *secrets, const char *node,
				 const char *message, struct nt_buf *buf)
{
	struct nt_bus_record record = {.topic = NT_TOPIC_WINDOW, .key = "job", .key_len = 3};
	nt_auto(nt_signer) struct nt_signer *signer = NULL;
	struct nt_node_key key;

	nt_buf_clear(buf);
	assert_int_equal(nt_buf_append(buf, message, strlen(message)), 0);
	assert_int_equal(nt_node_secrets_derive(secrets, node, &key), 0);
	assert_int_equal(nt_signer_new(&key, &signer), 0);
	assert_int_equal(nt_signer_sign(signer, &record, buf), 0);
	record.value = buf->data;
	record.value_len = buf->len;
	return record;
}

static enum nt_signed verdict(const struct nt_node_secrets *secrets, const char *node,
			      const struct nt_bus_record *record)
{
	return nt_node_secrets_verify(secrets, node, record);
}

static void a_node_signs_for_itself_alone(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET_A "\n");
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record = sign(secrets, "n1", "message", &buf);

	(void)state;
	assert_int_equal(buf.len, strlen("message") + NT_NODE_KEY_TRAILER);
	assert_int_equal(verdict(secrets, "n1", &record), NT_SIGNED_VALID);
	assert_int_equal(verdict(secrets, "n2", &record), NT_SIGNED_WRONG);
	assert_int_equal(verdict(secrets, "n", &record), NT_SIGNED_WRONG);
	assert_int_equal(verdict(secrets, "n11", &record), NT_SIGNED_WRONG);
	assert_int_equal(verdict(secrets, "", &record), NT_SIGNED_WRONG);
}

static void no_byte_of_topic_key_message_or_signature_can_change(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET_A);
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record = sign(secrets, "n1", "message", &buf), other = record;

	(void)state;
	for (size_t i = 0; i < buf.len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			buf.data[i] ^= (uint8_t)(1 << bit);
			assert_int_not_equal(verdict(secrets, "n1", &record), NT_SIGNED_VALID);
			buf.data[i] ^= (uint8_t)(1 << bit);
		}
	}
	other.topic = NT_TOPIC_NODE;
	assert_int_equal(verdict(secrets, "n1", &other), NT_SIGNED_WRONG);
	other = record;
	other.key = "jobm";
	assert_int_equal(verdict(secrets, "n1", &other), NT_SIGNED_VALID);
	other.key_len = 4;
	assert_int_equal(verdict(secrets, "n1", &other), NT_SIGNED_WRONG);
	other.key_len = 2;
	assert_int_equal(verdict(secrets, "n1", &other), NT_SIGNED_WRONG);
}

/* What moves from the key to the message is another message. */
static void the_border_of_key_and_message_is_signed(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET_A);
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record = sign(secrets, "n1", "xmessage", &buf);

	(void)state;
	record.key = "jobx";
	record.key_len = 4;
	record.value = buf.data + 1;
	record.value_len = buf.len - 1;
	assert_int_equal(verdict(secrets, "n1", &record), NT_SIGNED_WRONG);
}

static void what_has_no_signature_says_so(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET_A);
	char bytes[100] = {0};
	struct nt_bus_record record = {.topic = NT_TOPIC_WINDOW, .key = "job", .key_len = 3};

	(void)state;
	record.value = bytes;
	for (record.value_len = 0; record.value_len < sizeof(bytes); record.value_len++)
		assert_int_equal(verdict(secrets, "n1", &record), NT_SIGNED_MISSING);
}

static void a_secret_is_exchanged_without_a_gap(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *before = secrets_of(SECRET_A);
	nt_auto(nt_node_secrets) struct nt_node_secrets *both =
		secrets_of("# new first\n" SECRET_B "\n\n  " SECRET_A "  \n");
	nt_auto(nt_node_secrets) struct nt_node_secrets *after = secrets_of(SECRET_B);
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record = sign(before, "n1", "message", &buf);

	(void)state;
	assert_int_equal(verdict(both, "n1", &record), NT_SIGNED_VALID);
	assert_int_equal(verdict(after, "n1", &record), NT_SIGNED_UNKNOWN);
	record = sign(both, "n1", "message", &buf);
	assert_int_equal(verdict(after, "n1", &record), NT_SIGNED_VALID);
	assert_int_equal(verdict(before, "n1", &record), NT_SIGNED_UNKNOWN);
}

static void bad_secrets_are_refused_by_line_and_not_shown(void **state)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{"", "line 1: no secret in the file"},
		{"# only this\n", "line 1: no secret in the file"},
		{"00\n", "line 1: not a secret of 32 to 128 bytes in hex digits"},
		{"\n" SECRET_A "0\n", "line 2: not a secret of 32 to 128 bytes in hex digits"},
		{"xx0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
		 "line 1: not a secret of 32 to 128 bytes in hex digits"},
		{SECRET_A " " SECRET_B, "line 1: something behind the secret"},
		{SECRET_A "\n" SECRET_A "\n" SECRET_A "\n" SECRET_A "\n" SECRET_A "\n",
		 "line 5: more than 4 secrets"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_node_secrets *secrets = NULL;
		struct nt_node_key_error error;

		assert_int_equal(nt_node_secrets_parse(cases[i].text, strlen(cases[i].text),
						       &secrets, &error),
				 -EINVAL);
		assert_null(secrets);
		assert_string_equal(error.text, cases[i].said);
	}
}

static void a_key_is_read_as_it_was_printed(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET_A);
	struct nt_node_key key, read = {0};
	struct nt_node_key_error error;
	char line[NT_NODE_KEY_LINE], name[NT_NODE_KEY_NODE + 2];

	(void)state;
	assert_int_equal(nt_node_secrets_derive(secrets, "gpu-07", &key), 0);
	assert_int_equal(nt_node_key_print(&key, "gpu-07", line), 0);
	/* As "openssl mac -digest SHA256 -macopt hexkey:… HMAC" computes it. */
	assert_string_equal(line,
			    "neutracer-node-key-v1 gpu-07 "
			    "801f19a0 "
			    "a6734ab535c3dc889297e1f447d4a1f17ed040f88336171b101807d4da75a551");
	assert_int_equal(nt_node_key_parse(line, strlen(line), "gpu-07", &read, &error), 0);
	assert_memory_equal(&read, &key, sizeof(key));
	assert_int_equal(nt_node_key_parse(line, strlen(line), "gpu-08", &read, &error), -EINVAL);
	assert_string_equal(error.text, "the key of node 'gpu-07', not of 'gpu-08'");
	for (size_t len = 0; len < strlen(line); len++)
		assert_int_equal(nt_node_key_parse(line, len, "gpu-07", &read, &error), -EINVAL);
	assert_int_equal(nt_node_secrets_derive(secrets, "two words", &key), -EINVAL);
	assert_int_equal(nt_node_secrets_derive(secrets, "", &key), -EINVAL);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(nt_node_secrets_derive(secrets, name, &key), -EINVAL);
	name[sizeof(name) - 2] = '\0';
	assert_int_equal(nt_node_secrets_derive(secrets, name, &key), 0);
	assert_int_equal(nt_node_key_print(&key, name, line), 0);
}

static void a_message_without_room_for_a_signature_is_refused(void **state)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = secrets_of(SECRET_A);
	const struct nt_bus_record record = {.topic = NT_TOPIC_WINDOW, .key = "job", .key_len = 3};
	nt_auto(nt_signer) struct nt_signer *signer = NULL;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_node_key key;

	(void)state;
	assert_int_equal(nt_node_secrets_derive(secrets, "n1", &key), 0);
	assert_int_equal(nt_signer_new(&key, &signer), 0);
	assert_int_equal(nt_buf_reserve(&buf, NT_BUS_MAX_VALUE), 0);
	memset(buf.data, 0, NT_BUS_MAX_VALUE);
	buf.len = NT_BUS_MAX_VALUE - NT_NODE_KEY_TRAILER + 1;
	assert_int_equal(nt_signer_sign(signer, &record, &buf), -EMSGSIZE);
	buf.len--;
	assert_int_equal(nt_signer_sign(signer, &record, &buf), 0);
	assert_int_equal(buf.len, NT_BUS_MAX_VALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_signs_for_itself_alone),
		cmocka_unit_test(no_byte_of_topic_key_message_or_signature_can_change),
		cmocka_unit_test(the_border_of_key_and_message_is_signed),
		cmocka_unit_test(what_has_no_signature_says_so),
		cmocka_unit_test(a_secret_is_exchanged_without_a_gap),
		cmocka_unit_test(bad_secrets_are_refused_by_line_and_not_shown),
		cmocka_unit_test(a_key_is_read_as_it_was_printed),
		cmocka_unit_test(a_message_without_room_for_a_signature_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
