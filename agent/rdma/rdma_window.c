/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the part of a window: which queue pairs are sent, and what was added to their figures. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)

#include "agent/rdma/rdma_impl.h"

#include <stdlib.h>
#include <string.h>

/* The time observed since the last window. */
static uint64_t take_observed(struct nt_rdma_link *link, uint64_t now_ns)
{
	uint64_t observed_ns = link->observed_ns;

	link->observed_ns = 0;
	if (link->state != NT_RDMA_LINK_ON)
		return observed_ns;
	observed_ns += now_ns - link->since_ns;
	link->since_ns = now_ns;
	return observed_ns;
}

static uint64_t bytes_of(const struct nt_rdma_pair *pair)
{
	return pair->write_bytes + pair->send_bytes + pair->read_bytes + pair->received_bytes +
	       pair->atomic_bytes + pair->other_bytes;
}

/* Those with traffic first, the most bytes first; then by number, so that the order is stable. */
static int by_traffic(const void *left, const void *right)
{
	const struct nt_rdma_row *a = left, *b = right;

	if (a->has_traffic != b->has_traffic)
		return a->has_traffic ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->pair.qpn < b->pair.qpn ? -1 : a->pair.qpn > b->pair.qpn;
}

static size_t read_rows(struct nt_rdma *rdma, struct nt_rdma_process *process, bool refreshes)
{
	size_t rows = 0;

	for (struct nt_queue_pair *pair = process->pairs.table; pair && rows < NT_QUEUE_PAIRS;
	     pair = pair->hh.next) {
		struct nt_rdma_row *row = &rdma->row[rows];

		row->of = pair;
		row->has_traffic = false;
		if (!rdma->hooks.traffic(rdma->hooks.data, &pair->key, &row->now))
			row->now = (struct nt_rdma_traffic){0};
		nt_queue_pair_row(pair, &row->now, process->watch.window, &row->pair);
		row->has_traffic = nt_queue_pair_is_active(&row->pair);
		row->bytes = bytes_of(&row->pair);
		row->pair.not_visible = pair->is_extended || pair->is_foreign ||
					process->provider == NT_RDMA_PROVIDER_REFUSED;
		rows += row->has_traffic || pair->is_new || pair->is_ended || refreshes;
	}
	return rows;
}

static uint32_t not_visible_of(const struct nt_rdma_process *process)
{
	uint32_t bits = process->has_extended ? NT_WIRE_RDMA_EXTENDED : 0;

	if (process->has_direct)
		bits |= NT_WIRE_RDMA_DIRECT;
	/* With a device and without a verb its queue pairs are not known: they are not zero. */
	if (process->provider != NT_RDMA_PROVIDER_READY || !process->seen_ns)
		bits |= NT_WIRE_RDMA_PROVIDER;
	return process->is_shed ? bits | NT_WIRE_RDMA_SHED : bits;
}

/* The rest of its traffic stays for the next window. */
static void send_row(struct nt_rdma *rdma, struct nt_rdma_owner *owner, size_t i)
{
	struct nt_rdma_row *row = &rdma->row[i];
	struct nt_rdma_window *window = &rdma->window;

	if (row->of->lacks_address) {
		nt_rdma_note_address(rdma, owner, row->of);
		row->pair.local_lid = row->of->local_lid;
	}
	if (row->of->has_local_gid)
		nt_queue_pair_address(row->of->local_gid, rdma->local[i]);
	else
		rdma->local[i][0] = '\0';
	nt_queue_pair_address(row->of->remote_gid, rdma->remote[i]);
	memcpy(rdma->device[i], row->of->device, sizeof(rdma->device[i]));
	row->pair.device = rdma->device[i];
	row->pair.local_gid = rdma->local[i];
	row->pair.remote_gid = rdma->remote[i];
	window->cut += row->now.cut - row->of->sent.cut;
	window->unread += row->now.unread - row->of->sent.unread;
	rdma->stats.untimed += row->pair.untimed;
	row->of->sent = row->now;
	row->of->is_new = false;
	rdma->sent[i] = row->pair;
}

/* Those that were sent; the others wait for the next window. */
static void forget_ended(struct nt_rdma *rdma, struct nt_rdma_process *process)
{
	for (size_t i = 0; i < rdma->window.pair_count; i++)
		if (rdma->row[i].of->is_ended)
			nt_rdma_forget_pair(rdma, process, rdma->row[i].of);
}

static void send_rows(struct nt_rdma *rdma, struct nt_rdma_process *process, uint64_t now_ns,
		      bool has_observed)
{
	const bool refreshes = now_ns - process->refreshed_ns >= NT_RDMA_REFRESH_NS;
	struct nt_rdma_window *window = &rdma->window;
	bool has_news = refreshes || has_observed;
	size_t rows;

	for (const struct nt_queue_pair *p = process->pairs.table; p && !has_news; p = p->hh.next)
		has_news = p->is_new || p->is_ended;
	if (!rdma->row)
		rdma->row = calloc(NT_QUEUE_PAIRS, sizeof(*rdma->row));
	if (!has_news || !rdma->row)
		return;
	if (refreshes)
		process->refreshed_ns = now_ns;
	rows = read_rows(rdma, process, refreshes);
	qsort(rdma->row, rows, sizeof(*rdma->row), by_traffic);
	window->pair_count = rows < NT_RDMA_SENT ? rows : NT_RDMA_SENT;
	window->unsent = (uint32_t)(rows - window->pair_count);
	rdma->stats.unsent += window->unsent;
	for (size_t i = 0; i < window->pair_count; i++)
		send_row(rdma, process->owner, i);
	forget_ended(rdma, process);
	rdma->stats.cut += window->cut;
	rdma->stats.unread += window->unread;
	process->watch.window++;
	if (process->is_watched)
		nt_rdma_watch_process(rdma, process);
}

const struct nt_rdma_window *nt_rdma_take_window(struct nt_rdma *rdma, uint32_t pid,
						 uint64_t now_ns)
{
	struct nt_rdma_process *process = NULL;
	struct nt_verbs_totals totals;

	HASH_FIND(hh, rdma->process, &pid, sizeof(pid), process);
	if (!process || (!process->seen_ns && !process->holds_device))
		return NULL;
	rdma->window = (struct nt_rdma_window){
		.pair = rdma->sent,
		.observed_ns = take_observed(&process->link[NT_RDMA_LINK_POST], now_ns),
		.polled_ns = take_observed(&process->link[NT_RDMA_LINK_POLL], now_ns),
		.pairs = HASH_COUNT(process->pairs.table),
		.pairs_over_cap = process->pairs.over_cap,
		.not_visible = not_visible_of(process),
	};
	if (rdma->hooks.totals(rdma->hooks.data, pid, &totals)) {
		rdma->window.pairs_over_cap += totals.over_cap + totals.signaled_over_cap;
		if (totals.registrations > totals.deregistrations)
			rdma->window.regions = totals.registrations - totals.deregistrations;
		if (totals.registered_bytes > totals.deregistered_bytes)
			rdma->window.region_bytes =
				totals.registered_bytes - totals.deregistered_bytes;
	}
	send_rows(rdma, process, now_ns, rdma->window.observed_ns || rdma->window.polled_ns);
	return &rdma->window;
}
