/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where probes go: past a dear first instruction or not at all, once per function whatever its
 * names, once per file whatever the way to it; by subject, and away again.
 */
#include <bpf/btf.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/probes/link_set.h"
#include "agent/probes/symbols.h"
#include "tests/bpf/harness.h"

static uint64_t args[STUB_ARGS];
static struct harness h;

/* The first instructions of the functions are what these tests are about. */
static const char nccl_source[] = ".globl stub_hook\n.comm stub_hook,8\n"
				  /* Two names at one address. */
				  ".globl ncclAllReduce, pncclAllReduce\n"
				  ".type ncclAllReduce,@function\n.type pncclAllReduce,@function\n"
				  "ncclAllReduce: pncclAllReduce: push %rbp\n pop %rbp\n ret\n"
				  /* No instruction at all in 64-bit code: the kernel refuses it. */
				  ".globl ncclBroadcast\n.type ncclBroadcast,@function\n"
				  "ncclBroadcast: .byte 0x06\n ret\n"
				  /* Slow, and worth it. */
				  ".globl ncclReduce\n.type ncclReduce,@function\n"
				  "ncclReduce: lea 8(%rsp),%rax\n ret\n"
				  /* A segment override. */
				  ".globl ncclGather\n.type ncclGather,@function\n"
				  "ncclGather: .byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\n ret\n"
				  ".globl ncclSend\n.type ncclSend,@function\n"
				  "ncclSend: endbr64\n push %rbx\n pop %rbx\n ret\n";

static const char cudart_source[] =
	".globl stub_hook\n.comm stub_hook,8\n"
	/* Hot and slow, and the second instruction does not help. */
	".globl cudaLaunchKernel\n.type cudaLaunchKernel,@function\n"
	"cudaLaunchKernel: lea 8(%rsp),%rax\n lea 16(%rsp),%rax\n ret\n"
	/* What all of libcuda starts with. */
	".globl cudaMalloc\n.type cudaMalloc,@function\n"
	"cudaMalloc: cmpl $0x321cba00,stub_hook(%rip)\n je 1f\n1: ret\n"
	/* Here the second instruction comes too late: the first has changed an argument. */
	".globl cudaMallocManaged\n.type cudaMallocManaged,@function\n"
	"cudaMallocManaged: mov %rdi,%rsi\n push %rbx\n pop %rbx\n ret\n"
	".globl cudaMemcpyAsync\n.type cudaMemcpyAsync,@function\n"
	"cudaMemcpyAsync: endbr64\n xor %eax,%eax\n push %rbx\n pop %rbx\n ret\n"
	".globl cudaStreamSynchronize\n.type cudaStreamSynchronize,@function\n"
	"cudaStreamSynchronize: push %rbx\n pop %rbx\n ret\n"
	".globl cudaFree\n.type cudaFree,@function\n"
	"cudaFree: cmpl $0x321cba00,stub_hook(%rip)\n je 1f\n1: mov $1234,%eax\n ret\n"
	".globl cudaEventSynchronize\n.type cudaEventSynchronize,@function\n"
	"cudaEventSynchronize: endbr64\n push %rbx\n mov $1234,%eax\n pop %rbx\n ret\n";

static void make(struct stub *stub, const char *name, const char *source)
{
	char path[PATH_MAX];

	assert_true(snprintf(path, sizeof(path), "%s/%s", stub_dir, name) < (int)sizeof(path));
	if (access(path, R_OK) < 0)
		assert_true(stub_compile(path, "assembler", source, "-Wl,-Bsymbolic"));
	assert_true(stub_load(stub, path));
}

static bool prepare(void)
{
	struct stub stub;

#if defined(__x86_64__)
	make(&stub, "libnccl.so.2.99.1", nccl_source);
	make(&stub, "copy.so", nccl_source);
	make(&stub, "libcudart.so.99", cudart_source);
#endif
	return stub_open(&stub, NT_LIBRARY_CUDART);
}

static int begin(void **state)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);

	(void)state;
	harness_init(&h, &options);
	return 0;
}

static int end(void **state)
{
	(void)state;
	harness_release(&h);
	return 0;
}

