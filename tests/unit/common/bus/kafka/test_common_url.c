/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/url.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int parse(const char *text, struct nt_kafka_url *url)
{
	return nt_kafka_url_parse(text, strlen(text), url);
}

static void a_url_has_servers_and_maybe_a_prefix(void **state)
{
	struct nt_kafka_url url;

	(void)state;
	assert_int_equal(parse("kafka://broker:9092", &url), 0);
	assert_string_equal(url.servers, "broker:9092");
	assert_string_equal(url.prefix, "neutracer");
	assert_int_equal(parse("kafka://broker:9092/", &url), 0);
	assert_string_equal(url.prefix, "neutracer");
	assert_int_equal(
		parse("kafka://a-1.b_c:1,10.0.0.7:65535,[fe80::1]:9092/my.pre_fix-2", &url), 0);
	assert_string_equal(url.servers, "a-1.b_c:1,10.0.0.7:65535,[fe80::1]:9092");
	assert_string_equal(url.prefix, "my.pre_fix-2");
}

static void what_is_no_such_url_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"kafka",
		"kafka://",
		"kafka:///x",
		"kafka://host",
		"kafka://host:",
		"kafka://host:0",
		"kafka://host:65536",
		"kafka://host:9092x",
		"kafka://:9092",
		"kafka://host:9092,",
		"kafka://,host:9092",
		"kafka://host:9092,,host:9093",
		"kafka://ho st:9092",
		"kafka://ssl://host:9092",
		"kafka://user:secret@host:9092",
		"kafka://-host:9092",
		"kafka://[]:9092",
		"kafka://[fe80:9092",
		"kafka://[fe80::x]:9092",
		"kafka://host:9092/a/b",
		"kafka://host:9092/.",
		"kafka://host:9092/..",
		"kafka://host:9092/a.",
		"kafka://host:9092/a b",
		"kafka://host:9092/ä",
		"Kafka://host:9092",
		"spool:/var",
	};
	struct nt_kafka_url url = {.servers = "untouched"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(bad[i], &url) != -EINVAL)
			fail_msg("'%s' is taken", bad[i]);
	assert_int_equal(nt_kafka_url_parse("kafka://host:9092\n", 18, &url), -EINVAL);
	assert_int_equal(nt_kafka_url_parse("kafka://host:9092\0x", 19, &url), -EINVAL);
	assert_string_equal(url.servers, "untouched");
}

static void the_caps_are_kept(void **state)
{
	struct nt_kafka_url url;
	char text[NT_KAFKA_SERVERS_BYTES + 64];
	size_t len;

	(void)state;
	len = (size_t)snprintf(text, sizeof(text), "kafka://a:1");
	for (int i = 1; i < NT_KAFKA_MAX_SERVERS; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, ",a:1");
	assert_int_equal(nt_kafka_url_parse(text, len, &url), 0);
	len += (size_t)snprintf(text + len, sizeof(text) - len, ",a:1");
	assert_int_equal(nt_kafka_url_parse(text, len, &url), -E2BIG);

	len = (size_t)snprintf(text, sizeof(text), "kafka://a:1/");
	memset(text + len, 'p', NT_KAFKA_PREFIX_BYTES);
	assert_int_equal(nt_kafka_url_parse(text, len + NT_KAFKA_PREFIX_BYTES - 1, &url), 0);
	assert_int_equal(strlen(url.prefix), NT_KAFKA_PREFIX_BYTES - 1);
	assert_int_equal(nt_kafka_url_parse(text, len + NT_KAFKA_PREFIX_BYTES, &url),
			 -ENAMETOOLONG);

	len = (size_t)snprintf(text, sizeof(text), "kafka://");
	memset(text + len, 'h', 254);
	memcpy(text + len + 253, ":1", 2);
	assert_int_equal(nt_kafka_url_parse(text, len + 255, &url), 0);
	memset(text + len, 'h', 254);
	memcpy(text + len + 254, ":1", 2);
	assert_int_equal(nt_kafka_url_parse(text, len + 256, &url), -EINVAL);
	memset(text + len, 'h', NT_KAFKA_SERVERS_BYTES);
	assert_int_equal(nt_kafka_url_parse(text, len + NT_KAFKA_SERVERS_BYTES, &url),
			 -ENAMETOOLONG);
}

static void topics_are_named_by_the_prefix(void **state)
{
	char name[NT_KAFKA_TOPIC_BYTES];
	struct nt_kafka_url url;

	(void)state;
	assert_int_equal(parse("kafka://broker:9092", &url), 0);
	for (int i = 0; i < NT_TOPIC_END; i++)
		assert_string_equal(nt_kafka_topic_name(&url, (enum nt_topic)i, name),
				    nt_topic_name((enum nt_topic)i));
	assert_int_equal(parse("kafka://broker:9092/lab", &url), 0);
	assert_string_equal(nt_kafka_topic_name(&url, NT_TOPIC_STATE, name), "lab.state.v1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_has_servers_and_maybe_a_prefix),
		cmocka_unit_test(what_is_no_such_url_is_refused),
		cmocka_unit_test(the_caps_are_kept),
		cmocka_unit_test(topics_are_named_by_the_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
