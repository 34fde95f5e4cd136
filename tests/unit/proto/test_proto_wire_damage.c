/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The golden messages with each of their bytes changed in turn, and cut after each: how many still are
 * messages stands in tests/golden/wire/damage.txt, and a sum over what those say when they are encoded
 * again. Where the wire changes on purpose, NT_GOLDEN_UPDATE=1 writes the file anew.
 */
#include <stdlib.h>

#include "common/base/hash.h"
#include "common/bus/spool/frame.h"
#include "tests/unit/proto/wire_bytes.h"

static const char *const golden = "tests/golden/wire/damage.txt";

struct outcome {
	unsigned int tried, decoded, encoded;
	uint64_t sum;
};

static void try_bytes(struct outcome *outcome, const struct nt_buf *bytes, size_t len)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_autobuf struct nt_buf again = {0};
	int r = nt_message_decode(bytes->data, len, &message);

	outcome->tried++;
	assert_true(r == 0 || r == -EBADMSG);
	assert_true((r == 0) == (message != NULL));
	if (r < 0)
		return;
	outcome->decoded++;
	r = nt_message_encode(message, &again);
	/* What was taken can be given, unless this version knows no body for it. */
	assert_int_equal(r, message->body == NT_BODY_NONE ? -EINVAL : 0);
	outcome->encoded += r == 0;
	outcome->sum = nt_hash_u64(outcome->sum, nt_crc32c(0, again.data, again.len));
}

static void check(FILE *file, const char *name, const struct outcome *outcome)
{
	char got[160], want[160];

	(void)snprintf(got, sizeof(got), "%s: %u tried, %u decoded, %u encoded, %016llx\n", name,
		       outcome->tried, outcome->decoded, outcome->encoded,
		       (unsigned long long)outcome->sum);
	if (getenv("NT_GOLDEN_UPDATE")) {
		assert_true(fputs(got, file) >= 0);
		return;
	}
	assert_non_null(fgets(want, sizeof(want), file));
	assert_string_equal(got, want);
}

static void damaged_messages_say_what_is_written_down(void **state)
{
	static const uint8_t changes[] = {0x01, 0x03, 0x08, 0x40, 0x80, 0xff};
	FILE *file = fopen(golden, getenv("NT_GOLDEN_UPDATE") ? "w" : "r");

	(void)state;
	assert_non_null(file);
	for (size_t i = 0; i < GOLDENS; i++) {
		struct outcome changed = {.sum = 1}, cut = {.sum = 1};
		nt_autobuf struct nt_buf bytes = {0};

		read_golden(goldens[i].name, &bytes);
		for (size_t at = 0; at < bytes.len; at++) {
			try_bytes(&cut, &bytes, at);
			for (size_t j = 0; j < sizeof(changes); j++) {
				bytes.data[at] ^= changes[j];
				try_bytes(&changed, &bytes, bytes.len);
				bytes.data[at] ^= changes[j];
			}
		}
		check(file, goldens[i].name, &changed);
		check(file, goldens[i].name, &cut);
	}
	assert_int_equal(fclose(file), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_messages_say_what_is_written_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
