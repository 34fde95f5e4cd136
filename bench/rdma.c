/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the probes of RDMA add to a call of a provider, of a stand-in for libibverbs: a post, a poll that
 * finds nothing, and one that finds a completion. Beside what other probed calls cost at that time, as an anchor.
 */
#include <stdlib.h>
#include <time.h>

#include "agent/rdma/provider_file.h"
#include "agent/rdma/traffic_map.h"
#include "common/base/parse_number.h"
#include "tests/bpf/harness.h"
#include "tests/rdma/fake_verbs.h"

enum {
	ROUNDS = 7,
	CALLS = 200000,
};

static struct fake_verbs fake;
static struct ibv_qp *qp;

static double cpu_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void post(void)
{
	struct ibv_sge sge = {.length = 4096};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	(void)ibv_post_send(qp, &wr, &bad);
}

static void poll_nothing(void)
{
	struct ibv_wc wc[4];

	(void)ibv_poll_cq(fake.cq, 4, wc);
}

static void post_and_poll(void)
{
	struct ibv_wc wc[4];

	post();
	(void)ibv_poll_cq(fake.cq, 4, wc);
}

static double cost_of(void (*call)(void))
{
	const double begin_ns = cpu_ns();

	for (int i = 0; i < CALLS; i++)
		call();
	return (cpu_ns() - begin_ns) / CALLS;
}

static int ascending(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static double median_of(void (*call)(void), int ignores)
{
	double ns[ROUNDS];

	*fake.ignores = ignores;
	for (int i = 0; i < ROUNDS; i++)
		ns[i] = cost_of(call);
	qsort(ns, ROUNDS, sizeof(ns[0]), ascending);
	return ns[ROUNDS / 2];
}

static void link_traffic(struct nt_attach *attach, const char *symbol, int library, uint64_t offset,
			 int fd, struct nt_rank_probe **ret_probe)
{
	struct nt_rank_probe_sites sites = {.begins = 1, .begin = {{.offset = offset}}};

	sites.row = harness_row(symbol, (enum nt_library)library);
	if (nt_rank_probe_new_at(nt_attach_loader(attach), fd, (uint32_t)getpid(), &sites,
				 ret_probe) < 0)
		abort();
}

int main(void)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	const struct nt_rdma_watch watch = {.generation = 1, .is_polled = 1, .window = 1};
	nt_auto(nt_attach) struct nt_attach *attach = NULL;
	nt_auto(nt_rank_probe) struct nt_rank_probe *posts = NULL, *polls = NULL;
	struct nt_provider_place provider;
	nt_autoclose int fd = -1;
	struct nt_bpf_loader_costs costs;
	double bare[3], probed[3];

	if (!stub_begin() || !fake_verbs_build(&fake) || !fake_verbs_load(&fake) ||
	    !fake_verbs_open(&fake) || nt_attach_new(&options, &attach) < 0)
		return 1;
	qp = fake_verbs_qp(&fake, 0);
	fd = open(fake.provider, O_RDONLY | O_CLOEXEC);
	if (nt_provider_file_read((uint32_t)getpid(), fd, (uintptr_t)fake.context->ops.post_send,
				  (uintptr_t)fake.context->ops.poll_cq, &provider) < 0)
		return 1;
	bare[0] = median_of(post, 1);
	bare[1] = median_of(poll_nothing, 1);
	bare[2] = median_of(post_and_poll, 0);
	link_traffic(attach, "post_send", NT_LIBRARY_RDMA_POST, provider.post_offset, fd, &posts);
	probed[0] = median_of(post, 1);
	link_traffic(attach, "poll_cq", NT_LIBRARY_RDMA_POLL, provider.poll_offset, fd, &polls);
	nt_traffic_map_watch(attach, (uint32_t)getpid(), &watch);
	probed[1] = median_of(poll_nothing, 1);
	probed[2] = median_of(post_and_poll, 0);
	printf("%s mode, ns added to a call\n", nt_attach_mode_name(nt_attach_mode(attach)));
	printf("post_send of one request          %6.0f\n", probed[0] - bare[0]);
	printf("poll_cq that finds nothing        %6.0f\n", probed[1] - bare[1]);
	printf("post_send and poll_cq that finds  %6.0f\n", probed[2] - bare[2]);
	nt_bpf_loader_costs(nt_attach_loader(attach), &costs);
	printf("beside: a counted call %llu, entry and return with an event %llu\n",
	       (unsigned long long)costs.count_ns, (unsigned long long)costs.pair_ns);
	stub_clean();
	return 0;
}
