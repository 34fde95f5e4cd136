/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builds and loads the stand-ins for libibverbs and its provider, as tests/bpf/stub.h does others. */
#ifndef NT_TESTS_RDMA_FAKE_VERBS_H
#define NT_TESTS_RDMA_FAKE_VERBS_H

#include <infiniband/verbs.h>

#include "tests/bpf/stub.h"

struct fake_verbs {
	char library[PATH_MAX + 32], provider[PATH_MAX + 32]; /* paths */
	void *handle, *provider_handle;
	uint64_t *delay_ns;
	int *status, *signals_all, *ignores;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static inline bool fake_verbs_build(struct fake_verbs *v)
{
	char rpath[PATH_MAX + 64];
	/* A frame first, so that a function starts with a push. */
	const char *const provider[] = {"cc",
					"-O1",
					"-g0",
					"-fPIC",
					"-shared",
					"-fno-shrink-wrap",
					"-fcf-protection=none",
					"-fvisibility=hidden",
					"-Wl,--build-id",
					"tests/rdma/fake_provider.c",
					"-o",
					v->provider,
					NULL};
	const char *const library[] = {"cc",
				       "-O1",
				       "-fPIC",
				       "-shared",
				       "-fno-shrink-wrap",
				       "-fcf-protection=none",
				       "-Wl,--version-script=tests/rdma/verbs.map",
				       rpath,
				       "tests/rdma/fake_verbs.c",
				       v->provider,
				       "-o",
				       v->library,
				       NULL};

	(void)snprintf(v->provider, sizeof(v->provider), "%s/libfake-rdmav34.so", stub_dir);
	(void)snprintf(v->library, sizeof(v->library), "%s/libibverbs.so.1", stub_dir);
	(void)snprintf(rpath, sizeof(rpath), "-Wl,-rpath,%s", stub_dir);
	if (access(v->library, R_OK) == 0)
		return true;
	return stub_run(provider) == 0 && stub_run(library) == 0;
}

#define FAKE_VERB(v, name) ((__typeof__(&(name)))dlsym((v)->handle, #name))

/* Opens the device. Probes that are to see that must be attached before. */
static inline bool fake_verbs_open(struct fake_verbs *v)
{
	struct ibv_context *(*open_device)(struct ibv_device *) =
		(struct ibv_context * (*)(struct ibv_device *))
			dlvsym(v->handle, "ibv_open_device", "IBVERBS_1.1");

	if (!open_device)
		return false;
	v->context = open_device(NULL);
	v->pd = FAKE_VERB(v, ibv_alloc_pd)(v->context);
	v->cq = FAKE_VERB(v, ibv_create_cq)(v->context, 16, NULL, NULL, 0);
	return v->context && v->pd && v->cq;
}

static inline bool fake_verbs_load(struct fake_verbs *v)
{
	v->handle = dlopen(v->library, RTLD_NOW | RTLD_LOCAL);
	v->provider_handle = v->handle ? dlopen(v->provider, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!v->provider_handle)
		return false;
	v->delay_ns = dlsym(v->provider_handle, "fake_delay_ns");
	v->status = dlsym(v->provider_handle, "fake_status");
	v->signals_all = dlsym(v->provider_handle, "fake_signals_all");
	v->ignores = dlsym(v->provider_handle, "fake_ignores");
	return v->delay_ns && v->status && v->signals_all && v->ignores;
}

static inline struct ibv_qp *fake_verbs_qp(struct fake_verbs *v, int signals_all)
{
	struct ibv_qp_init_attr attr = {.send_cq = v->cq,
					.recv_cq = v->cq,
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = signals_all};

	return FAKE_VERB(v, ibv_create_qp)(v->pd, &attr);
}

#endif
