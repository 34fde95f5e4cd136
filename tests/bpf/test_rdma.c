/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Queue pairs that this program makes and uses, of a stand-in for libibverbs with the real ABI and a
 * provider whose functions have no names.
 */
#include <pthread.h>

#include "tests/rdma/probed_run.h"

/* ---- verbs ----------------------------------------------------------------------------------- */

static void a_device_and_the_life_of_its_queue_pairs_are_reported(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .dest_qp_num = REMOTE,
				   .ah_attr = {.grh = {.sgid_index = GID_INDEX},
					       .dlid = 7,
					       .is_global = 1,
					       .port_num = PORT}};
	const struct nt_event_verbs *e;
	struct rdma_run *run;
	struct ibv_qp *qp;
	uint32_t qpn;

	(void)state;
	for (size_t i = 0; i < sizeof(attr.ah_attr.grh.dgid.raw); i++)
		attr.ah_attr.grh.dgid.raw[i] = (uint8_t)(i + 1);
	run = start();
	qp = fake_verbs_qp(&fake, 1);
	qpn = qp->qp_num;
	assert_int_equal(FAKE_VERB(&fake, ibv_modify_qp)(
				 qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN),
			 0);
	assert_int_equal(FAKE_VERB(&fake, ibv_destroy_qp)(qp), 0);
	(void)harness_poll(&run->h);
	e = find_event(run, NT_VERB_OPEN, 0);
	assert_non_null(e);
	assert_int_equal(e->post_send, (uintptr_t)fake.context->ops.post_send);
	assert_int_equal(e->poll_cq, (uintptr_t)fake.context->ops.poll_cq);
	assert_string_equal(e->device, "fake0");
	e = find_event(run, NT_VERB_CREATE_QP, qpn);
	assert_non_null(e);
	assert_int_equal(e->qp_type, IBV_QPT_RC);
	assert_int_equal(e->all_signaled, 1);
	assert_int_equal(e->context, (uintptr_t)fake.context);
	e = find_event(run, NT_VERB_MODIFY_QP, qpn);
	assert_non_null(e);
	assert_int_equal(e->qp_state, IBV_QPS_RTR);
	assert_int_equal(e->remote_qpn, REMOTE);
	assert_int_equal(e->remote_lid, 7);
	assert_int_equal(e->port, PORT);
	assert_int_equal(e->sgid_index, GID_INDEX);
	assert_int_equal(e->is_global, 1);
	assert_memory_equal(e->gid, attr.ah_attr.grh.dgid.raw, NT_VERBS_GID);
	assert_non_null(find_event(run, NT_VERB_DESTROY_QP, qpn));
}

static void memory_is_summed_and_a_registration_counts_once(void **state)
{
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int) =
		(struct ibv_mr * (*)(struct ibv_pd *, void *, size_t, int))
			dlsym(fake.handle, "ibv_reg_mr");
	struct nt_verbs_totals before = {0}, after;
	struct rdma_run *run;
	struct ibv_mr *mr;

	(void)state;
	run = start();
	(void)nt_attach_verbs(run->h.attach, (uint32_t)getpid(), &before);
	mr = reg(fake.pd, run, 12345, 0);
	(void)reg(fake.pd, run, 1000, 0);
	assert_int_equal(FAKE_VERB(&fake, ibv_dereg_mr)(mr), 0);
	assert_true(nt_attach_verbs(run->h.attach, (uint32_t)getpid(), &after));
	assert_int_equal(after.registrations - before.registrations, 2);
	assert_int_equal(after.registered_bytes - before.registered_bytes, 13345);
	assert_int_equal(after.deregistrations - before.deregistrations, 1);
	assert_int_equal(after.deregistered_bytes - before.deregistered_bytes, 12345);
}

