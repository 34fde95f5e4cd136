/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the aggregator itself says on the bus: incidents, which other aggregators and people read,
 * states for whoever goes on with its jobs, and the records that it had to refuse. Losing the bus for
 * writing loses nothing else.
 */
#ifndef NT_AGGREGATOR_OUTLET_H
#define NT_AGGREGATOR_OUTLET_H

#include <stdint.h>

#include "aggregator/depot.h"
#include "common/bus.h"
#include "common/cleanup.h"
#include "proto/wire.h"

enum {
	NT_OUTLET_REFUSED_A_SECOND = 10, /* refused records passed on; the rest is only counted */
	NT_OUTLET_MAX_KEYS = 65536, /* incidents and states whose sequence is remembered */
};

struct nt_outlet_counters {
	uint64_t incidents, states, refused, refused_dropped, errors;
	uint64_t undelivered[NT_BUS_CAUSE_END]; /* taken, and then not acknowledged: lost */
};

struct nt_outlet;

/*
 * `boot` tells this run from others; options as of nt_bus_open(). What the bus says where it cannot be
 * written.
 */
NT_MUST_CHECK int nt_outlet_open(const char *bus_url, const struct nt_bus_options *options,
				 uint64_t boot, struct nt_outlet **ret_outlet);
void nt_outlet_close(struct nt_outlet *outlet);
NT_DEFINE_AUTO(nt_outlet, nt_outlet_close)

/* Errors are counted, so that whoever has nobody to tell need not. */
int nt_outlet_incident(struct nt_outlet *outlet, const struct nt_incident *incident);
void nt_outlet_refused(struct nt_outlet *outlet, const struct nt_bus_record *record,
		       const char *reason, uint64_t real_ns);

/*
 * After a batch. A failure is counted, and so is what the bus did not get rid of since the last one:
 * -EIO, and whatever was to be published counts as not published.
 */
int nt_outlet_flush(struct nt_outlet *outlet);
/* From now on one flush in vain is enough: brokers that are away shall not be waited for once a shard. */
void nt_outlet_leave(struct nt_outlet *outlet);

/* For the states of shards and the heads of jobs. */
struct nt_depot_port nt_outlet_port(struct nt_outlet *outlet);

uint64_t nt_outlet_boot(const struct nt_outlet *outlet);
void nt_outlet_health(const struct nt_outlet *outlet, struct nt_bus_health *ret_health);

const struct nt_outlet_counters *nt_outlet_counters(const struct nt_outlet *outlet);

#endif
