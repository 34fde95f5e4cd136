/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a container puts where a library was: links, devices, pipes. And the list of mounts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/mount.h"
#include "agent/host/root_path.h"

static char dir[64];
static char path[128];

static const char *in_dir(const char *name)
{
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int begin(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/nt-root-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	fd = open(in_dir("file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "text", 4) != 4)
		return 1;
	(void)close(fd);
	return symlink("file", in_dir("to-file")) < 0 ||
	       symlink("/dev/zero", in_dir("to-device")) < 0 || mkfifo(in_dir("fifo"), 0600) < 0 ||
	       symlink("fifo", in_dir("to-fifo")) < 0 || mkdir(in_dir("dir"), 0700) < 0 ||
	       symlink("/proc/self/exe", in_dir("to-magic")) < 0;
}

static int end(void **state)
{
	static const char *const names[] = {"file", "to-file", "to-device",
					    "fifo", "to-fifo", "to-magic"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlink(in_dir(names[i]));
	(void)rmdir(in_dir("dir"));
	return rmdir(dir);
}

static int open_named(const char *name, struct stat *st)
{
	return nt_root_path_open((uint32_t)getpid(), in_dir(name), st);
}

static void a_regular_file_is_found_and_opened_for_reading_only_then(void **state)
{
	struct stat st = {0}, want;
	nt_autoclose int fd = open_named("to-file", &st);
	nt_autoclose int file = -1;
	char text[8];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(stat(in_dir("file"), &want), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	assert_int_equal(st.st_dev, want.st_dev);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(read(fd, text, sizeof(text)), -1);
	file = nt_root_path_read(fd, st.st_dev, st.st_ino);
	assert_true(file >= 0);
	assert_int_equal(read(file, text, sizeof(text)), 4);
	assert_int_equal(nt_root_path_read(fd, st.st_dev, st.st_ino + 1), -ESTALE);
}

static void nothing_else_is_opened(void **state)
{
	static const char *const names[] = {"to-device", "fifo", "to-fifo", "dir"};
	struct stat st = {.st_ino = 7};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (open_named(names[i], &st) != -EBADF)
			fail_msg("'%s' was opened", names[i]);
	assert_int_equal(open_named("to-magic", &st), -ELOOP);
	assert_int_equal(open_named("no-such", &st), -ENOENT);
	assert_int_equal(nt_root_path_follow("/dev/null", &st), -EBADF);
	assert_int_equal(st.st_ino, 7);
	/* What a worker is handed by mistake is not read either. */
	assert_int_equal(nt_root_path_read(STDIN_FILENO, 0, 0), -ESTALE);
}

static void our_own_program_is_followed(void **state)
{
	struct stat st, want;
	nt_autoclose int fd = nt_root_path_follow("/proc/self/exe", &st);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(stat("/proc/self/exe", &want), 0);
	assert_int_equal(st.st_ino, want.st_ino);
}

/* An absolute link, or a way up, ends at the root of the process and not at ours. */
static void a_path_ends_at_the_root_of_its_process(void **state)
{
	struct stat st;
	int link[2], fd;
	pid_t pid;
	char byte;

	(void)state;
	if (geteuid() != 0) {
		print_message("skip: root: chroot is not for us\n");
		skip();
	}
	assert_int_equal(symlink("/../../etc/passwd", in_dir("dir/up")), 0);
	assert_int_equal(symlink("/here", in_dir("dir/absolute")), 0);
	fd = open(in_dir("dir/here"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(pipe2(link, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!chroot(in_dir("dir"));
		(void)!write(link[1], "", 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(link[0], &byte, 1), 1);
	assert_int_equal(nt_root_path_open((uint32_t)pid, "/up", &st), -ENOENT);
	fd = nt_root_path_open((uint32_t)pid, "/absolute", &st);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)close(link[0]);
	(void)close(link[1]);
	(void)unlink(in_dir("dir/up"));
	(void)unlink(in_dir("dir/absolute"));
	(void)unlink(in_dir("dir/here"));
}

static bool parse(const char *line, uint64_t id, char type[NT_MOUNT_TYPE])
{
	return nt_mount_parse(line, strlen(line), id, type);
}

static void the_type_of_a_mount_is_read(void **state)
{
	char type[NT_MOUNT_TYPE] = "none";

	(void)state;
	assert_true(
		parse("36 35 0:42 / /data rw,relatime shared:7 - fuse.squashfuse squashfuse ro\n",
		      36, type));
	assert_string_equal(type, "fuse.squashfuse");
	assert_true(parse("36 35 8:1 / /a\\040-\\040b rw - ext4 /dev/vda rw", 36, type));
	assert_string_equal(type, "ext4");
	assert_false(parse("36 35 8:1 / / rw - ext4 /dev/vda rw", 35, type));
	assert_true(parse("36 0:42 - aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa x", 36, type));
	assert_int_equal(strlen(type), NT_MOUNT_TYPE - 1);
}

static void lines_that_are_none_are_passed_over(void **state)
{
	static const char *const lines[] = {"",
					    "36",
					    "36 ",
					    "36 35 8:1 / / rw",
					    "36 - ",
					    "36 - x",
					    "x 35 8:1 / / rw - ext4 a b",
					    "36 -  x"};
	char type[NT_MOUNT_TYPE];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (parse(lines[i], 36, type))
			fail_msg("'%s'", lines[i]);
}

static void our_own_files_are_on_a_mount_with_a_type(void **state)
{
	nt_autoclose int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char type[NT_MOUNT_TYPE];

	(void)state;
	assert_int_equal(nt_mount_type_of((uint32_t)getpid(), fd, type), 0);
	assert_string_equal(type, "proc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_regular_file_is_found_and_opened_for_reading_only_then),
		cmocka_unit_test(nothing_else_is_opened),
		cmocka_unit_test(our_own_program_is_followed),
		cmocka_unit_test(a_path_ends_at_the_root_of_its_process),
		cmocka_unit_test(the_type_of_a_mount_is_read),
		cmocka_unit_test(lines_that_are_none_are_passed_over),
		cmocka_unit_test(our_own_files_are_on_a_mount_with_a_type),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
