/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/links/rank_links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/ascii.h"

enum {
	PAIRS_FIRST = 8, /* room at first */
};

static void add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

void nt_pair_sums_add(struct nt_pair_sums *sum, const struct nt_pair_sums *more)
{
	if (more->timed && (!sum->timed || more->least_ns < sum->least_ns))
		sum->least_ns = more->least_ns;
	if (more->most_ns > sum->most_ns)
		sum->most_ns = more->most_ns;
	add(&sum->requests, more->requests);
	add(&sum->bytes, more->bytes);
	add(&sum->received, more->received);
	add(&sum->received_bytes, more->received_bytes);
	add(&sum->completions, more->completions);
	add(&sum->errors, more->errors);
	add(&sum->timed, more->timed);
	add(&sum->latency_ns, more->latency_ns);
	add(&sum->segments, more->segments);
	add(&sum->retransmits, more->retransmits);
}

struct nt_pair_sums nt_rank_pair_sums(const struct nt_rank_pair *pair)
{
	struct nt_pair_sums sums = pair->before;

	nt_pair_sums_add(&sums, &pair->now);
	return sums;
}

static struct nt_pair_sums sums_of(const struct nt_rdma_pair *sent)
{
	struct nt_pair_sums sums = {
		.received = sent->received,
		.received_bytes = sent->received_bytes,
		.completions = sent->completions,
		.errors = sent->errors,
		.timed = sent->timed,
		.latency_ns = sent->latency_ns,
		.least_ns = sent->latency_least_ns,
		.most_ns = sent->latency_most_ns,
	};
	const uint64_t requests[] = {sent->writes, sent->sends, sent->reads, sent->atomics,
				     sent->others};
	const uint64_t bytes[] = {sent->write_bytes, sent->send_bytes, sent->read_bytes,
				  sent->atomic_bytes, sent->other_bytes};

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		add(&sums.requests, requests[i]);
		add(&sums.bytes, bytes[i]);
	}
	return sums;
}

/* InfiniBand needs no GIDs within a subnet. */
static void name_address(char text[NT_RANK_LINKS_TEXT], const char *gid, uint32_t lid)
{
	if (gid[0])
		nt_ascii_copy_text(text, NT_RANK_LINKS_TEXT, gid);
	else if (lid)
		(void)snprintf(text, NT_RANK_LINKS_TEXT, "lid %u", lid);
}

/* -ENOMEM; -ENOSPC: the cap. */
static int add_pair(struct nt_rank_links *links, enum nt_link_transport transport,
		    struct nt_rank_pair **ret_pair)
{
	struct nt_rank_pair *grown;

	if (links->of_transport[transport] == NT_RANK_LINKS_PAIRS)
		return -ENOSPC;
	if (links->pairs == links->pair_cap) {
		const size_t cap = links->pair_cap ? 2 * links->pair_cap : PAIRS_FIRST;

		grown = reallocarray(links->pair, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		links->pair = grown;
		links->pair_cap = cap;
	}
	*ret_pair = &links->pair[links->pairs++];
	**ret_pair = (struct nt_rank_pair){.transport = transport};
	links->of_transport[transport]++;
	return 0;
}

/* ---- queue pairs ----------------------------------------------------------------------------- */

/* A number that another queue pair has now begins anew. */
static int pair_of(struct nt_rank_links *links, const struct nt_rdma_pair *sent,
		   struct nt_rank_pair **ret_pair)
{
	struct nt_rank_pair *pair = NULL;
	int r;