/*
 * By the kernel's own types: an older kernel loads a program of an attach type that it does not have, and
 * refuses its link.
 */
static bool has_sessions(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const __s32 id = btf__find_by_name_kind(btf, "bpf_attach_type", BTF_KIND_ENUM);
	const struct btf_type *type = btf__type_by_id(btf, id < 0 ? 0 : (__u32)id);
	bool is_found = false;

	assert_non_null(btf);
	assert_true(id > 0);
	for (int i = 0; i < btf_vlen(type); i++)
		is_found |= strcmp(btf__name_by_offset(btf, btf_enum(type)[i].name_off),
				   "BPF_TRACE_UPROBE_SESSION") == 0;
	btf__free(btf);
	return is_found;
}

/* A program of ours that does not load would have the agent fall back to what costs more. */
static void sessions_are_used_where_the_kernel_has_them(void **state)
{
	(void)state;
	if (has_sessions())
		assert_int_equal(nt_attach_mode(h.attach), NT_ATTACH_SESSION);
	else
		assert_int_not_equal(nt_attach_mode(h.attach), NT_ATTACH_SESSION);
}

static void one_place_that_the_kernel_refuses_spoils_no_other(void **state)
{
	struct stub nccl;

	(void)state;
	make(&nccl, "libnccl.so.2.99.1", nccl_source);
	/* AllReduce, Reduce and Send of five. */
	assert_int_equal(harness_attach(&h, &nccl, NT_LIBRARY_NCCL, UINT32_MAX), 3);
	assert_int_equal(harness_stats(&h).failed, 2);
	assert_int_equal(harness_stats(&h).probes, 3);
	(void)stub_call(&nccl, "ncclReduce", args);
	(void)stub_call(&nccl, "ncclSend", args);
	assert_int_equal(harness_poll(&h), 2);
	assert_int_equal(h.event[0].call.h.row, harness_row("ncclReduce", NT_LIBRARY_NCCL));
	assert_int_equal(h.event[1].call.h.row, harness_row("ncclSend", NT_LIBRARY_NCCL));
}

static void a_function_of_two_names_is_probed_once(void **state)
{
	struct stub nccl;

	(void)state;
	make(&nccl, "libnccl.so.2.99.1", nccl_source);
	assert_int_equal(harness_attach(&h, &nccl, NT_LIBRARY_UNKNOWN, UINT32_MAX), 3);
	(void)stub_call(&nccl, "pncclAllReduce", args);
	assert_int_equal(harness_poll(&h), 1);
	assert_int_equal(h.event[0].call.h.row, harness_row("ncclAllReduce", NT_LIBRARY_NCCL));
}

static void a_hot_function_is_probed_cheaply_or_not_at_all(void **state)
{
	struct nt_process_counters counters;
	struct stub cudart;

	(void)state;
	make(&cudart, "libcudart.so.99", cudart_source);
	assert_int_equal(harness_attach(&h, &cudart, NT_LIBRARY_CUDART, UINT32_MAX), 6);
	assert_int_equal(harness_stats(&h).refused_slow, 1);
	args[1] = 4096;
	args[2] = 77;
	for (int i = 0; i < 5; i++) {
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
		(void)stub_call(&cudart, "cudaMalloc", args);
		(void)stub_call(&cudart, "cudaMallocManaged", args);
		(void)stub_call(&cudart, "cudaMemcpyAsync", args);
	}
	assert_true(nt_attach_counters(h.attach, (uint32_t)getpid(), &counters));
	assert_int_equal(counters.calls[NT_COUNTER_LAUNCH], 0);
	/* Allocations are not hot: they are probed at any price. */
	assert_int_equal(counters.calls[NT_COUNTER_ALLOC], 10);
	assert_int_equal(counters.bytes[NT_COUNTER_ALLOC], 10 * 4096);
	assert_int_equal(counters.calls[NT_COUNTER_COPY], 5);
	assert_int_equal(counters.bytes[NT_COUNTER_COPY], 5 * 77);
}

