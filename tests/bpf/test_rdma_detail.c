/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Posts to queue pairs of a process at level 1, one record each (bpf/traffic.bpf.h). */
#include "agent/rdma/provider_file.h"
#include "agent/rdma/traffic_map.h"
#include "tests/bpf/harness.h"
#include "tests/rdma/fake_verbs.h"

enum {
	POSTS = 500,
	DETAILS_MAX = 4096,
	FLOOD = 20000,
	MOST = 50, /* of a flood, in a period */
};

static struct fake_verbs fake;
static struct harness shared;
static struct nt_rank_probe *probe;
static enum nt_attach_mode mode_now;
static struct nt_event_detail detail[DETAILS_MAX];
static size_t details;
static uint32_t executed; /* the last process that ran another program */

static void keep_record(void *data, const struct nt_event_detail *event)
{
	(void)data;
	if (details < DETAILS_MAX)
		detail[details++] = *event;
}

static void keep_executed(void *data, uint32_t pid, uint64_t boot_ns)
{
	(void)data, (void)boot_ns;
	executed = pid;
}

static size_t poll_records(void)
{
	details = 0;
	while (nt_attach_poll_details(shared.attach) > 0)
		;
	return details;
}

static void limit_posts(uint32_t most)
{
	const struct nt_detail_limits limits = {.most = {[NT_DETAIL_POSTS] = most}};

	assert_int_equal(
		nt_attach_set_detail(shared.attach, (uint32_t)getpid(), most ? &limits : NULL), 0);
	nt_attach_set_detailed(shared.attach, most ? 1 : 0);
}

static int attach_posts(void **state)
{
	struct nt_attach_options options = harness_options(mode_now);
	struct nt_rank_probe_sites sites = {.begins = 1};
	struct nt_provider_place place;
	nt_autoclose int fd = open(fake.provider, O_RDONLY | O_CLOEXEC);

	(void)state;
	options.detail = keep_record;
	options.executed = keep_executed;
	harness_init(&shared, &options);
	assert_true(fake_verbs_open(&fake));
	assert_int_equal(nt_provider_file_read((uint32_t)getpid(), fd,
					       (uintptr_t)fake.context->ops.post_send,
					       (uintptr_t)fake.context->ops.poll_cq, &place),
			 0);
	sites.row = harness_row("post_send", (enum nt_library)NT_LIBRARY_RDMA_POST);
	sites.begin[0].offset = place.post_offset;
	assert_int_equal(nt_rank_probe_new_at(nt_attach_loader(shared.attach), fd,
					      (uint32_t)getpid(), &sites, &probe),
			 0);
	*fake.ignores = 1;
	return 0;
}

static int detach_posts(void **state)
{
	(void)state;
	nt_rank_probe_free(probe);
	harness_release(&shared);
	return 0;
}

/* A chain of that many writes of `bytes` each. */
static void post_chain(struct ibv_qp *qp, uint32_t requests, uint32_t bytes)
{
	struct ibv_sge sge = {.length = bytes};
	struct ibv_send_wr wr[4], *bad;

	for (uint32_t i = 0; i < requests; i++)
		wr[i] = (struct ibv_send_wr){.sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					     .next = i + 1 < requests ? &wr[i + 1] : NULL};
	assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
}

static void no_post_is_recorded_at_level_0(void **state)
{
	struct ibv_qp *qp = fake_verbs_qp(&fake, 0);

	(void)state;
	for (int i = 0; i < POSTS; i++)
		post_chain(qp, 1, 1);
	assert_int_equal(poll_records(), 0);
	/* While another process is at level 1. */
	nt_attach_set_detailed(shared.attach, 1);
	for (int i = 0; i < POSTS; i++)
		post_chain(qp, 1, 1);
	assert_int_equal(poll_records(), 0);
	nt_attach_set_detailed(shared.attach, 0);
}

