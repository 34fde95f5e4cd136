/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/options/opt.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/options/opt_print.h"
#include "common/system/clock.h"

struct config {
	bool json, color;
	uint32_t workers, mode;
	uint64_t seed, ring_bytes, linger_ns;
	double floor;
	char *bus, *token, *even, *class, *store, *disk_queue;
	struct nt_opt_args args;
};

#define OPT(field) offsetof(struct config, field)

static bool is_even(const char *value)
{
	return strlen(value) % 2 == 0;
}

static const struct nt_opt_form form = {is_even, "a text of even length"};

static const struct nt_opt opts[] = {
	{"json", NT_OPT_BOOL, OPT(json), "false", 0, 0, "print JSON", .flags = NT_OPT_CLI_ONLY},
	{"color", NT_OPT_BOOL, OPT(color), "true", 0, 0, "colours"},
	{"workers", NT_OPT_U32, OPT(workers), "4", 1, 64, "threads that work"},
	{"mode", NT_OPT_CHOICE, OPT(mode), "auto", 0, 0, "how", .choices = "auto fast slow"},
	{"seed", NT_OPT_U64, OPT(seed), NULL, 0, 0, "of the draw"},
	{"ring-bytes", NT_OPT_SIZE, OPT(ring_bytes), "1M", 4096, 1 << 30, "size of the ring"},
	{"batch-linger", NT_OPT_DURATION, OPT(linger_ns), "100ms", 0, NT_MINUTE,
	 "how long an event may wait for company"},
	{"floor", NT_OPT_DOUBLE, OPT(floor), "0.03", 0, 1, "smallest loss that counts"},
	{"bus", NT_OPT_STRING, OPT(bus), "spool:/tmp/x", 1, 0, "where data travel", .arg = "URL"},
	{"token", NT_OPT_STRING, OPT(token), NULL, 0, 8, "secret", .flags = NT_OPT_SECRET},
	{"even", NT_OPT_STRING, OPT(even), NULL, 0, 8, "a text of its own form", .form = &form},
	{"class", NT_OPT_STRING, OPT(class), NULL, 0, 0, "which class", .words = "compute host"},
	{"store", NT_OPT_STRING, OPT(store), NULL, 0, 0, "what is kept", .arg = "FILE"},
	{"shelter", NT_OPT_STRING, OPT(disk_queue), NULL, 0, 0, "what waits", .arg = "DIR"},
};

static const enum nt_exit exits[] = {NT_EXIT_KERNEL};

static const struct nt_opt_program program = {
	.name = "neutracer-example",
	.section = 8,
	.summary = "serve as an example",
	.opts = opts,
	.opt_count = sizeof(opts) / sizeof(opts[0]),
	.args = "[FILE]...",
	.max_args = 2,
	.args_offset = OPT(args),
	.exits = exits,
	.exit_count = 1,
};

static const struct nt_opt_command commands[] = {
	{"slow-ranks", "which rank is slow"},
	{"jobs", "what runs"},
};

static const struct nt_opt_program with_commands = {
	.name = "neutracer",
	.section = 1,
	.summary = "serve as an example",
	.commands = commands,
	.command_count = 2,
};

static struct config config;
static struct nt_opt_error error;
static char path[64];

static int load(const char *const *words)
{
	int argc = 0;

	while (words[argc])
		argc++;
	return nt_opt_load(&program, argc, (char **)words, &config, &error);
}

#define LOAD(...) load((const char *const[]){"example", ##__VA_ARGS__, NULL})

static void write_config(const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/nt-opt-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd) < 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_opt_free(&program, &config);
	memset(&config, 0, sizeof(config));
	memset(&error, 0, sizeof(error));
	(void)unsetenv("NT_WORKERS");
	(void)unsetenv("NT_CONFIG");
	(void)unsetenv("NT_JSON");
	return unlink(path);
}