/* Both: past endbr64, and at the second instruction. */
static void returns_are_seen_from_past_the_first_instruction(void **state)
{
	static const char *const symbols[] = {"cudaFree", "cudaEventSynchronize"};
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	struct stub cudart;

	(void)state;
	harness_release(&h);
	options.min_call_ns = 0;
	harness_init(&h, &options);
	make(&cudart, "libcudart.so.99", cudart_source);
	assert_int_equal(harness_attach(&h, &cudart, NT_LIBRARY_CUDART, 1U << NT_SUBJECT_SYNC), 3);
	args[0] = 0xf00d;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(stub_call(&cudart, symbols[i], args), 1234);
		/* A free has a record of the memory before that of the wait. */
		assert_int_equal(harness_poll(&h), i == 0 ? 2 : 1);
		for (size_t n = 0; n < h.events; n++) {
			const struct nt_event_call *call = &h.event[n].call;

			assert_int_equal(call->h.row, harness_row(symbols[i], NT_LIBRARY_CUDART));
			assert_int_equal(call->h.flags,
					 NT_CALL_RETURNED |
						 (n + 1 < h.events ? NT_CALL_MEMORY : 0));
			assert_int_equal(call->ret, 1234);
			assert_int_equal(call->word[0], 0xf00d);
		}
	}
}

static void subjects_are_attached_one_by_one(void **state)
{
	struct nt_process_counters counters;
	struct stub cudart;
	int launches, rest;

	(void)state;
	assert_true(stub_open(&cudart, NT_LIBRARY_CUDART));
	launches = harness_attach(&h, &cudart, NT_LIBRARY_CUDART, 1U << NT_SUBJECT_LAUNCH);
	assert_true(launches > 0);
	(void)stub_call(&cudart, "cudaLaunchKernel", args);
	(void)stub_call(&cudart, "cudaEventRecord", args);
	assert_int_equal(harness_poll(&h), 0);
	rest = harness_attach(&h, &cudart, NT_LIBRARY_CUDART, UINT32_MAX);
	assert_true(rest > 0);
	assert_int_equal(harness_stats(&h).probes, launches + rest);
	(void)stub_call(&cudart, "cudaLaunchKernel", args);
	(void)stub_call(&cudart, "cudaEventRecord", args);
	assert_int_equal(harness_poll(&h), 1);
	assert_true(nt_attach_counters(h.attach, (uint32_t)getpid(), &counters));
	assert_int_equal(counters.calls[NT_COUNTER_LAUNCH], 2);
}

static void a_dropped_file_is_seen_no_more_until_it_is_attached_again(void **state)
{
	struct stub nccl;

	(void)state;
	make(&nccl, "libnccl.so.2.99.1", nccl_source);
	assert_int_equal(harness_attach(&h, &nccl, NT_LIBRARY_NCCL, UINT32_MAX), 3);
	nt_attach_drop(h.attach, nccl.st.st_dev, nccl.st.st_ino);
	(void)stub_call(&nccl, "ncclAllReduce", args);
	assert_int_equal(harness_poll(&h), 0);
	assert_int_equal(harness_stats(&h).files, 0);
	assert_int_equal(harness_stats(&h).links, 0);
	assert_int_equal(harness_stats(&h).probes, 0);
	assert_int_equal(harness_attach(&h, &nccl, NT_LIBRARY_NCCL, UINT32_MAX), 3);
	(void)stub_call(&nccl, "ncclAllReduce", args);
	assert_int_equal(harness_poll(&h), 1);
	nt_attach_drop(h.attach, nccl.st.st_dev, nccl.st.st_ino + 1);
	assert_int_equal(harness_stats(&h).files, 1);
}

/* ---- links that a thread makes and frees ---------------------------------------------------- */

static struct {
	int calls, result;
} reports;

static void report(void *data, const char *name, int result)
{
	(void)data;
	assert_string_equal(name, "the name");
	reports.calls++;
	reports.result = result;
}

static int begin_with_thread(void **state)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);

	(void)state;
	options.has_thread = true;
	options.attached = report;
	reports.calls = reports.result = 0;
	harness_init(&h, &options);
	return 0;
}

static int ordered = -1; /* the open file of the last order */