static void each_post_is_recorded_once_with_its_queue_pair_and_bytes(void **state)
{
	struct ibv_qp *const qp[] = {fake_verbs_qp(&fake, 0), fake_verbs_qp(&fake, 0)};
	const uint64_t begin_ns = nt_clock_boot_ns();

	(void)state;
	limit_posts(INT32_MAX);
	for (uint32_t i = 0; i < POSTS; i++)
		post_chain(qp[i % 2], 1 + i % 4, 1000 + i);
	limit_posts(0);
	assert_int_equal(poll_records(), POSTS);
	for (uint32_t i = 0; i < POSTS; i++) {
		const struct nt_event_detail *e = &detail[i];

		assert_int_equal(e->class, NT_DETAIL_POSTS);
		assert_int_equal(e->h.row,
				 harness_row("post_send", (enum nt_library)NT_LIBRARY_RDMA_POST));
		assert_int_equal(e->h.pid, getpid());
		assert_int_equal(e->h.tid, getpid());
		assert_int_equal(e->h.flags, 0);
		assert_true(e->h.entry_ns >= begin_ns);
		assert_int_equal(e->threshold, NT_DETAIL_EACH);
		assert_int_equal(e->bytes, (uint64_t)(1 + i % 4) * (1000 + i));
		assert_int_equal(NT_DETAIL_POST_QPN(e->value), qp[i % 2]->qp_num);
		assert_int_equal(NT_DETAIL_POST_OPCODE(e->value), IBV_WR_RDMA_WRITE_WITH_IMM);
		assert_int_equal(NT_DETAIL_POST_REQUESTS(e->value), 1 + i % 4);
	}
}

/* Pointers that cannot be read, and a chain that is a loop: one record each, with what was read. */
static void hostile_posts_are_records_of_what_was_read(void **state)
{
	struct ibv_qp *qp = fake_verbs_qp(&fake, 0);
	struct ibv_sge sge = {.length = 3};
	struct ibv_send_wr loop = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = (enum ibv_wr_opcode)0x12345,
				   .next = &loop},
			   *bad;

	(void)state;
	limit_posts(INT32_MAX);
	assert_int_equal(ibv_post_send(qp, &loop, &bad), 0);
	assert_int_equal(ibv_post_send(qp, (struct ibv_send_wr *)0xdead0000, &bad), 0);
	limit_posts(0);
	assert_int_equal(poll_records(), 2);
	assert_int_equal(NT_DETAIL_POST_REQUESTS(detail[0].value), NT_RDMA_REQUESTS);
	assert_int_equal(NT_DETAIL_POST_OPCODE(detail[0].value), 0x2345);
	assert_int_equal(NT_DETAIL_POST_QPN(detail[0].value), qp->qp_num);
	assert_int_equal(detail[0].bytes, 3 * NT_RDMA_REQUESTS);
	assert_int_equal(NT_DETAIL_POST_REQUESTS(detail[1].value), 0);
	assert_int_equal(detail[1].bytes, 0);
}

/* Above the limit posts are sampled, and the sampled ones stand for all. */
static void a_flood_of_posts_is_sampled(void **state)
{
	struct ibv_qp *qp = fake_verbs_qp(&fake, 0);
	struct nt_detail_rates before = {0}, after;
	uint64_t begin_ns, periods;
	double estimate = 0, variance = 0, error;

	(void)state;
	(void)nt_attach_detail_rates(shared.attach, (uint32_t)getpid(), &before);
	/* Another period, whose probability does not depend on the limit of the test before. */
	(void)nanosleep(&(const struct timespec){.tv_nsec = 300000000}, NULL);
	begin_ns = nt_clock_boot_ns();
	limit_posts(MOST);
	for (int i = 0; i < FLOOD; i++)
		post_chain(qp, 1, 1);
	limit_posts(0);
	periods = ((nt_clock_boot_ns() - begin_ns) >> NT_DETAIL_SHIFT) + 2;
	(void)poll_records();
	assert_true(nt_attach_detail_rates(shared.attach, (uint32_t)getpid(), &after));
	assert_int_equal(after.of[NT_DETAIL_POSTS].seen - before.of[NT_DETAIL_POSTS].seen, FLOOD);
	assert_in_range(details, 1, 2 * MOST * periods);
	for (size_t i = 0; i < details; i++) {
		const double p = ((double)detail[i].threshold + 1) / 4294967296.0;

		estimate += 1 / p;
		variance += (1 - p) / p / p;
	}
	estimate += (double)(after.of[NT_DETAIL_POSTS].lost - before.of[NT_DETAIL_POSTS].lost);
	error = estimate - FLOOD;
	assert_true(error * error <= 36 * variance + 400);
}

