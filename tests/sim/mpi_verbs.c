/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A ring of ranks over a real MPI, with RDMA between neighbours: in each step some work of the host, a
 * few receives from the left neighbour and as many requests by ibv_post_send to the right one, then a
 * blocking MPI_Allreduce. A `loader` fault delays the receives, so the left neighbour's requests
 * take longer.
 *
 *	mpirun -np 2 mpi_verbs --verbs libibverbs.so.1 --faults FILE
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/fault.h"
#include "tests/sim/job.h"

enum {
	PORT = 1,
	REQUESTS_MAX = 64,
	BYTES_MAX = 1 << 20,
};

struct options {
	double seconds, compute_ms, bytes, requests, gid_index, settle_ms;
	const char *faults, *verbs;
};

/* What a neighbour needs to connect. */
struct address {
	uint32_t from, to; /* numbers of the queue pairs with the left and the right neighbour */
	union ibv_gid gid;
};

struct job {
	struct options opt;
	int rank, size;
	uint64_t steps, start_ns;
	void *library, *memory;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *from, *to;
};

static int usage(void)
{
	(void)fprintf(
		stderr,
		"usage: mpi_verbs [options]\n"
		"  --seconds S      end after S seconds (default 10)\n"
		"  --compute-ms MS  work of a step (default 10)\n"
		"  --bytes N        bytes of a request (default 4096)\n"
		"  --requests N     requests of a step (default 4)\n"
		"  --settle-ms MS   from loading the library to its first call (default 2000)\n"
		"  --gid-index N    of the port's address (default 1)\n"
		"  --verbs FILE     the library (default libibverbs.so.1)\n"
		"  --faults FILE    read once a step: tests/sim/fault.h\n");
	return 2;
}

static int parse(int argc, char **argv, struct options *ret_opt)
{
	static const struct option known[] = {
		{"seconds", required_argument, NULL, 's'},
		{"compute-ms", required_argument, NULL, 'c'},
		{"bytes", required_argument, NULL, 'b'},
		{"requests", required_argument, NULL, 'r'},
		{"gid-index", required_argument, NULL, 'g'},
		{"settle-ms", required_argument, NULL, 'w'},
		{"verbs", required_argument, NULL, 'v'},
		{"faults", required_argument, NULL, 'f'},
		{"out", required_argument, NULL, 'o'},
		{0},
	};
	struct options opt = {.seconds = 10,
			      .compute_ms = 10,
			      .bytes = 4096,
			      .requests = 4,
			      .gid_index = 1,
			      .settle_ms = 2000,
			      .verbs = "libibverbs.so.1"};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		double *number = c == 's'   ? &opt.seconds
				 : c == 'c' ? &opt.compute_ms
				 : c == 'b' ? &opt.bytes
				 : c == 'r' ? &opt.requests
				 : c == 'g' ? &opt.gid_index
				 : c == 'w' ? &opt.settle_ms
					    : NULL;

		if (number && sim_number(optarg, number) < 0)
			return -EINVAL;
		if (c == 'f')
			opt.faults = optarg;
		else if (c == 'v')
			opt.verbs = optarg;
		else if (!number && c != 'o') /* its counts are not compared */
			return -EINVAL;
	}
	if (optind != argc || opt.bytes < 1 || opt.bytes > BYTES_MAX || opt.requests < 1 ||
	    opt.requests > REQUESTS_MAX)
		return -EINVAL;
	*ret_opt = opt;
	return 0;
}

/* ---- the device ------------------------------------------------------------------------------ */

#define VERB(job, name) ((__typeof__(&(name)))dlsym((job)->library, #name))

static int open_device(struct job *job)
{
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int);
	struct ibv_device **list;
	int count = 0;

	job->library = dlopen(job->opt.verbs, RTLD_NOW | RTLD_LOCAL);
	if (!job->library)
		return -ENOENT;
	/* A program whose connections are made at once, in the first job of a node, is not visible. */
	sim_sleep_ns((uint64_t)(job->opt.settle_ms * 1e6));
	reg = (struct ibv_mr * (*)(struct ibv_pd *, void *, size_t, int))
		dlsym(job->library, "ibv_reg_mr");
	list = VERB(job, ibv_get_device_list)(&count);
	if (!list || count < 1)
		return -ENODEV;
	job->context = VERB(job, ibv_open_device)(list[0]);
	VERB(job, ibv_free_device_list)(list);
	if (!job->context)
		return -ENODEV;
	job->pd = VERB(job, ibv_alloc_pd)(job->context);
	job->cq = VERB(job, ibv_create_cq)(job->context, 4 * REQUESTS_MAX, NULL, NULL, 0);
	if (!job->pd || !job->cq)
		return -ENOMEM;
	job->mr = reg(job->pd, job->memory, BYTES_MAX, IBV_ACCESS_LOCAL_WRITE);
	return job->mr ? 0 : -ENOMEM;
}

