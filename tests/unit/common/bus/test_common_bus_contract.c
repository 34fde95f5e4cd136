/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What every bus must do when it is written and read, against common/bus/bus.h alone. */
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

#include "common/system/clock.h"
#include "tests/unit/common/bus_contract.h"

static bool key_is(const struct nt_bus_record *record, const char *key)
{
	return record->key_len == strlen(key) && memcmp(record->key, key, record->key_len) == 0;
}

/* ---- publishing and reading ------------------------------------------------------------------ */

static void what_is_published_is_read_in_order(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	publish_many(url_of(state), NT_TOPIC_WINDOW, "job", 1, 1001);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	for (uint64_t i = 1; i < 1001; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
}

static void a_record_comes_back_whole(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	struct nt_bus_record record = {
		.topic = NT_TOPIC_DETAIL,
		.key = "job-1",
		.key_len = 5,
		.value = "payload",
		.value_len = 7,
		.real_ns = 1763700000123456789,
	};

	assert_int_equal(nt_bus_publish(bus, &record), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	memset(&record, 0xff, sizeof(record));
	reader = open_reader(url_of(state), NT_TOPIC_DETAIL);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(record.topic, NT_TOPIC_DETAIL);
	assert_true(key_is(&record, "job-1"));
	assert_int_equal(record.value_len, 7);
	assert_memory_equal(record.value, "payload", 7);
	assert_int_equal(record.real_ns, 1763700000123456789);
}

static void keys_and_values_may_be_any_bytes(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	uint8_t bytes[256];
	struct nt_bus_record record = {
		.topic = NT_TOPIC_NODE,
		.key = bytes,
		.key_len = NT_BUS_MAX_KEY,
		.value = bytes,
		.value_len = sizeof(bytes),
	};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(nt_bus_publish(bus, &record), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	reader = open_reader(url_of(state), NT_TOPIC_NODE);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(record.key_len, NT_BUS_MAX_KEY);
	assert_memory_equal(record.key, bytes, NT_BUS_MAX_KEY);
	assert_int_equal(record.value_len, sizeof(bytes));
	assert_memory_equal(record.value, bytes, sizeof(bytes));
}

static void an_empty_key_and_an_empty_value_are_records(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	struct nt_bus_record record = {.topic = NT_TOPIC_DLQ, .real_ns = 5};

	assert_int_equal(nt_bus_publish(bus, &record), 0);
	assert_int_equal(publish(bus, NT_TOPIC_DLQ, "", 6), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	reader = open_reader(url_of(state), NT_TOPIC_DLQ);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(record.key_len, 0);
	assert_int_equal(record.value_len, 0);
	assert_int_equal(record.real_ns, 5);
	assert_int_equal(read_number(reader), 6);
	record = (struct nt_bus_record){.topic = NT_TOPIC_DLQ, .real_ns = 7};
	assert_int_equal(nt_bus_publish(bus, &record), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(record.real_ns, 7);
}

static void the_largest_record_passes_and_one_byte_more_is_refused_and_counted(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	nt_autofree uint8_t *bytes = malloc(NT_BUS_MAX_VALUE + 1);
	struct nt_bus_record record = {.topic = NT_TOPIC_WINDOW, .key = bytes, .value = bytes};
	struct nt_bus_stats stats;

	assert_non_null(bytes);
	for (size_t i = 0; i < NT_BUS_MAX_VALUE + 1; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	record.value_len = NT_BUS_MAX_VALUE + 1;
	assert_int_equal(nt_bus_publish(bus, &record), -EMSGSIZE);
	record.value_len = 1;
	record.key_len = NT_BUS_MAX_KEY + 1;
	assert_int_equal(nt_bus_publish(bus, &record), -EMSGSIZE);
	record.value_len = NT_BUS_MAX_VALUE;
	record.key_len = NT_BUS_MAX_KEY;
	assert_int_equal(nt_bus_publish(bus, &record), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.dropped_too_large, 2);
	assert_int_equal(stats.published, 1);

	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(record.key_len, NT_BUS_MAX_KEY);
	assert_int_equal(record.value_len, NT_BUS_MAX_VALUE);
	assert_memory_equal(record.value, bytes, NT_BUS_MAX_VALUE);
	assert_nothing_more(reader);
}

static void a_reader_gets_the_topics_it_asked_for_and_no_other(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;
	unsigned int seen = 0;

	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 1, 2);
	publish_many(url_of(state), NT_TOPIC_NODE, "a", 2, 3);
	publish_many(url_of(state), NT_TOPIC_CONTROL, "a", 3, 4);
	assert_int_equal(nt_bus_reader_open(url_of(state),
					    1 << NT_TOPIC_WINDOW | 1 << NT_TOPIC_CONTROL, &reader),
			 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_int_equal(number_of(&record), record.topic == NT_TOPIC_WINDOW ? 1 : 3);
		seen |= 1U << record.topic;
	}
	assert_int_equal(seen, 1 << NT_TOPIC_WINDOW | 1 << NT_TOPIC_CONTROL);
	assert_nothing_more(reader);
}

static void closing_a_writer_flushes_it(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus *bus = open_bus(url_of(state));

	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, "a", 7), 0);
	nt_bus_close(bus);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 7);
}

static void what_was_published_is_counted(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	struct nt_bus_stats stats;

	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.published, 0);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, "abc", i), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.published, 10);
	assert_int_equal(stats.published_bytes, 10 * (3 + sizeof(uint64_t)));
	assert_int_equal(stats.dropped_full, 0);
	assert_int_equal(stats.dropped_too_large, 0);
}

