/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/registry.h"

#include <stdio.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/system/clock.h"

enum {
	MPICH_WORLD = 0x44000000,
	MPICH_SELF = 0x44000001,
	NO_COLOR = -1,
};

/* Between two reads of an address whose handle may be written at any time. */
#define READ_AGAIN_NS (100 * NT_MILLISECOND)

static bool is_nccl(uint64_t library)
{
	return library == NT_LIBRARY_NCCL || library == NT_LIBRARY_RCCL;
}

uint64_t nt_registry_epoch(struct nt_registry *registry)
{
	/* 32 bits: it is sent with every sample. */
	uint64_t epoch = nt_hash_mix(nt_hash_u64(registry->boot, ++registry->epochs)) >> 32;

	return epoch > NT_COMMUNICATOR_EPOCH_WHOLE ? epoch : NT_COMMUNICATOR_EPOCH_WHOLE + 1;
}

/* ---- the table ------------------------------------------------------------------------------ */

static struct nt_communicator *look_up(struct nt_process *process, uint64_t library,
				       uint64_t handle)
{
	struct nt_communicator *comm = NULL;
	struct nt_communicator_key key;

	memset(&key, 0, sizeof(key)); /* hashed byte by byte */
	key.handle = handle;
	key.library = library;

	HASH_FIND(hh, process->comms, &key, sizeof(key), comm);
	return comm;
}

static void end(struct nt_process *process, struct nt_communicator *comm)
{
	HASH_DEL(process->comms, comm);
	process->comm_count--;
	if (!comm->rank_of || (!comm->calls_window && !comm->calls)) {
		nt_communicator_free(comm);
		return;
	}
	comm->next_ended = process->ended;
	process->ended = comm;
	process->ended_count++;
}

struct nt_communicator *nt_registry_known(struct nt_process *process, enum nt_library library,
					  uint64_t handle)
{
	return look_up(process, library, handle);
}

void nt_registry_end(struct nt_process *process, enum nt_library library, uint64_t handle)
{
	struct nt_communicator *comm = look_up(process, library, handle);

	if (comm)
		end(process, comm);
}

/* A freed communicator is evicted: its unsent sums are discarded. */
static void drop_ended(struct nt_registry *registry, struct nt_process *process)
{
	struct nt_communicator *comm = process->ended;

	process->ended = comm->next_ended;
	process->ended_count--;
	registry->comms_over_cap++;
	nt_communicator_free(comm);
}

/* Takes a slot among those of all processes. */
static bool take_place(struct nt_registry *registry, const struct nt_process *process,
		       struct nt_communicator *comm)
{
	if (!registry->share.cap)
		return true;
	if (nt_share_enter_for_good(&registry->share, process->owner, &comm->place) < 0)
		return false;
	comm->share = &registry->share;
	return true;
}

struct nt_communicator *nt_registry_add(struct nt_registry *registry, struct nt_process *process,
					uint64_t library, uint64_t handle)
{
	struct nt_communicator *comm = look_up(process, library, handle);

	if (comm)
		end(process, comm);
	if (process->comm_count == NT_PROCESS_COMMS) {
		registry->comms_over_cap++;
		return NULL;
	}
	comm = nt_communicator_new(
		(struct nt_communicator_key){.handle = handle, .library = library});
	if (!comm) {
		registry->no_memory++;
		return NULL;
	}
	if (!take_place(registry, process, comm)) {
		registry->comms_over_cap++;
		nt_communicator_free(comm);
		return NULL;
	}
	/* All of them, freed ones included, go into one window. */
	if (process->comm_count + process->ended_count == NT_PROCESS_COMMS)
		drop_ended(registry, process);
	comm->ordinal = ++process->ordinals;
	comm->epoch = NT_COMMUNICATOR_EPOCH_WHOLE;
	HASH_ADD(hh, process->comms, key, sizeof(comm->key), comm);
	process->comm_count++;
	return comm;
}

