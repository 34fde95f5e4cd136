/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fetches what `neutracer top` shows, request by request, without blocking. */
#ifndef NT_CLI_TOP_TOP_FETCH_H
#define NT_CLI_TOP_TOP_FETCH_H

#include "cli/live/client.h"
#include "cli/top/top_data.h"

enum {
	NT_TOP_PAGE = 1000, /* items of a response, the most that the server returns */
	NT_TOP_MAX_RANKS = 4 * NT_TOP_PAGE, /* that are fetched without the nodes of culprits */
	NT_TOP_MAX_NODES = 16 * NT_TOP_PAGE,
	NT_TOP_MAX_CULPRIT_NODES = 8, /* whose ranks are fetched beyond NT_TOP_MAX_RANKS */
};

struct nt_top_fetch;

/* The client is borrowed. */
NT_MUST_CHECK int nt_top_fetch_new(struct nt_client *client, struct nt_top_fetch **ret_fetch);
void nt_top_fetch_free(struct nt_top_fetch *fetch);
NT_DEFINE_AUTO(nt_top_fetch, nt_top_fetch_free)

/* Begins with the first request. job: the id of that whose ranks are wanted, or "". */
NT_MUST_CHECK int nt_top_fetch_begin(struct nt_top_fetch *fetch, const char *job, uint64_t real_ns,
				     struct nt_client_error *ret_error);

/*
 * Takes what has arrived, and requests what comes next. 0: *ret_data is complete, sorted, and the
 * caller's; -EINPROGRESS: nt_client_poll() the client; others: failed, and begin anew.
 */
NT_MUST_CHECK int nt_top_fetch_turn(struct nt_top_fetch *fetch, struct nt_top_data *ret_data,
				    struct nt_client_error *ret_error);

#endif
