/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Being let in, and being turned away with a clear line: TLS, passwords, certificates, rights. The
 * broker is one of kafka.sh --secure; NT_TEST_TLS is its folder of secrets, NT_TEST_MTLS and
 * NT_TEST_EXPIRED its two other addresses. Passwords are proved by SCRAM, or with NT_TEST_PLAIN shown.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/bus.h"
#include "tests/kafka/control.h"
#include "tests/unit/scratch.h"

enum {
	PATIENCE_MS = 30000,
	PATH_BYTES = 512,
};

struct files {
	char ca[PATH_BYTES], other_ca[PATH_BYTES], password[PATH_BYTES];
	char cert[PATH_BYTES], key[PATH_BYTES];
	char expired_cert[PATH_BYTES], expired_key[PATH_BYTES];
	char dir[SCRATCH_BYTES], own_password[PATH_BYTES];
	char prefix[64];
};

static struct files files;

static void name_file(char path[PATH_BYTES], const char *name)
{
	(void)snprintf(path, PATH_BYTES, "%s/%s", getenv("NT_TEST_TLS"), name);
}

static void write_password(const char *text)
{
	FILE *file = fopen(files.own_password, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static struct nt_bus_security trusted(void)
{
	return (struct nt_bus_security){.ca_file = files.ca};
}

static struct nt_bus_security known(void)
{
	struct nt_bus_security security = trusted();

	security.user = "neutracer";
	security.password_file = files.password;
	/* Which one: see old_scram in common/bus/kafka/client.c. */
	if (getenv("NT_TEST_PLAIN"))
		security.mechanism = NT_BUS_PLAIN;
	return security;
}

static const char *url_at(const char *servers, char url[KAFKA_URL_BYTES])
{
	(void)snprintf(url, KAFKA_URL_BYTES, "kafka://%s/%s", servers, files.prefix);
	return url;
}

static int set_up(void **state)
{
	const struct nt_kafka_topics_options wanted = {.partitions = 2, .retention_ns = UINT64_MAX};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_options options = {0};
	struct nt_bus_error error;
	char url[KAFKA_URL_BYTES];

	(void)state;
	name_file(files.ca, "ca.pem");
	name_file(files.other_ca, "other-ca.pem");
	name_file(files.password, "password");
	name_file(files.cert, "client.pem");
	name_file(files.key, "client.key");
	name_file(files.expired_cert, "expired.pem");
	name_file(files.expired_key, "expired.key");
	(void)snprintf(files.prefix, sizeof(files.prefix), "s%llx",
		       (unsigned long long)nt_clock_real_ns());
	if (scratch_make(files.dir) < 0)
		return -1;
	(void)snprintf(files.own_password, sizeof(files.own_password), "%s/password", files.dir);
	options.security = known();
	if (nt_kafka_topics_create(url_at(kafka_servers(), url), &options, &wanted, states,
				   &error) < 0) {
		(void)fprintf(stderr, "make topics: %s\n", error.text);
		return -1;
	}
	return states[0].status == NT_KAFKA_TOPIC_MADE ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(files.dir);
	return 0;
}

static int publish(struct nt_bus *bus, uint64_t number)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.key = "a",
		.key_len = 1,
		.value = &number,
		.value_len = sizeof(number),
		.real_ns = number,
	};

	return nt_bus_publish(bus, &record);
}

