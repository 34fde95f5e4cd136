/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stream of live events. */
#include <errno.h>

#include "aggregator/api/api_impl.h"
#include "common/http/event_ring.h"

int nt_api_events(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	struct nt_event_ring *ring =
		api->options.event_desk ? nt_event_desk_ring(api->options.event_desk) : NULL;
	const char *after = nt_httpd_query(request, "after");
	const char *last = nt_httpd_header(request, "Last-Event-ID");
	struct nt_api_query query;
	uint64_t number;
	int r;

	r = nt_api_query_read(request, "", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	if (ring && after && nt_event_ring_find(ring, after, &number) == -EINVAL)
		return nt_httpd_problem(reply, request, 400, "bad_parameter",
					"'after' is the id of an event of this stream");
	reply->stream = (struct nt_httpd_stream){
		.is_wanted = true,
		/* A browser that comes again repeats its URL, and adds the newer header. */
		.after = last && *last ? last : after,
		.topic = query.job,
	};
	return 0;
}
