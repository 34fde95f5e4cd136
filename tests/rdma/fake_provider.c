/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A stand-in for a provider: its functions are static, so only the context leads to them. A request
 * completes fake_delay_ns after its post.
 */
#include <infiniband/verbs.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default"), used))

enum {
	ROOM = 1024,
};

static struct {
	struct ibv_wc wc;
	struct ibv_cq *cq;
	uint64_t due_ns;
} queue[ROOM];
static uint64_t head, tail;

EXPORT uint64_t fake_delay_ns;
EXPORT int fake_status; /* of completions */
EXPORT int fake_signals_all;
EXPORT int fake_ignores; /* posts are not looked at */

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static enum ibv_wc_opcode opcode_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	default:
		return IBV_WC_SEND;
	}
}

static void add(struct ibv_qp *qp, struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_opcode opcode,
		uint32_t bytes)
{
	queue[head % ROOM].wc = (struct ibv_wc){
		.wr_id = wr_id,
		.status = (enum ibv_wc_status)fake_status,
		.opcode = opcode,
		.byte_len = bytes,
		.qp_num = qp->qp_num,
	};
	queue[head % ROOM].cq = cq;
	queue[head % ROOM].due_ns = now_ns() + fake_delay_ns;
	head++;
}

static int __attribute__((noinline))
post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = NULL;
	for (; wr && !fake_ignores; wr = wr->next)
		if (fake_signals_all || wr->send_flags & IBV_SEND_SIGNALED)
			add(qp, qp->send_cq, wr->wr_id, opcode_of(wr->opcode), 0);
	__asm__ volatile("" ::: "rbx");
	return 0;
}

/* A receive completes at once. */
static int __attribute__((noinline))
post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = NULL;
	for (; wr; wr = wr->next)
		add(qp, qp->recv_cq, wr->wr_id, IBV_WC_RECV, wr->sg_list ? wr->sg_list->length : 0);
	return 0;
}

static int __attribute__((noinline)) poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	int n = 0;

	__asm__ volatile("" ::: "rbx");
	while (n < most && tail < head && queue[tail % ROOM].cq == cq &&
	       queue[tail % ROOM].due_ns <= now_ns())
		wc[n++] = queue[tail++ % ROOM].wc;
	return n;
}

EXPORT void fake_provider_fill(struct ibv_context *context)
{
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.poll_cq = poll_cq;
}
