/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows of libibverbs (bpf/verbs.bpf.h), and of the direct interface of libmlx5, whose queues no probe
 * follows. The traffic rows have no symbol: a provider's functions are static, and their addresses
 * come from events of the others (agent/rdma/).
 */
#include "agent/probes/probe_impl.h"

#define VERB(name, verb_)                                                                          \
	{                                                                                          \
		.symbol = name, .library = (enum nt_library)NT_LIBRARY_VERBS,                      \
		.subject = NT_SUBJECT_COMM, .role = NT_ROLE_VERB, .op = NT_OP_UNKNOWN,             \
		.returns = true, .verb = (verb_), NT_NO_COUNT, NT_NO_COMM, NT_NO_STREAM,           \
		NT_NO_DATA, NT_NO_MAKE, NT_NO_DEVICE, NT_NO_DEREF                                  \
	}

#define TRAFFIC(name, library_, polls)                                                             \
	{                                                                                          \
		.symbol = name, .library = (enum nt_library)(library_),                            \
		.subject = NT_SUBJECT_RDMA, .role = NT_ROLE_TRAFFIC, .op = NT_OP_UNKNOWN,          \
		.returns = (polls), .hot = true, .traffic = true, NT_NO_COUNT, NT_NO_COMM,         \
		NT_NO_STREAM, NT_NO_DATA, NT_NO_MAKE, NT_NO_DEVICE, NT_NO_DEREF                    \
	}

static const struct nt_probe rows[] = {
	VERB("ibv_open_device", NT_VERB_OPEN),
	VERB("verbs_set_ops", NT_VERB_SET_OPS),
	VERB("ibv_create_cq", NT_VERB_CREATE_CQ),
	VERB("ibv_create_qp", NT_VERB_CREATE_QP),
	VERB("ibv_modify_qp", NT_VERB_MODIFY_QP),
	VERB("ibv_destroy_qp", NT_VERB_DESTROY_QP),
	VERB("ibv_reg_mr", NT_VERB_REGISTER),
	VERB("ibv_reg_mr_iova2", NT_VERB_REGISTER),
	VERB("ibv_reg_dmabuf_mr", NT_VERB_REGISTER),
	VERB("ibv_dereg_mr", NT_VERB_DEREGISTER),
	VERB("ibv_qp_to_qp_ex", NT_VERB_EXTENDED),
	VERB("mlx5dv_create_qp", NT_VERB_DIRECT),
	VERB("mlx5dv_devx_obj_create", NT_VERB_DIRECT),
	TRAFFIC("post_send", NT_LIBRARY_RDMA_POST, false),
	TRAFFIC("poll_cq", NT_LIBRARY_RDMA_POLL, true),
};

const struct nt_probe_piece nt_probe_verbs = NT_PIECE(rows);
