/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads from processes whose memory does not answer: pages that nobody ever provides (userfaultfd). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/discover/process_reader.h"

enum {
	CHILDREN = 8,
	PAGE = 4096,
};

static struct nt_workers workers;
static struct nt_quarantine *quarantine;
static struct nt_process_reader *reader;
static pid_t child[CHILDREN];
static size_t children;
static int stalls;
static bool held_last;

static void on_stalled(void *data, uint32_t pid, const struct nt_owner *owner, bool held)
{
	(void)data, (void)pid;
	assert_true(owner->id != 0);
	stalls++;
	held_last = held;
}

static int begin(void **state)
{
	const struct nt_process_reader_hooks hooks = {.stalled = on_stalled};

	(void)state;
	stalls = 0;
	workers = (struct nt_workers){0};
	return nt_quarantine_new(&quarantine) < 0 ||
	       nt_process_reader_new(&workers, quarantine, &hooks, &reader) < 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < children; i++) {
		(void)kill(child[i], SIGKILL);
		(void)waitpid(child[i], NULL, 0);
	}
	children = 0;
	nt_process_reader_free(reader);
	nt_quarantine_free(quarantine);
	return 0;
}

/* A page of ours that a reader waits for, for ever. NULL: this kernel gives us none. */
static void *page_without_answer(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) < 0)
		return NULL;
	area.range.start = (uintptr_t)page;
	area.range.len = PAGE;
	return ioctl(fd, UFFDIO_REGISTER, &area) < 0 ? NULL : page;
}

/* Runs a process with such a page; 0: there can be none. */
static uint64_t spawn(void)
{
	uint64_t address = 0;
	int link[2];
	pid_t pid;

	assert_true(children < CHILDREN);
	assert_int_equal(pipe2(link, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		address = (uintptr_t)page_without_answer();
		(void)!write(link[1], &address, sizeof(address));
		for (;;)
			(void)pause();
	}
	child[children++] = pid;
	assert_int_equal(read(link[0], &address, sizeof(address)), sizeof(address));
	(void)close(link[0]);
	(void)close(link[1]);
	return address;
}

static uint64_t spawn_or_skip(void)
{
	uint64_t address = spawn();

	if (!address) {
		print_message("skip: root: userfaultfd is not for us here\n");
		skip();
	}
	return address;
}

static int read_word(pid_t pid, uint64_t address)
{
	struct nt_memory memory = nt_process_reader_memory(reader);
	uint64_t value;

	return nt_memory_u64(&memory, (uint32_t)pid, address, &value);
}

static struct nt_process_reader_stats stats(void)
{
	struct nt_process_reader_stats s;

	nt_process_reader_stats(reader, &s);
	return s;
}

static void memory_environment_and_io_are_read(void **state)
{
	static const uint64_t word = 0x1234567890;
	struct nt_memory memory = nt_process_reader_memory(reader);
	struct nt_environ env;
	uint64_t value = 0;
	char text[64];
	pid_t pid = getpid();

	(void)state;
	assert_int_equal(nt_memory_u64(&memory, (uint32_t)pid, (uintptr_t)&word, &value), 0);
	assert_int_equal(value, word);
	assert_int_equal(nt_process_reader_environ(reader, (uint32_t)pid, &env), 0);
	assert_true(nt_process_reader_io(reader, (uint32_t)pid, (uint32_t)pid, text, sizeof(text)) >
		    0);
	assert_int_equal(strncmp(text, "rchar: ", 7), 0);
	assert_int_equal(nt_process_reader_environ(reader, INT32_MAX, &env), -ESRCH);
	assert_int_equal(read_word(pid, 4096), -EFAULT);
	assert_int_equal(stats().stalled, 0);
	assert_int_equal(workers.started, 1);
}

static void a_large_read_is_whole(void **state)
{
	static uint8_t bytes[64 << 10], copy[sizeof(bytes)];
	struct nt_memory memory = nt_process_reader_memory(reader);

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31 >> 3);
	assert_int_equal(
		nt_memory_read(&memory, (uint32_t)getpid(), (uintptr_t)bytes, copy, sizeof(copy)),
		0);
	assert_memory_equal(bytes, copy, sizeof(bytes));
	assert_int_equal(nt_memory_read(&memory, (uint32_t)getpid(), (uintptr_t)bytes, copy,
					sizeof(copy) + 1),
			 -E2BIG);
}