static void defaults_are_set_where_nothing_else_speaks(void **state)
{
	(void)state;
	assert_int_equal(LOAD(), 0);
	assert_false(config.json);
	assert_true(config.color);
	assert_int_equal(config.workers, 4);
	assert_int_equal(config.mode, 0);
	assert_int_equal(config.seed, 0);
	assert_int_equal(config.ring_bytes, 1 << 20);
	assert_int_equal(config.linger_ns, 100 * NT_MILLISECOND);
	assert_true(config.floor > 0.0299 && config.floor < 0.0301);
	assert_string_equal(config.bus, "spool:/tmp/x");
	assert_null(config.token);
	assert_int_equal(config.args.count, 0);
}

static void the_command_line_takes_both_forms_and_keeps_the_order_of_arguments(void **state)
{
	(void)state;
	assert_int_equal(LOAD("a", "--json", "--no-color", "--workers=7", "--mode", "slow",
			      "--seed", "18446744073709551615", "--ring-bytes=64K", "--floor=1",
			      "--", "--b"),
			 0);
	assert_true(config.json);
	assert_false(config.color);
	assert_int_equal(config.workers, 7);
	assert_int_equal(config.mode, 2);
	assert_true(config.seed == UINT64_MAX);
	assert_int_equal(config.ring_bytes, 65536);
	assert_true(config.floor == 1);
	assert_int_equal(config.args.count, 2);
	assert_string_equal(config.args.value[0], "a");
	assert_string_equal(config.args.value[1], "--b");
}

static void later_sources_win(void **state)
{
	(void)state;
	write_config("workers: 10\nring-bytes: 2M\n");
	assert_int_equal(LOAD("--config", path), 0);
	assert_int_equal(config.workers, 10);
	nt_opt_free(&program, &config);

	assert_int_equal(setenv("NT_WORKERS", "11", 1), 0);
	assert_int_equal(LOAD("--config", path), 0);
	assert_int_equal(config.workers, 11);
	nt_opt_free(&program, &config);

	assert_int_equal(LOAD("--workers=12", "--config", path), 0);
	assert_int_equal(config.workers, 12);
	assert_int_equal(config.ring_bytes, 2 << 20);
}

static void the_environment_names_the_file_too(void **state)
{
	(void)state;
	write_config("workers: 10");
	assert_int_equal(setenv("NT_CONFIG", path, 1), 0);
	assert_int_equal(LOAD(), 0);
	assert_int_equal(config.workers, 10);
}

static void an_empty_variable_counts_as_not_set(void **state)
{
	(void)state;
	assert_int_equal(setenv("NT_WORKERS", "", 1), 0);
	assert_int_equal(LOAD(), 0);
	assert_int_equal(config.workers, 4);
}

static void an_option_of_the_command_line_alone_is_no_variable_and_no_key(void **state)
{
	(void)state;
	assert_int_equal(setenv("NT_JSON", "true", 1), 0);
	assert_int_equal(LOAD(), 0);
	assert_false(config.json);
	nt_opt_free(&program, &config);

	write_config("json: true");
	assert_int_equal(LOAD("--config", path), -EINVAL);
	assert_int_equal(error.exit, NT_EXIT_CONFIG);
	assert_non_null(strstr(error.text,
			       "'json' is no key: --json is an option of the command line only"));
	nt_opt_free(&program, &config);

	/* Nor is it suggested. */
	write_config("jsn: true");
	assert_int_equal(LOAD("--config", path), -EINVAL);
	assert_non_null(strstr(error.text, "unknown key 'jsn'"));
	assert_null(strstr(error.text, "did you mean"));
}

