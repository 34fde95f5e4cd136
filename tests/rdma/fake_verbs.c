/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A stand-in for libibverbs on machines without RDMA, with the ABI of the real one: symbols of two
 * versions, inline functions that call through the context, and a provider in another file.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

/* Objects that a program never destroys are no leaks of a test that a sanitizer runs. */
extern void __lsan_ignore_object(const void *object) __attribute__((weak));

static void *make_object(size_t size)
{
	void *object = calloc(1, size);

	if (object && __lsan_ignore_object)
		__lsan_ignore_object(object);
	return object;
}

/* tests/rdma/fake_provider.c */
void fake_provider_fill(struct ibv_context *context);
uint32_t fake_provider_number(void);
void fake_provider_connect(uint32_t number, uint32_t peer);

static struct ibv_device device = {.name = "fake0"};

#define EXPORT __attribute__((visibility("default"), noinline, used))

/* The old version must not be probed. */
EXPORT struct ibv_context *old_open_device(struct ibv_device *ignored)
{
	__asm__ volatile("" ::"r"(ignored) : "rbx");
	return NULL;
}

EXPORT struct ibv_context *new_open_device(struct ibv_device *ignored)
{
	struct verbs_context *made = make_object(sizeof(*made));

	if (!made)
		return NULL;
	(void)ignored;
	made->context.device = &device;
	fake_provider_fill(&made->context);
	return &made->context;
}

__asm__(".symver old_open_device,ibv_open_device@IBVERBS_1.0");
__asm__(".symver new_open_device,ibv_open_device@@IBVERBS_1.1");

EXPORT struct ibv_device **ibv_get_device_list(int *ret_count)
{
	struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));

	if (!list)
		return NULL;
	list[0] = &device;
	if (ret_count)
		*ret_count = 1;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free((void *)list);
}

/* fe80::1, of every process: they are on one node. */
EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	(void)context, (void)port, (void)index;
	*gid = (union ibv_gid){.raw = {[0] = 0xfe, [1] = 0x80, [15] = 1}};
	return 0;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = make_object(sizeof(*pd));

	if (pd)
		pd->context = context;
	return pd;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
				    struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = make_object(sizeof(*cq));

	(void)entries, (void)vector;
	if (!cq)
		return NULL;
	cq->context = context;
	cq->channel = channel;
	cq->cq_context = cq_context;
	return cq;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = make_object(sizeof(*qp));

	if (!qp)
		return NULL;
	qp->context = pd->context;
	qp->pd = pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->qp_type = attr->qp_type;
	qp->qp_num = fake_provider_number();
	return qp;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	if (mask & IBV_QP_DEST_QPN)
		fake_provider_connect(qp->qp_num, attr->dest_qp_num);
	return 0;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	free(qp);
	return 0;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length,
				       uint64_t iova, unsigned int access)
{
	struct ibv_mr *mr = make_object(sizeof(*mr));

	(void)iova, (void)access;
	if (!mr)
		return NULL;
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = address;
	mr->length = length;
	return mr;
}

/* One verb that calls another: one registration. */
EXPORT struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *address, size_t length, int access)
{
	struct ibv_mr *mr =
		ibv_reg_mr_iova2(pd, address, length, (uintptr_t)address, (unsigned int)access);

	__asm__ volatile("" ::: "rbx");
	return mr;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	__asm__ volatile("" ::"r"(qp) : "rbx");
	return NULL;
}
