/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whose share of the ring an event takes: many processes, users and cgroups of one owner leave room for
 * the others, and so do processes that end.
 */
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <time.h>

#include "tests/bpf/harness.h"

enum {
	FLOODERS = 128,
	/* within the share of a process while the ring is less than three quarters full */
	FLOOD_CALLS = 30,
	CALMS = 8, /* the share of a process while it is fuller */
	ENDERS = 480,
	FIRST_UID = 70000,
	MAKER = 69999, /* of namespaces in which there are other ids */
	SERVERS = 96,
	SERVER_CALLS = 8,
	SERVER_CALMS = 2,
	/* periods of shares of 69 s, in which every server is served: two begin at most */
	LONG_SHIFT = 36,
	WAIT_MS = 600000,
	PATH_BYTES = 128,
};

static struct stub nccl, cudart;
static uint64_t args[STUB_ARGS];
static char mounted[] = "/tmp/nt-shares-XXXXXX"; /* the unified hierarchy */
/* Cgroups, one in another. The third level is an owner. */
static char top[PATH_BYTES], service[PATH_BYTES + 8], owner[PATH_BYTES + 16];
static const char *const cgroups[] = {top, service, owner};

/* ---- cgroups --------------------------------------------------------------------------------- */

static bool enter(const char *cgroup)
{
	char path[PATH_BYTES + 64];
	FILE *file;
	bool ok;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	file = fopen(path, "we");
	if (!file)
		return false;
	ok = fputs("0", file) >= 0;
	return (fclose(file) == 0) && ok;
}

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(mounted) || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", mounted, "cgroup2", 0, NULL) < 0)
		return -1;
	(void)snprintf(top, sizeof(top), "%s/nt-shares-%d", mounted, getpid());
	(void)snprintf(service, sizeof(service), "%s/within", top);
	(void)snprintf(owner, sizeof(owner), "%s/within", service);
	for (size_t i = 0; i < sizeof(cgroups) / sizeof(cgroups[0]); i++)
		if (mkdir(cgroups[i], 0755) < 0)
			return -1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = sizeof(cgroups) / sizeof(cgroups[0]); i-- > 0;)
		(void)rmdir(cgroups[i]);
	(void)umount(mounted);
	(void)rmdir(mounted);
	return 0;
}

/* ---- processes that all begin at once --------------------------------------------------------- */

struct crowd {
	/* What all of them do. */
	const struct stub *stub;
	const char *symbol;
	int calls;
	const char *cgroup; /* NULL: each is in one of its own below the owner's */
	bool namespaces; /* each has its user id in a user namespace of its own */
	pid_t pid[ENDERS];
	size_t count;
	int go[2], ready[2], done[2], mapped[2];
};

static void map_id(pid_t pid, unsigned int id)
{
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fprintf(file, "0 %u 1\n", id);
	assert_int_equal(fclose(file), 0);
}

