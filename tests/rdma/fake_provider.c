/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A stand-in for a provider: its functions are static, so only the context leads to them. A request
 * completes fake_delay_ns after its post.
 *
 * With FAKE_WIRE=FILE processes that share the file are connected: a request completes once its peer
 * has posted a receive for it, and a receive once its peer has posted a request. No bytes are moved.
 * The first four bytes of the file are the status of requests that complete.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default"), used))

enum {
	ROOM = 1024,
	FIRST_NUMBER = 0x100, /* of queue pairs */
	WIRE_PAIRS = 64,
};

static struct {
	struct ibv_wc wc;
	struct ibv_cq *cq;
	uint64_t due_ns;
	uint64_t order; /* of the request or receive in its queue pair, from 1 */
} queue[ROOM];

/* Of all processes that share the file. */
static struct wire {
	_Atomic uint32_t status;
	_Atomic uint32_t numbers; /* so far */
	struct {
		_Atomic uint32_t peer; /* number; 0: none */
		_Atomic uint64_t requests, receives; /* posted */
	} pair[WIRE_PAIRS];
} own_wire, *wire;
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

static struct wire *wire_of_process(void)
{
	const char *path = getenv("FAKE_WIRE");
	int fd;

	if (wire)
		return wire;
	wire = &own_wire;
	fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd >= 0 && ftruncate(fd, sizeof(*wire)) == 0) {
		void *shared = mmap(NULL, sizeof(*wire), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		wire = shared == MAP_FAILED ? wire : shared;
	}
	if (fd >= 0)
		(void)close(fd);
	return wire;
}

static uint32_t index_of(uint32_t number)
{
	return (number - FIRST_NUMBER) % WIRE_PAIRS;
}

/* Unique among the processes that share the file. */
EXPORT uint32_t fake_provider_number(void)
{
	const uint32_t number = FIRST_NUMBER + atomic_fetch_add(&wire_of_process()->numbers, 1);

	atomic_store(&wire->pair[index_of(number)].peer, 0);
	return number;
}

EXPORT void fake_provider_connect(uint32_t number, uint32_t peer)
{
	if (wire_of_process() != &own_wire)
		atomic_store(&wire->pair[index_of(number)].peer, peer);
}

/* What its peer does for it has been done. */
static int is_due(uint64_t at)
{
	const struct ibv_wc *wc = &queue[at % ROOM].wc;
	const uint32_t peer = atomic_load(&wire->pair[index_of(wc->qp_num)].peer);
	const uint64_t order = queue[at % ROOM].order;

	if (queue[at % ROOM].due_ns > now_ns())
		return 0;
	if (!peer)
		return 1;
	return order <= (wc->opcode == IBV_WC_RECV
				 ? atomic_load(&wire->pair[index_of(peer)].requests)
				 : atomic_load(&wire->pair[index_of(peer)].receives));
}

static void add(struct ibv_qp *qp, struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_opcode opcode,
		uint32_t bytes)
{
	_Atomic uint64_t *const posted = opcode == IBV_WC_RECV
						 ? &wire->pair[index_of(qp->qp_num)].receives
						 : &wire->pair[index_of(qp->qp_num)].requests;

	queue[head % ROOM].wc = (struct ibv_wc){
		.wr_id = wr_id,
		.status = (enum ibv_wc_status)fake_status,
		.opcode = opcode,
		.byte_len = bytes,
		.qp_num = qp->qp_num,
	};
	queue[head % ROOM].cq = cq;
	queue[head % ROOM].due_ns = now_ns() + fake_delay_ns;
	queue[head % ROOM].order = atomic_fetch_add(posted, 1) + 1;
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

static void take(struct ibv_wc *ret_wc)
{
	const uint32_t status = atomic_load(&wire->status);

	*ret_wc = queue[tail++ % ROOM].wc;
	if (status && ret_wc->opcode != IBV_WC_RECV)
		ret_wc->status = (enum ibv_wc_status)status;
}

static int __attribute__((noinline)) poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	int n = 0;

	__asm__ volatile("" ::: "rbx");
	while (n < most && tail < head && queue[tail % ROOM].cq == cq && is_due(tail))
		take(&wc[n++]);
	return n;
}

EXPORT void fake_provider_fill(struct ibv_context *context)
{
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.poll_cq = poll_cq;
}