	for (size_t i = 0; i < links->pairs && !pair; i++)
		if (links->pair[i].transport == NT_LINK_RDMA && links->pair[i].qpn == sent->qpn &&
		    strncmp(links->pair[i].device, sent->device, NT_RANK_LINKS_TEXT - 1) == 0)
			pair = &links->pair[i];
	if (!pair) {
		r = add_pair(links, NT_LINK_RDMA, &pair);
		if (r < 0)
			return r;
	} else if (sent->remote_qpn && pair->remote_qpn && sent->remote_qpn != pair->remote_qpn) {
		*pair = (struct nt_rank_pair){.transport = NT_LINK_RDMA};
	}
	pair->qpn = sent->qpn;
	nt_ascii_copy_text(pair->device, sizeof(pair->device), sent->device);
	*ret_pair = pair;
	return 0;
}

static int take_pair(struct nt_rank_links *links, const struct nt_rdma_pair *sent, uint64_t end_ns)
{
	const struct nt_pair_sums sums = sums_of(sent);
	struct nt_rank_pair *pair;
	int r = pair_of(links, sent, &pair);

	if (r == -ENOSPC) {
		links->pairs_over_cap++;
		return 0;
	}
	if (r < 0)
		return r;
	pair->remote_qpn = sent->remote_qpn ? sent->remote_qpn : pair->remote_qpn;
	pair->type = sent->type;
	pair->port = sent->port;
	pair->not_visible = sent->not_visible;
	pair->seen_ns = end_ns;
	if (sent->errors)
		pair->error_status = sent->error_status;
	name_address(pair->local, sent->local_gid, sent->local_lid);
	name_address(pair->remote, sent->remote_gid, sent->remote_lid);
	nt_pair_sums_add(&pair->now, &sums);
	return 0;
}

static int take_rdma(struct nt_rank_links *links, const struct nt_rdma_window *sent,
		     uint64_t end_ns)
{
	int r = 0;

	/* A process without a word of RDMA now: another rank of it sends it. */
	if (!sent->pairs && !sent->not_visible)
		return 0;
	links->not_visible = sent->not_visible;
	links->regions = sent->regions;
	links->region_bytes = sent->region_bytes;
	links->pairs_over_cap = sent->pairs_over_cap;
	add(&links->observed_ns[0], sent->observed_ns);
	add(&links->polled_ns[0], sent->polled_ns);
	for (size_t i = 0; i < sent->pair_count && r == 0; i++)
		r = take_pair(links, &sent->pair[i], end_ns);
	return r;
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* A port that listens is the local one of many. */
static int socket_of(struct nt_rank_links *links, const struct nt_tcp_socket *sent,
		     struct nt_rank_pair **ret_pair)
{
	struct nt_rank_pair *pair;
	int r;

	for (size_t i = 0; i < links->pairs; i++) {
		pair = &links->pair[i];
		if (pair->transport == NT_LINK_TCP && pair->qpn == sent->local_port &&
		    pair->remote_qpn == sent->remote_port &&
		    strncmp(pair->remote, sent->remote, NT_RANK_LINKS_TEXT - 1) == 0) {
			*ret_pair = pair;
			return 0;
		}
	}
	r = add_pair(links, NT_LINK_TCP, &pair);
	if (r < 0)
		return r;
	pair->qpn = sent->local_port;
	pair->remote_qpn = sent->remote_port;
	nt_ascii_copy_text(pair->local, sizeof(pair->local), sent->local);
	nt_ascii_copy_text(pair->remote, sizeof(pair->remote), sent->remote);
	*ret_pair = pair;
	return 0;
}

static int take_socket(struct nt_rank_links *links, const struct nt_tcp_socket *sent,
		       uint64_t end_ns)
{
	const struct nt_pair_sums sums = {
		.bytes = sent->sent_bytes,
		.received_bytes = sent->received_bytes,
		.segments = sent->segments,
		.retransmits = sent->retransmits,
		.timed = sent->rtt_ns > 0,
		.latency_ns = sent->rtt_ns,
		.least_ns = sent->rtt_ns,
		.most_ns = sent->rtt_ns,
	};
	struct nt_rank_pair *pair;
	int r = socket_of(links, sent, &pair);

	if (r == -ENOSPC) {
		links->sockets_over_cap++;
		return 0;
	}
	if (r < 0)
		return r;
	pair->seen_ns = end_ns;
	nt_pair_sums_add(&pair->now, &sums);
	return 0;
}

static int take_tcp(struct nt_rank_links *links, const struct nt_tcp_window *sent, uint64_t end_ns)
{
	int r = 0;

	if (!sent->observed_ns)
		return 0;
	links->sockets_over_cap = sent->sockets_over_cap;
	add(&links->sockets_observed_ns[0], sent->observed_ns);
	for (size_t i = 0; i < sent->socket_count && r == 0; i++)
		r = take_socket(links, &sent->socket[i], end_ns);
	return r;
}

static void rotate(struct nt_rank_links *links, uint64_t end_ns)
{
	size_t kept = 0;

	if (links->period_ns && end_ns - links->period_ns < NT_RANK_LINKS_PERIOD_NS)
		return;
	links->period_ns = end_ns;
	links->observed_ns[1] = links->observed_ns[0];
	links->polled_ns[1] = links->polled_ns[0];
	links->sockets_observed_ns[1] = links->sockets_observed_ns[0];
	links->observed_ns[0] = links->polled_ns[0] = links->sockets_observed_ns[0] = 0;
	for (size_t i = 0; i < links->pairs; i++) {
		struct nt_rank_pair *pair = &links->pair[i];

		if (end_ns - pair->seen_ns >= NT_RANK_LINKS_FORGET_NS) {
			links->of_transport[pair->transport]--;
			continue;
		}
		pair->before = pair->now;
		pair->now = (struct nt_pair_sums){0};
		links->pair[kept++] = *pair;
	}
	links->pairs = kept;
}

void nt_rank_links_free(struct nt_rank_links *links)
{
	if (links)
		free(links->pair);
	free(links);
}

int nt_rank_links_take(struct nt_rank_links **links, const struct nt_window *window,
		       uint64_t end_ns)
{
	int r;

	if (!*links && !window->rdma.pairs && !window->rdma.not_visible &&
	    !window->tcp.socket_count)
		return 0;
	if (!*links)
		*links = calloc(1, sizeof(**links));
	if (!*links)
		return -ENOMEM;
	rotate(*links, end_ns);
	r = take_rdma(*links, &window->rdma, end_ns);
	return r < 0 ? r : take_tcp(*links, &window->tcp, end_ns);
}