static void a_bad_value_names_key_value_and_range(void **state)
{
	(void)state;
	assert_int_equal(LOAD("--batch-linger", "2m"), -ERANGE);
	assert_int_equal(error.exit, NT_EXIT_USAGE);
	assert_string_equal(error.text, "--batch-linger: '2m' is not a duration from 0s to 1m, "
					"such as 250ms, 5s or 1m");
	nt_opt_free(&program, &config);
	assert_int_equal(LOAD("--workers", "4x"), -EINVAL);
	assert_string_equal(error.text, "--workers: '4x' is not a whole number from 1 to 64");
	nt_opt_free(&program, &config);
	assert_int_equal(LOAD("--mode", "quick"), -EINVAL);
	assert_string_equal(error.text, "--mode: 'quick' is not one of auto, fast, slow");
	nt_opt_free(&program, &config);
	assert_int_equal(LOAD("--class", "comput"), -EINVAL);
	assert_string_equal(error.text, "--class: 'comput' is not one of compute, host");
	nt_opt_free(&program, &config);
	assert_int_equal(LOAD("--bus", ""), -ERANGE);
	nt_opt_free(&program, &config);
	assert_int_equal(LOAD("--bus", "a\nb"), -EINVAL);
	assert_null(strchr(error.text, '\n'));
}

static void a_bad_variable_is_a_config_error_that_names_it(void **state)
{
	(void)state;
	assert_int_equal(setenv("NT_WORKERS", "65", 1), 0);
	assert_int_equal(LOAD(), -ERANGE);
	assert_int_equal(error.exit, NT_EXIT_CONFIG);
	assert_string_equal(error.text, "NT_WORKERS: '65' is not a whole number from 1 to 64");
}

static void a_secret_is_not_repeated(void **state)
{
	(void)state;
	assert_int_equal(LOAD("--token", "hunter2hunter2"), -ERANGE);
	assert_null(strstr(error.text, "hunter2"));
	assert_non_null(strstr(error.text, "--token"));
}

static void a_long_value_is_cut_in_the_message(void **state)
{
	char value[2000];

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	assert_int_equal(LOAD("--workers", value), -EINVAL);
	assert_true(strlen(error.text) < 200);
	assert_non_null(strstr(error.text, "xx...'"));
}

static void an_unknown_option_suggests_the_nearest(void **state)
{
	(void)state;
	assert_int_equal(LOAD("--worker", "3"), -EINVAL);
	assert_int_equal(error.exit, NT_EXIT_USAGE);
	assert_string_equal(error.text, "unknown option '--worker', did you mean '--workers'?");
	nt_opt_free(&program, &config);
	assert_int_equal(LOAD("--xyzzy-frobnicate"), -EINVAL);
	assert_string_equal(error.text, "unknown option '--xyzzy-frobnicate', see --help");
	nt_opt_free(&program, &config);
	assert_int_equal(LOAD("--no-workers"), -EINVAL);
	assert_int_equal(error.exit, NT_EXIT_USAGE);
	nt_opt_free(&program, &config);
	assert_int_equal(LOAD("-x"), -EINVAL);
	assert_int_equal(error.exit, NT_EXIT_USAGE);
}

static void an_option_without_its_value_is_refused(void **state)
{
	(void)state;
	assert_int_equal(LOAD("--workers"), -EINVAL);
	assert_string_equal(error.text, "--workers needs a value");
}

static void too_many_arguments_are_refused(void **state)
{
	(void)state;
	assert_int_equal(LOAD("a", "b", "c"), -EINVAL);
	assert_string_equal(error.text, "too many arguments: 3, see --help");
}

static void arguments_that_are_missing_are_named(void **state)
{
	struct nt_opt_program needy = program;
	char *words[] = {(char *)"example", NULL};

	(void)state;
	needy.args = "FILE...";
	needy.min_args = 1;
	assert_int_equal(nt_opt_load(&needy, 1, words, &config, &error), -EINVAL);
	assert_string_equal(error.text, "not given: FILE..., see --help");
}

static void config_must_fail(const char *text, const char *why)
{
	write_config(text);
	assert_int_equal(LOAD("--config", path), -EINVAL);
	assert_int_equal(error.exit, NT_EXIT_CONFIG);
	if (!strstr(error.text, why))
		fail_msg("'%s' does not say '%s'", error.text, why);
	assert_null(strchr(error.text, '\n'));
	nt_opt_free(&program, &config);
}

