/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/node_state.h"

#include <errno.h>
#include <string.h>

#include "common/system/log.h"

enum {
	SHARED = NT_FLEET_PORTIONS, /* index of the shared set */
	SET_SHIFT = 24, /* of the index in a set's number; shards are below */
	SAVED_PORTIONS = 8, /* at a time; each is a transaction */
	SAVED_BYTES = 4 << 20, /* at a time, about: the deciding thread waits for it */
};

static const char item_name[] = "nodes";

static uint32_t number_of(uint32_t shard, uint32_t index)
{
	return (index + 1) << SET_SHIFT | shard;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static int save_set(uint32_t shard, uint32_t index, uint64_t real_ns, const struct nt_buf *buf,
		    const struct nt_node_state_port *port, struct nt_node_state *state)
{
	const struct nt_state_item item = {item_name, buf->data, buf->len};
	const struct nt_state_set set = {
		.real_ns = real_ns,
		.item = &item,
		.items = 1,
		.shard = number_of(shard, index),
	};
	struct nt_state_log_draft draft;
	int stored = 0, r = 0;

	if (port->states)
		stored = port->states->save(port->states->data, &set);
	if (port->log) {
		r = nt_state_log_begin(port->log, &set, &state->mark[index], &draft);
		r = r == 0 ? port->log->flush(port->log->data) : r;
		r = r == 0 ? nt_state_log_end(port->log, port->owner, &draft) : r;
		r = r == 0 ? port->log->flush(port->log->data) : r;
		if (r == 0)
			nt_state_log_commit(&draft, &state->mark[index]);
	}
	return stored < 0 ? stored : r;
}

/* 1: saved; 0: the portion is empty. */
static int save_portion(struct nt_node_desk *desk, uint32_t shard, uint32_t portion,
			uint64_t real_ns, const struct nt_node_state_port *port,
			struct nt_node_state *state, size_t *bytes)
{
	nt_autobuf struct nt_buf buf = {0};
	int r = nt_node_desk_save_portion(desk, shard, portion, &buf);

	if (r <= 0)
		return r;
	*bytes += buf.len;
	r = save_set(shard, portion, real_ns, &buf, port, state);
	return r < 0 ? r : 1;
}

int nt_node_state_save(struct nt_node_desk *desk, uint32_t shard, bool all,
		       const struct nt_node_state_port *port, struct nt_node_state *state)
{
	const uint64_t real_ns = nt_fleet_lead_ns(nt_node_desk_fleet(desk));
	nt_autobuf struct nt_buf buf = {0};
	size_t bytes = 0;
	int saved = 0, r;

	/* No vector, no state. */
	if (!real_ns || (!port->states && !port->log))
		return 0;
	r = nt_node_desk_save(desk, shard, &buf);
	if (r == 0)
		r = save_set(shard, SHARED, real_ns, &buf, port, state);
	for (uint32_t i = 0; i < NT_FLEET_PORTIONS && r >= 0; i++) {
		if (!all && (saved == SAVED_PORTIONS || bytes >= SAVED_BYTES))
			break;
		r = save_portion(desk, shard, state->next, real_ns, port, state, &bytes);
		state->next = (state->next + 1) % NT_FLEET_PORTIONS;
		saved += r > 0;
	}
	return r < 0 ? r : 0;
}

/* ---- loading --------------------------------------------------------------------------------- */

struct node_state_loading {
	struct nt_node_desk *desk;
	uint32_t shard, index;
	uint64_t real_ns; /* of the set that was seen */
	bool looks; /* only at the time */
};

static int take_set(void *data, const struct nt_state_set *set)
{
	struct node_state_loading *loading = data;

	loading->real_ns = set->real_ns;
	if (loading->looks)
		return 0;
	if (set->items != 1 || strcmp(set->item[0].name, item_name) != 0)
		return -EBADMSG;
	if (loading->index == SHARED)
		return nt_node_desk_load(loading->desk, loading->shard, set->item[0].bytes,
					 set->item[0].size);
	return nt_node_desk_load_portion(loading->desk, loading->shard, set->item[0].bytes,
					 set->item[0].size);
}

static int load_from(const struct nt_state_store *states, struct nt_state_log *log,
		     struct node_state_loading *loading)
{
	if (log)
		return nt_state_log_load(log, take_set, loading);
	if (!states)
		return -ENOENT;
	return states->load(states->data, number_of(loading->shard, loading->index), take_set,
			    loading);
}

static int load_set(const struct nt_state_store *states, struct nt_state_log *log,
		    struct node_state_loading *loading)
{
	uint64_t stored_ns = 0, logged_ns = 0;
	int r;

	loading->looks = true;
	if (states && load_from(states, NULL, loading) == 0)
		stored_ns = loading->real_ns;
	if (log && load_from(NULL, log, loading) == 0)
		logged_ns = loading->real_ns;
	loading->looks = false;
	if (!stored_ns && !logged_ns)
		return 0;
	r = logged_ns > stored_ns ? load_from(NULL, log, loading)
				  : load_from(states, NULL, loading);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		(void)nt_warn(r,
			      "a state of node scores cannot be used: its nodes are learned anew");
	return 0;
}

int nt_node_state_load(struct nt_node_desk *desk, uint32_t shard,
		       const struct nt_state_store *states, nt_node_state_log_fn find, void *data,
		       struct nt_node_state *state)
{
	for (uint32_t i = NT_NODE_STATE_SETS; i > 0; i--) {
		struct node_state_loading loading = {.desk = desk, .shard = shard, .index = i - 1};
		struct nt_state_log *log = NULL;
		int r = find ? find(data, number_of(shard, i - 1), &log) : 0;

		if (r == 0)
			r = load_set(states, log, &loading);
		if (r < 0)
			return r;
		if (log)
			state->mark[i - 1] = nt_state_log_mark(log);
	}
	return 0;
}