/* Not in a changed root, and not where the host forbids them. */
static bool has_namespaces(void)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(setresuid(MAKER, MAKER, MAKER) < 0 || unshare(CLONE_NEWUSER) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static bool take_namespace(const struct crowd *crowd)
{
	char byte = 0;

	return setresuid(MAKER, MAKER, MAKER) == 0 && unshare(CLONE_NEWUSER) == 0 &&
	       write(crowd->ready[1], &byte, 1) == 1 && read(crowd->mapped[0], &byte, 1) == 1 &&
	       setresuid(0, 0, 0) == 0;
}

static void crowd_child(const struct crowd *crowd, const char *cgroup, uid_t uid)
{
	char byte = 0;

	(void)close(crowd->go[1]); /* it ends with its parent */
	(void)close(crowd->mapped[1]);
	if (!enter(cgroup) || !(crowd->namespaces ? take_namespace(crowd) : setuid(uid) == 0) ||
	    write(crowd->ready[1], &byte, 1) != 1) {
		byte = 1;
		(void)!write(crowd->ready[1], &byte, 1);
		_exit(1);
	}
	(void)!read(crowd->go[0], &byte, 1);
	for (int i = 0; i < crowd->calls; i++)
		(void)stub_call(crowd->stub, crowd->symbol, args);
	(void)!write(crowd->done[1], &byte, 1);
	_exit(0);
}

static void wait_for(int fd, size_t bytes)
{
	char byte;

	for (size_t i = 0; i < bytes; i++) {
		assert_int_equal(read(fd, &byte, 1), 1);
		assert_int_equal(byte, 0); /* 1: it could not do as it was to */
	}
}

static void crowd_wait(struct crowd *crowd)
{
	int status;

	for (size_t i = 0; i < crowd->count; i++) {
		assert_int_equal(waitpid(crowd->pid[i], &status, 0), crowd->pid[i]);
		assert_int_equal(status, 0);
	}
	(void)close(crowd->go[0]);
	for (int i = 0; i < 2; i++) {
		(void)close(crowd->ready[i]);
		(void)close(crowd->done[i]);
		(void)close(crowd->mapped[i]);
	}
}

/* Each has a user id of its own. */
static void crowd_begin(struct crowd *crowd, size_t count)
{
	char leaf[sizeof(owner) + 24], byte = 0;

	crowd->count = count;
	assert_int_equal(pipe(crowd->go), 0);
	assert_int_equal(pipe(crowd->ready), 0);
	assert_int_equal(pipe(crowd->done), 0);
	assert_int_equal(pipe(crowd->mapped), 0);
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(leaf, sizeof(leaf), "%s/%zu", owner, i);
		assert_true(crowd->cgroup || mkdir(leaf, 0755) == 0);
		crowd->pid[i] = fork();
		assert_true(crowd->pid[i] >= 0);
		if (crowd->pid[i] == 0)
			crowd_child(crowd, crowd->cgroup ? crowd->cgroup : leaf,
				    (uid_t)(FIRST_UID + i));
		wait_for(crowd->ready[0], 1);
		if (!crowd->namespaces)
			continue;
		map_id(crowd->pid[i], (unsigned int)(FIRST_UID + i));
		assert_int_equal(write(crowd->mapped[1], &byte, 1), 1);
		wait_for(crowd->ready[0], 1);
	}
}

static void remove_leaves(size_t count)
{
	char leaf[sizeof(owner) + 24];

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(leaf, sizeof(leaf), "%s/%zu", owner, i);
		(void)rmdir(leaf);
	}
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void begin_harness(struct harness *h, size_t ring_bytes)
{
	const uint32_t launches = 1U << NT_SUBJECT_LAUNCH;
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	uint16_t row = harness_row("ncclAllReduce", NT_LIBRARY_NCCL);

	options.ring_bytes = ring_bytes;
	options.share_shift = LONG_SHIFT;
	harness_init(h, &options);
	assert_true(harness_attach(h, &nccl, NT_LIBRARY_NCCL, 1U << nt_probe_row(row)->subject) >
		    0);
	assert_true(harness_attach(h, &cudart, NT_LIBRARY_CUDART, launches) > 0);
}

static void calls_of_another_owner_find_room(struct harness *h, size_t calls)
{
	for (size_t i = 0; i < calls; i++)
		(void)stub_call(&nccl, "ncclAllReduce", args);
	assert_int_equal(harness_poll(h), calls);
}

static void users_and_cgroups_below_one_pod_have_its_share_together(void **state)
{
	struct crowd crowd = {.stub = &nccl, .symbol = "ncclAllReduce", .calls = FLOOD_CALLS};
	struct harness h;

	(void)state;
	begin_harness(&h, 256 << 10);
	crowd_begin(&crowd, FLOODERS);
	(void)harness_poll(&h);
	(void)close(crowd.go[1]);
	wait_for(crowd.done[0], FLOODERS);
	calls_of_another_owner_find_room(&h, CALMS);
	assert_true(harness_stats(&h).over_share > 0);
	crowd_wait(&crowd);
	harness_release(&h);
	remove_leaves(FLOODERS);
}

