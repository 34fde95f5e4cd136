/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The deciding loop: bus records in, incidents and pictures out. Where the bus can be shared out it
 * is one of a group: each owns some of the shards, and shows what the others decide. It runs in the thread that calls
 * nt_service_run(); everything else about it is reached through the board and a few requests.
 */
#ifndef NT_AGGREGATOR_SERVICE_H
#define NT_AGGREGATOR_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/store/sink.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "engine/engine.h"
#include "engine/snapshot.h"

struct nt_service_options {
	const char *bus_url;
	const struct nt_bus_security *bus_security; /* NULL: none */
	const char *member; /* our own name in it, the same after a restart; NULL: none */
	const char *address; /* where this aggregator answers others; NULL: unknown */
	/* nt_bus_reader_join(), or in tests another one. NULL: that. */
	int (*join)(const char *url, uint32_t topics, const struct nt_bus_options *options,
		    const struct nt_bus_group *group, struct nt_bus_reader **ret_reader);
	struct nt_engine_options engine;
	const struct nt_sink *sink; /* NULL: none */
	const struct nt_state_store *states; /* NULL: nothing survives a restart */
	uint64_t rewind_ns; /* without a stored state: how far back in the bus to start; 0: all */
	uint64_t save_every_ns; /* 0: 30 s */
	uint64_t heads_every_ns; /* 0: 5 s */
	uint64_t picture_every_ns; /* 0: half a second */
	uint64_t retry_after_ns; /* what bus or store did not take; 0: 5 s */
	const struct nt_signing_policy *signatures; /* borrowed; NULL: off */
	bool shared; /* the bus is shared out among several aggregators */
};

struct nt_service;

/*
 * The board is borrowed and outlives the service, as do the options' strings and interfaces. A state
 * that cannot be read is logged and left behind. What the bus says where it cannot be read; one that
 * cannot be written only costs others the sight of incidents and refused records.
 */
NT_MUST_CHECK int nt_service_new(const struct nt_service_options *options, struct nt_board *board,
				 struct nt_service **ret_service);
void nt_service_free(struct nt_service *service);
NT_DEFINE_AUTO(nt_service, nt_service_free)

/* Until nt_service_stop(); saves the state before it returns, and gives back what it owns. */
NT_MUST_CHECK int nt_service_run(struct nt_service *service);

/* One turn: waits so long for a record, takes what is there, does what is due. For tests too. */
NT_MUST_CHECK int nt_service_turn(struct nt_service *service, int timeout_ms);

/* From any thread and from signal handlers. */
void nt_service_stop(struct nt_service *service);

/*
 * From any thread: the job takes what it does now as normal, as soon as the loop gets to it.
 * -ENOENT where the newest picture has no such job, -EBUSY where too many requests wait.
 */
NT_MUST_CHECK int nt_service_rebaseline(struct nt_service *service, const char *job_id);

/* From any thread: when the loop last went round, of nt_clock_mono_ns(). */
uint64_t nt_service_turned_ns(const struct nt_service *service);

/* From any thread: it has read the bus up to its end once, since it last got something to read. */
bool nt_service_caught_up(const struct nt_service *service);

/* From any thread: how the bus is, for reading and for writing; the worse of the two. */
void nt_service_bus_health(const struct nt_service *service, struct nt_bus_health *ret_health);

#endif
