/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Descriptors and states as older versions of the interface have them. */
#ifndef NT_SIM_NCCL_PROFILER_ADAPTER_H
#define NT_SIM_NCCL_PROFILER_ADAPTER_H

#include "tests/sim/lib/nccl/profiler_plugin.h"

union sim_profiler_descr {
	struct sim_descr_v1 v1;
	struct sim_descr_v2 v2;
	struct sim_descr_v3 v3;
	struct sim_descr_v4 v4;
	struct sim_descr_v7 v7;
};

/* False: that version has no such event, and the plugin is not called. */
bool sim_profiler_adapt(int version, const struct sim_descr_v7 *from,
			const struct sim_profiler_comm_info *info, union sim_profiler_descr *ret);
/* False: that version has no such state. */
bool sim_profiler_has_state(int version, enum sim_profile_state state);
/* Bits that the adapter of the version takes off the mask once init has returned. */
int sim_profiler_unknown_bits(int version);

#endif
