/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/links/job_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/search.h"

enum {
	CANDIDATES =
		64, /* for the other end of a pair or socket: they are untrusted, and quadratic */
};

/* One end of a queue pair. */
struct pair_end {
	const struct nt_rank_pair *pair;
	uint32_t rank, peer;
	bool has_peer;
};

static int by_local(const void *left, const void *right)
{
	const struct pair_end *a = left, *b = right;
	int order;

	if (a->pair->transport != b->pair->transport)
		return a->pair->transport < b->pair->transport ? -1 : 1;
	if (a->pair->qpn != b->pair->qpn)
		return a->pair->qpn < b->pair->qpn ? -1 : 1;
	order = strcmp(a->pair->local, b->pair->local);
	if (order)
		return order;
	/* Of sockets that one port has accepted. */
	if (a->pair->remote_qpn != b->pair->remote_qpn)
		return a->pair->remote_qpn < b->pair->remote_qpn ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int by_link(const void *left, const void *right)
{
	const struct pair_end *a = left, *b = right;
	int order;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->pair->transport != b->pair->transport)
		return a->pair->transport < b->pair->transport ? -1 : 1;
	if (a->has_peer != b->has_peer)
		return a->has_peer ? -1 : 1;
	if (a->peer != b->peer)
		return a->peer < b->peer ? -1 : 1;
	if (a->has_peer)
		return 0;
	order = strcmp(a->pair->remote, b->pair->remote);
	return order;
}

/* The begin of the order of by_local(). */
struct end_key {
	enum nt_link_transport transport;
	uint32_t qpn;
	const char *local;
	uint32_t remote_qpn; /* of a socket; else 0 */
};

static bool is_before(const struct nt_rank_pair *pair, const struct end_key *key)
{
	int order;

	if (pair->transport != key->transport)
		return pair->transport < key->transport;
	if (pair->qpn != key->qpn)
		return pair->qpn < key->qpn;
	order = strcmp(pair->local, key->local);
	return order ? order < 0 : pair->remote_qpn < key->remote_qpn;
}

/* The first end that is not before the key. */
static size_t first_of(const struct pair_end *end, size_t ends, const struct end_key *key)
{
	return nt_search_first(0, ends, i, !is_before(end[i].pair, key));
}

/* True if `other` is what `pair` is connected to; an unknown address or number matches any. */
static bool is_connected(const struct nt_rank_pair *pair, const struct nt_rank_pair *other)
{
	if (pair->remote_qpn != other->qpn)
		return false;
	if (pair->remote[0] && other->local[0] && strcmp(pair->remote, other->local) != 0)
		return false;
	if (other->remote_qpn && other->remote_qpn != pair->qpn)
		return false;
	return !other->remote[0] || !pair->local[0] || strcmp(other->remote, pair->local) == 0;
}

static void try_peer(struct pair_end *of, struct pair_end *other, bool *is_ambiguous)
{
	if (of == other || !is_connected(of->pair, other->pair))
		return;
	*is_ambiguous |= of->has_peer && of->peer != other->rank;
	of->has_peer = true;
	of->peer = other->rank;
	/* The other end may know less. */
	if (!other->pair->remote_qpn && !other->has_peer) {
		other->has_peer = true;
		other->peer = of->rank;
	}
}

/*
 * Numbers repeat among devices and nodes: with several candidates none is named. `local`: of the ends
 * to look at; NULL is any address.
 */
static void try_peers(struct pair_end *end, size_t ends, struct pair_end *of, const char *local,
		      bool *is_ambiguous)
{
	const struct end_key key = {.qpn = of->pair->remote_qpn, .local = local ? local : ""};
	size_t tried = 0;

	for (size_t i = first_of(end, ends, &key); i < ends; i++) {
		if (end[i].pair->transport != NT_LINK_RDMA || end[i].pair->qpn != key.qpn)
			break;
		if (local && strcmp(end[i].pair->local, local) != 0)
			break;
		if (tried++ == CANDIDATES) {
			*is_ambiguous = true;
			return;
		}
		try_peer(of, &end[i], is_ambiguous);
	}
}

/* Addresses and ports of a socket are always known. Those of loopback may repeat on other nodes. */
static void find_socket_peer(const struct pair_end *end, size_t ends, struct pair_end *of)
{
	const struct nt_rank_pair *pair = of->pair;
	const struct end_key key = {.transport = NT_LINK_TCP,
				    .qpn = pair->remote_qpn,
				    .local = pair->remote,
				    .remote_qpn = pair->qpn};
	bool is_ambiguous = false;
	size_t tried = 0;

	for (size_t i = first_of(end, ends, &key); i < ends; i++) {
		const struct nt_rank_pair *other = end[i].pair;

		if (other->transport != NT_LINK_TCP || other->qpn != key.qpn ||
		    strcmp(other->local, key.local) != 0 || other->remote_qpn != key.remote_qpn)
			break;
		if (tried++ == CANDIDATES) {
			is_ambiguous = true;
			break;
		}
		if (strcmp(other->remote, pair->local) != 0)
			continue;
		is_ambiguous |= of->has_peer && of->peer != end[i].rank;
		of->has_peer = true;
		of->peer = end[i].rank;
	}
	if (is_ambiguous)
		of->has_peer = false;
}