static void a_broken_file_is_one_clear_line(void **state)
{
	(void)state;
	config_must_fail("workerz: 1", "unknown key 'workerz', did you mean 'workers'?");
	config_must_fail("workers: 1\nworkers: 2", "already seen");
	config_must_fail("workers: [1, 2]", "(line: 1");
	config_must_fail("workers: *x", "alias");
	config_must_fail("workers: \"1", "config file");
	config_must_fail("- workers", "config file");
	config_must_fail("just words", "config file");
	config_must_fail("workers: 1\n---\nworkers: 2", "documents");
	config_must_fail("workers: 4x", "workers: '4x' is not a whole number");
	config_must_fail("workers:", "workers: '' is not a whole number");
}

static void an_empty_file_sets_nothing(void **state)
{
	(void)state;
	write_config("# nothing\n");
	assert_int_equal(LOAD("--config", path), 0);
	assert_int_equal(config.workers, 4);
}

static void a_missing_file_is_a_config_error(void **state)
{
	(void)state;
	assert_int_equal(LOAD("--config", "/no/such/file"), -ENOENT);
	assert_int_equal(error.exit, NT_EXIT_CONFIG);
	assert_string_equal(error.text, "config file '/no/such/file': No such file or directory");
}

static void a_text_that_has_not_the_form_is_refused_with_the_form(void **state)
{
	char text[NT_OPT_ALLOWED_TEXT];

	(void)state;
	assert_int_equal(LOAD("--even", "1234"), 0);
	assert_string_equal(config.even, "1234");
	nt_opt_free(&program, &config);
	assert_int_equal(LOAD("--even=1234", "--even", "123"), -EINVAL);
	assert_int_equal(error.exit, NT_EXIT_USAGE);
	assert_string_equal(error.text, "--even: '123' is not a text of even length");
	assert_string_equal(config.even, "1234"); /* the old one stays */
	nt_opt_free(&program, &config);
	write_config("even: abc\n");
	assert_int_equal(LOAD("--config", path), -EINVAL);
	assert_int_equal(error.exit, NT_EXIT_CONFIG);
	assert_non_null(strstr(error.text, ": even: 'abc' is not a text of even length"));
	assert_string_equal(nt_opt_format_allowed(&opts[10], text), "a text of even length");
}

