/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/route.h"

#include <string.h>

/*
 * Names come from pods: the time is bounded by the product of both lengths. On a mismatch only the
 * last * is tried anew.
 */
static bool fits(const char *pattern, size_t len, const char *text)
{
	size_t at = 0, star = len, from = 0, i = 0, text_len = strlen(text);

	while (i < text_len) {
		if (at < len && pattern[at] == '*') {
			star = at++;
			from = i;
		} else if (at < len && (pattern[at] == '?' || pattern[at] == text[i])) {
			at++;
			i++;
		} else if (star < len) {
			at = star + 1;
			i = ++from;
		} else {
			return false;
		}
	}
	while (at < len && pattern[at] == '*')
		at++;
	return at == len;
}

bool nt_route_pattern_fits(const char *pattern, const char *text)
{
	for (;;) {
		size_t len = strcspn(pattern, "|");

		if (fits(pattern, len, text))
			return true;
		if (!pattern[len])
			return false;
		pattern += len + 1;
	}
}

static bool takes(const struct nt_route *route, const struct nt_wire_incident *incident)
{
	const char *namespace = incident->namespace ? incident->namespace : "";

	return nt_notice_severity_of(incident->severity) >= route->severity &&
	       (!route->class || nt_route_pattern_fits(route->class, incident->class)) &&
	       (!route->job || nt_route_pattern_fits(route->job, incident->job)) &&
	       (!route->namespace || nt_route_pattern_fits(route->namespace, namespace));
}

bool nt_route_takes(const struct nt_route *route, size_t routes,
		    const struct nt_wire_incident *incident)
{
	static const struct nt_route standard = {.severity = NT_NOTICE_WARNING};

	if (!routes)
		return takes(&standard, incident);
	for (size_t i = 0; i < routes; i++)
		if (takes(&route[i], incident))
			return true;
	return false;
}
