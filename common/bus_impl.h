/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an implementation of the bus gives to common/bus.c. Private to common/bus*.c. */
#ifndef NT_COMMON_BUS_IMPL_H
#define NT_COMMON_BUS_IMPL_H

#include "common/bus.h"

/* The first member of an implementation's own struct. */
struct nt_bus {
	void (*close)(struct nt_bus *bus);
	int (*publish)(struct nt_bus *bus, const struct nt_bus_record *record);
	int (*flush)(struct nt_bus *bus);
	struct nt_bus_stats stats;
};

struct nt_bus_reader {
	void (*close)(struct nt_bus_reader *reader);
	int (*seek)(struct nt_bus_reader *reader, const struct nt_bus_position *position);
	int (*seek_time)(struct nt_bus_reader *reader, uint64_t real_ns);
	int (*seek_end)(struct nt_bus_reader *reader);
	int (*next)(struct nt_bus_reader *reader, int timeout_ms, struct nt_bus_record *ret_record);
	int (*fd)(const struct nt_bus_reader *reader);
	uint64_t missed;
	struct nt_bus_stats stats;
};

#endif
