/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What another profiler plugin gets: next_plugin.c exports it as next_plugin_notes. */
#ifndef NT_TEST_NEXT_PLUGIN_H
#define NT_TEST_NEXT_PLUGIN_H

#include "plugin/nccl/profiler_abi.h"

enum {
	NEXT_PLUGIN_HANDLES = 64,
};

struct next_plugin_notes {
	/* Set by the test. */
	int wanted; /* its mask */
	int result; /* of all calls but init() */
	int declines; /* its handles are NULL */
	size_t event_bytes; /* of `event` that are copied */
	/* Got. */
	int inits, starts, stops, states, finals;
	int ranks, rank, state;
	uint64_t id;
	const char *name;
	int *mask;
	void *context, *parent, *last, *args;
	unsigned char event[NT_NCCL_DESCRIPTION_BYTES];
	char handle[NEXT_PLUGIN_HANDLES];
};

#endif