static void give_local_id(const struct nt_registry *registry, const struct nt_process *process,
			  struct nt_communicator *comm)
{
	comm->id = nt_communicator_id_local(registry->boot, process->pid, process->start_ns,
					    comm->key.handle + comm->ordinal);
	comm->id_is_local = true;
	comm->from_unique_id = false;
}

/* ---- observed creation ---------------------------------------------------------------------- */

static void name(struct nt_communicator *comm, const char *text)
{
	(void)snprintf(comm->name, sizeof(comm->name), "%s", text);
}

/*
 * NCCL's own id is preferred to ours, if it can be read: an agent that starts later finds the same.
 */
static void confirm_nccl(struct nt_registry *registry, struct nt_process *process,
			 struct nt_communicator *comm)
{
	struct nt_comm_layout_comm found;
	int r = nt_comm_layout_nccl(&registry->memory, process->pid, comm->key.handle,
				    process->nccl_file, nt_process_owner_id(process),
				    &registry->learned, &found);

	if (r < 0 && comm->from_unique_id)
		nt_comm_layout_learn(&registry->memory, process->pid, comm->key.handle,
				     process->nccl_file, nt_process_owner_id(process), comm->id,
				     comm->rank, comm->size, &registry->learned);
	if (r < 0 || (comm->size && (found.size != comm->size || found.rank != comm->rank)))
		return;
	comm->rank = found.rank;
	comm->size = found.size;
	comm->id = found.hash;
	comm->id_is_local = false;
}

static void confirm_mpi(struct nt_registry *registry, struct nt_process *process,
			struct nt_communicator *comm, uint32_t parent_size)
{
	struct nt_comm_layout_comm found;

	if (process->mpich ||
	    nt_comm_layout_open_mpi(&registry->memory, process->pid, comm->key.handle, &found) < 0)
		return;
	comm->rank = found.rank;
	comm->size = found.size;
	name(comm, found.name);
	/* A part of its parent with an unknown colour: others may have computed the same id. */
	if (comm->id_is_local && found.size && found.size == parent_size)
		comm->id_is_local = false;
}

static struct nt_communicator *make(struct nt_registry *registry, struct nt_process *process,
				    const struct nt_pending *pending, uint64_t handle,
				    uint32_t parent_size)
{
	struct nt_communicator *comm = nt_registry_add(registry, process, pending->library, handle);

	if (!comm)
		return NULL;
	comm->id = pending->id;
	comm->parent = pending->parent;
	comm->rank = pending->rank;
	comm->size = pending->size;
	comm->from_unique_id = pending->from_unique_id;
	comm->id_is_local = pending->id_is_local;
	comm->rank_of = pending->rank_of;
	if (is_nccl(pending->library))
		confirm_nccl(registry, process, comm);
	else if (pending->library == NT_LIBRARY_MPI)
		confirm_mpi(registry, process, comm, parent_size);
	if (comm->id_is_local) {
		comm->whole_id = pending->id;
		comm->whole_size = parent_size;
		give_local_id(registry, process, comm);
	}
	return comm;
}

static void drop_pending(struct nt_process *process, uint32_t i)
{
	process->pendings--;
	memmove(&process->pending[i], &process->pending[i + 1],
		(process->pendings - i) * sizeof(process->pending[0]));
}

/*
 * Reads the handle, or 0. Each read blocks the loop, while the process decides how many addresses
 * there are and how often a call needs them.
 */
static uint64_t read_handle(struct nt_registry *registry, const struct nt_process *process,
			    struct nt_pending *pending, bool is_due)
{
	if (!is_due && pending->read_ns && registry->now_ns < pending->read_ns + READ_AGAIN_NS)
		return pending->seen;
	pending->read_ns = registry->now_ns;
	if (nt_memory_u64(&registry->memory, process->pid, pending->address, &pending->seen) < 0)
		pending->seen = 0;
	return pending->seen;
}

static void settle_one(struct nt_registry *registry, struct nt_process *process, uint32_t i)
{
	struct nt_pending pending = process->pending[i];

	drop_pending(process, i);
	(void)make(registry, process, &pending, pending.seen, 0);
}

