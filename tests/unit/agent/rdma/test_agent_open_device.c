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
#include <sys/stat.h>
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
	return device_fd < 0 || memory == MAP_FAILED ? -1 : 0;
}

static int close_device(void **state)
{
	char path[sizeof(file)];

	(void)state;
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

static int search(int fd, uint64_t *ret_post, uint64_t *ret_poll)
{
	*ret_post = *ret_poll = 0;
	return nt_open_device_functions((uint32_t)getpid(), &fd, 1, ret_post, ret_poll);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_listed_by_their_paths),
		cmocka_unit_test(a_context_in_memory_shows_the_functions_of_its_provider),
		cmocka_unit_test(what_is_no_context_of_that_descriptor_is_passed_over),
		cmocka_unit_test(the_search_makes_no_pages),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