static struct ibv_qp *create(const struct job *job)
{
	struct ibv_qp_init_attr attr = {.send_cq = job->cq,
					.recv_cq = job->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = REQUESTS_MAX,
						.max_recv_wr = REQUESTS_MAX,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	return VERB(job, ibv_create_qp)(job->pd, &attr);
}

static int connect_to(const struct job *job, struct ibv_qp *qp, uint32_t number,
		      const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
	int r = VERB(job, ibv_modify_qp)(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = number,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 1,
				    .ah_attr = {.is_global = 1,
						.port_num = PORT,
						.grh = {.dgid = *gid,
							.sgid_index = (uint8_t)job->opt.gid_index,
							.hop_limit = 1}}};
	r = r ? r
	      : VERB(job, ibv_modify_qp)(qp, &attr,
					 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7, /* for ever */
				    .max_rd_atomic = 1};
	r = r ? r
	      : VERB(job, ibv_modify_qp)(qp, &attr,
					 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						 IBV_QP_MAX_QP_RD_ATOMIC);
	return r ? -EIO : 0;
}

static int connect_ring(struct job *job)
{
	struct address own, *all = calloc((size_t)job->size, sizeof(*all));
	const struct address *left, *right;
	int r;

	job->from = create(job);
	job->to = create(job);
	if (!all || !job->from || !job->to ||
	    VERB(job, ibv_query_gid)(job->context, PORT, (int)job->opt.gid_index, &own.gid)) {
		free(all);
		return -EIO;
	}
	own.from = job->from->qp_num;
	own.to = job->to->qp_num;
	(void)MPI_Allgather(&own, sizeof(own), MPI_BYTE, all, sizeof(own), MPI_BYTE,
			    MPI_COMM_WORLD);
	left = &all[(job->rank + job->size - 1) % job->size];
	right = &all[(job->rank + 1) % job->size];
	r = connect_to(job, job->from, left->to, &left->gid);
	r = r ? r : connect_to(job, job->to, right->from, &right->gid);
	free(all);
	return r;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int post_all(const struct job *job, bool receives)
{
	struct ibv_sge sge = {.addr = (uintptr_t)job->memory,
			      .length = (uint32_t)job->opt.bytes,
			      .lkey = job->mr->lkey};
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;

	for (uint64_t i = 0; i < (uint64_t)job->opt.requests; i++) {
		send.wr_id = receive.wr_id = i;
		if (receives ? ibv_post_recv(job->from, &receive, &bad_receive)
			     : ibv_post_send(job->to, &send, &bad_send))
			return -EIO;
	}
	return 0;
}

static int await_all(const struct job *job)
{
	int left = 2 * (int)job->opt.requests, found;
	struct ibv_wc wc[4];

	while (left > 0) {
		found = ibv_poll_cq(job->cq, 4, wc);
		if (found < 0)
			return -EIO;
		left -= found; /* failed ones, too: the stand-in recovers from them */
		if (!found)
			sim_sleep_ns(100000);
	}
	return 0;
}

/* 1: go on. The ranks agree on the end in the reduction. */
static int step(struct job *job)
{
	double ends, sum = 0;
	struct sim_fault fault;
	int r;

	sim_fault_read(job->opt.faults, (uint32_t)job->rank, &fault);
	sim_sleep_ns((uint64_t)(job->opt.compute_ms * 1e6 * fault.compute) + fault.loader_ns);
	r = post_all(job, true);
	r = r ? r : post_all(job, false);
	r = r ? r : await_all(job);
	if (r)
		return r;
	job->steps++;
	ends = fault.stop || (double)(sim_now_ns() - job->start_ns) >= job->opt.seconds * 1e9;
	(void)MPI_Allreduce(&ends, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return sum <= 0;
}

static int run(struct job *job)
{
	uint64_t shown_ns = job->start_ns, shown_steps = 0;
	int r;

	while ((r = step(job)) > 0) {
		uint64_t now_ns = sim_now_ns();

		if (job->rank != 0 || now_ns - shown_ns < 1000000000U)
			continue;
		printf("step %llu, %.2f ms a step\n", (unsigned long long)job->steps,
		       (double)(now_ns - shown_ns) / 1e6 / (double)(job->steps - shown_steps));
		(void)fflush(stdout);
		shown_ns = now_ns;
		shown_steps = job->steps;
	}
	return r;
}

int main(int argc, char **argv)
{
	struct job job = {0};
	int r;

	if (parse(argc, argv, &job.opt) < 0)
		return usage();
	(void)MPI_Init(&argc, &argv);
	(void)MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	(void)MPI_Comm_size(MPI_COMM_WORLD, &job.size);
	job.memory = calloc(1, BYTES_MAX);
	r = job.memory ? open_device(&job) : -ENOMEM;
	r = r ? r : connect_ring(&job);
	job.start_ns = sim_now_ns();
	r = r ? r : run(&job);
	if (r < 0) {
		(void)fprintf(stderr, "mpi_verbs: rank %d: %s\n", job.rank, strerrordesc_np(-r));
		(void)MPI_Abort(MPI_COMM_WORLD, 1);
	}
	(void)MPI_Finalize();
	return 0;
}
