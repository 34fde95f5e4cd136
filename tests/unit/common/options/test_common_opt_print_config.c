/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The printed config file: every setting is a comment, its defaults are read back, its ranges have examples. */
#include "common/options/opt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/options/opt_print.h"
#include "common/system/clock.h"

struct config {
	bool json, color;
	uint32_t mode;
	uint64_t linger_ns, ring_bytes;
	double floor;
	char *bus, *sign, *store;
};

#define OPT(field) offsetof(struct config, field)

static const struct nt_opt opts[] = {
	{"json", NT_OPT_BOOL, OPT(json), "false", 0, 0, "print JSON", .flags = NT_OPT_CLI_ONLY},
	{"color", NT_OPT_BOOL, OPT(color), "true", 0, 0, "colours"},
	{"mode", NT_OPT_CHOICE, OPT(mode), "fast", 0, 0, "how", .choices = "auto fast slow"},
	{"ring-bytes", NT_OPT_SIZE, OPT(ring_bytes), "1M", 4096, 1 << 30, "size of the ring"},
	{"batch-linger", NT_OPT_DURATION, OPT(linger_ns), "100ms", 0, NT_MINUTE,
	 "the longest time that an event is held before it is sent on together with all the others "
	 "that came meanwhile"},
	{"floor", NT_OPT_DOUBLE, OPT(floor), "0.03", 0, 1, "smallest loss that counts"},
	{"bus", NT_OPT_STRING, OPT(bus), "spool:/x # y", 1, 0, "where data travel", .arg = "URL"},
	{"sign", NT_OPT_STRING, OPT(sign), "€", 1, 0, "of the currency"},
	{"store", NT_OPT_STRING, OPT(store), NULL, 0, 0, "what is kept", .arg = "FILE"},
};

static const struct nt_opt_program program = {
	.name = "neutracer-example",
	.section = 8,
	.summary = "serve as an example",
	.opts = opts,
	.opt_count = sizeof(opts) / sizeof(opts[0]),
	.config_path = "/no/such/file",
};

static char *print(void)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	nt_opt_print_config(&program, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void every_line_is_a_comment_of_at_most_the_width(void **state)
{
	nt_autofree char *text = print();

	(void)state;
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		assert_true(*line == '#' || *line == '\n');
		assert_true(strcspn(line, "\n") <= 96);
	}
	assert_non_null(strstr(text, "\n# what is kept\n"));
	assert_non_null(strstr(text, "\n#store: FILE\n"));
	assert_null(strstr(text, "json"));
}

/* Removes the '#' in front of each key; of `store` the value is none. */
static void write_uncommented(const char *text, const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		if (*line == '#' && line[1] != ' ' && strncmp(line, "#store:", 7) != 0)
			(void)fprintf(file, "%.*s\n", (int)strcspn(line + 1, "\n"), line + 1);
	assert_int_equal(fclose(file), 0);
}

static void the_defaults_are_read_back(void **state)
{
	char path[] = "/tmp/neutracer-test-XXXXXX";
	int fd = mkstemp(path);
	struct config config = {0}, defaults = {0};
	nt_autofree char *text = print();
	struct nt_opt_error error;
	static char name[] = "x", option[] = "--config";

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	write_uncommented(text, path);
	assert_int_equal(
		nt_opt_load(&program, 3, (char *[]){name, option, path, NULL}, &config, &error), 0);
	assert_int_equal(nt_opt_load(&program, 1, (char *[]){name, NULL}, &defaults, &error), 0);
	assert_true(config.color && !config.json);
	assert_int_equal(config.mode, 1);
	assert_int_equal(config.linger_ns, defaults.linger_ns);
	assert_int_equal(config.ring_bytes, 1 << 20);
	assert_string_equal(config.bus, "spool:/x # y");
	assert_string_equal(config.sign, "€");
	nt_opt_free(&program, &config);
	nt_opt_free(&program, &defaults);
	assert_int_equal(unlink(path), 0);
}

/* What the message gives as an example can be typed. */
static void examples_of_a_range_lie_in_it(void **state)
{
	static const struct {
		struct nt_opt opt;
		const char *allowed;
	} cases[] = {
		{{"a", NT_OPT_DURATION, .min = NT_SECOND / 2, .max = NT_HOUR},
		 "a duration from 500ms to 1h, such as 5s, 1m or 1h"},
		{{"b", NT_OPT_DURATION, .max = NT_SECOND},
		 "a duration from 0s to 1s, such as 250ms"},
		{{"c", NT_OPT_DURATION, .min = NT_HOUR, .max = 30 * NT_DAY},
		 "a duration from 1h to 30d, such as 1h or 1d"},
		{{"d", NT_OPT_DURATION, .max = NT_MILLISECOND}, "a duration from 0s to 1ms"},
		{{"e", NT_OPT_DURATION, .min = 0}, "a duration, such as 250ms, 5s or 1m"},
		{{"f", NT_OPT_SIZE, .min = 1 << 20}, "a size of at least 1M, such as 16M or 1G"},
		{{"g", NT_OPT_SIZE, .max = 1 << 20}, "a size from 0 to 1M, such as 64K"},
		{{"h", NT_OPT_DOUBLE, .min = 0}, "a number of at least 0"},
		{{"i", NT_OPT_U64, .min = 0}, "a whole number"},
	};
	char text[NT_OPT_ALLOWED_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(nt_opt_format_allowed(&cases[i].opt, text), cases[i].allowed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_line_is_a_comment_of_at_most_the_width),
		cmocka_unit_test(the_defaults_are_read_back),
		cmocka_unit_test(examples_of_a_range_lie_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