static void a_file_over_the_cap_is_refused(void **state)
{
	FILE *file = fopen(path, "we");

	(void)state;
	assert_non_null(file);
	for (int i = 0; i < (1 << 20) / 16 + 1; i++)
		assert_true(fputs("# comment line.\n", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(LOAD("--config", path), -EFBIG);
	assert_int_equal(error.exit, NT_EXIT_CONFIG);
}

static char *print(void (*fn)(const struct nt_opt_program *, FILE *),
		   const struct nt_opt_program *of)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	fn(of, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void help_and_manual_name_every_option_and_exit_code(void **state)
{
	nt_autofree char *help = print(nt_opt_print_help, &program);
	nt_autofree char *man = print(nt_opt_print_man, &program);

	(void)state;
	for (size_t i = 0; i < program.opt_count; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "--%s", opts[i].name);
		assert_non_null(strstr(help, text));
	}
	assert_non_null(strstr(help, "(default 100ms)"));
	assert_non_null(strstr(help, "  4  the kernel"));
	assert_null(strstr(help, "  5  "));
	assert_non_null(strstr(man, "\\fB\\-\\-batch\\-linger\\fR \\fITIME\\fR"));
	assert_non_null(strstr(man, "Environment: NT_BATCH_LINGER."));
}

static void help_says_what_the_arguments_are(void **state)
{
	static const struct nt_opt_command arguments[] = {{"FILE", "what to read"}};
	nt_autofree char *plain = print(nt_opt_print_help, &program), *help = NULL;
	struct nt_opt_program other = program;

	(void)state;
	assert_null(strstr(plain, "Arguments:"));
	other.arg_help = arguments;
	other.arg_help_count = 1;
	help = print(nt_opt_print_help, &other);
	assert_non_null(strstr(
		help,
		"example.\n\nArguments:\n  FILE                      what to read\n\nOptions:\n"));
}

static void exit_code_1_means_what_the_program_says_it_does(void **state)
{
	static const enum nt_exit finding[] = {NT_EXIT_FINDING};
	struct nt_opt_program other = program;
	nt_autofree char *help = NULL, *man = NULL, *plain = NULL;

	(void)state;
	other.exits = finding;
	plain = print(nt_opt_print_help, &other);
	assert_non_null(strstr(plain, "  1  the result is a finding: a culprit is named\n"));
	other.finding = "the answer is a finding: something is amiss";
	help = print(nt_opt_print_help, &other);
	man = print(nt_opt_print_man, &other);
	assert_non_null(strstr(help, "  1  the answer is a finding: something is amiss\n"));
	assert_non_null(strstr(man, "finding: something is amiss.\n"));
	assert_null(strstr(help, "culprit"));
	assert_null(strstr(man, "culprit"));
}

static void a_program_of_commands_names_them_everywhere(void **state)
{
	nt_autofree char *help = print(nt_opt_print_help, &with_commands);
	nt_autofree char *man = print(nt_opt_print_man, &with_commands);

	(void)state;
	assert_non_null(strstr(help, "Usage: neutracer COMMAND"));
	assert_non_null(strstr(help, "  slow-ranks                which rank is slow\n"));
	assert_non_null(strstr(man, ".BR neutracer-jobs (1)"));
	assert_null(strstr(man, "--config"));
	assert_false(nt_opt_answer(&with_commands, "jobs", NULL));
	assert_false(nt_opt_answer(&with_commands, "--print-completion", NULL));
	assert_false(nt_opt_answer(&with_commands, "--print-completion", "csh"));
}

static char *complete(const struct nt_opt_program *of, const char *shell)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	nt_opt_print_completion(of, shell, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void completion_offers_options_choices_and_commands(void **state)
{
	nt_autofree char *bash = complete(&program, "bash");
	nt_autofree char *zsh = complete(&program, "zsh");
	nt_autofree char *commands_bash = complete(&with_commands, "bash");
	nt_autofree char *commands_zsh = complete(&with_commands, "zsh");
	nt_autofree char *fish = complete(&program, "fish");
	nt_autofree char *commands_fish = complete(&with_commands, "fish");

	(void)state;
	assert_non_null(strstr(fish, " -l mode -x -a 'auto fast slow' -d "));
	assert_non_null(strstr(fish, " -l config -r -F -d "));
	assert_non_null(strstr(commands_fish, " -a slow-ranks -d 'which rank is slow'\n"));
	assert_non_null(strstr(bash, "--mode)\n\t\tmapfile -t COMPREPLY < "
				     "<(compgen -W 'auto fast slow' -- \"$word\")\n"
				     "\t\tcompopt +o default 2>/dev/null\n\t\treturn ;;"));
	assert_non_null(strstr(bash, "--class)\n\t\tmapfile -t COMPREPLY < "
				     "<(compgen -W 'compute host' -- \"$word\")\n"
				     "\t\tcompopt +o default 2>/dev/null\n\t\treturn ;;"));
	assert_null(strstr(bash, "--json)")); /* takes no value */
	assert_non_null(strstr(bash, "complete -o default -F _nt_neutracer_example "
				     "neutracer-example\n"));
	assert_non_null(strstr(zsh, "'--mode=[how]:word:(auto fast slow)'"));
	assert_non_null(strstr(zsh, "'--class=[which class]:word:(compute host)'"));
	assert_non_null(strstr(zsh, "compdef _nt_neutracer_example neutracer-example\n"));
	assert_non_null(strstr(commands_bash, "slow-ranks) _nt_neutracer_slow_ranks ;;"));
	assert_non_null(strstr(commands_zsh, "compadd slow-ranks jobs"));
}

static void completion_offers_files_where_files_are_wanted_and_nowhere_else(void **state)
{
	nt_autofree char *bash = complete(&program, "bash");
	nt_autofree char *zsh = complete(&program, "zsh");

	(void)state;
	assert_non_null(strstr(bash, "--store)\n\t\tmapfile -t COMPREPLY < "
				     "<(compgen -f -- \"$word\")\n\t\treturn ;;"));
	assert_non_null(strstr(bash, "--shelter)\n\t\tmapfile -t COMPREPLY < "
				     "<(compgen -d -- \"$word\")\n\t\treturn ;;"));
	assert_non_null(strstr(bash, "--bus)\n\t\tCOMPREPLY=()\n"
				     "\t\tcompopt +o default 2>/dev/null\n\t\treturn ;;"));
	assert_non_null(strstr(bash, "--workers)\n\t\tCOMPREPLY=()\n"));
	assert_non_null(strstr(zsh, "'--store=[what is kept]:FILE:_files'"));
	assert_non_null(strstr(zsh, "'--shelter=[what waits]:DIR:_files -/'"));
	assert_non_null(strstr(zsh, "'--bus=[where data travel]:URL: '"));
	assert_non_null(strstr(zsh, "'--workers=[threads that work]:N: '"));
}

static void no_line_of_help_is_wider_than_a_terminal(void **state)
{
	nt_autofree char *help = print(nt_opt_print_help, &program);

	(void)state;
	for (const char *line = help; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 100);
}

static void nearest_takes_hostile_lengths(void **state)
{
	char name[5000];

	(void)state;
	memset(name, 'w', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_null(nt_opt_nearest_key(opts, program.opt_count, name));
	assert_string_equal(nt_opt_nearest_key(opts, program.opt_count, "flor"), "floor");
}

static void free_accepts_a_zeroed_config_twice(void **state)
{
	struct config empty = {0};

	(void)state;
	nt_opt_free(&program, &empty);
	nt_opt_free(&program, &empty);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(defaults_are_set_where_nothing_else_speaks),
		TEST(the_command_line_takes_both_forms_and_keeps_the_order_of_arguments),
		TEST(later_sources_win),
		TEST(the_environment_names_the_file_too),
		TEST(an_empty_variable_counts_as_not_set),
		TEST(an_option_of_the_command_line_alone_is_no_variable_and_no_key),
		TEST(a_bad_value_names_key_value_and_range),
		TEST(a_bad_variable_is_a_config_error_that_names_it),
		TEST(a_secret_is_not_repeated),
		TEST(a_long_value_is_cut_in_the_message),
		TEST(an_unknown_option_suggests_the_nearest),
		TEST(an_option_without_its_value_is_refused),
		TEST(too_many_arguments_are_refused),
		TEST(arguments_that_are_missing_are_named),
		TEST(exit_code_1_means_what_the_program_says_it_does),
		TEST(a_program_of_commands_names_them_everywhere),
		TEST(a_broken_file_is_one_clear_line),
		TEST(an_empty_file_sets_nothing),
		TEST(a_missing_file_is_a_config_error),
		TEST(a_file_over_the_cap_is_refused),
		TEST(a_text_that_has_not_the_form_is_refused_with_the_form),
		TEST(help_says_what_the_arguments_are),
		TEST(help_and_manual_name_every_option_and_exit_code),
		TEST(completion_offers_options_choices_and_commands),
		TEST(completion_offers_files_where_files_are_wanted_and_nowhere_else),
		TEST(no_line_of_help_is_wider_than_a_terminal),
		TEST(nearest_takes_hostile_lengths),
		TEST(free_accepts_a_zeroed_config_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
