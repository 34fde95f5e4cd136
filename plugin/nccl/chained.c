/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nccl/chained.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/nccl/bounded_lock.h"
#include "plugin/nccl/handle.h"
#include "plugin/nccl/profiler.h"

enum {
	NAME_BYTES = 512,

	/* Bytes of a description, which grows from version to version. */
	BYTES_1 = 120,
	BYTES_2 = 128,
	BYTES_4 = 104,
	BYTES_5 = 112,
};

struct chained_comm {
	uint64_t generation; /* odd: in use */
	void *own, *other;
	int has_other; /* its init() succeeded */
};

struct chained_event {
	uint64_t generation; /* odd: in use */
	void *own, *other;
};

int nt_chained_was_loaded;

static atomic_int looked_for; /* 1: now; 2: it is known whether there is one */
static const struct nt_nccl_profiler *other;
static int mask_seen;

static atomic_flag lock = ATOMIC_FLAG_INIT;
static struct chained_comm comms[NT_CHAINED_COMMS];
static struct chained_event events[NT_CHAINED_EVENTS];
static uint32_t next_comm, next_event;

static int take(void)
{
	return nt_bounded_lock_take(&lock);
}

static void let_go(void)
{
	nt_bounded_lock_let_go(&lock);
}

/* ---- loading -------------------------------------------------------------------------------- */

/* As NCCL does: a path, the name of a library, or what stands between "libnccl-profiler-" and ".so". */
static void *open_library(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	char file[NAME_BYTES];
	int length;

	if (library || strchr(name, '/'))
		return library;
	length = snprintf(file, sizeof(file), "libnccl-profiler-%s.so", name);
	return length > 0 && length < (int)sizeof(file) ? dlopen(file, RTLD_NOW | RTLD_LOCAL)
							: NULL;
}

static const struct nt_nccl_profiler *load(int version, nt_nccl_log_fn log)
{
	const char *name = getenv("NEUTRACER_NCCL_NEXT_PLUGIN");
	char symbol[] = "ncclProfiler_v0";
	const struct nt_nccl_profiler *found;
	void *library;

	if (!name || !*name)
		return NULL;
	symbol[sizeof(symbol) - 2] = (char)('0' + version);
	library = open_library(name);
	found = library ? dlsym(library, symbol) : NULL;
	if (found && found->start && found->stop && found->state && found->finalize &&
	    found->init_1)
		return found;
	if (log)
		log(NT_NCCL_LOG_WARN, NT_NCCL_LOG_INIT, __func__, __LINE__,
		    "NEUTRACER_NCCL_NEXT_PLUGIN=%s: %s%s: no events are forwarded", name,
		    library ? "it has no " : "it cannot be loaded", library ? symbol : "");
	return NULL;
}

int nt_chained_is_there(int version, nt_nccl_log_fn log)
{
	int unknown = 0;

	if (atomic_compare_exchange_strong(&looked_for, &unknown, 1)) {
		other = load(version, log);
		__atomic_store_n(&nt_chained_was_loaded, other != NULL, __ATOMIC_RELEASE);
		atomic_store(&looked_for, 2);
	}
	/* Two communicators may begin at a time: which of the two tables has them must be known. */
	while (atomic_load(&looked_for) != 2)
		(void)sched_yield();
	return __atomic_load_n(&nt_chained_was_loaded, __ATOMIC_ACQUIRE);
}

/* ---- communicators -------------------------------------------------------------------------- */

static struct chained_comm *comm_of(const void *handle)
{
	struct chained_comm *comm;

	if (nt_handle_kind(handle) != NT_HANDLE_COMM || nt_handle_slot(handle) >= NT_CHAINED_COMMS)
		return NULL;
	comm = &comms[nt_handle_slot(handle)];
	return nt_handle_is_of(handle, comm->generation) ? comm : NULL;
}

/* Its values; all NULL: it has ended. */
static struct chained_comm copy_comm(const void *handle)
{
	const struct chained_comm *comm;
	struct chained_comm copy = {0};

	if (!take())
		return copy;
	comm = comm_of(handle);
	if (comm)
		copy = *comm;
	let_go();
	return copy;
}

static int init_other(int version, void **ret_context, const struct nt_chained_init *init)
{
	if (version <= 3)
		return other->init_1(ret_context, &nt_profiler_chained_mask);
	if (version == 4)
		return other->init_4(ret_context, &nt_profiler_chained_mask, init->name, init->id,
				     init->nodes, init->ranks, init->rank, init->log);
	return other->init_5(ret_context, init->id, &nt_profiler_chained_mask, init->name,
			     init->nodes, init->ranks, init->rank, init->log);
}

