/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A desk of levels on a spool in a scratch directory, with its producer. */
#ifndef NT_TESTS_UNIT_AGGREGATOR_LEVEL_DESK_H
#define NT_TESTS_UNIT_AGGREGATOR_LEVEL_DESK_H

#include <stdio.h>

#include "aggregator/group/level_desk.h"
#include "tests/unit/scratch.h"

#define DESK_RETRY_NS (200 * NT_MILLISECOND)

struct desk_scene {
	char url[SCRATCH_BYTES + 16];
	struct nt_bus_producer *bus_producer;
	struct nt_level_desk *desk;
};

static inline int desk_scene_open(struct desk_scene *scene, const char *scratch)
{
	struct nt_level_desk_options options = {
		.bus_url = scene->url,
		.auto_level = 1,
		.auto_ns = NT_MINUTE,
		.retry_ns = DESK_RETRY_NS,
	};
	int r;

	(void)snprintf(scene->url, sizeof(scene->url), "spool:%s/spool", scratch);
	r = nt_bus_producer_open(scene->url, NULL, 1, &scene->bus_producer);
	return r < 0 ? r : nt_level_desk_open(&options, &scene->desk);
}

static inline void desk_scene_close(struct desk_scene *scene)
{
	nt_level_desk_close(scene->desk);
	nt_bus_producer_close(scene->bus_producer);
	*scene = (struct desk_scene){0};
}

#endif