void nt_registry_settle(struct nt_registry *registry, struct nt_process *process, uint32_t tid)
{
	for (uint32_t i = 0; i < process->pendings;) {
		struct nt_pending *pending = &process->pending[i];
		bool is_due = !pending->was_due;

		if (tid && pending->tid != tid) {
			i++;
			continue;
		}
		pending->was_due = true;
		if (read_handle(registry, process, pending, is_due))
			settle_one(registry, process, i);
		else
			i++;
	}
}

static void add_pending(struct nt_registry *registry, struct nt_process *process,
			const struct nt_pending *pending)
{
	for (uint32_t i = 0; i < process->pendings; i++) {
		if (process->pending[i].address == pending->address) {
			drop_pending(process, i);
			break;
		}
	}
	if (process->pendings == NT_PROCESS_PENDING) {
		registry->pending_over_cap++;
		drop_pending(process, 0);
	}
	process->pending[process->pendings++] = *pending;
}

/* In a group the call returns before the communicator exists. handle 0: unknown at the return. */
static void made(struct nt_registry *registry, struct nt_process *process,
		 const struct nt_pending *pending, uint64_t handle)
{
	const struct nt_thread *thread = nt_process_thread(process, pending->tid);

	if (handle && (!thread || !thread->group_depth))
		(void)make(registry, process, pending, handle, 0);
	else
		add_pending(registry, process, pending);
}

void nt_registry_init(struct nt_registry *registry, struct nt_process *process,
		      const struct nt_probe *probe, const struct nt_event_call *call,
		      const uint8_t *id)
{
	struct nt_pending pending = {
		.address = nt_probe_word(call, probe->newcomm),
		.library = probe->library,
		.tid = call->h.tid,
		.rank = (uint32_t)nt_probe_word(call, probe->rank),
		.size = (uint32_t)nt_probe_word(call, probe->nranks),
		.from_unique_id = id != NULL,
		.id_is_local = id == NULL,
	};

	/* The entry holds nothing that the return does not. */
	if (!(call->h.flags & NT_CALL_RETURNED) || call->ret != 0)
		return;
	if (id)
		pending.id = nt_comm_layout_nccl_hash(id, NT_ID_BYTES);
	if (pending.rank >= pending.size)
		pending.size = pending.rank = 0;
	made(registry, process, &pending, call->deref);
}

/* One process creates all: no id is passed, and the handles are in an array. */
void nt_registry_init_all(struct nt_registry *registry, struct nt_process *process,
			  const struct nt_probe *probe, const struct nt_event_call *call)
{
	uint64_t nranks = nt_probe_word(call, probe->nranks), known = nranks;
	uint64_t address = nt_probe_word(call, probe->newcomm);
	uint64_t id = nt_communicator_id_local(registry->boot, process->pid, process->start_ns,
					       ++process->ordinals);
	const struct nt_thread *thread = nt_process_thread(process, call->h.tid);
	const bool in_group = thread && thread->group_depth;
	uint64_t handle[NT_PROCESS_PENDING] = {0};

	if (!(call->h.flags & NT_CALL_RETURNED) || call->ret != 0 || nranks > INT32_MAX)
		return;
	/* More than the cap of ranks of a process, so that an excess is counted there. */
	if (known > NT_PROCESS_PENDING) {
		registry->pending_over_cap += known - NT_PROCESS_PENDING;
		known = NT_PROCESS_PENDING;
	}
	if (!in_group && nt_memory_read(&registry->memory, process->pid, address, handle,
					known * sizeof(handle[0])) < 0)
		memset(handle, 0, sizeof(handle));
	for (uint32_t i = 0; i < known; i++) {
		struct nt_pending pending = {
			.address = address + 8 * (uint64_t)i,
			.library = probe->library,
			.tid = call->h.tid,
			.rank = i,
			.size = (uint32_t)nranks,
			.id = id, /* no other process takes part */
			.from_unique_id = true,
			.was_due = !in_group,
			.read_ns = in_group ? 0 : registry->now_ns,
		};

		made(registry, process, &pending, handle[i]);
	}
}

