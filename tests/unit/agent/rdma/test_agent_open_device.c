/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Devices of RDMA in a process, which is this one: their context is laid out by verbs.h. */
#include "agent/rdma/open_device.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#endif

enum {
	DEVICE_BYTES = 1024,
	CONTEXT_BYTES = 328,
	/* As gcc lays out struct ibv_context and struct ibv_device of rdma-core's verbs.h. */
	AT_POLL = 96,
	AT_POST = 208,
	AT_FD = 264,
	AT_DEV_NAME = 88,
	MAP_BYTES = 4 << 20,
};

#if __has_include(<infiniband/verbs.h>)
_Static_assert(offsetof(struct ibv_context, ops.poll_cq) == AT_POLL, "verbs.h");
_Static_assert(offsetof(struct ibv_context, ops.post_send) == AT_POST, "verbs.h");
_Static_assert(offsetof(struct ibv_context, cmd_fd) == AT_FD, "verbs.h");
_Static_assert(offsetof(struct ibv_device, dev_name) == AT_DEV_NAME, "verbs.h");
#endif

static char folder[] = "/tmp/nt_open_device_XXXXXX";
static char file[sizeof(folder) + 32];
static int device_fd = -1;
/* Of a child, shared with it. */
struct answer {
	int result;
	uint64_t post, poll;
};

static struct answer *answer;
static uint8_t *memory; /* of its own: 4 MiB, of which few pages are in use */

static int post_send(int value)
{
	return value + 1;
}

static int poll_cq(int value)
{
	return value + 2;
}

static int open_device(void **state)
{
	char path[sizeof(file)];

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/infiniband", folder);
	if (mkdir(path, 0700) < 0)
		return -1;
	(void)snprintf(file, sizeof(file), "%s/infiniband/uverbs0", folder);
	device_fd = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	memory = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return device_fd < 0 || memory == MAP_FAILED || answer == MAP_FAILED ? -1 : 0;
}

static int close_device(void **state)
{
	char path[sizeof(file)];

	(void)state;
	(void)munmap(answer, sizeof(*answer));
	(void)munmap(memory, MAP_BYTES);
	(void)close(device_fd);
	(void)unlink(file);
	(void)snprintf(path, sizeof(path), "%s/infiniband", folder);
	(void)rmdir(path);
	return rmdir(folder);
}

static void put_u64(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* A context at that place, and its device behind it. */
static void put_context(uint8_t *at, int fd, const char *name)
{
	uint8_t *const device = at + CONTEXT_BYTES;

	memset(at, 0, CONTEXT_BYTES + DEVICE_BYTES);
	put_u64(at, (uintptr_t)device);
	put_u64(at + AT_POLL, (uintptr_t)poll_cq);
	put_u64(at + AT_POST, (uintptr_t)post_send);
	memcpy(at + AT_FD, &fd, sizeof(fd));
	(void)snprintf((char *)device + AT_DEV_NAME, 64, "%s", name);
}

/*
 * By a child, which searches its own memory, and is killed after so much processor time: what a search
 * leaves in freed memory would be found by the next one. -EINTR: killed.
 */
static int search_within(rlim_t seconds, int fd, uint64_t *ret_post, uint64_t *ret_poll)
{
	int status;
	pid_t pid;

	*answer = (struct answer){0};
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct rlimit limit = {seconds, seconds};

		(void)setrlimit(RLIMIT_CPU, &limit);
		answer->result = nt_open_device_functions((uint32_t)getpid(), &fd, 1, &answer->post,
							  &answer->poll);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	*ret_post = answer->post;
	*ret_poll = answer->poll;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? answer->result : -EINTR;
}

static int search(int fd, uint64_t *ret_post, uint64_t *ret_poll)
{
	return search_within(60, fd, ret_post, ret_poll);
}

static void devices_are_listed_by_their_paths(void **state)
{
	int fd[NT_OPEN_DEVICES] = {-1}, more[NT_OPEN_DEVICES + 4];

	(void)state;
	assert_int_equal(nt_open_device_list((uint32_t)getpid(), fd), 1);
	assert_int_equal(fd[0], device_fd);
	for (size_t i = 0; i < NT_OPEN_DEVICES + 4; i++)
		more[i] = open(file, O_RDONLY | O_CLOEXEC);
	assert_int_equal(nt_open_device_list((uint32_t)getpid(), fd), NT_OPEN_DEVICES);
	for (size_t i = 0; i < NT_OPEN_DEVICES + 4; i++)
		(void)close(more[i]);
	assert_int_equal(nt_open_device_list(0x7fffffff, fd), 0);
}

/* Also where it lies across pages, and across the pieces that are read at once. */
static void a_context_in_memory_shows_the_functions_of_its_provider(void **state)
{
	const size_t place[] = {64, 4096 - 64, 64 * 4096 - 64, 200 * 4096 - 16, MAP_BYTES - 8192};
	uint64_t post, poll;

	(void)state;
	for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++) {
		put_context(memory + place[i], device_fd, "uverbs0");
		assert_int_equal(search(device_fd, &post, &poll), 0);
		assert_int_equal(post, (uintptr_t)post_send);
		assert_int_equal(poll, (uintptr_t)poll_cq);
		memset(memory + place[i], 0, CONTEXT_BYTES);
		assert_int_equal(search(device_fd, &post, &poll), -ENOENT);
	}
}