static void find_peer(struct pair_end *end, size_t ends, struct pair_end *of)
{
	const char *remote = of->pair->remote;
	bool is_ambiguous = false;

	if (of->pair->transport == NT_LINK_TCP) {
		find_socket_peer(end, ends, of);
		return;
	}
	if (!of->pair->remote_qpn)
		return;
	try_peers(end, ends, of, remote[0] ? remote : NULL, &is_ambiguous);
	if (remote[0] && !of->has_peer)
		try_peers(end, ends, of, "", &is_ambiguous); /* whose address is not known */
	if (is_ambiguous)
		of->has_peer = false;
}

static void begin_link(const struct pair_end *end, struct nt_job_link *link)
{
	*link = (struct nt_job_link){.transport = end->pair->transport,
				     .rank = end->rank,
				     .peer = end->peer,
				     .has_peer = end->has_peer};
	memcpy(link->device, end->pair->device, sizeof(link->device));
	memcpy(link->local, end->pair->local, sizeof(link->local));
	memcpy(link->remote, end->pair->remote, sizeof(link->remote));
}

static void add_end(const struct pair_end *end, struct nt_job_link *link)
{
	const struct nt_pair_sums sums = nt_rank_pair_sums(end->pair);

	link->pairs++;
	link->pairs_not_visible += end->pair->not_visible;
	if (sums.errors)
		link->error_status = end->pair->error_status;
	nt_pair_sums_add(&link->sums, &sums);
}

static void finish_link(const struct nt_rank_links *links, struct nt_job_link *link)
{
	const bool is_tcp = link->transport == NT_LINK_TCP;
	const uint64_t *observed_ns = is_tcp ? links->sockets_observed_ns : links->observed_ns;
	const double observed_s = ((double)observed_ns[0] + (double)observed_ns[1]) / 1e9;
	const bool is_known = observed_s > 0 && link->pairs_not_visible < link->pairs;

	link->bytes_per_s = is_known ? (double)link->sums.bytes / observed_s : -1;
	link->requests_per_s = is_known && !is_tcp ? (double)link->sums.requests / observed_s : -1;
}

static size_t sum_links(const struct nt_rank_links *const *links, const struct pair_end *end,
			size_t ends, struct nt_job_link *link, uint64_t *over_cap)
{
	size_t count = 0;

	for (size_t i = 0; i < ends; i++) {
		const bool is_next = i == 0 || by_link(&end[i - 1], &end[i]) != 0;

		if (is_next && count == NT_JOB_LINKS) {
			*over_cap += 1;
			while (i + 1 < ends && by_link(&end[i], &end[i + 1]) == 0)
				i++;
			continue;
		}
		if (is_next)
			begin_link(&end[i], &link[count++]);
		add_end(&end[i], &link[count - 1]);
	}
	for (size_t i = 0; i < count; i++)
		finish_link(links[link[i].rank], &link[i]);
	return count;
}

/* Connections of a process with itself are no links. Returns how many ends are left. */
static size_t drop_own(struct pair_end *end, size_t ends)
{
	size_t kept = 0;

	for (size_t i = 0; i < ends; i++)
		if (end[i].pair->transport != NT_LINK_TCP || !end[i].has_peer ||
		    end[i].peer != end[i].rank)
			end[kept++] = end[i];
	return kept;
}

int nt_job_links_join(const struct nt_rank_links *const *links, size_t ranks,
		      struct nt_job_link **ret_link, size_t *ret_count, uint64_t *ret_over_cap)
{
	nt_autofree struct pair_end *end = NULL;
	struct nt_job_link *link;
	size_t ends = 0, at = 0;

	*ret_over_cap = 0;
	for (size_t i = 0; i < ranks; i++)
		ends += links[i] ? links[i]->pairs : 0;
	if (ends > NT_JOB_LINKS_ENDS) {
		*ret_over_cap = ends - NT_JOB_LINKS_ENDS;
		ends = NT_JOB_LINKS_ENDS;
	}
	end = calloc(ends + 1, sizeof(*end));
	link = calloc((ends < NT_JOB_LINKS ? ends : NT_JOB_LINKS) + 1, sizeof(*link));
	if (!end || !link) {
		free(link);
		return -ENOMEM;
	}
	for (size_t i = 0; i < ranks; i++)
		for (size_t j = 0; links[i] && j < links[i]->pairs && at < ends; j++)
			end[at++] =
				(struct pair_end){.pair = &links[i]->pair[j], .rank = (uint32_t)i};
	qsort(end, ends, sizeof(*end), by_local);
	for (size_t i = 0; i < ends; i++)
		find_peer(end, ends, &end[i]);
	ends = drop_own(end, ends);
	qsort(end, ends, sizeof(*end), by_link);
	*ret_count = sum_links(links, end, ends, link, ret_over_cap);
	*ret_link = link;
	return 0;
}
