/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which files of the given paths are analysed, and what is said of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/input/sources.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES];
static struct nt_sources *sources;
static struct nt_trace_error error;

static const char *const kineto = "{\"traceEvents\": []}";
static const char *const dump = "{\"version\": \"2.5\", \"entries\": []}";

static int set_up(void **state)
{
	(void)state;
	error = (struct nt_trace_error){0};
	return scratch_make(dir) < 0 ? -1 : nt_sources_new(&sources);
}

static int tear_down(void **state)
{
	(void)state;
	nt_sources_free(sources);
	sources = NULL;
	scratch_remove(dir);
	return 0;
}

static const char *in_dir(const char *name)
{
	static char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(in_dir(name), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void make(const char *name)
{
	assert_int_equal(mkdir(in_dir(name), 0700), 0);
}

static bool is_noted(const char *text)
{
	size_t notes = 0;
	const char *const *note = nt_sources_notes(sources, &notes);

	for (size_t i = 0; i < notes; i++)
		if (strstr(note[i], text))
			return true;
	return false;
}

static void choose(enum nt_format from, enum nt_format format, size_t paths)
{
	struct nt_sources_choice choice = {0};

	if (nt_sources_add(sources, dir, &error) < 0 ||
	    nt_sources_choose(sources, from, &choice, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(choice.format, format);
	assert_int_equal(choice.paths, paths);
}

static void files_of_all_directories_are_found(void **state)
{
	(void)state;
	make("a");
	make("a/b");
	make(".hidden");
	put("rank0.json", kineto);
	put("a/rank1.json", kineto);
	put("a/b/rank2.json", kineto);
	put(".hidden/rank3.json", kineto);
	choose(NT_FORMAT_UNKNOWN, NT_FORMAT_KINETO, 3);
	assert_false(is_noted(""));
}

static void the_format_of_most_files_is_chosen_and_the_rest_is_named(void **state)
{
	(void)state;
	put("rank0.json", dump);
	put("rank1.json", dump);
	put("config.json", "{\"lr\": 1}");
	put("trace.json", kineto);
	choose(NT_FORMAT_UNKNOWN, NT_FORMAT_FLIGHT, 2);
	assert_true(is_noted("2 files were left out"));
	assert_true(is_noted("config.json"));
	assert_true(is_noted("trace.json"));
}

static void as_many_of_two_formats_are_refused(void **state)
{
	struct nt_sources_choice choice = {0};

	(void)state;
	put("rank0.json", dump);
	put("rank1.json", kineto);
	assert_int_equal(nt_sources_add(sources, dir, &error), 0);
	assert_int_equal(nt_sources_choose(sources, NT_FORMAT_UNKNOWN, &choice, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "--from"));
	assert_int_equal(choice.paths, 0);
}

/* Of a format that is named, the names of files count. */
static void a_named_format_takes_what_is_called_so(void **state)
{
	(void)state;
	put("rank0.json", "{");
	put("rank1.json", kineto);
	put("dump.pkl", "");
	choose(NT_FORMAT_KINETO, NT_FORMAT_KINETO, 2);
	assert_true(is_noted("dump.pkl"));
}

/* An empty file of a rank is missing, not of another format. */
static void an_empty_file_is_taken_for_one_of_the_rest(void **state)
{
	(void)state;
	put("rank0.json", kineto);
	put("rank1.json", "");
	choose(NT_FORMAT_UNKNOWN, NT_FORMAT_KINETO, 2);
	assert_false(is_noted(""));
}

static void a_directory_of_the_spool_is_one_recording(void **state)
{
	(void)state;
	make("spool");
	make("spool/neutracer.window.v1");
	put("spool/neutracer.window.v1/0.json", kineto);
	put("README", "");
	choose(NT_FORMAT_UNKNOWN, NT_FORMAT_RECORDING, 1);
	assert_true(is_noted("1 file was left out"));
}

/* A link must not lead to files that were not given. */
static void links_are_followed_to_files_of_the_directory_only(void **state)
{
	char outside[SCRATCH_BYTES];

	(void)state;
	assert_int_equal(scratch_make(outside), 0);
	make("inner");
	put("inner/rank0.json", kineto);
	assert_int_equal(symlink("rank0.json", in_dir("inner/rank1.json")), 0);
	assert_int_equal(symlink("../../../etc/hostname", in_dir("inner/rank2.json")), 0);
	assert_int_equal(symlink("nowhere", in_dir("inner/rank3.json")), 0);
	assert_int_equal(symlink("..", in_dir("inner/loop")), 0);
	assert_int_equal(symlink(outside, in_dir("away")), 0);
	choose(NT_FORMAT_UNKNOWN, NT_FORMAT_KINETO, 2);
	assert_true(is_noted("links to directories (2) were not followed"));
	scratch_remove(outside);
}

static void directories_are_entered_to_a_depth(void **state)
{
	char path[256] = "d", file[300];

	(void)state;
	for (int depth = 1; depth <= NT_SOURCES_MAX_DEPTH + 1; depth++) {
		make(path);
		(void)snprintf(file, sizeof(file), "%s/f.json", path);
		if (depth >= NT_SOURCES_MAX_DEPTH)
			put(file, kineto);
		(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/d");
	}
	choose(NT_FORMAT_UNKNOWN, NT_FORMAT_KINETO, 1);
	assert_true(is_noted("directories (1) that lie more than 16 deep were not entered"));
}

static void the_number_of_files_is_capped(void **state)
{
	const char *path;

	(void)state;
	put("notes", "");
	path = in_dir("notes");
	for (int i = 0; i < NT_SOURCES_MAX_FILES; i++)
		assert_int_equal(nt_sources_add(sources, path, &error), 0);
	assert_int_equal(nt_sources_add(sources, path, &error), -EBADMSG);
	assert_string_equal(error.text, "more than 65536 files");
}

static void a_missing_path_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(nt_sources_add(sources, in_dir("none"), &error), -ENOENT);
	assert_non_null(strstr(error.text, "/none: No such file"));
}

static void a_folder_of_unknown_files_lists_the_known_formats(void **state)
{
	struct nt_sources_choice choice = {0};

	(void)state;
	put("a.txt", "x");
	assert_int_equal(nt_sources_add(sources, dir, &error), 0);
	assert_int_equal(nt_sources_choose(sources, NT_FORMAT_UNKNOWN, &choice, &error), -EBADMSG);
	for (enum nt_format format = NT_FORMAT_RECORDING; format < NT_FORMAT_END; format++)
		assert_non_null(strstr(error.text, nt_format_name(format)));
}

static void refuse(const char *name, const char *why)
{
	struct nt_sources_choice choice;

	nt_sources_free(sources);
	sources = NULL;
	error = (struct nt_trace_error){0};
	assert_int_equal(nt_sources_new(&sources), 0);
	assert_int_equal(nt_sources_add(sources, in_dir(name), &error), 0);
	assert_int_equal(nt_sources_choose(sources, NT_FORMAT_UNKNOWN, &choice, &error), -EBADMSG);
	if (strncmp(error.text, why, strlen(why)) != 0)
		fail_msg("%s: '%s' does not begin with '%s'", name, error.text, why);
}

/* Its name may fit a format: it is none all the same. */
static void a_file_of_no_known_format_is_refused_with_what_to_do(void **state)
{
	static const char *const any[] = {"log.1", "table.csv.bz2", "any.json", "any.db", "any"};

	(void)state;
	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
		put(any[i], "Mar 1 12:00:00 node-1 kernel: hello\n");
		refuse(any[i], "no file of a known format; known are recordings of the bus (");
	}
	put("empty.json", "");
	put("empty", "");
	refuse("empty.json", "the file is empty");
	refuse("empty", "the file is empty");
	put("node.csv", "cpu,memory\n1,2\n");
	refuse("node.csv", "no file of a known format: a table lacks the columns of operation "
			   "times; tables of a node's metrics require --from metrics-csv");
	put("report.nsys-rep", "x");
	refuse("report.nsys-rep", "no file of a known format: export reports of Nsight Systems "
				  "first, with nsys export --type sqlite FILE");
	make("spool");
	make("spool/neutracer.window.v1");
	make("spool/neutracer.window.v1/0");
	refuse("spool/neutracer.window.v1",
	       "no file of a known format: these are parts of a "
	       "recording: name the directory above neutracer.window.v1");
	refuse("spool/neutracer.window.v1/0",
	       "no file of a known format: these are parts of a recording");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_of_all_directories_are_found, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			the_format_of_most_files_is_chosen_and_the_rest_is_named, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(as_many_of_two_formats_are_refused, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_named_format_takes_what_is_called_so, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_empty_file_is_taken_for_one_of_the_rest, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_directory_of_the_spool_is_one_recording, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(links_are_followed_to_files_of_the_directory_only,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(directories_are_entered_to_a_depth, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_number_of_files_is_capped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_missing_path_is_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_file_of_no_known_format_is_refused_with_what_to_do, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_folder_of_unknown_files_lists_the_known_formats,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