static void what_is_no_context_of_that_descriptor_is_passed_over(void **state)
{
	uint8_t *const at = memory + 640;
	uint64_t post, poll;

	(void)state;
	put_context(at, device_fd + 1, "uverbs0");
	assert_int_equal(search(device_fd, &post, &poll), -ENOENT);
	put_context(at, device_fd, "sda");
	assert_int_equal(search(device_fd, &post, &poll), -ENOENT);
	put_context(at, device_fd, "uverbs0");
	put_u64(at, 8); /* no device can be read there */
	assert_int_equal(search(device_fd, &post, &poll), -ENOENT);
	put_context(at, device_fd, "uverbs0");
	put_u64(at + AT_POST, (uintptr_t)memory); /* no code */
	assert_int_equal(search(device_fd, &post, &poll), -ENOENT);
	put_context(at, device_fd, "uverbs0");
	put_u64(at + AT_POST, (uintptr_t)strtod); /* code of another file */
	assert_int_equal(search(device_fd, &post, &poll), -ENOENT);
	memset(at, 0, CONTEXT_BYTES);
	assert_int_equal(nt_open_device_functions(0x7fffffff, &device_fd, 1, &post, &poll),
			 -ENOENT);
}

/* Pages that the process has never used stay so. */
static void the_search_makes_no_pages(void **state)
{
	uint8_t *const unused = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned char is_there[MAP_BYTES / 4096];
	uint64_t post, poll;

	(void)state;
	assert_true(unused != MAP_FAILED);
	assert_int_equal(madvise(unused, MAP_BYTES, MADV_NOHUGEPAGE), 0);
	unused[5 * 4096] = 1;
	assert_int_equal(search(device_fd, &post, &poll), -ENOENT);
	assert_int_equal(mincore(unused, MAP_BYTES, is_there), 0);
	for (size_t i = 0; i < sizeof(is_there); i++)
		assert_int_equal(is_there[i] & 1, i == 5);
	(void)munmap(unused, MAP_BYTES);
}

static uint8_t *reserve(size_t bytes)
{
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	/* Else neighbours are one mapping. */
	if (at != MAP_FAILED)
		assert_int_equal(mprotect(at, 4096, PROT_NONE), 0);
	return at;
}

/* Each look at a page costs something, even if it is not there. */
static void a_search_in_huge_empty_mappings_ends(void **state)
{
	const size_t bytes = 1ULL << 40;
	uint8_t *reserved[4];
	uint64_t post, poll;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_true((reserved[i] = reserve(bytes)) != MAP_FAILED);
	assert_int_equal(search_within(5, device_fd, &post, &poll), -ENOENT);
	for (int i = 0; i < 4; i++)
		(void)munmap(reserved[i], bytes);
}

/* As the address sanitizer makes one, below the heap. */
static void a_reservation_hides_nothing(void **state)
{
	const size_t bytes = 16ULL << 40;
	uint8_t *const reserved = reserve(bytes);
	uint64_t post, poll;
	int r;

	(void)state;
	assert_true(reserved != MAP_FAILED && reserved < memory);
	put_context(memory + 640, device_fd, "uverbs0");
	r = search(device_fd, &post, &poll);
	memset(memory + 640, 0, CONTEXT_BYTES);
	(void)munmap(reserved, bytes);
	assert_int_equal(r, 0);
}

/* Half of all places look like a context, and the device of each has to be read. */
static void a_search_among_what_looks_like_contexts_ends(void **state)
{
	const size_t bytes = 128 << 20;
	uint64_t *const words =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t post, poll;

	(void)state;
	assert_true(words != MAP_FAILED);
	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		words[i] = i % 2 ? (uintptr_t)post_send : (uint64_t)device_fd;
	assert_int_equal(search_within(2, device_fd, &post, &poll), -ENOENT);
	(void)munmap(words, bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_listed_by_their_paths),
		cmocka_unit_test(a_context_in_memory_shows_the_functions_of_its_provider),
		cmocka_unit_test(what_is_no_context_of_that_descriptor_is_passed_over),
		cmocka_unit_test(the_search_makes_no_pages),
		cmocka_unit_test(a_search_in_huge_empty_mappings_ends),
		cmocka_unit_test(a_reservation_hides_nothing),
		cmocka_unit_test(a_search_among_what_looks_like_contexts_ends),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
