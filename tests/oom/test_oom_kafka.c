/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writers, readers and members of a Kafka bus that are opened and closed as allocations fail. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/bus.h"
#include "common/system/clock.h"
#include "tests/oom/oom.h"

/* Nobody listens there. What the library itself allocates does not fail. */
static const char url[] = "kafka://127.0.0.1:1";

static const struct nt_bus_options options = {
	.client = "sweep",
	.security = {.user = "somebody", .password_file = "/dev/null"},
	.flush_ns = NT_MILLISECOND,
	.close_ns = NT_MILLISECOND,
};

static int write_one(void *data)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.key = "k",
		.key_len = 1,
		.value = "v",
		.value_len = 1,
		.real_ns = 1,
	};
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	int r;

	(void)data;
	r = nt_bus_open(url, NULL, &bus);
	return r < 0 ? r : nt_bus_publish(bus, &record);
}

static int read_none(void *data)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;
	int r;

	(void)data;
	r = nt_bus_reader_open_with(url, 1U << NT_TOPIC_WINDOW | 1U << NT_TOPIC_STATE, NULL,
				    &reader);
	return r < 0 ? r : nt_bus_reader_next(reader, 0, &record);
}

static void assigned(void *data, struct nt_bus_position *position)
{
	(void)data;
	(void)position;
}

static void revoked(void *data, const struct nt_bus_position *position, bool is_lost)
{
	(void)data;
	(void)position;
	(void)is_lost;
}

static int join_in_vain(void *data)
{
	const struct nt_bus_group group = {
		.name = "g",
		.member = "m",
		.grouped = 1U << NT_TOPIC_WINDOW,
		.assigned = assigned,
		.revoked = revoked,
	};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;
	int r;

	(void)data;
	r = nt_bus_reader_join(url, 1U << NT_TOPIC_WINDOW, NULL, &group, &reader);
	return r < 0 ? r : nt_bus_reader_next(reader, 0, &record);
}

static int open_with_secrets(void *data)
{
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	int r;

	(void)data;
	r = nt_bus_open(url, &options, &bus);
	return r == -ENOMEM ? r : 0; /* an empty password is none */
}

static void a_writer_survives_failed_allocations(void **state)
{
	(void)state;
	assert_int_not_equal(nt_oom_sweep(write_one, NULL), 0);
}

static void a_reader_survives_failed_allocations(void **state)
{
	(void)state;
	assert_int_not_equal(nt_oom_sweep(read_none, NULL), 0);
}

static void a_member_survives_failed_allocations(void **state)
{
	(void)state;
	assert_int_not_equal(nt_oom_sweep(join_in_vain, NULL), 0);
}

static void secrets_survive_failed_allocations(void **state)
{
	(void)state;
	assert_int_not_equal(nt_oom_sweep(open_with_secrets, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_writer_survives_failed_allocations),
		cmocka_unit_test(a_reader_survives_failed_allocations),
		cmocka_unit_test(a_member_survives_failed_allocations),
		cmocka_unit_test(secrets_survive_failed_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