static void what_makes_no_sense_is_refused(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
		open_reader(url_of(state), NT_TOPIC_WINDOW);
	struct nt_bus_position position = {.topic = NT_TOPIC_NODE};
	struct nt_bus_reader *no_reader = NULL;
	struct nt_bus *no_bus = NULL;

	assert_int_equal(nt_bus_open("pigeon:home", NULL, &no_bus), -EINVAL);
	assert_int_equal(nt_bus_open("", NULL, &no_bus), -EINVAL);
	assert_null(no_bus);
	assert_int_equal(nt_bus_reader_open("pigeon:home", 1, &no_reader), -EINVAL);
	assert_int_equal(nt_bus_reader_open(url_of(state), 0, &no_reader), -EINVAL);
	assert_int_equal(nt_bus_reader_open(url_of(state), 1U << NT_TOPIC_END, &no_reader),
			 -EINVAL);
	assert_null(no_reader);
	assert_int_equal(publish(bus, NT_TOPIC_END, "", 0), -EINVAL);
	assert_int_equal(nt_bus_reader_seek(reader, &position), -EINVAL);
	position.topic = NT_TOPIC_END;
	assert_int_equal(nt_bus_reader_seek(reader, &position), -EINVAL);
	nt_bus_close(NULL);
	nt_bus_reader_close(NULL);
}

static void every_topic_has_a_name_and_three_are_compacted(void **state)
{
	int compacted = 0;

	(void)state;
	for (int i = 0; i < NT_TOPIC_END; i++) {
		assert_int_equal(strncmp(nt_topic_name((enum nt_topic)i), "neutracer.", 10), 0);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(nt_topic_name((enum nt_topic)i),
						nt_topic_name((enum nt_topic)j));
		compacted += nt_topic_is_compacted((enum nt_topic)i);
	}
	assert_int_equal(compacted, 3);
	assert_string_equal(nt_topic_name(NT_TOPIC_WINDOW), "neutracer.window.v1");
	assert_string_equal(nt_topic_name(NT_TOPIC_END), "");
}

/* ---- several writers, several readers -------------------------------------------------------- */

static void several_writers_lose_and_disturb_nothing(void **state)
{
	static const char *const names[] = {"w0", "w1", "w2"};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus *bus[3];
	uint64_t next[3] = {0}, next_offset[MAX_PARTITIONS] = {0};
	struct nt_bus_record record;

	for (int i = 0; i < 3; i++)
		bus[i] = open_bus(url_of(state));
	for (uint64_t n = 0; n < 200; n++) {
		for (int i = 0; i < 3; i++) {
			assert_int_equal(publish(bus[i], NT_TOPIC_WINDOW, names[i], n), 0);
			if (n % (uint64_t)(i + 2) == 0)
				assert_int_equal(nt_bus_flush(bus[i]), 0);
		}
	}
	for (int i = 0; i < 3; i++)
		nt_bus_close(bus[i]);

	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	for (int i = 0; i < 600; i++) {
		int writer = 0;

		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		while (!key_is(&record, names[writer]))
			writer++;
		assert_int_equal(number_of(&record), next[writer]);
		next[writer]++;
		assert_in_range(record.partition, 0, MAX_PARTITIONS - 1);
		assert_true(record.offset >= next_offset[record.partition]);
		next_offset[record.partition] = record.offset + 1;
	}
	assert_nothing_more(reader);
}

