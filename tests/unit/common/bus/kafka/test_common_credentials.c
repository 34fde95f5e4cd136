/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/credentials.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/bus/kafka/cause.h"
#include "tests/unit/scratch.h"

enum {
	PATH_BYTES = 128,
	VALUE_BYTES = 64,
};

struct place {
	char dir[SCRATCH_BYTES];
	char path[PATH_BYTES];
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	if (!place || scratch_make(place->dir) < 0)
		return -1;
	(void)snprintf(place->path, sizeof(place->path), "%s/password", place->dir);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	scratch_remove(place->dir);
	free(place);
	return 0;
}

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static void assert_setting(const rd_kafka_conf_t *conf, const char *name, const char *want)
{
	char value[VALUE_BYTES];
	size_t size = sizeof(value);

	assert_int_equal(rd_kafka_conf_get(conf, name, value, &size), RD_KAFKA_CONF_OK);
	assert_string_equal(value, want);
}

/* 0 or the errno of applying; the error has the text. */
static int apply(const struct nt_bus_security *security, rd_kafka_conf_t *conf,
		 struct nt_bus_error *error)
{
	struct nt_kafka_credentials secrets;
	int r = nt_kafka_credentials_init(&secrets, security, error);

	if (r == 0)
		r = nt_kafka_credentials_apply(&secrets, conf, error);
	nt_kafka_credentials_release(&secrets);
	return r;
}

static void what_does_not_go_together_is_said(void **state)
{
	static const struct {
		struct nt_bus_security security;
		const char *text;
	} rows[] = {
		{{.cert_file = "c", .key_file = "k"}, "needs TLS"},
		{{.ca_file = "a", .cert_file = "c"}, "bus-cert-file and bus-key-file go together"},
		{{.ca_file = "a", .key_file = "k"}, "bus-cert-file and bus-key-file go together"},
		{{.user = "u"}, "bus-user and bus-password-file go together"},
		{{.password_file = "p"}, "bus-user and bus-password-file go together"},
		{{.user = "u", .password_file = "p", .mechanism = NT_BUS_PLAIN},
		 "PLAIN shows the password"},
		{{.mechanism = 99}, "unknown SASL mechanism"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nt_kafka_credentials secrets;
		struct nt_bus_error error = {0};

		assert_int_equal(nt_kafka_credentials_init(&secrets, &rows[i].security, &error),
				 -EINVAL);
		assert_non_null(strstr(error.text, rows[i].text));
		nt_kafka_credentials_release(&secrets);
	}
}

static void a_password_is_the_one_line_of_its_file(void **state)
{
	const struct place *place = *state;
	const struct nt_bus_security security = {.user = "u", .password_file = place->path};
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	struct nt_bus_error error = {0};

	write_file(place->path, "s3cret \r\n", 9);
	assert_int_equal(apply(&security, conf, &error), 0);
	assert_setting(conf, "sasl.password", "s3cret ");
	assert_setting(conf, "sasl.username", "u");
	assert_setting(conf, "sasl.mechanisms", "SCRAM-SHA-512");
	assert_setting(conf, "security.protocol", "sasl_plaintext");
	rd_kafka_conf_destroy(conf);
}

static void a_file_that_holds_no_password_is_named_and_its_content_is_not(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {{"", 0}, {"\n", 1}, {"hush\nhush\n", 10}, {"hu\0sh", 5}};
	const struct place *place = *state;
	const struct nt_bus_security security = {.user = "u", .password_file = place->path};
	nt_autofree char *large = malloc(5000);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	struct nt_bus_error error = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_file(place->path, rows[i].text, rows[i].len);
		assert_int_equal(apply(&security, conf, &error), -EINVAL);
		assert_non_null(strstr(error.text, place->path));
		assert_null(strstr(error.text, "hu"));
	}
	assert_non_null(large);
	memset(large, 'x', 5000);
	write_file(place->path, large, 5000);
	assert_int_equal(apply(&security, conf, &error), -EFBIG);
	(void)remove(place->path);
	assert_int_equal(apply(&security, conf, &error), -ENOENT);
	assert_non_null(strstr(error.text, place->path));
	rd_kafka_conf_destroy(conf);
}

static void tls_follows_from_a_ca_file(void **state)
{
	const struct place *place = *state;
	const struct nt_bus_security security = {.ca_file = place->path};
	const struct nt_bus_security none = {0};
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	struct nt_bus_error error = {0};

	assert_int_equal(apply(&none, conf, &error), 0);
	assert_setting(conf, "security.protocol", "plaintext");
	assert_int_equal(apply(&security, conf, &error), -ENOENT);
	assert_non_null(strstr(error.text, "read bus-ca-file"));
	write_file(place->path, "x", 1);
	assert_int_equal(apply(&security, conf, &error), 0);
	assert_setting(conf, "security.protocol", "ssl");
	assert_setting(conf, "ssl.ca.location", place->path);
	rd_kafka_conf_destroy(conf);
}

