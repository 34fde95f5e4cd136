/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The GPUs of a node as a few metrics of the node: sums, means, and the worst card. */
#ifndef NT_AGENT_GPU_GPU_METRICS_H
#define NT_AGENT_GPU_GPU_METRICS_H

#include "agent/gpu/gpu_card.h"
#include "proto/wire.h"

enum {
	NT_GPU_METRICS = 26,
};

/*
 * Fills in what is known of the cards; names are static. cards may be NULL. Returns the number of
 * metrics, at most NT_GPU_METRICS.
 */
size_t nt_gpu_metrics(const struct nt_gpu_cards *cards,
		      struct nt_metric_value ret_metric[NT_GPU_METRICS]);

#endif
