/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the aggregator itself says on the bus: incidents, which other aggregators and people read,
 * states for whoever goes on with its jobs, and the records that it had to refuse. Losing the bus for
 * writing loses nothing else.
 */
#ifndef NT_AGGREGATOR_GROUP_BUS_PRODUCER_H
#define NT_AGGREGATOR_GROUP_BUS_PRODUCER_H

#include <stdint.h>

#include "aggregator/group/state_log.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "proto/wire.h"

enum {
	/* refused records passed on; the rest is only counted */
	NT_BUS_PRODUCER_REFUSED_A_SECOND = 10,
	NT_BUS_PRODUCER_MAX_KEYS = 65536, /* incidents and states whose sequence is remembered */
};

struct nt_bus_producer_counters {
	uint64_t incidents, states, refused, refused_dropped, errors;
	uint64_t undelivered[NT_BUS_CAUSE_END]; /* taken, and then not acknowledged: lost */
};

struct nt_bus_producer;

/*
 * `boot` tells this run from others; options as of nt_bus_open(). What the bus says where it cannot be
 * written.
 */
NT_MUST_CHECK int nt_bus_producer_open(const char *bus_url, const struct nt_bus_options *options,
				       uint64_t boot, struct nt_bus_producer **ret_bus_producer);
void nt_bus_producer_close(struct nt_bus_producer *bus_producer);
NT_DEFINE_AUTO(nt_bus_producer, nt_bus_producer_close)

/* Errors are counted, so that whoever has nobody to tell need not. */
int nt_bus_producer_incident(struct nt_bus_producer *bus_producer,
			     const struct nt_wire_incident *incident);
void nt_bus_producer_refused(struct nt_bus_producer *bus_producer,
			     const struct nt_bus_record *record, const char *reason,
			     uint64_t real_ns);

/*
 * After a batch. A failure is counted, and so is what the bus did not get rid of since the last one:
 * -EIO, and whatever was to be published counts as not published.
 */
int nt_bus_producer_flush(struct nt_bus_producer *bus_producer);
/* From now on one flush in vain is enough: brokers that are away shall not be waited for once a shard. */
void nt_bus_producer_leave(struct nt_bus_producer *bus_producer);

/* For the states of shards and the heads of jobs. */
struct nt_state_log_port nt_bus_producer_port(struct nt_bus_producer *bus_producer);

uint64_t nt_bus_producer_boot(const struct nt_bus_producer *bus_producer);
void nt_bus_producer_health(const struct nt_bus_producer *bus_producer,
			    struct nt_bus_health *ret_health);

const struct nt_bus_producer_counters *
nt_bus_producer_counters(const struct nt_bus_producer *bus_producer);

#endif