static int order(const struct stub *stub)
{
	nt_autofree struct nt_symbols *symbols = calloc(1, sizeof(*symbols));
	int fd = open(stub->path, O_RDONLY | O_CLOEXEC);
	struct nt_attach_order order = {
		.fd = fd,
		.symbols = symbols,
		.dev = stub->st.st_dev,
		.ino = stub->st.st_ino,
		.subjects = UINT32_MAX,
		.name = "the name",
	};

	nt_closep(&ordered);
	ordered = fd; /* closed later: its place is not free meanwhile */
	assert_non_null(symbols);
	assert_int_equal(nt_symbols_read(fd, NULL, NT_LIBRARY_NCCL, symbols), 0);
	return nt_attach_opened(h.attach, &order);
}

static int end_with_thread(void **state)
{
	(void)state;
	nt_closep(&ordered);
	ordered = -1;
	harness_release(&h);
	return 0;
}

static void settle(void)
{
	struct pollfd ready = {.fd = nt_attach_links_fd(h.attach), .events = POLLIN};

	assert_int_equal(poll(&ready, 1, 600000), 1);
	nt_attach_settle(h.attach);
}

static bool is_seen(const struct stub *nccl)
{
	(void)stub_call(nccl, "ncclAllReduce", args);
	return harness_poll(&h) > 0;
}

/* Until it is, or is not any more. */
static void await_seen(const struct stub *nccl, bool seen)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	/* Turns, not seconds: an emulated machine may get no processor for minutes. */
	for (int turn = 0; is_seen(nccl) != seen; turn++) {
		assert_true(turn < 6000);
		(void)nanosleep(&pause, NULL);
	}
}

static void a_thread_makes_the_links_and_frees_them(void **state)
{
	struct nt_attached *file;
	struct stub nccl;
	size_t targets;

	(void)state;
	make(&nccl, "libnccl.so.2.99.1", nccl_source);
	assert_int_equal(order(&nccl), 4); /* of which the kernel refuses one */
	file = nt_attach_find(h.attach, nccl.st.st_dev, nccl.st.st_ino);
	assert_non_null(file);
	(void)nt_attached_targets(file, &targets);
	assert_int_equal(targets, 4); /* known at once */
	assert_int_equal(order(&nccl), 0);
	assert_int_equal(harness_stats(&h).links, 0);
	settle();
	assert_int_equal(reports.calls, 1);
	assert_int_equal(reports.result, 3);
	(void)nt_attached_targets(file, &targets);
	assert_int_equal(targets, 3);
	assert_int_equal(harness_stats(&h).probes, 3);
	assert_int_equal(harness_stats(&h).failed, 2);
	assert_true(is_seen(&nccl));
	nt_attach_drop(h.attach, nccl.st.st_dev, nccl.st.st_ino);
	assert_int_equal(harness_stats(&h).files, 0);
	assert_int_equal(harness_stats(&h).links, 0);
	await_seen(&nccl, false);
}

static void links_of_a_file_that_went_meanwhile_are_freed(void **state)
{
	struct stub nccl;

	(void)state;
	make(&nccl, "libnccl.so.2.99.1", nccl_source);
	assert_int_equal(order(&nccl), 4);
	nt_attach_drop(h.attach, nccl.st.st_dev, nccl.st.st_ino);
	settle();
	assert_int_equal(reports.calls, 0);
	assert_int_equal(harness_stats(&h).links, 0);
	assert_int_equal(harness_stats(&h).probes, 0);
	await_seen(&nccl, false);
}

static void links_of_a_file_that_was_split_meanwhile_are_freed(void **state)
{
	struct nt_link_set *link_set;
	struct nt_attached *file;
	struct stub nccl;

	(void)state;
	make(&nccl, "libnccl.so.2.99.1", nccl_source);
	assert_int_equal(order(&nccl), 4);
	file = nt_attach_find(h.attach, nccl.st.st_dev, nccl.st.st_ino);
	link_set = nt_attach_split(h.attach, file, NT_ATTACHED_BUT_STAYING);
	assert_non_null(link_set);
	assert_int_equal(nt_link_set_count(link_set), 0);
	/* What it is joined with holds all that was split off. */
	assert_int_equal(nt_attach_join(h.attach, file, false, link_set), 0);
	nt_link_set_free(link_set);
	settle();
	assert_int_equal(reports.result, 3);
	assert_int_equal(harness_stats(&h).links, 0);
	assert_int_equal(harness_stats(&h).probes, 3);
	await_seen(&nccl, false);
}