/* Opened before the probes were there: the next verb with the context shows its functions. */
static void a_program_from_before_is_known_by_its_next_verb(void **state)
{
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int) =
		(struct ibv_mr * (*)(struct ibv_pd *, void *, size_t, int))
			dlsym(fake.handle, "ibv_reg_mr");
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	const struct nt_event_verbs *e;
	struct rdma_run run;

	(void)state;
	assert_true(fake_verbs_open(&fake));
	attach_library(&run, &options);
	for (int i = 0; i < 3; i++)
		(void)reg(fake.pd, &run, 4096, 0);
	(void)harness_poll(&run.h);
	assert_int_equal(run.events, 1); /* once */
	e = find_event(&run, NT_VERB_REGISTER, 0);
	assert_non_null(e);
	assert_int_equal(e->post_send, (uintptr_t)fake.context->ops.post_send);
	release(&run);
}

static void the_extended_interface_is_reported(void **state)
{
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	qp = fake_verbs_qp(&fake, 0);
	(void)FAKE_VERB(&fake, ibv_qp_to_qp_ex)(qp);
	(void)harness_poll(&run->h);
	assert_non_null(find_event(run, NT_VERB_EXTENDED, qp->qp_num));
}

/* ---- traffic --------------------------------------------------------------------------------- */

static void every_post_and_completion_is_counted_with_its_queue_pair(void **state)
{
	struct nt_rdma_traffic a, b;
	struct ibv_qp *first, *second;
	struct rdma_run *run;

	(void)state;
	run = start();
	first = fake_verbs_qp(&fake, 0);
	second = fake_verbs_qp(&fake, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		post(first, IBV_WR_SEND, i, 100);
		post(second, i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, i, 10);
		assert_int_equal(poll_until(2), 2);
	}
	a = traffic_of(run, first);
	b = traffic_of(run, second);
	assert_int_equal(a.posts[NT_RDMA_SEND], 1000);
	assert_int_equal(a.bytes[NT_RDMA_SEND], 100000);
	assert_int_equal(a.completions, 1000);
	assert_int_equal(a.timed, 1000);
	assert_int_equal(a.untimed, 0);
	assert_int_equal(b.posts[NT_RDMA_WRITE], 500);
	assert_int_equal(b.posts[NT_RDMA_READ], 500);
	assert_int_equal(b.bytes[NT_RDMA_WRITE], 5000);
	assert_int_equal(b.completions, 1000);
}

static void latency_is_from_the_post_to_the_poll_that_finds_it(void **state)
{
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	qp = fake_verbs_qp(&fake, 0);
	*fake.delay_ns = 5 * NT_MILLISECOND;
	post(qp, IBV_WR_SEND, 1, 8);
	assert_int_equal(poll_until(1), 1);
	*fake.delay_ns = 0;
	post(qp, IBV_WR_SEND, 2, 8);
	assert_int_equal(poll_until(1), 1);
	t = traffic_of(run, qp);
	assert_int_equal(t.timed, 2);
	assert_true(t.most_ns >= 5 * NT_MILLISECOND);
	assert_true(t.least_ns < 5 * NT_MILLISECOND);
	assert_int_equal(t.latency_ns, t.least_ns + t.most_ns);
	assert_int_equal(t.window, run->watch.window);
	/* Another window: its own least and most. */
	run->watch.window++;
	nt_traffic_map_watch(run->h.attach, (uint32_t)getpid(), &run->watch);
	post(qp, IBV_WR_SEND, 3, 8);
	assert_int_equal(poll_until(1), 1);
	t = traffic_of(run, qp);
	assert_int_equal(t.least_ns, t.most_ns);
}

