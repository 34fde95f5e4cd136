/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What every bus must do, said against common/bus.h alone. fresh_url() gives each test a bus that
 * nobody has used; all that is known of an implementation is in there.
 */
#include "common/bus.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
	PATIENCE_MS = 10000, /* for what must come; nobody waits so long unless a test fails */
};

struct fixture {
	char dir[64];
	char url[96];
};

static int fresh_url(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	(void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/nt-bus-XXXXXX");
	if (!mkdtemp(fixture->dir))
		return -1;
	(void)snprintf(fixture->url, sizeof(fixture->url), "spool:%s/bus", fixture->dir);
	*state = fixture;
	return 0;
}

static int remove_bus(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", fixture->dir);
	free(fixture);
	return 0;
}

static void what_is_published_is_read_in_order(void **state)
{
	const struct fixture *fixture = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;

	assert_int_equal(nt_bus_open(fixture->url, NULL, &bus), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		record = (struct nt_bus_record){
			.topic = NT_TOPIC_WINDOW,
			.key = "job",
			.key_len = 3,
			.value = &i,
			.value_len = sizeof(i),
			.real_ns = 1000 + i,
		};
		assert_int_equal(nt_bus_publish(bus, &record), 0);
	}
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(nt_bus_reader_open(fixture->url, 1 << NT_TOPIC_WINDOW, &reader), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t value;

		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_int_equal(record.value_len, sizeof(value));
		memcpy(&value, record.value, sizeof(value));
		assert_int_equal(value, i);
		assert_int_equal(record.real_ns, 1000 + i);
	}
	assert_int_equal(nt_bus_reader_next(reader, 0, &record), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_published_is_read_in_order, fresh_url,
						remove_bus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
