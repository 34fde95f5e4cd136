/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Maps operations to their kinds, by which members wait for which. */
#include "engine/frame_builder_impl.h"

enum nt_frame_kind nt_frame_builder_kind(enum nt_op op)
{
	switch (op) {
	case NT_OP_ALL_REDUCE:
	case NT_OP_ALL_GATHER:
	case NT_OP_REDUCE_SCATTER:
	case NT_OP_BARRIER:
		return NT_FRAME_SYNCHRONISING;
	case NT_OP_ALL_TO_ALL:
		return NT_FRAME_ALL_TO_ALL;
	case NT_OP_BROADCAST:
	case NT_OP_REDUCE:
	case NT_OP_GATHER:
	case NT_OP_SCATTER:
		return NT_FRAME_ROOTED;
	case NT_OP_SEND:
	case NT_OP_RECV:
	case NT_OP_SEND_RECV:
	case NT_OP_PUT:
	case NT_OP_SIGNAL:
	case NT_OP_WAIT_SIGNAL:
		return NT_FRAME_POINT_TO_POINT;
	default:
		return NT_FRAME_OTHER;
	}
}