static uint64_t registrations_of(pid_t pid)
{
	struct nt_verbs_totals totals = {0};

	(void)nt_attach_verbs(shared.attach, (uint32_t)pid, &totals);
	return totals.registrations;
}

static void another_program_of_a_process_has_registered_nothing(void **state)
{
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int) =
		(struct ibv_mr * (*)(struct ibv_pd *, void *, size_t, int))
			dlsym(fake.handle, "ibv_reg_mr");
	uint64_t before, after;
	struct stat st;
	int go[2], done[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(stat(fake.library, &st), 0);
	assert_true(attach_file(shared.attach, fake.library, st.st_dev, st.st_ino,
				(enum nt_library)NT_LIBRARY_VERBS, 1U << NT_SUBJECT_COMM) > 0);
	assert_int_equal(pipe(go) | pipe(done), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)reg(fake.pd, &fake, 12345, 0);
		(void)!write(done[1], "", 1);
		(void)!read(go[0], &byte, 1);
		(void)execlp("sleep", "sleep", "60", NULL);
		_exit(1);
	}
	assert_int_equal(read(done[0], &byte, 1), 1);
	before = registrations_of(pid);
	assert_int_equal(write(go[1], "", 1), 1);
	/* The name of the process changes earlier, and the event is sent before its state is reset. */
	for (int i = 0; i < 6000 && executed != (uint32_t)pid; i++) {
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		(void)harness_poll(&shared);
	}
	after = registrations_of(pid);
	for (int i = 0; i < 6000 && after > 0; i++) {
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		after = registrations_of(pid);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)(close(go[0]) | close(go[1]) | close(done[0]) | close(done[1]));
	assert_int_equal(before, 1);
	assert_int_equal(executed, pid);
	assert_int_equal(after, 0);
}

static struct nt_rdma_key key_of(const struct ibv_qp *qp)
{
	return (struct nt_rdma_key){
		.pid = (uint32_t)getpid(), .qpn = qp->qp_num, .context = (uintptr_t)qp->context};
}

static bool signals_all(const struct nt_rdma_key *wanted)
{
	struct nt_rdma_key key, at;
	bool has_next = nt_traffic_map_next(shared.attach, NT_RDMA_SIGNALED, NULL, &key);

	for (; has_next && memcmp(&key, wanted, sizeof(key)) != 0;
	     has_next = nt_traffic_map_next(shared.attach, NT_RDMA_SIGNALED, &at, &key))
		at = key;
	return has_next;
}

/* After the test before, as the library is attached. */
static void what_the_agent_deletes_leaves_its_place_once_it_says_so(void **state)
{
	struct ibv_qp *first = fake_verbs_qp(&fake, 1), *second, *third;
	const struct nt_rdma_key key = key_of(first);
	struct nt_rdma_key key_of_second, key_of_third;
	struct nt_verbs_totals totals;
	struct nt_rdma_watch watch = {0};

	(void)state;
	(void)harness_poll(&shared);
	assert_true(signals_all(&key));
	assert_true(nt_attach_verbs(shared.attach, key.pid, &totals));
	watch.pairs_max = (uint32_t)totals.signaled;
	nt_traffic_map_watch(shared.attach, key.pid, &watch);
	assert_false(nt_traffic_map_forget(shared.attach, &key, true));
	assert_true(signals_all(&key));
	assert_true(nt_traffic_map_forget(shared.attach, &key, false));
	assert_false(signals_all(&key));
	second = fake_verbs_qp(&fake, 1);
	key_of_second = key_of(second);
	assert_false(signals_all(&key_of_second));
	watch.forgotten = 1;
	nt_traffic_map_watch(shared.attach, key.pid, &watch);
	third = fake_verbs_qp(&fake, 1);
	key_of_third = key_of(third);
	assert_true(signals_all(&key_of_third));
	/* The end of the first one is no end of another. */
	assert_int_equal(FAKE_VERB(&fake, ibv_destroy_qp)(first), 0);
	assert_int_equal(FAKE_VERB(&fake, ibv_destroy_qp)(second), 0);
	assert_true(signals_all(&key_of_third));
	assert_int_equal(FAKE_VERB(&fake, ibv_destroy_qp)(third), 0);
	assert_false(signals_all(&key_of_third));
	nt_traffic_map_watch(shared.attach, key.pid, NULL);
	(void)harness_poll(&shared);
}