static void a_read_that_does_not_answer_is_given_up_and_others_go_on(void **state)
{
	static const uint64_t word = 1;
	uint64_t address = spawn_or_skip();

	(void)state;
	assert_int_equal(read_word(child[0], address), -ETIMEDOUT);
	assert_int_equal(stats().stalled, 1);
	assert_int_equal(stalls, 1);
	assert_false(held_last);
	/* Another process of the same owner, by a new worker. */
	assert_int_equal(read_word(getpid(), (uintptr_t)&word), 0);
	assert_int_equal(workers.started, 2);
	assert_int_equal(workers.killed, 1);
}

static void a_process_that_stalled_is_not_read_again_for_a_while(void **state)
{
	uint64_t address = spawn_or_skip();
	struct nt_environ env;

	(void)state;
	assert_int_equal(read_word(child[0], address), -ETIMEDOUT);
	assert_int_equal(read_word(child[0], address), -EBUSY);
	assert_int_equal(nt_process_reader_environ(reader, (uint32_t)child[0], &env), -EBUSY);
	assert_int_equal(stats().stalled, 1);
	assert_int_equal(stats().refused, 2);
}

static void an_owner_of_three_that_stall_is_not_read_at_all(void **state)
{
	static const uint64_t word = 1;
	uint64_t address;

	(void)state;
	for (int i = 0; i < NT_QUARANTINE_STRIKES; i++) {
		address = spawn_or_skip();
		assert_int_equal(read_word(child[i], address), -ETIMEDOUT);
	}
	assert_true(held_last);
	assert_int_equal(read_word(getpid(), (uintptr_t)&word), -EBUSY);
	assert_int_equal(stats().stalled, NT_QUARANTINE_STRIKES);
}

static void reads_have_an_allowance_of_time_and_are_refused_beyond(void **state)
{
	enum { MANY = 1000000 };
	static const uint64_t word = 1;
	char text[64];
	uint32_t pid = (uint32_t)getpid();
	struct nt_environ env;
	uint64_t over;
	int done = 0, r = 0;

	(void)state;
	/* If others run between two reads, the process has some of it again. */
	do {
		while (done < MANY && (r = read_word(getpid(), (uintptr_t)&word)) == 0)
			done++;
		assert_int_equal(r, -EBUSY);
		over = stats().over_allowance;
		r = nt_process_reader_environ(reader, pid, &env);
		if (r == 0)
			nt_environ_clean(&env);
	} while (r != -EBUSY && done++ < MANY);
	assert_int_equal(r, -EBUSY);
	assert_true(done > 50);
	assert_int_equal(stats().over_allowance, over + 1);
	assert_int_equal(stats().refused, 0);
	/* What is read once per window has an account of its own. */
	assert_true(nt_process_reader_io(reader, pid, pid, text, sizeof(text)) > 0);
}

/* Killed by whatever it was, but not by us: the next read has a new one. */
static void a_worker_that_dies_is_replaced(void **state)
{
	static const uint64_t word = 1;
	char text[256], path[64];
	FILE *file;
	int pid = 0;

	(void)state;
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	(void)fclose(file);
	/* The last of them: those of other tests may not have died yet. */
	for (const char *c = text; *c; c++)
		pid = *c != ' ' ? pid * 10 + (*c - '0') : c[1] ? 0 : pid;
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(read_word(getpid(), (uintptr_t)&word), -EIO);
	assert_int_equal(read_word(getpid(), (uintptr_t)&word), 0);
	assert_int_equal(stats().stalled, 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(memory_environment_and_io_are_read),
		WITH(a_large_read_is_whole),
		WITH(a_read_that_does_not_answer_is_given_up_and_others_go_on),
		WITH(a_process_that_stalled_is_not_read_again_for_a_while),
		WITH(an_owner_of_three_that_stall_is_not_read_at_all),
		WITH(reads_have_an_allowance_of_time_and_are_refused_beyond),
		WITH(a_worker_that_dies_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
