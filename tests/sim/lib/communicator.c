/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/communicator.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/hash.h"

uint64_t sim_hash(uint64_t seed, const void *data, size_t len)
{
	return nt_hash_bytes(seed ^ NT_HASH_SEED, data, len);
}

/* The memory is shared by processes, so these are not the private kind. */
static void futex_wait(uint32_t *word, uint32_t value)
{
	struct timespec most = {.tv_nsec = 100000000};

	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
}

static void futex_change(uint32_t *word)
{
	(void)__atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
}

/* ---- layout: head and members, parts, channels, data ---- */

static size_t parts_at(size_t ranks)
{
	return sizeof(struct sim_shared) + ranks * sizeof(struct sim_member);
}

static size_t channels_at(size_t ranks)
{
	return parts_at(ranks) + ranks * SIM_SLOTS * sizeof(struct sim_part);
}

static size_t data_at(size_t ranks)
{
	size_t end = channels_at(ranks) + ranks * ranks * sizeof(struct sim_channel);

	return (end + 4095) & ~(size_t)4095;
}

static size_t channel_data_at(size_t ranks)
{
	return data_at(ranks) + ranks * SIM_SLOTS * SIM_DATA_BYTES;
}

static size_t total_bytes(size_t ranks)
{
	return channel_data_at(ranks) +
	       ranks * ranks * SIM_CHANNEL_SLOTS * (size_t)SIM_CHANNEL_DATA_BYTES;
}

static void *at(const struct sim_comm *comm, size_t offset)
{
	return (char *)comm->shared + offset;
}

struct sim_part *sim_comm_part(const struct sim_comm *comm, uint64_t number, unsigned int rank)
{
	size_t index = number % SIM_SLOTS * comm->ranks + rank;

	return at(comm, parts_at(comm->ranks) + index * sizeof(struct sim_part));
}

char *sim_comm_data(const struct sim_comm *comm, uint64_t number, unsigned int rank)
{
	size_t index = number % SIM_SLOTS * comm->ranks + rank;

	return at(comm, data_at(comm->ranks) + index * SIM_DATA_BYTES);
}

struct sim_channel *sim_comm_channel(const struct sim_comm *comm, unsigned int from,
				     unsigned int to)
{
	size_t index = (size_t)from * comm->ranks + to;

	return at(comm, channels_at(comm->ranks) + index * sizeof(struct sim_channel));
}

char *sim_comm_channel_data(const struct sim_comm *comm, unsigned int from, unsigned int to,
			    uint64_t number)
{
	size_t index =
		((size_t)from * comm->ranks + to) * SIM_CHANNEL_SLOTS + number % SIM_CHANNEL_SLOTS;

	return at(comm, channel_data_at(comm->ranks) + index * SIM_CHANNEL_DATA_BYTES);
}

/* ---- meeting ---- */

static void name_of(const ncclUniqueId *id, unsigned int ranks, char *name, size_t size)
{
	(void)snprintf(name, size, "/nt-sim-%016llx-%u",
		       (unsigned long long)sim_hash(0, id, sizeof(*id)), ranks);
}

static struct sim_shared *map(const ncclUniqueId *id, unsigned int ranks)
{
	void *memory = MAP_FAILED;
	char name[64];
	int fd;

