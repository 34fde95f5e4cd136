/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builds the snapshot for HTTP threads from the state of the engines. */
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
	const struct nt_snapshot_job *const *summary; /* of jobs that others own */
	size_t summaries;
	const struct nt_fleet *fleet; /* nodes that send vectors; NULL: none */
	const struct nt_shortages *shortages; /* in addition to the engines'; NULL: none */
};

/*
 * Merges all engines; nodes are merged by name. Jobs unchanged since the last snapshot are shared
 * with it. -ENOMEM.
 */
NT_MUST_CHECK int nt_snapshot_builder_build(const struct nt_snapshot_builder *from,
					    struct nt_snapshot **ret_snapshot);

#endif