/* Only the last request of a chain is signaled, as NCCL does it; the others have no completion. */
static void a_chain_counts_each_request_and_times_the_signaled_one(void **state)
{
	struct ibv_sge sge[3] = {{.length = 1}, {.length = 20}, {.length = 300}};
	struct ibv_send_wr wr[3] = {{.wr_id = 1,
				     .sg_list = sge,
				     .num_sge = 3,
				     .opcode = IBV_WR_RDMA_WRITE,
				     .next = &wr[1]},
				    {.wr_id = 2,
				     .sg_list = sge,
				     .num_sge = 1,
				     .opcode = IBV_WR_RDMA_WRITE,
				     .next = &wr[2]},
				    {.wr_id = 3,
				     .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				     .send_flags = IBV_SEND_SIGNALED}};
	struct ibv_send_wr *bad;
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	qp = fake_verbs_qp(&fake, 0);
	assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
	assert_int_equal(poll_until(1), 1);
	t = traffic_of(run, qp);
	assert_int_equal(t.posts[NT_RDMA_WRITE], 3);
	assert_int_equal(t.bytes[NT_RDMA_WRITE], 322);
	assert_int_equal(t.timed, 1);
	assert_int_equal(t.cut, 0);
}

static void requests_without_the_flag_are_timed_if_the_queue_pair_signals_all(void **state)
{
	struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_SEND}, *bad;
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	*fake.signals_all = 1;
	qp = fake_verbs_qp(&fake, 1);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(poll_until(1), 1);
	t = traffic_of(run, qp);
	assert_int_equal(t.timed, 1);
}

/* More requests are outstanding than are kept, all with one number: none gets another one's time. */
static void beyond_the_kept_requests_none_is_timed_wrongly(void **state)
{
	const int posted = NT_RDMA_OUTSTANDING + 20;
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	qp = fake_verbs_qp(&fake, 0);
	*fake.delay_ns = 20 * NT_MILLISECOND;
	for (int i = 0; i < posted; i++)
		post(qp, IBV_WR_SEND, 7, 1);
	assert_int_equal(poll_until(posted), posted);
	*fake.delay_ns = 0;
	post(qp, IBV_WR_SEND, 7, 1);
	assert_int_equal(poll_until(1), 1);
	t = traffic_of(run, qp);
	assert_int_equal(t.posts[NT_RDMA_SEND], posted + 1);
	assert_int_equal(t.timed, NT_RDMA_OUTSTANDING + 1);
	assert_int_equal(t.untimed, 20);
	assert_true(t.least_ns < 20 * NT_MILLISECOND);
	assert_true(t.most_ns >= 20 * NT_MILLISECOND);
}

static void errors_are_counted_by_status_and_receives_by_bytes(void **state)
{
	struct ibv_sge sge = {.length = 64};
	struct ibv_recv_wr recv = {.wr_id = 5, .sg_list = &sge, .num_sge = 1}, *bad;
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	qp = fake_verbs_qp(&fake, 0);
	assert_int_equal(ibv_post_recv(qp, &recv, &bad), 0);
	assert_int_equal(poll_until(1), 1);
	*fake.status = IBV_WC_RETRY_EXC_ERR;
	post(qp, IBV_WR_SEND, 1, 1);
	post(qp, IBV_WR_SEND, 2, 1);
	*fake.status = 1000000;
	post(qp, IBV_WR_SEND, 3, 1);
	assert_int_equal(poll_until(3), 3);
	t = traffic_of(run, qp);
	assert_int_equal(t.received, 1);
	assert_int_equal(t.received_bytes, 64);
	assert_int_equal(t.errors[IBV_WC_RETRY_EXC_ERR], 2);
	assert_int_equal(t.errors[NT_RDMA_STATUSES - 1], 1);
	assert_int_equal(t.completions, 0);
}

/* Completions of before are not matched with posts of now. */
static void a_slice_begins_with_no_outstanding_requests(void **state)
{
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	qp = fake_verbs_qp(&fake, 0);
	post(qp, IBV_WR_SEND, 1, 1);
	run->watch.generation++;
	nt_traffic_map_watch(run->h.attach, (uint32_t)getpid(), &run->watch);
	assert_int_equal(poll_until(1), 1);
	t = traffic_of(run, qp);
	assert_int_equal(t.timed, 0);
	assert_int_equal(t.untimed, 1);
	run->watch.is_polled = 0;
	nt_traffic_map_watch(run->h.attach, (uint32_t)getpid(), &run->watch);
	post(qp, IBV_WR_SEND, 2, 1);
	t = traffic_of(run, qp);
	assert_int_equal(t.head, t.tail);
	(void)poll_until(1);
}