/* False for the null communicator: the rank took no part in the split. */
static bool takes_part(const struct nt_probe *probe, int64_t color)
{
	return probe->color == NT_NO_WORD || color >= 0;
}

void nt_registry_child(struct nt_registry *registry, struct nt_process *process,
		       const struct nt_probe *probe, const struct nt_event_call *call)
{
	int64_t color = probe->color == NT_NO_WORD
				? NO_COLOR
				: (int32_t)(uint32_t)nt_probe_word(call, probe->color);
	uint64_t parent_handle = nt_probe_word(call, probe->comm), where = 0;
	struct nt_pending pending = {
		.address = nt_probe_word(call, probe->newcomm),
		.library = probe->library,
		.tid = call->h.tid,
	};
	struct nt_communicator *parent;
	uint64_t handle;
	bool sure;

	if (!(call->h.flags & NT_CALL_RETURNED) || call->ret != 0)
		return;
	/* The ranks added by a grow have no parent. */
	parent = parent_handle ? nt_registry_find(registry, process, probe->library, parent_handle)
			       : NULL;
	/* Otherwise the number of earlier children of the parent is unknown. */
	sure = parent && !parent->id_is_local && parent->epoch == NT_COMMUNICATOR_EPOCH_WHOLE;
	pending.id_is_local = !sure;
	if (parent) {
		if (probe->flags & NT_PROBE_PER_NODE)
			where = registry->boot;
		pending.parent = parent->id;
		pending.rank_of = parent->rank_of;
		pending.id = nt_communicator_id_child(parent->id, color, ++parent->children, where);
		if (probe->flags & NT_PROBE_SAME_MEMBERS) {
			pending.rank = parent->rank;
			pending.size = parent->size;
		} else if (probe->library == NT_LIBRARY_MPI && probe->color == NT_NO_WORD) {
			pending.id_is_local = true; /* unless it is as large as its parent */
		}
	}
	if (!takes_part(probe, color))
		return;
	if (probe->library != NT_LIBRARY_MPI) {
		made(registry, process, &pending, call->deref);
		return;
	}
	handle = process->mpich ? (uint32_t)call->deref : call->deref;
	if (handle)
		(void)make(registry, process, &pending, handle, sure ? parent->size : 0);
}

/* ---- communicators found in a call ---------------------------------------------------------- */

static void learn_mpi(struct nt_registry *registry, struct nt_process *process,
		      struct nt_communicator *comm)
{
	const struct nt_environ *env = &process->facts.env;
	struct nt_identity_rank stated = nt_identity_rank(env);
	struct nt_comm_layout_comm found = {0};
	struct nt_identity_facts facts = {.boot = registry->boot, .parent = process->facts.parent};
	char key[NT_IDENTITY_KEY];

	if (process->mpich) {
		comm->is_world = comm->key.handle == MPICH_WORLD;
		name(comm, comm->is_world                   ? "MPI_COMM_WORLD"
			   : comm->key.handle == MPICH_SELF ? "MPI_COMM_SELF"
							    : "");
	} else if (nt_comm_layout_open_mpi(&registry->memory, process->pid, comm->key.handle,
					   &found) == 0) {
		name(comm, found.name);
		comm->rank = found.rank;
		comm->size = found.size;
		comm->is_world = strcmp(comm->name, "MPI_COMM_WORLD") == 0;
	} else {
		/* No call created it, so it is predefined: hardly any but the world. */
		comm->is_world = process->mpi_begun;
		registry->unresolved++;
	}
	give_local_id(registry, process, comm);
	if (!comm->is_world)
		return;
	if (!comm->size && stated.known) {
		comm->rank = stated.rank;
		comm->size = stated.size;
	}
	(void)nt_identity_key(env, &facts, key);
	comm->id = nt_communicator_id_world(key, env->pmix_namespace);
	comm->id_is_local = false;
	if (process->mpi_begun)
		comm->epoch = NT_COMMUNICATOR_EPOCH_WHOLE; /* observed from its creation on */
}

