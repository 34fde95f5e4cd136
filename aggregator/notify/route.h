/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which incidents a receiver gets. */
#ifndef NT_AGGREGATOR_NOTIFY_ROUTE_H
#define NT_AGGREGATOR_NOTIFY_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/notify/notice.h"
#include "proto/wire.h"

/* All conditions must hold. Patterns have * and ?, and alternatives are separated by |. */
struct nt_route {
	enum nt_notice_severity severity; /* this one and above */
	char *class, *job, *namespace; /* NULL: any; owned */
};

/* Whether one of the alternatives is the whole text. */
bool nt_route_pattern_fits(const char *pattern, const char *text);

/* Whether one of the routes takes the incident. Without routes: severity warning and above. */
bool nt_route_takes(const struct nt_route *route, size_t routes,
		    const struct nt_wire_incident *incident);

#endif