static void assert_passes(const char *servers, struct nt_bus_security security, uint64_t number)
{
	const struct nt_bus_options options = {.security = security};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_record record;
	char url[KAFKA_URL_BYTES];

	url_at(servers, url);
	assert_int_equal(nt_bus_open(url, &options, &bus), 0);
	assert_int_equal(publish(bus, number), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(nt_bus_reader_open_with(url, 1U << NT_TOPIC_WINDOW, &options, &reader), 0);
	do
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	while (record.real_ns != number);
}

static void count_one(void *data, const struct nt_bus_record *record, enum nt_bus_cause cause)
{
	unsigned int *count = data;

	(void)record;
	(void)cause;
	++*count;
}

/* Writer and reader both say the cause in one line with this text, and give back what they took. */
static void assert_turned_away(const char *servers, struct nt_bus_security security,
			       enum nt_bus_cause cause, const char *text)
{
	unsigned int back = 0;
	const struct nt_bus_options options = {
		.security = security,
		.flush_ns = NT_MILLISECOND,
		.close_ns = NT_MILLISECOND,
		.undelivered = count_one,
		.data = &back,
	};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus *bus = NULL;
	struct nt_bus_health health;
	struct nt_bus_record record;
	struct nt_bus_stats stats;
	char url[KAFKA_URL_BYTES];

	url_at(servers, url);
	assert_int_equal(nt_bus_open(url, &options, &bus), 0);
	assert_int_equal(publish(bus, 1), 0);
	if (!EVENTUALLY((nt_bus_health(bus, &health), health.cause == cause)))
		fail_msg("the writer says: %s", health.text);
	if (!strstr(health.text, text) || strchr(health.text, '\n'))
		fail_msg("the writer says: %s", health.text);
	nt_bus_stats(bus, &stats);
	assert_true(stats.errors[cause] > 0);
	nt_bus_close(bus);
	assert_int_equal(back, 1);

	assert_int_equal(nt_bus_reader_open_with(url, 1U << NT_TOPIC_WINDOW, &options, &reader), 0);
	assert_int_equal(nt_bus_reader_next(reader, 100, &record), 0);
	if (!EVENTUALLY((nt_bus_reader_health(reader, &health), health.cause == cause)))
		fail_msg("the reader says: %s", health.text);
	nt_bus_reader_stats(reader, &stats);
	assert_true(stats.errors[cause] > 0);
}

static void with_tls_and_a_password_records_pass(void **state)
{
	(void)state;
	assert_passes(kafka_servers(), known(), 100);
}

static void with_a_certificate_of_ours_records_pass(void **state)
{
	struct nt_bus_security security = trusted();

	(void)state;
	security.cert_file = files.cert;
	security.key_file = files.key;
	assert_passes(getenv("NT_TEST_MTLS"), security, 200);
}

static void a_wrong_password_is_named(void **state)
{
	struct nt_bus_security security = known();

	(void)state;
	write_password("no such password\n");
	security.password_file = files.own_password;
	assert_turned_away(kafka_servers(), security, NT_BUS_REFUSED,
			   "the brokers refuse the user 'neutracer'");
}

static void a_user_without_rights_is_told(void **state)
{
	struct nt_bus_security security = known();

	(void)state;
	security.user = "stranger";
	assert_turned_away(kafka_servers(), security, NT_BUS_DENIED, "not allowed");
}

static void an_unknown_authority_is_named(void **state)
{
	struct nt_bus_security security = known();

	(void)state;
	security.ca_file = files.other_ca;
	assert_turned_away(kafka_servers(), security, NT_BUS_CERTIFICATE,
			   "their certificate is refused: it is");
}

static void an_expired_certificate_of_the_broker_is_named(void **state)
{
	(void)state;
	assert_turned_away(getenv("NT_TEST_EXPIRED"), trusted(), NT_BUS_CERTIFICATE,
			   "their certificate is refused: it has expired");
}

static void an_expired_certificate_of_ours_is_named(void **state)
{
	struct nt_bus_security security = trusted();

	(void)state;
	security.cert_file = files.expired_cert;
	security.key_file = files.expired_key;
	assert_turned_away(getenv("NT_TEST_MTLS"), security, NT_BUS_CERTIFICATE,
			   "they refuse the client certificate (bus-cert-file:");
}

static void a_client_without_tls_is_told_to_use_it(void **state)
{
	(void)state;
	assert_turned_away(kafka_servers(), (struct nt_bus_security){0}, NT_BUS_UNREACHABLE,
			   "do they expect TLS or a password");
}

static void nobody_at_the_address_is_named(void **state)
{
	(void)state;
	assert_turned_away("127.0.0.1:1", trusted(), NT_BUS_UNREACHABLE,
			   "no broker answers at 127.0.0.1:1");
}

static void a_new_password_is_used_without_a_restart(void **state)
{
	struct nt_bus_options options = {.security = known(), .give_up_ns = NT_MINUTE};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_health health;
	struct nt_bus_record record;
	struct nt_bus_stats stats;
	char url[KAFKA_URL_BYTES], password[64] = "";
	FILE *file = fopen(files.password, "re");

	(void)state;
	assert_non_null(file);
	assert_non_null(fgets(password, sizeof(password), file));
	(void)fclose(file);
	write_password("from yesterday\n");
	options.security.password_file = files.own_password;
	url_at(kafka_servers(), url);
	assert_int_equal(nt_bus_open(url, &options, &bus), 0);
	assert_int_equal(nt_bus_reader_open_with(url, 1U << NT_TOPIC_WINDOW, &options, &reader), 0);
	for (uint64_t i = 1000; i < 1010; i++)
		assert_int_equal(publish(bus, i), 0);
	assert_true(EVENTUALLY((nt_bus_health(bus, &health), health.cause == NT_BUS_REFUSED)));
	write_password(password);
	assert_true(EVENTUALLY((nt_bus_stats(bus, &stats), stats.delivered == 10)));
	assert_int_equal(stats.reconnected, 1);
	do
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	while (record.real_ns != 1009);
	nt_bus_reader_stats(reader, &stats);
	assert_int_equal(stats.reconnected, 1);
}

static void no_secret_is_in_a_line(void **state)
{
	struct nt_bus_options options = {.security = known()};
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_health health;
	char url[KAFKA_URL_BYTES];

	(void)state;
	write_password("very-secret-indeed");
	options.security.password_file = files.own_password;
	assert_int_equal(nt_bus_open(url_at(kafka_servers(), url), &options, &bus), 0);
	assert_true(EVENTUALLY((nt_bus_health(bus, &health), health.cause == NT_BUS_REFUSED)));
	assert_null(strstr(health.text, "very-secret"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_tls_and_a_password_records_pass),
		cmocka_unit_test(with_a_certificate_of_ours_records_pass),
		cmocka_unit_test(a_wrong_password_is_named),
		cmocka_unit_test(a_user_without_rights_is_told),
		cmocka_unit_test(an_unknown_authority_is_named),
		cmocka_unit_test(an_expired_certificate_of_the_broker_is_named),
		cmocka_unit_test(an_expired_certificate_of_ours_is_named),
		cmocka_unit_test(a_client_without_tls_is_told_to_use_it),
		cmocka_unit_test(nobody_at_the_address_is_named),
		cmocka_unit_test(a_new_password_is_used_without_a_restart),
		cmocka_unit_test(no_secret_is_in_a_line),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