/* After a slice what was posted in it is waited for, and nothing else is timed. */
static void after_a_slice_only_its_own_requests_are_timed(void **state)
{
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	qp = fake_verbs_qp(&fake, 0);
	*fake.delay_ns = 20 * NT_MILLISECOND;
	post(qp, IBV_WR_SEND, 1, 1);
	post(qp, IBV_WR_SEND, 2, 1);
	run->watch.is_polled = NT_RDMA_POLLED_REST;
	nt_traffic_map_watch(run->h.attach, (uint32_t)getpid(), &run->watch);
	post(qp, IBV_WR_SEND, 3, 1);
	t = traffic_of(run, qp);
	assert_int_equal(t.head - t.tail, 2);
	assert_int_equal(poll_until(3), 3);
	t = traffic_of(run, qp);
	assert_int_equal(t.timed, 2);
	assert_int_equal(t.untimed, 1);
	assert_true(t.least_ns >= 20 * NT_MILLISECOND);
	assert_int_equal(t.head, t.tail);
}

/* A request that has failed is not waited for. */
static void a_failed_request_is_no_longer_outstanding(void **state)
{
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	qp = fake_verbs_qp(&fake, 0);
	*fake.status = IBV_WC_RETRY_EXC_ERR;
	post(qp, IBV_WR_SEND, 1, 1);
	assert_int_equal(poll_until(1), 1);
	t = traffic_of(run, qp);
	assert_int_equal(t.errors[IBV_WC_RETRY_EXC_ERR], 1);
	assert_int_equal(t.timed, 0);
	assert_int_equal(t.untimed, 0);
	assert_int_equal(t.head, t.tail);
}

/* ---- hostile --------------------------------------------------------------------------------- */

static void a_chain_that_is_a_loop_is_cut_and_counted(void **state)
{
	struct ibv_sge sge = {.length = 1};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	*fake.ignores = 1;
	qp = fake_verbs_qp(&fake, 0);
	wr.next = &wr;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	t = traffic_of(run, qp);
	assert_int_equal(t.posts[NT_RDMA_SEND], NT_RDMA_REQUESTS);
	assert_int_equal(t.cut, 1);
	/* More elements than are read. */
	wr.next = NULL;
	wr.num_sge = 1 << 30;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	t = traffic_of(run, qp);
	assert_int_equal(t.cut, 2);
}

static void garbage_pointers_are_counted_as_unread(void **state)
{
	struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)77, .num_sge = 2}, *bad;
	struct nt_rdma_traffic t;
	struct rdma_run *run;
	struct ibv_qp *qp;

	(void)state;
	run = start();
	*fake.ignores = 1;
	qp = fake_verbs_qp(&fake, 0);
	wr.sg_list = (struct ibv_sge *)0xdead0000;
	wr.next = (struct ibv_send_wr *)0xffffffffffff0000;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	t = traffic_of(run, qp);
	assert_int_equal(t.posts[NT_RDMA_OTHER], 1);
	assert_int_equal(t.unread, 1);
	assert_int_equal(t.cut, 1);
}

/*
 * The agent knows queue pairs by their events, and deletes what the kernel keeps of them. Of one whose
 * event is lost nothing is kept.
 */