static void several_readers_each_get_everything(void **state)
{
	struct nt_bus_reader *reader[3];

	for (int i = 0; i < 3; i++)
		reader[i] = open_reader(url_of(state), NT_TOPIC_WINDOW);
	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 1, 100);
	for (uint64_t n = 1; n < 100; n++)
		for (int i = 0; i < 3; i++)
			assert_int_equal(read_number(reader[i]), n);
	for (int i = 0; i < 3; i++) {
		assert_nothing_more(reader[i]);
		nt_bus_reader_close(reader[i]);
	}
}

static void a_writer_that_comes_back_goes_on_behind_its_last_record(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
		open_reader(url_of(state), NT_TOPIC_WINDOW);
	uint64_t next_offset[MAX_PARTITIONS] = {0};
	struct nt_bus_record record;

	for (uint64_t n = 0; n < 20; n++) {
		publish_many(url_of(state), NT_TOPIC_WINDOW, "a", n, n + 1);
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_int_equal(number_of(&record), n);
		assert_true(record.offset >= next_offset[record.partition]);
		next_offset[record.partition] = record.offset + 1;
	}
	assert_nothing_more(reader);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void waiting_ends_when_the_time_is_up(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;
	uint64_t begin_ns;

	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 1, 2);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 1);
	begin_ns = nt_clock_mono_ns();
	assert_int_equal(nt_bus_reader_next(reader, 30, &record), 0);
	assert_true(nt_clock_mono_ns() - begin_ns >= 30 * NT_MILLISECOND);
}

/*
 * Publishes 1..n in a process of its own, once `go` can be read. To be called before a client is made:
 * what its threads hold while the process is copied, nobody lets go in the copy.
 */
static pid_t fork_writer(const char *url, uint64_t n, int go)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct nt_bus *bus = NULL;
		char byte;

		if (read(go, &byte, 1) != 1 || nt_bus_open(url, NULL, &bus) < 0)
			_exit(1);
		for (uint64_t i = 1; i <= n; i++)
			if (publish(bus, NT_TOPIC_WINDOW, "a", i) < 0 || nt_bus_flush(bus) < 0)
				_exit(1);
		nt_bus_close(bus);
		_exit(0);
	}
	return pid;
}

static void assert_ended_well(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_reader_may_be_opened_before_there_is_a_bus(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	int go[2];
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	pid = fork_writer(url_of(state), 3, go[0]);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	assert_nothing_more(reader);
	assert_int_equal(write(go[1], "x", 1), 1);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(read_number(reader), i);
	assert_ended_well(pid);
	(void)close(go[0]);
	(void)close(go[1]);
}

static void waiting_ends_when_another_process_publishes(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	int go[2];
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	pid = fork_writer(url_of(state), 2000, go[0]);
	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 0, 1);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	for (uint64_t i = 1; i <= 2000; i++)
		assert_int_equal(read_number(reader), i);
	assert_ended_well(pid);
	(void)close(go[0]);
	(void)close(go[1]);
}

static void the_descriptor_of_a_reader_becomes_readable(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
		open_reader(url_of(state), NT_TOPIC_WINDOW);
	struct nt_bus_record record;
	struct pollfd pollfd = {.fd = nt_bus_reader_fd(reader), .events = POLLIN};
	int r = 0;

	if (pollfd.fd < 0)
		skip();
	assert_nothing_more(reader);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 7, 8);
	/* Being readable promises nothing: it may take some looks until the record is there. */
	while (r == 0) {
		assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
		r = nt_bus_reader_next(reader, 0, &record);
	}
	assert_int_equal(r, 1);
	assert_int_equal(number_of(&record), 7);
	assert_nothing_more(reader);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUS_TEST(what_is_published_is_read_in_order),
		BUS_TEST(a_record_comes_back_whole),
		BUS_TEST(keys_and_values_may_be_any_bytes),
		BUS_TEST(an_empty_key_and_an_empty_value_are_records),
		BUS_TEST(the_largest_record_passes_and_one_byte_more_is_refused_and_counted),
		BUS_TEST(a_reader_gets_the_topics_it_asked_for_and_no_other),
		BUS_TEST(closing_a_writer_flushes_it),
		BUS_TEST(what_was_published_is_counted),
		BUS_TEST(what_makes_no_sense_is_refused),
		BUS_TEST(every_topic_has_a_name_and_three_are_compacted),
		BUS_TEST(several_writers_lose_and_disturb_nothing),
		BUS_TEST(several_readers_each_get_everything),
		BUS_TEST(a_writer_that_comes_back_goes_on_behind_its_last_record),
		BUS_TEST(waiting_ends_when_the_time_is_up),
		BUS_TEST(a_reader_may_be_opened_before_there_is_a_bus),
		BUS_TEST(waiting_ends_when_another_process_publishes),
		BUS_TEST(the_descriptor_of_a_reader_becomes_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