static bool has_traffic(const struct nt_rdma_key *key)
{
	struct nt_rdma_traffic traffic;

	return nt_traffic_map_read(shared.attach, key, &traffic);
}

/* Of a process that was dropped while it ran, the agent has deleted queue pairs that have not ended. */
static void traffic_that_the_agent_deletes_leaves_its_place_once_it_says_so(void **state)
{
	struct ibv_qp *qp[4];
	struct nt_rdma_watch watch = {0};
	struct nt_verbs_totals totals;
	struct nt_rdma_key key[4];

	(void)state;
	(void)harness_poll(&shared);
	for (int i = 0; i < 4; i++) {
		qp[i] = fake_verbs_qp(&fake, 0);
		key[i] = key_of(qp[i]);
	}
	post_chain(qp[0], 1, 1);
	assert_true(has_traffic(&key[0]));
	assert_true(nt_attach_verbs(shared.attach, key[0].pid, &totals));
	watch.pairs_max = (uint32_t)(totals.seen - totals.ended);
	nt_traffic_map_watch(shared.attach, key[0].pid, &watch);
	(void)nt_traffic_map_forget(shared.attach, &key[0], false);
	post_chain(qp[1], 1, 1);
	assert_false(has_traffic(&key[1]));
	watch.dropped = 1;
	nt_traffic_map_watch(shared.attach, key[0].pid, &watch);
	post_chain(qp[2], 1, 1);
	assert_true(has_traffic(&key[2]));
	post_chain(qp[3], 1, 1); /* one place, once */
	assert_false(has_traffic(&key[3]));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(FAKE_VERB(&fake, ibv_destroy_qp)(qp[i]), 0);
		(void)nt_traffic_map_forget(shared.attach, &key[i], true);
	}
	nt_traffic_map_watch(shared.attach, key[0].pid, NULL);
	(void)harness_poll(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_post_is_recorded_at_level_0),
		cmocka_unit_test(each_post_is_recorded_once_with_its_queue_pair_and_bytes),
		cmocka_unit_test(hostile_posts_are_records_of_what_was_read),
		cmocka_unit_test(a_flood_of_posts_is_sampled),
		cmocka_unit_test(another_program_of_a_process_has_registered_nothing),
		cmocka_unit_test(what_the_agent_deletes_leaves_its_place_once_it_says_so),
		cmocka_unit_test(traffic_that_the_agent_deletes_leaves_its_place_once_it_says_so),
	};
	static const enum nt_attach_mode modes[] = {NT_ATTACH_SESSION, NT_ATTACH_MULTI,
						    NT_ATTACH_PERF};
	int failed = 0;

	if (!stub_begin() || !fake_verbs_build(&fake)) {
		stub_clean();
		printf("skip: bpf: the stand-in for libibverbs cannot be built\n");
		return EXIT_SKIP;
	}
	if (stub_only())
		return 0;
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	if (!fake_verbs_load(&fake))
		return 1;
	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		mode_now = modes[m];
		if (harness_has_mode(mode_now))
			failed += cmocka_run_group_tests(tests, attach_posts, detach_posts);
	}
	stub_clean();
	return failed;
}