static void of_queue_pairs_whose_events_are_lost_nothing_is_kept(void **state)
{
	struct rdma_run *run;
	struct ibv_qp *qp[LOST], *first;
	size_t signaled = 0, with_traffic = 0;

	(void)state;
	run = start();
	*fake.ignores = 1;
	run->events = 0;
	run->skipped = NT_VERB_EXTENDED;
	first = fake_verbs_qp(&fake, 0);
	for (size_t i = 0; i < LOST; i++) {
		for (int n = 0; n < 50; n++)
			(void)FAKE_VERB(&fake, ibv_qp_to_qp_ex)(first);
		assert_non_null(qp[i] = fake_verbs_qp(&fake, 1));
		post(qp[i], IBV_WR_SEND, i, 1);
	}
	(void)harness_poll(&run->h);
	for (size_t i = 0; i < LOST; i++) {
		const bool is_signaled = count_keys(run, NT_RDMA_SIGNALED, qp[i]) > 0;
		const bool has_traffic = count_keys(run, NT_RDMA_TRAFFIC, qp[i]) > 0;

		assert_int_equal(is_signaled,
				 find_event(run, NT_VERB_CREATE_QP, qp[i]->qp_num) != NULL);
		assert_int_equal(has_traffic, find_event(run, NT_VERB_NONE, qp[i]->qp_num) != NULL);
		signaled += is_signaled;
		with_traffic += has_traffic;
	}
	assert_in_range(signaled, 1, LOST - 1);
	assert_in_range(with_traffic, 1, LOST - 1);
	/* The next post tells the agent, once it reads again. */
	for (size_t i = 0; i < LOST; i++) {
		const struct nt_rdma_key key = key_of(qp[i]);

		post(qp[i], IBV_WR_SEND, i, 1);
		with_traffic += traffic_of(run, qp[i]).posts[NT_RDMA_SEND] == 1;
		assert_int_equal(FAKE_VERB(&fake, ibv_destroy_qp)(qp[i]), 0);
		(void)nt_traffic_map_forget(run->h.attach, &key, false);
	}
	assert_int_equal(with_traffic, LOST);
	(void)harness_poll(&run->h);
	run->skipped = NT_VERB_END;
}

static void *poll_a_little(void *data)
{
	struct ibv_wc wc;

	for (int i = 0; i < 100; i++)
		(void)ibv_poll_cq(fake.cq, 1, &wc);
	return data;
}