	name_of(id, ranks, name, sizeof(name));
	fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return NULL;
	if (ftruncate(fd, (off_t)total_bytes(ranks)) == 0)
		memory = mmap(NULL, total_bytes(ranks), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_NORESERVE, fd, 0);
	(void)close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

struct sim_comm *sim_comm_join(const ncclUniqueId *id, unsigned int ranks, unsigned int rank,
			       int device)
{
	struct sim_comm *comm = NULL;
	char name[64];
	uint32_t joined;

	if (ranks == 0 || ranks > SIM_MAX_RANKS || rank >= ranks)
		return NULL;
	comm = calloc(1, sizeof(*comm));
	if (!comm)
		return NULL;
	comm->sent = calloc(ranks, sizeof(*comm->sent));
	comm->received = calloc(ranks, sizeof(*comm->received));
	comm->shared = map(id, ranks);
	if (!comm->sent || !comm->received || !comm->shared) {
		free(comm->sent);
		free(comm->received);
		free(comm);
		return NULL;
	}
	comm->bytes = total_bytes(ranks);
	comm->rank = rank;
	comm->ranks = ranks;
	comm->device = device;
	comm->hash = sim_hash(0, id, sizeof(*id));
	comm->refs = 1;
	comm->id = *id;
	comm->shared->ranks = ranks;
	comm->shared->member[rank].pid = (uint32_t)getpid();

	joined = __atomic_add_fetch(&comm->shared->joined, 1, __ATOMIC_SEQ_CST);
	if (joined == ranks) {
		name_of(id, ranks, name, sizeof(name));
		(void)shm_unlink(name);
		(void)syscall(SYS_futex, &comm->shared->joined, FUTEX_WAKE, 0x7fffffff, NULL, NULL,
			      0);
	}
	while (joined < ranks) {
		futex_wait(&comm->shared->joined, joined);
		joined = __atomic_load_n(&comm->shared->joined, __ATOMIC_SEQ_CST);
	}
	return comm;
}

void sim_comm_unref(struct sim_comm *comm)
{
	if (!comm || --comm->refs > 0)
		return;
	(void)munmap(comm->shared, comm->bytes);
	free(comm->sent);
	free(comm->received);
	free(comm);
}

/* ---- parts ---- */

void sim_part_publish(struct sim_part *part, const struct sim_part *value)
{
	part->arrive_ns = value->arrive_ns;
	part->signature = value->signature;
	part->nic = value->nic;
	part->has_data = value->has_data;
	__atomic_store_n(&part->number, value->number, __ATOMIC_SEQ_CST);
}

bool sim_part_is(const struct sim_part *part, uint64_t number)
{
	return __atomic_load_n(&part->number, __ATOMIC_SEQ_CST) == number;
}

void sim_comm_ring(const struct sim_comm *comm, unsigned int rank)
{
	futex_change(&comm->shared->member[rank].bell);
}

void sim_comm_ring_all(const struct sim_comm *comm)
{
	/* Not always from rank 0 on: who is released first varies. */
	for (unsigned int i = 1; i < comm->ranks; i++)
		sim_comm_ring(comm, (comm->rank + i) % comm->ranks);
}

static bool near_enough(const struct sim_comm *comm, uint64_t number)
{
	for (unsigned int i = 0; i < comm->ranks; i++)
		if (__atomic_load_n(&comm->shared->member[i].resolved, __ATOMIC_SEQ_CST) +
			    SIM_SLOTS <
		    number)
			return false;
	return true;
}

bool sim_comm_has_room(const struct sim_comm *comm, uint64_t number)
{
	if (near_enough(comm, number))
		return true;
	__atomic_store_n(&comm->shared->starved, 1, __ATOMIC_SEQ_CST);
	return near_enough(comm, number); /* who resolved in between did not see the mark */
}

void sim_comm_resolved(struct sim_comm *comm, uint64_t number)
{
	comm->resolved = number;
	__atomic_store_n(&comm->shared->member[comm->rank].resolved, number, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&comm->shared->starved, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&comm->shared->starved, 0, __ATOMIC_SEQ_CST))
		sim_comm_ring_all(comm);
}

/* ---- new communicators from old ones ---- */

void sim_comm_derive(const struct sim_comm *comm, uint64_t salt, ncclUniqueId *ret_id)
{
	uint64_t hash = sim_hash(salt, &comm->id, sizeof(comm->id));

	*ret_id = (ncclUniqueId){0};
	memcpy(ret_id->internal, &hash, sizeof(hash));
}

void sim_comm_split(struct sim_comm *comm, int color, int key, unsigned int *ret_rank,
		    unsigned int *ret_ranks, ncclUniqueId *ret_id)
{
	struct sim_member *member = comm->shared->member;
	unsigned int rank = 0, ranks = 0;
	uint64_t number = ++comm->splits;

	/* A rank may be one split ahead of the slowest, never two: so two places are enough. */
	member[comm->rank].color[number % 2] = color;
	member[comm->rank].key[number % 2] = key;
	__atomic_store_n(&member[comm->rank].split, number, __ATOMIC_SEQ_CST);
	futex_change(&comm->shared->splits);
	for (unsigned int i = 0; i < comm->ranks; i++) {
		for (;;) {
			uint32_t seen = __atomic_load_n(&comm->shared->splits, __ATOMIC_SEQ_CST);

			if (__atomic_load_n(&member[i].split, __ATOMIC_SEQ_CST) >= number)
				break;
			futex_wait(&comm->shared->splits, seen);
		}
		if (member[i].color[number % 2] != color)
			continue;
		ranks++;
		if (member[i].key[number % 2] < key ||
		    (member[i].key[number % 2] == key && i < comm->rank))
			rank++;
	}
	sim_comm_derive(comm, number * 1000003 + (uint64_t)(unsigned int)color, ret_id);
	*ret_rank = rank;
	*ret_ranks = color == NCCL_SPLIT_NOCOLOR ? 0 : ranks;
}