static void a_file_whose_links_cannot_be_made_can_be_asked_for_again(void **state)
{
	struct rlimit all, few;
	struct stub nccl;
	int free_fd;

	(void)state;
	make(&nccl, "libnccl.so.2.99.1", nccl_source);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	free_fd = dup(STDERR_FILENO);
	assert_true(free_fd >= 0);
	assert_int_equal(close(free_fd), 0);
	few = all;
	few.rlim_cur = (rlim_t)free_fd + 3; /* the file here, there, and for the request */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(order(&nccl), 4);
	settle();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	assert_int_equal(reports.calls, 1);
	assert_int_equal(reports.result, -EMFILE);
	assert_int_equal(harness_stats(&h).probes, 0);
	assert_int_equal(order(&nccl), 4);
	settle();
	assert_int_equal(reports.result, 3);
	assert_true(is_seen(&nccl));
}

static void a_file_that_was_exchanged_meanwhile_is_stale(void **state)
{
	struct stub nccl;

	(void)state;
	make(&nccl, "libnccl.so.2.99.1", nccl_source);
	assert_int_equal(attach_file(h.attach, nccl.path, nccl.st.st_dev, nccl.st.st_ino + 1,
				     NT_LIBRARY_NCCL, UINT32_MAX),
			 -ESTALE);
	assert_int_equal(attach_file(h.attach, "/no/such/file", 1, 2, NT_LIBRARY_NCCL, 1), -ENOENT);
	assert_int_equal(harness_stats(&h).files, 0);
}

static void what_is_no_library_is_refused(void **state)
{
	char path[PATH_MAX];
	struct stat st;
	FILE *file;

	(void)state;
	assert_true(snprintf(path, sizeof(path), "%s/libnccl.so", stub_dir) < (int)sizeof(path));
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fputs("INPUT(libnccl.so.2)\n", file);
	(void)fclose(file);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(
		attach_file(h.attach, path, st.st_dev, st.st_ino, NT_LIBRARY_NCCL, UINT32_MAX),
		-EBADMSG);
	assert_int_equal(unlink(path), 0);
}

/* Calls through the file at path of the lower directory, or through an overlay of it. */
static void call_by(const char *path)
{
	struct stub stub;

	assert_true(stub_load(&stub, path));
	(void)stub_call(&stub, "ncclAllReduce", args);
	assert_int_equal(dlclose(stub.handle), 0);
}