/* A context of all ranks is the job's; the members of a smaller one cannot be determined. */
static void learn_gloo(struct nt_registry *registry, struct nt_process *process,
		       struct nt_communicator *comm)
{
	const struct nt_environ *env = &process->facts.env;
	struct nt_identity_facts facts = {.boot = registry->boot, .parent = process->facts.parent};
	struct nt_comm_layout_comm found;
	char key[NT_IDENTITY_KEY];
	uint32_t nth = 0;

	give_local_id(registry, process, comm);
	if (nt_comm_layout_gloo(&registry->memory, process->pid, comm->key.handle, &found) < 0) {
		registry->unresolved++;
		return;
	}
	comm->rank = found.rank;
	comm->size = found.size;
	if (env->world_size <= 0 || found.size != (uint32_t)env->world_size)
		return;
	for (const struct nt_communicator *other = process->comms; other; other = other->hh.next)
		nth += other != comm && other->key.library == NT_LIBRARY_GLOO &&
		       other->size == comm->size;
	(void)nt_identity_key(env, &facts, key);
	comm->id =
		nt_communicator_id_child(nt_communicator_id_world(key, "gloo"), NO_COLOR, nth, 0);
	comm->id_is_local = false;
}

static void learn_nccl(struct nt_registry *registry, struct nt_process *process,
		       struct nt_communicator *comm)
{
	struct nt_comm_layout_comm found;

	if (nt_comm_layout_nccl(&registry->memory, process->pid, comm->key.handle,
				process->nccl_file, nt_process_owner_id(process),
				&registry->learned, &found) < 0) {
		give_local_id(registry, process, comm);
		registry->unresolved++;
		return;
	}
	comm->id = found.hash;
	comm->rank = found.rank;
	comm->size = found.size;
	comm->from_unique_id = true;
}

struct nt_communicator *nt_registry_find(struct nt_registry *registry, struct nt_process *process,
					 enum nt_library library, uint64_t handle)
{
	struct nt_communicator *comm;

	if (library == NT_LIBRARY_MPI && process->mpich)
		handle = (uint32_t)handle;
	comm = look_up(process, library, handle);
	if (comm)
		return comm;
	for (uint32_t i = 0; i < process->pendings; i++) {
		if (process->pending[i].library != library ||
		    read_handle(registry, process, &process->pending[i], false) != handle)
			continue;
		settle_one(registry, process, i);
		return look_up(process, library, handle);
	}
	comm = nt_registry_add(registry, process, library, handle);
	if (!comm)
		return NULL;
	comm->epoch = nt_registry_epoch(registry);
	if (library == NT_LIBRARY_MPI)
		learn_mpi(registry, process, comm);
	else if (library == NT_LIBRARY_GLOO)
		learn_gloo(registry, process, comm);
	else if (is_nccl(library))
		learn_nccl(registry, process, comm);
	else
		give_local_id(registry, process, comm);
	return comm;
}

/* MPICH's communicators: only the results of the program's own queries are known. */
static void take_answers(struct nt_communicator *comm)
{
	if (comm->size || !comm->is_rank_set || comm->rank >= comm->stated_size)
		return;
	comm->size = comm->stated_size;
	/* Calls that were counted under one id stay there. */
	if (comm->id_is_local && !comm->calls && comm->size == comm->whole_size) {
		comm->id = comm->whole_id;
		comm->id_is_local = false;
	}
}

void nt_registry_rank(struct nt_registry *registry, struct nt_process *process, uint64_t handle,
		      uint32_t rank)
{
	struct nt_communicator *comm = nt_registry_find(registry, process, NT_LIBRARY_MPI, handle);

	if (!comm || (comm->size && rank >= comm->size))
		return;
	comm->rank = rank;
	comm->is_rank_set = true;
	take_answers(comm);
}

void nt_registry_size(struct nt_registry *registry, struct nt_process *process, uint64_t handle,
		      uint32_t size)
{
	struct nt_communicator *comm = nt_registry_find(registry, process, NT_LIBRARY_MPI, handle);

	if (!comm || !size || size > INT32_MAX)
		return;
	comm->stated_size = size;
	take_answers(comm);
}
