/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Handlers of what no test can provoke everywhere, fences of a device and merges of requests: a process that
 * is observed runs the programs itself, as the kernel would at their tracepoints.
 */
#include <bpf/bpf.h>

#include "tests/bpf/parts/host_child.h"

enum {
	REQUEST =
		1, /* stands for an address of the kernel; what lies there cannot be read, and is 0 */
	BYTES = 512,
};

/* Programs by name: those of this program, which are the last ones of their name. */
struct handlers {
	int begin, end; /* of a wait for a fence */
	int start, merge, complete; /* of a request */
	bool merges;
};

/* -1: this kernel lacks the tracepoint. */
static int program(const char *name)
{
	uint32_t id = 0;
	int found = -1;

	while (bpf_prog_get_next_id(id, &id) == 0) {
		struct bpf_prog_info info = {0};
		uint32_t len = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id), other = fd;

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 &&
		    strcmp(info.name, name) == 0) {
			other = found;
			found = fd;
		}
		if (other >= 0)
			(void)close(other);
	}
	return found;
}

static void run(int fd, uint64_t first, uint64_t third)
{
	uint64_t args[] = {first, 0, third};
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (bpf_prog_test_run_opts(fd, &options) < 0)
		_exit(1);
}

/* ---- fences --------------------------------------------------------------------------------- */

static void wait_for_fence(void *data)
{
	const struct handlers *handlers = data;

	run(handlers->begin, 0, 0);
	host_pause_ms(10);
	run(handlers->end, 0, 0);
}

static bool waits_for_device(const struct nt_system_total *total, const void *data)
{
	(void)data;
	return total->thread.wait_ns[NT_HOST_WAIT_DEVICE] >= 50 * NT_MILLISECOND;
}

static void a_sleep_within_a_wait_for_a_fence_is_of_the_device(void **state)
{
	struct handlers handlers = {.begin = program("fence_begin"), .end = program("fence_end")};
	struct nt_system_total total = {0};

	if (handlers.begin < 0 || handlers.end < 0) {
		print_message("skip: fences: this kernel has none\n");
		skip();
	}
	assert_true(
		host_observe(*state, wait_for_fence, &handlers, waits_for_device, NULL, &total));
	assert_int_equal(total.thread.wait_ns[NT_HOST_WAIT_SLEEP], 0);
	(void)(close(handlers.begin) | close(handlers.end));
}

/* ---- merges --------------------------------------------------------------------------------- */

static void make_request(void *data)
{
	const struct handlers *handlers = data;

	run(handlers->start, REQUEST, 0);
	if (handlers->merges)
		run(handlers->merge, REQUEST, 0);
	run(handlers->complete, REQUEST, BYTES);
	host_pause_ms(10);
}

static bool has_made_some(const struct nt_system_total *total, const void *data)
{
	(void)data;
	return total->thread.wait_ns[NT_HOST_WAIT_SLEEP] >= 50 * NT_MILLISECOND;
}

static void a_request_that_was_merged_has_no_end_of_its_own(void **state)
{
	struct handlers handlers = {.start = program("block_start"),
				    .merge = program("block_merge"),
				    .complete = program("block_complete")};
	struct nt_system_total total = {0};

	if (handlers.start < 0) /* before 6.4 */
		handlers.start = program("block_insert");
	if (handlers.start < 0 || handlers.merge < 0 || handlers.complete < 0) {
		print_message("skip: blocks: this kernel has no such tracepoints\n");
		skip();
	}
	assert_true(host_observe(*state, make_request, &handlers, has_made_some, NULL, &total));
	assert_in_range(total.requests, 3, 1000);
	handlers.merges = true;
	assert_true(host_observe(*state, make_request, &handlers, has_made_some, NULL, &total));
	assert_int_equal(total.requests, 0);
	(void)(close(handlers.start) | close(handlers.merge) | close(handlers.complete));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOST_CASE(a_sleep_within_a_wait_for_a_fence_is_of_the_device),
		HOST_CASE(a_request_that_was_merged_has_no_end_of_its_own),
	};
	struct host_test test = {0};
	int r = host_open(&test);

	if (r < 0) {
		printf("skip: bpf: tracepoints cannot be loaded here: %s\n", strerrordesc_np(-r));
		return 77;
	}
	nt_system_free(test.system);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
