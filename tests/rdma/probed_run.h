/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stand-in for libibverbs in this process, with its probes attached: for tests/bpf/test_rdma.c. */
#ifndef NT_TESTS_RDMA_PROBED_RUN_H
#define NT_TESTS_RDMA_PROBED_RUN_H

#include "agent/rdma/provider_file.h"
#include "agent/rdma/traffic_map.h"
#include "tests/bpf/harness.h"
#include "tests/rdma/fake_verbs.h"

enum {
	VERBS_MAX = 4096,
	PORT = 1,
	GID_INDEX = 3,
	REMOTE = 0x4711,
	MANY = 100000,
	FEW = 200,
	LOST = 600, /* queue pairs, some of whose events are lost */
};

static struct fake_verbs fake;
static enum nt_attach_mode mode_now;

struct rdma_run {
	struct harness h;
	struct nt_event_verbs *event;
	size_t events;
	uint32_t skipped; /* enum nt_verb whose events are not kept; NT_VERB_END: none */
	struct nt_rank_probe *post, *poll;
	struct nt_provider_place provider;
	struct nt_rdma_watch watch;
};

static void keep_verbs(void *data, const struct nt_event_verbs *verbs)
{
	struct rdma_run *run = data;

	if (verbs->h.pid == (uint32_t)getpid() && run->events < VERBS_MAX &&
	    verbs->verb != run->skipped)
		run->event[run->events++] = *verbs;
}

static struct nt_rdma_key key_of(const struct ibv_qp *qp)
{
	return (struct nt_rdma_key){
		.pid = (uint32_t)getpid(), .qpn = qp->qp_num, .context = (uintptr_t)qp->context};
}

static struct nt_rdma_traffic traffic_of(const struct rdma_run *run, const struct ibv_qp *qp)
{
	const struct nt_rdma_key key = key_of(qp);
	struct nt_rdma_traffic traffic = {0};

	(void)nt_traffic_map_read(run->h.attach, &key, &traffic);
	return traffic;
}

/* Whether the kernel's table has the queue pair; NULL: how many of this program it has. */
static size_t count_keys(const struct rdma_run *run, enum nt_rdma_table table,
			 const struct ibv_qp *qp)
{
	const struct nt_rdma_key wanted = qp ? key_of(qp) : (struct nt_rdma_key){0};
	struct nt_rdma_key key, at;
	size_t keys = 0;
	bool has_next = nt_traffic_map_next(run->h.attach, table, NULL, &key);

	for (; has_next; has_next = nt_traffic_map_next(run->h.attach, table, &at, &key)) {
		at = key;
		keys += qp ? memcmp(&key, &wanted, sizeof(key)) == 0
			   : key.pid == (uint32_t)getpid();
	}
	return keys;
}

/* The traffic of this program alone is observed, at the addresses that its context has. */
static void attach_traffic(struct rdma_run *run)
{
	nt_autoclose int fd = open(fake.provider, O_RDONLY | O_CLOEXEC);
	struct nt_rank_probe_sites sites = {.begins = 1};
	const struct nt_bpf_loader *loader = nt_attach_loader(run->h.attach);

	assert_int_equal(nt_provider_file_read(
				 (uint32_t)getpid(), fd, (uintptr_t)fake.context->ops.post_send,
				 (uintptr_t)fake.context->ops.poll_cq, &run->provider),
			 0);
	sites.row = harness_row("post_send", (enum nt_library)NT_LIBRARY_RDMA_POST);
	sites.begin[0].offset = run->provider.post_offset;
	assert_int_equal(nt_rank_probe_new_at(loader, fd, (uint32_t)getpid(), &sites, &run->post),
			 0);
	sites.row = harness_row("poll_cq", (enum nt_library)NT_LIBRARY_RDMA_POLL);
	sites.begin[0].offset = run->provider.poll_offset;
	assert_int_equal(nt_rank_probe_new_at(loader, fd, (uint32_t)getpid(), &sites, &run->poll),
			 0);
	run->watch = (struct nt_rdma_watch){.generation = 1, .is_polled = 1, .window = 1};
	nt_traffic_map_watch(run->h.attach, (uint32_t)getpid(), &run->watch);
}

/* Detaching takes seconds by perf links: all tests of a mode share what is attached. */
static struct rdma_run shared;

static void attach_library(struct rdma_run *run, struct nt_attach_options *options)
{
	struct stat st;

	*run = (struct rdma_run){.event = calloc(VERBS_MAX, sizeof(*run->event)),
				 .skipped = NT_VERB_END};
	assert_non_null(run->event);
	options->verbs = keep_verbs;
	options->data = run;
	harness_init(&run->h, options);
	assert_int_equal(stat(fake.library, &st), 0);
	assert_in_range(attach_file(run->h.attach, fake.library, st.st_dev, st.st_ino,
				    (enum nt_library)NT_LIBRARY_VERBS, 1U << NT_SUBJECT_COMM),
			8, 16);
}

static void release(struct rdma_run *run)
{
	nt_rank_probe_free(run->post);
	nt_rank_probe_free(run->poll);
	harness_release(&run->h);
	free(run->event);
}

static int attach_all(void **state)
{
	struct nt_attach_options options = harness_options(mode_now);

	(void)state;
	attach_library(&shared, &options);
	assert_true(fake_verbs_open(&fake));
	attach_traffic(&shared);
	return 0;
}

static int detach_all(void **state)
{
	(void)state;
	release(&shared);
	return 0;
}

static struct rdma_run *start(void)
{
	(void)harness_poll(&shared.h);
	*fake.delay_ns = 0;
	*fake.status = *fake.signals_all = *fake.ignores = 0;
	shared.watch.generation++;
	shared.watch.is_polled = 1;
	nt_traffic_map_watch(shared.h.attach, (uint32_t)getpid(), &shared.watch);
	return &shared;
}

static const struct nt_event_verbs *find_event(const struct rdma_run *run, enum nt_verb verb,
					       uint32_t qpn)
{
	for (size_t i = run->events; i-- > 0;)
		if (run->event[i].verb == (uint32_t)verb && (!qpn || run->event[i].qpn == qpn))
			return &run->event[i];
	return NULL;
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = {.length = bytes};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static int poll_until(int wanted)
{
	const uint64_t until_ns = nt_clock_mono_ns() + 10 * NT_SECOND;
	struct ibv_wc wc[4];
	int n = 0;

	while (n < wanted && nt_clock_mono_ns() < until_ns)
		n += ibv_poll_cq(fake.cq, 4, wc);
	return n;
}

#endif