static void a_change_is_seen_and_an_absence_is_none(void **state)
{
	const struct place *place = *state;
	const struct nt_bus_security security = {.user = "u", .password_file = place->path};
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	struct nt_kafka_credentials secrets;
	struct nt_bus_error error = {0};
	char other[PATH_BYTES];

	write_file(place->path, "one", 3);
	assert_int_equal(nt_kafka_credentials_init(&secrets, &security, &error), 0);
	assert_int_equal(nt_kafka_credentials_apply(&secrets, conf, &error), 0);
	assert_false(nt_kafka_credentials_have_changed(&secrets));
	/* As Kubernetes does it: another file of the same size in its place. */
	(void)snprintf(other, sizeof(other), "%s/other", place->dir);
	write_file(other, "two", 3);
	assert_int_equal(remove(place->path), 0);
	assert_false(nt_kafka_credentials_have_changed(&secrets));
	assert_int_equal(rename(other, place->path), 0);
	assert_true(nt_kafka_credentials_have_changed(&secrets));
	assert_int_equal(nt_kafka_credentials_apply(&secrets, conf, &error), 0);
	assert_false(nt_kafka_credentials_have_changed(&secrets));
	nt_kafka_credentials_release(&secrets);
	rd_kafka_conf_destroy(conf);
}

/* ---- errors of the library ------------------------------------------------------------------- */

static void errors_have_a_cause_and_an_errno(void **state)
{
	(void)state;
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR_NO_ERROR, NULL), NT_BUS_WELL);
	assert_int_equal(nt_kafka_errno(RD_KAFKA_RESP_ERR_NO_ERROR), 0);
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR__TRANSPORT, NULL), NT_BUS_UNREACHABLE);
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR__TRANSPORT,
					"error:0A000416:SSL routines::sslv3 alert"),
			 NT_BUS_CERTIFICATE);
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR__AUTHENTICATION, NULL), NT_BUS_REFUSED);
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR__AUTHENTICATION,
					"sasl_ssl://k:9092/bootstrap: SASL SCRAM-SHA-512 mechanism "
					"handshake failed: Local: Broker transport failure: "
					"broker's supported mechanisms: (n/a)"),
			 NT_BUS_UNREACHABLE);
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR__AUTHENTICATION,
					"SASL authentication error: Authentication failed during "
					"authentication due to invalid credentials"),
			 NT_BUS_REFUSED);
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, NULL),
			 NT_BUS_NO_TOPIC);
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, NULL), NT_BUS_FAILED);
	assert_int_equal(nt_kafka_errno(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP), -EIO);
	/* What the library quotes of OpenSSL is read by its number, whatever the words. */
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR__TRANSPORT,
					"ssl://k:9093/1: SSL handshake failed: "
					"error:0A000412:lib(20)::reason(1042)"),
			 NT_BUS_CERTIFICATE);
	assert_int_equal(nt_kafka_cause(RD_KAFKA_RESP_ERR__TRANSPORT,
					"Connect to ipv4#10.0.0.1:9092 failed: Connection refused"),
			 NT_BUS_UNREACHABLE);
	assert_int_equal(
		nt_kafka_cause(RD_KAFKA_RESP_ERR__TRANSPORT, "error:02000068:rsa routines"),
		NT_BUS_UNREACHABLE);
	for (int i = 0; i < 100; i++)
		assert_true(*nt_kafka_certificate_reason(i));
	for (int i = 0; i < NT_BUS_CAUSE_END; i++)
		assert_true(*nt_bus_cause_name((enum nt_bus_cause)i));
	assert_string_equal(nt_bus_cause_name(NT_BUS_CAUSE_END), "");
}

static void an_error_of_tls_is_known_by_its_number(void **state)
{
	static const struct {
		const char *text;
		int reason;
		bool is_alert;
	} rows[] = {
		{"error:0A000086:SSL routines::certificate verify failed: broker certificate could "
		 "not be verified",
		 134, false},
		{"SSL handshake failed: error:0A000412:SSL routines::sslv3 alert bad certificate",
		 1042, true},
		{"error:0A00045C:SSL routines::tlsv13 alert certificate required", 1116, true},
		{"error:0A000418:SSL routines::tlsv1 alert unknown ca", 1048, false},
		{"error: Authentication failed; error:0A000415:SSL routines::x", 1045, true},
		{"error:0A000412", 0, false},
		{"error:A000412:SSL routines", 0, false},
		{"error:-A00041:SSL routines", 0, false},
		{"certificate verify failed", 0, false},
		{"", 0, false},
		{NULL, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(nt_kafka_tls_error(rows[i].text), rows[i].reason);
		assert_int_equal(nt_kafka_is_certificate_alert(rows[i].reason), rows[i].is_alert);
	}
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_go_together_is_said),
		PLACE_TEST(a_password_is_the_one_line_of_its_file),
		PLACE_TEST(a_file_that_holds_no_password_is_named_and_its_content_is_not),
		PLACE_TEST(tls_follows_from_a_ca_file),
		PLACE_TEST(a_change_is_seen_and_an_absence_is_none),
		cmocka_unit_test(errors_have_a_cause_and_an_errno),
		cmocka_unit_test(an_error_of_tls_is_known_by_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
