/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the aggregator itself says on the bus: incidents, which other aggregators and people read,
 * and the records that it had to refuse. Losing the bus for writing loses nothing else.
 */
#ifndef NT_AGGREGATOR_OUTLET_H
#define NT_AGGREGATOR_OUTLET_H

#include <stdint.h>

#include "common/bus.h"
#include "common/cleanup.h"
#include "proto/wire.h"

enum {
	NT_OUTLET_REFUSED_A_SECOND = 10, /* refused records passed on; the rest is only counted */
	NT_OUTLET_MAX_OPEN = 65536, /* incidents whose sequence is remembered */
};

struct nt_outlet_counters {
	uint64_t incidents, refused, refused_dropped, errors;
};

struct nt_outlet;

/* `boot` tells this run from others. What the bus says where it cannot be written. */
NT_MUST_CHECK int nt_outlet_open(const char *bus_url, const struct nt_bus_options *options,
				 uint64_t boot, struct nt_outlet **ret_outlet);
void nt_outlet_close(struct nt_outlet *outlet);
NT_DEFINE_AUTO(nt_outlet, nt_outlet_close)

/* Errors are counted: there is nobody to tell. Times are those of the caller's clocks. */
void nt_outlet_incident(struct nt_outlet *outlet, const struct nt_incident *incident,
			uint64_t boot_ns, uint64_t real_ns);
void nt_outlet_refused(struct nt_outlet *outlet, const struct nt_bus_record *record,
		       const char *reason, uint64_t real_ns);

/* After a batch. */
void nt_outlet_flush(struct nt_outlet *outlet);

const struct nt_outlet_counters *nt_outlet_counters(const struct nt_outlet *outlet);

#endif
