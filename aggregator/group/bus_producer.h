/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bus producer: publishes incidents, states for the next owner of a shard, and refused records.
 * If the bus cannot be written, only these are lost. Used by the deciding thread.
 */
#ifndef NT_AGGREGATOR_GROUP_BUS_PRODUCER_H
#define NT_AGGREGATOR_GROUP_BUS_PRODUCER_H

#include <stdint.h>

#include "aggregator/group/state_log.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "proto/wire.h"

enum {
	/* refused records published; the rest is only counted */
	NT_BUS_PRODUCER_REFUSED_A_SECOND = 10,
	NT_BUS_PRODUCER_MAX_KEYS = 65536, /* keys with a remembered sequence number */
};

struct nt_bus_producer_counters {
	uint64_t incidents, states, controls, refused, refused_dropped, errors;
	uint64_t undelivered[NT_BUS_CAUSE_END]; /* accepted by the bus but not acknowledged: lost */
};

struct nt_bus_producer;

/*
 * `boot` identifies this run; options as for nt_bus_open(). If the bus cannot be written, its error
 * is returned.
 */
NT_MUST_CHECK int nt_bus_producer_open(const char *bus_url, const struct nt_bus_options *options,
				       uint64_t boot, struct nt_bus_producer **ret_bus_producer);
void nt_bus_producer_close(struct nt_bus_producer *bus_producer);
NT_DEFINE_AUTO(nt_bus_producer, nt_bus_producer_close)

/* Errors are counted, so the result may be ignored. */
int nt_bus_producer_incident(struct nt_bus_producer *bus_producer,
			     const struct nt_wire_incident *incident);
/* A request to agents. Its key is "KIND TARGET", so that the newest of each is kept. */
int nt_bus_producer_control(struct nt_bus_producer *bus_producer, const struct nt_control *control);
/* Deletes such a record. */
int nt_bus_producer_forget_control(struct nt_bus_producer *bus_producer, enum nt_request request,
				   const char *target);
void nt_bus_producer_refused(struct nt_bus_producer *bus_producer,
			     const struct nt_bus_record *record, const char *reason,
			     uint64_t real_ns);

/*
 * Flushes after a batch. Failures are counted, as are messages that the bus lost since the last
 * flush: -EIO, and the batch counts as not published.
 */
int nt_bus_producer_flush(struct nt_bus_producer *bus_producer);
/* Shutdown: after one failed flush, further ones fail at once instead of waiting for each shard. */
void nt_bus_producer_leave(struct nt_bus_producer *bus_producer);

/* Port for the states of shards and for job summaries. */
struct nt_state_log_port nt_bus_producer_port(struct nt_bus_producer *bus_producer);

uint64_t nt_bus_producer_boot(const struct nt_bus_producer *bus_producer);
void nt_bus_producer_health(const struct nt_bus_producer *bus_producer,
			    struct nt_bus_health *ret_health);

const struct nt_bus_producer_counters *
nt_bus_producer_counters(const struct nt_bus_producer *bus_producer);

#endif