void *nt_chained_add(int version, void *own, const struct nt_chained_init *init)
{
	struct chained_comm *comm = NULL, values = {.own = own};
	void *context = NULL;
	uint32_t slot = 0;

	values.has_other = init_other(version, &values.other, init) == NT_NCCL_SUCCESS;
	nt_profiler_write_mask(own);
	if (!take())
		return NULL;
	for (uint32_t i = 0; i < NT_CHAINED_COMMS && !comm; i++) {
		slot = next_comm++ % NT_CHAINED_COMMS;
		if (comms[slot].generation % 2 == 0)
			comm = &comms[slot];
	}
	if (comm) {
		values.generation = comm->generation + 1;
		*comm = values;
		context = nt_handle_of(NT_HANDLE_COMM, slot, comm->generation);
	}
	let_go();
	return context;
}

int nt_chained_remove(void *context)
{
	struct chained_comm values = {0}, *comm;

	if (!take())
		return NT_NCCL_SUCCESS;
	comm = comm_of(context);
	if (comm) {
		values = *comm;
		comm->generation++;
	}
	let_go();
	nt_profiler_remove(values.own);
	/* As NCCL does, which has no finalize() for a context that is NULL. */
	return values.has_other && values.other ? other->finalize(values.other) : NT_NCCL_SUCCESS;
}

/* ---- events --------------------------------------------------------------------------------- */

static struct chained_event copy_event(const void *handle)
{
	const uint32_t slot = nt_handle_slot(handle);
	struct chained_event copy = {0};

	if (nt_handle_kind(handle) != NT_HANDLE_CALL || !take())
		return copy;
	if (slot < NT_CHAINED_EVENTS && nt_handle_is_of(handle, events[slot].generation))
		copy = events[slot];
	let_go();
	return copy;
}

static void *keep_event(struct chained_event values)
{
	const uint32_t slot = next_event % NT_CHAINED_EVENTS;

	if ((!values.own && !values.other) || !take())
		return NULL;
	next_event++;
	values.generation = events[slot].generation + (events[slot].generation % 2 ? 2 : 1);
	events[slot] = values;
	let_go();
	return nt_handle_of(NT_HANDLE_CALL, slot, values.generation);
}

static size_t bytes_of(int version)
{
	switch (version) {
	case 1:
	case 3:
		return BYTES_1;
	case 2:
		return BYTES_2;
	case 4:
		return BYTES_4;
	case 5:
	case 6:
		return BYTES_5;
	default:
		return NT_NCCL_DESCRIPTION_BYTES;
	}
}

/* The place of a second parent in a description; 0: it has none. */
static size_t group_at(int version, uint64_t type)
{
	if (version < 5)
		return 0;
	return type == NT_NCCL_COLLECTIVE ? NT_NCCL_COLLECTIVE_GROUP_AT
	       : type == NT_NCCL_P2P      ? NT_NCCL_P2P_GROUP_AT
					  : 0;
}

/* The other's handle in place of ours. */
static void replace(void *place)
{
	struct chained_event event;
	void *handle;

	(void)memcpy(&handle, place, sizeof(handle));
	event = copy_event(handle);
	(void)memcpy(place, &event.other, sizeof(event.other));
}

/* We may have asked for what proxies send, which are many events, and the other has not. */
static int is_for_other(int version, const struct nt_nccl_event *event, int mask)
{
	const int proxies = NT_NCCL_PROXY_OP | NT_NCCL_PROXY_STEP;
	const uint64_t type = version >= 5 ? event->type : (uint8_t)event->type;

	return !(type & (uint64_t)proxies) || mask & (proxies | NT_NCCL_NET_PLUGIN);
}

int nt_chained_start(int version, void *context, void **ret_handle, struct nt_nccl_event *event)
{
	union {
		struct nt_nccl_event event;
		unsigned char bytes[NT_NCCL_DESCRIPTION_BYTES];
	} copy;
	const struct chained_comm comm = copy_comm(context);
	const struct chained_event parent = copy_event(event->parent);
	const int mask = __atomic_load_n(&nt_profiler_chained_mask, __ATOMIC_RELAXED);
	struct chained_event values = {0};
	int r = NT_NCCL_SUCCESS;

	*ret_handle = NULL;
	(void)memcpy(&copy, event, bytes_of(version));
	copy.event.parent = parent.own;
	values.own = nt_profiler_start(version, comm.own, &copy.event);
	/* It may change its mask at any time. */
	if (mask != __atomic_exchange_n(&mask_seen, mask, __ATOMIC_RELAXED))
		nt_profiler_write_mask(comm.own);
	if (comm.has_other && is_for_other(version, event, mask)) {
		copy.event.parent = parent.other;
		if (group_at(version, event->type))
			replace(&copy.bytes[group_at(version, event->type)]);
		r = other->start(comm.other, &values.other, &copy);
	}
	*ret_handle = keep_event(values);
	return r;
}

int nt_chained_stop(void *handle)
{
	const struct chained_event event = copy_event(handle);

	nt_profiler_stop(event.own);
	return event.other ? other->stop(event.other) : NT_NCCL_SUCCESS;
}

int nt_chained_state(void *handle, int event_state, void *args)
{
	const struct chained_event event = copy_event(handle);

	nt_profiler_state(event.own, event_state, args);
	return event.other ? other->state(event.other, event_state, args) : NT_NCCL_SUCCESS;
}