static void make_dir(char *path, const char *name)
{
	assert_true(snprintf(path, PATH_MAX, "%s/overlay/%s", stub_dir, name) < PATH_MAX);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

static void containers_that_share_a_layer_count_a_call_once(void **state)
{
	char lower[PATH_MAX], upper[PATH_MAX], work[PATH_MAX], merged[2][PATH_MAX];
	char options[3 * PATH_MAX + 64], base[PATH_MAX + 16], path[2 * PATH_MAX],
		beneath[2 * PATH_MAX];
	char source[2 * PATH_MAX];
	const char *const copy[] = {"cp", source, beneath, NULL};
	struct stub stub[2];

	(void)state;
	(void)snprintf(source, sizeof(source), "%s/libnccl.so.2.99.1", stub_dir);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		print_message("skip: mount: nothing can be mounted here\n");
		skip();
	}
	/* In memory: not every file system may be beneath an overlay. */
	(void)snprintf(base, sizeof(base), "%s/overlay", stub_dir);
	assert_true(mkdir(base, 0755) == 0 || errno == EEXIST);
	assert_int_equal(mount("none", base, "tmpfs", 0, NULL), 0);
	make_dir(lower, "lower");
	(void)snprintf(beneath, sizeof(beneath), "%s/libnccl.so.2", lower);
	assert_int_equal(stub_run(copy), 0);
	for (int i = 0; i < 2; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "upper%d", i);
		make_dir(upper, name);
		(void)snprintf(name, sizeof(name), "work%d", i);
		make_dir(work, name);
		(void)snprintf(name, sizeof(name), "merged%d", i);
		make_dir(merged[i], name);
		(void)snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s",
			       lower, upper, work);
		if (mount("overlay", merged[i], "overlay", 0, options) < 0) {
			print_message("skip: mount: no overlay can be mounted here\n");
			skip();
		}
		(void)snprintf(path, sizeof(path), "%s/libnccl.so.2", merged[i]);
		assert_true(stub_load(&stub[i], path));
	}
	assert_true(stub[0].st.st_dev != stub[1].st.st_dev);
	assert_int_equal(harness_attach(&h, &stub[0], NT_LIBRARY_NCCL, UINT32_MAX), 3);
	assert_int_equal(harness_attach(&h, &stub[1], NT_LIBRARY_NCCL, UINT32_MAX), 0);
	assert_int_equal(harness_stats(&h).files, 1);
	(void)stub_call(&stub[0], "ncclAllReduce", args);
	(void)stub_call(&stub[1], "ncclAllReduce", args);
	call_by(beneath);
	assert_int_equal(harness_poll(&h), 3);
	/* The file stays attached as long as one container has it. */
	nt_attach_drop(h.attach, stub[0].st.st_dev, stub[0].st.st_ino);
	(void)stub_call(&stub[1], "ncclAllReduce", args);
	assert_int_equal(harness_poll(&h), 1);
	nt_attach_drop(h.attach, stub[1].st.st_dev, stub[1].st.st_ino);
	assert_int_equal(harness_stats(&h).files, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(dlclose(stub[i].handle), 0);
		/* Links are freed a little after they are closed. */
		assert_int_equal(umount2(merged[i], MNT_DETACH), 0);
	}
	assert_int_equal(umount2(base, MNT_DETACH), 0);
	assert_int_equal(rmdir(base), 0);
}

static void copies_of_a_library_are_files_of_their_own(void **state)
{
	struct stub one, other;

	(void)state;
	make(&one, "libnccl.so.2.99.1", nccl_source);
	make(&other, "copy.so", nccl_source);
	assert_int_equal(harness_attach(&h, &one, NT_LIBRARY_NCCL, UINT32_MAX), 3);
	assert_int_equal(harness_attach(&h, &other, NT_LIBRARY_NCCL, UINT32_MAX), 3);
	(void)stub_call(&one, "ncclAllReduce", args);
	(void)stub_call(&other, "ncclAllReduce", args);
	assert_int_equal(harness_poll(&h), 2);
}

#define WITH(test)        cmocka_unit_test_setup_teardown(test, begin, end)
#define WITH_THREAD(test) cmocka_unit_test_setup_teardown(test, begin_with_thread, end_with_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		WITH(one_place_that_the_kernel_refuses_spoils_no_other),
		WITH(sessions_are_used_where_the_kernel_has_them),
		WITH(a_function_of_two_names_is_probed_once),
		WITH(a_hot_function_is_probed_cheaply_or_not_at_all),
		WITH(returns_are_seen_from_past_the_first_instruction),
		WITH(a_dropped_file_is_seen_no_more_until_it_is_attached_again),
		WITH_THREAD(a_thread_makes_the_links_and_frees_them),
		WITH_THREAD(links_of_a_file_that_went_meanwhile_are_freed),
		WITH_THREAD(links_of_a_file_that_was_split_meanwhile_are_freed),
		WITH_THREAD(a_file_whose_links_cannot_be_made_can_be_asked_for_again),
		WITH(a_file_that_was_exchanged_meanwhile_is_stale),
		WITH(copies_of_a_library_are_files_of_their_own),
		WITH(containers_that_share_a_layer_count_a_call_once),
#endif
		WITH(subjects_are_attached_one_by_one),
		WITH(what_is_no_library_is_refused),
	};
	int r;

	if (!stub_begin() || !prepare())
		return 1;
	if (stub_only())
		return 0;
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	r = cmocka_run_group_tests(tests, NULL, NULL);
	stub_clean();
	return r;
}