/* Fewer polls than a thread makes between two updates of its process. */
static void polls_of_threads_that_end_soon_are_counted(void **state)
{
	const uint16_t row = harness_row("poll_cq", (enum nt_library)NT_LIBRARY_RDMA_POLL);
	struct nt_process_counters before = {0}, after = {0};
	struct rdma_run *run;
	pthread_t thread;

	(void)state;
	run = start();
	(void)nt_attach_counters(run->h.attach, (uint32_t)getpid(), &before);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(pthread_create(&thread, NULL, poll_a_little, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	/* A thread is joined before it has ended. */
	for (int i = 0; i < 500 && after.unseen[row] - before.unseen[row] != 5000; i++) {
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		(void)nt_attach_counters(run->h.attach, (uint32_t)getpid(), &after);
	}
	assert_int_equal(after.unseen[row] - before.unseen[row], 5000);
}

/* The table of one process is full: the others are counted, and nothing else suffers. */
static void a_flood_of_queue_pairs_stays_within_the_share_of_its_process(void **state)
{
	struct nt_verbs_totals totals;
	struct rdma_run *run;
	struct ibv_qp **qp = calloc(MANY, sizeof(*qp));
	const struct nt_rdma_watch few = {.pairs_max = FEW};
	size_t with_traffic = 0, refused = 0;
	uint64_t over_cap;

	assert_true(qp && !*state);
	run = start();
	for (size_t i = 0; i < MANY; i++)
		assert_non_null(qp[i] = fake_verbs_qp(&fake, 1));
	*fake.ignores = 1;
	assert_true(nt_attach_verbs(run->h.attach, (uint32_t)getpid(), &totals));
	assert_in_range(count_keys(run, NT_RDMA_SIGNALED, NULL), 1, NT_RDMA_PROCESS_QPS);
	assert_in_range(totals.signaled, 1, NT_RDMA_PROCESS_QPS);
	assert_in_range(totals.signaled_over_cap, MANY - NT_RDMA_PROCESS_QPS, MANY);
	over_cap = totals.over_cap;
	(void)harness_poll(&run->h); /* else the events of the first posts are lost */
	/* Fewer, for the sake of other owners. */
	nt_traffic_map_watch(run->h.attach, (uint32_t)getpid(), &few);
	for (size_t i = 0; i < 2 * FEW; i++) {
		post(qp[i], IBV_WR_SEND, i, 1);
		refused += traffic_of(run, qp[i]).posts[NT_RDMA_SEND] == 0;
	}
	assert_in_range(refused, FEW, FEW + 64);
	nt_traffic_map_watch(run->h.attach, (uint32_t)getpid(), NULL);
	for (size_t i = 0; i < MANY; i++) {
		post(qp[i], IBV_WR_SEND, i, 1);
		with_traffic += traffic_of(run, qp[i]).posts[NT_RDMA_SEND] > 0;
	}
	/* Those of other tests, too. */
	assert_in_range(with_traffic, NT_RDMA_PROCESS_QPS - 64, NT_RDMA_PROCESS_QPS);
	assert_true(nt_attach_verbs(run->h.attach, (uint32_t)getpid(), &totals));
	assert_true(totals.created >= MANY);
	assert_int_equal(totals.over_cap - over_cap, refused + MANY - with_traffic);
	/* A destroyed one leaves its place to another, once. */
	assert_int_equal(FAKE_VERB(&fake, ibv_destroy_qp)(qp[0]), 0);
	qp[0] = fake_verbs_qp(&fake, 1);
	post(qp[0], IBV_WR_SEND, 0, 1);
	assert_int_equal(traffic_of(run, qp[0]).posts[NT_RDMA_SEND], 1);
	post(qp[MANY - 1], IBV_WR_SEND, 0, 1);
	assert_int_equal(traffic_of(run, qp[MANY - 1]).posts[NT_RDMA_SEND], 0);
	for (size_t i = 0; i < MANY; i++) {
		const struct nt_rdma_key key = key_of(qp[i]);

		(void)nt_traffic_map_forget(run->h.attach, &key, false);
		free(qp[i]);
	}
	free(qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_and_the_life_of_its_queue_pairs_are_reported),
		cmocka_unit_test(memory_is_summed_and_a_registration_counts_once),
		cmocka_unit_test(the_extended_interface_is_reported),
		cmocka_unit_test(every_post_and_completion_is_counted_with_its_queue_pair),
		cmocka_unit_test(latency_is_from_the_post_to_the_poll_that_finds_it),
		cmocka_unit_test(a_chain_counts_each_request_and_times_the_signaled_one),
		cmocka_unit_test(requests_without_the_flag_are_timed_if_the_queue_pair_signals_all),
		cmocka_unit_test(beyond_the_kept_requests_none_is_timed_wrongly),
		cmocka_unit_test(errors_are_counted_by_status_and_receives_by_bytes),
		cmocka_unit_test(a_slice_begins_with_no_outstanding_requests),
		cmocka_unit_test(after_a_slice_only_its_own_requests_are_timed),
		cmocka_unit_test(a_failed_request_is_no_longer_outstanding),
		cmocka_unit_test(a_chain_that_is_a_loop_is_cut_and_counted),
		cmocka_unit_test(garbage_pointers_are_counted_as_unread),
		cmocka_unit_test(of_queue_pairs_whose_events_are_lost_nothing_is_kept),
		cmocka_unit_test(polls_of_threads_that_end_soon_are_counted),
		cmocka_unit_test(a_flood_of_queue_pairs_stays_within_the_share_of_its_process),
	};
	const struct CMUnitTest alone[] = {
		cmocka_unit_test(a_program_from_before_is_known_by_its_next_verb),
	};
	static const enum nt_attach_mode modes[] = {NT_ATTACH_SESSION, NT_ATTACH_MULTI,
						    NT_ATTACH_PERF};
	int failed;

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
	failed = cmocka_run_group_tests(alone, NULL, NULL);
	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		mode_now = modes[m];
		if (harness_has_mode(mode_now))
			failed += cmocka_run_group_tests(tests, attach_all, detach_all);
	}
	stub_clean();
	return failed;
}
