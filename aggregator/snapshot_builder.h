/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws the picture that HTTP threads read from what the engine holds. */
#ifndef NT_AGGREGATOR_SNAPSHOT_BUILDER_H
#define NT_AGGREGATOR_SNAPSHOT_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "engine/engine.h"
#include "engine/snapshot.h"

struct nt_snapshot_builder {
	struct nt_engine *const *engine;
	size_t engines;
	const struct nt_snapshot_job *const *head; /* of jobs that others own */
	size_t heads;
	const struct nt_shortages *shortages; /* beside those of the engines; NULL: none */
};

/*
 * All of them as one: a node that several engines know is one node. Jobs that have not changed since the
 * last picture are shared with it. -ENOMEM.
 */
NT_MUST_CHECK int nt_snapshot_builder_draw_all(const struct nt_snapshot_builder *from,
					       struct nt_snapshot **ret_snapshot);

#endif