static void users_of_one_service_leave_room_for_others(void **state)
{
	struct crowd crowd = {
		.stub = &nccl, .symbol = "ncclAllReduce", .calls = SERVER_CALLS, .cgroup = service};
	struct harness h;

	(void)state;
	begin_harness(&h, 64 << 10);
	crowd_begin(&crowd, SERVERS);
	(void)harness_poll(&h);
	(void)close(crowd.go[1]);
	wait_for(crowd.done[0], SERVERS);
	calls_of_another_owner_find_room(&h, SERVER_CALMS);
	assert_true(harness_stats(&h).over_share > 0);
	crowd_wait(&crowd);
	harness_release(&h);
}

static void ids_in_namespaces_of_a_user_leave_room_for_other_users(void **state)
{
	struct crowd crowd = {.stub = &nccl,
			      .symbol = "ncclAllReduce",
			      .calls = SERVER_CALLS,
			      .cgroup = service,
			      .namespaces = true};
	struct harness h;

	(void)state;
	if (!has_namespaces()) {
		print_message("skip: namespaces: a user cannot make one here\n");
		skip();
	}
	begin_harness(&h, 64 << 10);
	crowd_begin(&crowd, SERVERS);
	(void)harness_poll(&h);
	(void)close(crowd.go[1]);
	wait_for(crowd.done[0], SERVERS);
	/* In the same cgroup. */
	assert_true(enter(service));
	calls_of_another_owner_find_room(&h, SERVER_CALMS);
	assert_true(enter(mounted));
	assert_true(harness_stats(&h).over_share > 0);
	crowd_wait(&crowd);
	harness_release(&h);
}

static void processes_that_end_leave_room_for_events_of_others(void **state)
{
	struct crowd crowd = {.stub = &cudart, .symbol = "cudaLaunchKernel", .calls = 1};
	struct harness h;

	(void)state;
	begin_harness(&h, 64 << 10);
	crowd_begin(&crowd, ENDERS);
	(void)harness_poll(&h);
	(void)close(crowd.go[1]);
	crowd_wait(&crowd);
	calls_of_another_owner_find_room(&h, CALMS / 4);
	assert_true(harness_stats(&h).over_share > 0);
	/* None is refused in silence. */
	assert_int_equal(harness_stats(&h).dropped[NT_EVENT_END], harness_stats(&h).over_share);
	harness_release(&h);
	remove_leaves(ENDERS);
}

static void the_ends_of_processes_wake_the_agent(void **state)
{
	struct crowd crowd = {.stub = &cudart, .symbol = "cudaLaunchKernel", .calls = 1};
	struct harness h;
	struct pollfd ready = {.events = POLLIN};
	int status;
	pid_t helper;

	(void)state;
	begin_harness(&h, 64 << 10);
	crowd_begin(&crowd, FLOODERS);
	(void)harness_poll(&h);
	helper = fork();
	assert_true(helper >= 0);
	if (helper == 0) { /* lets them go when this process waits, or is about to */
		(void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
		_exit(0);
	}
	(void)close(crowd.go[1]);
	ready.fd = nt_attach_fd(h.attach);
	assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
	assert_int_equal(waitpid(helper, &status, 0), helper);
	crowd_wait(&crowd);
	harness_release(&h);
	remove_leaves(FLOODERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_and_cgroups_below_one_pod_have_its_share_together),
		cmocka_unit_test(users_of_one_service_leave_room_for_others),
		cmocka_unit_test(ids_in_namespaces_of_a_user_leave_room_for_other_users),
		cmocka_unit_test(processes_that_end_leave_room_for_events_of_others),
		cmocka_unit_test(the_ends_of_processes_wake_the_agent),
	};
	int r;

	if (!stub_begin() || !stub_open(&nccl, NT_LIBRARY_NCCL) ||
	    !stub_open(&cudart, NT_LIBRARY_CUDART))
		return 1;
	if (stub_only())
		return 0;
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	if (begin(NULL) < 0) {
		printf("skip: bpf: cgroups cannot be made here\n");
		(void)end(NULL);
		stub_clean();
		return EXIT_SKIP;
	}
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)end(NULL);
	stub_clean();
	return r;
}
