/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Alerts about NeuTracer itself: the bus is down, or no agent of the cluster or of a job has sent
 * anything for a time, so that nothing is detected. They are incidents of class "unobserved" that
 * accuse nobody. A cause that explains others (bus, then cluster, then jobs) is the only one raised.
 * All functions but nt_dead_man_left_out() are called by one thread.
 */
#ifndef NT_AGGREGATOR_DEAD_MAN_H
#define NT_AGGREGATOR_DEAD_MAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "engine/snapshot.h"
#include "proto/wire.h"

#define NT_DEAD_MAN_CLASS "unobserved"

enum {
	NT_DEAD_MAN_TARGETS = 64, /* further jobs are not looked at */
	NT_DEAD_MAN_RESERVED = 2, /* of these, for the bus and the cluster */
};

struct nt_dead_man_options {
	uint64_t after_ns; /* without data, until an alert fires */
	/* Takes an incident that fires or is resolved. < 0: it is offered again. */
	int (*put)(void *data, const struct nt_wire_incident *incident);
	void *data;
};

struct nt_dead_man_view {
	const char *bus_problem; /* NULL: the bus is reachable */
	bool is_behind; /* earlier messages are still read: silence means nothing */
	const struct nt_snapshot *snapshot; /* NULL: none yet */
};

struct nt_dead_man;

NT_MUST_CHECK int nt_dead_man_new(const struct nt_dead_man_options *options,
				  struct nt_dead_man **ret_dead_man);
void nt_dead_man_free(struct nt_dead_man *dead_man);
NT_DEFINE_AUTO(nt_dead_man, nt_dead_man_free)

/* One of put() that fired before a restart, and is still open. */
void nt_dead_man_adopt(struct nt_dead_man *dead_man, const struct nt_wire_incident *incident);

/* Every few seconds. */
void nt_dead_man_look(struct nt_dead_man *dead_man, const struct nt_dead_man_view *view,
		      uint64_t mono_ns, uint64_t real_ns);

/* Silent jobs over the cap in the last look. From any thread. */
size_t nt_dead_man_left_out(const struct nt_dead_man *dead_man);

#endif
