/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The deciding loop: bus records in, incidents and snapshots out. On a shared bus it is a member of
 * a consumer group: each member owns some shards and shows the results of the others. It runs in
 * the thread that calls nt_service_run(). Other threads use the board and a few requests.
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

struct nt_event_desk;
struct nt_series_desk;

struct nt_service_options {
	const char *bus_url;
	const struct nt_bus_security *bus_security; /* NULL: none */
	const char *member; /* its static member name, stable across restarts; NULL: none */
	const char *address; /* address of this aggregator for others; NULL: unknown */
	/* NULL: nt_bus_reader_join(); tests may replace it. */
	int (*join)(const char *url, uint32_t topics, const struct nt_bus_options *options,
		    const struct nt_bus_group *group, struct nt_bus_reader **ret_reader);
	struct nt_engine_options engine;
	struct nt_fleet_options fleet; /* max_nodes 0: as the engine's limit */
	const struct nt_sink *sink; /* NULL: none */
	const struct nt_state_store *states; /* NULL: nothing survives a restart */
	uint64_t rewind_ns; /* without a stored state: how far back to start reading; 0: all */
	uint64_t save_every_ns; /* 0: 30 s */
	uint64_t summaries_every_ns; /* 0: 5 s */
	uint64_t snapshot_every_ns; /* 0: half a second */
	uint64_t retry_after_ns; /* delay before bus or store is retried; 0: 5 s */
	const struct nt_signing_policy *signatures; /* borrowed; NULL: off */
	bool shared; /* the bus is shared among several aggregators */
	uint32_t auto_level; /* of the ranks of new incidents; 0: none */
	uint64_t auto_level_ns; /* how long it lasts */
	struct nt_event_desk *event_desk; /* borrowed; NULL: none */
	struct nt_series_desk *series_desk; /* borrowed; NULL: none */
};

struct nt_service;

/*
 * The board is borrowed and outlives the service, as do the options' strings and interfaces. An
 * unreadable state is logged and ignored. Returns the error of the bus if it cannot be read. If it
 * cannot be written, only incidents and refused records are not published.
 */
NT_MUST_CHECK int nt_service_new(const struct nt_service_options *options, struct nt_board *board,
				 struct nt_service **ret_service);
void nt_service_free(struct nt_service *service);
NT_DEFINE_AUTO(nt_service, nt_service_free)

/* Runs until nt_service_stop(); saves the state and releases its shards before it returns. */
NT_MUST_CHECK int nt_service_run(struct nt_service *service);

/*
 * One turn: waits up to timeout_ms for a record, processes records, does what is due. Also for
 * tests.
 */
NT_MUST_CHECK int nt_service_turn(struct nt_service *service, int timeout_ms);

/* From any thread and from signal handlers. */
void nt_service_stop(struct nt_service *service);

/*
 * From any thread: requests that the job's current state is taken as normal. -ENOENT: the newest
 * snapshot has no such job. -EBUSY: too many requests are pending.
 */
NT_MUST_CHECK int nt_service_rebaseline(struct nt_service *service, const char *job_id);

struct nt_level_desk;
struct nt_node_desk;

/* From any thread: the scores of nodes; borrowed. */
struct nt_node_desk *nt_service_node_desk(const struct nt_service *service);

/* From any thread: the requests to agents; borrowed. */
struct nt_level_desk *nt_service_level_desk(const struct nt_service *service);
struct nt_profile_desk;
struct nt_profile_desk *nt_service_profile_desk(const struct nt_service *service);

/* From any thread: time of the last turn, nt_clock_mono_ns(). */
uint64_t nt_service_turned_ns(const struct nt_service *service);

/* From any thread: whether it has reached the end of the bus since its last assignment. */
bool nt_service_caught_up(const struct nt_service *service);

/* From any thread: health of the bus, the worse of reading and writing. */
void nt_service_bus_health(const struct nt_service *service, struct nt_bus_health *ret_health);

#endif
