/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/comm_layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/ascii.h"

enum {
	MAX_RANKS = 1 << 20,
	MAX_DEVICES = 1024,

	/* struct ncclComm, counted from commHash. */
	NCCL_RANK = 8,
	NCCL_SIZE = 12,
	NCCL_DEVICE = 16,
	NCCL_READ = 24,
	NCCL_LEARN_FROM = 0x1000,
	NCCL_LEARN_UNTIL = 0x180000,
	NCCL_LEARN_CHUNK = 64 << 10,

	/* struct ompi_communicator_t of 4.x. */
	MPI_NAME = 160,
	MPI_NAME_BYTES = 64,
	MPI_CONTEXT = 224,
	MPI_RANK = 228,
	MPI_GROUP = 248,
	MPI_BYTES = 256,
	GROUP_SIZE = 16, /* ompi_group_t.grp_proc_count, and grp_my_rank behind it */

	GLOO_BYTES = 16,
};

#define NCCL_MAGIC 0x0280028002800280ULL /* ncclComm.startMagic */

/* Offset of commHash, and of localRank and localRanks, by release. */
static const struct {
	uint32_t hash, local;
} nccl_layouts[] = {
	{0x1044c8, 0x10458c}, /* 2.28.9 */
	{0x1206d0, 0x120794}, /* 2.29.7 */
	{0x1206e8, 0x1207ac}, /* 2.30.7 */
	{0x1206e0, 0x1207a4}, /* 2.31.2 */
	{0x1206e0, 0x1207b0}, /* 2.32.3 */
};

static uint32_t u32_at(const uint8_t *bytes, size_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static uint64_t u64_at(const uint8_t *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static bool is_place(uint32_t rank, uint32_t size)
{
	return size > 0 && size <= MAX_RANKS && rank < size;
}

/* ---- NCCL ----------------------------------------------------------------------------------- */

uint64_t nt_comm_layout_nccl_hash(const uint8_t *id, size_t size)
{
	uint64_t hash = 5381;

	/* Bernstein's, over signed characters as NCCL has it on x86-64. */
	for (size_t i = 0; i < size; i++)
		hash = hash * 33 ^ (uint64_t)(int64_t)(int8_t)id[i];
	return hash;
}

static int read_nccl(const struct nt_memory *memory, uint32_t pid, uint64_t address,
		     uint32_t offset, struct nt_comm_layout_comm *ret_comm)
{
	uint8_t bytes[NCCL_READ];
	int r = nt_memory_read(memory, pid, address + offset, bytes, sizeof(bytes));

	if (r < 0)
		return r;
	if (!u64_at(bytes, 0) || !is_place(u32_at(bytes, NCCL_RANK), u32_at(bytes, NCCL_SIZE)) ||
	    u32_at(bytes, NCCL_DEVICE) >= MAX_DEVICES)
		return -ENOENT;
	*ret_comm = (struct nt_comm_layout_comm){
		.hash = u64_at(bytes, 0),
		.rank = u32_at(bytes, NCCL_RANK),
		.size = u32_at(bytes, NCCL_SIZE),
	};
	return 0;
}

static bool has_local_place(const struct nt_memory *memory, uint32_t pid, uint64_t address,
			    const struct nt_comm_layout_comm *comm)
{
	uint8_t bytes[8];

	if (nt_memory_read(memory, pid, address, bytes, sizeof(bytes)) < 0)
		return false;
	return is_place(u32_at(bytes, 0), u32_at(bytes, 4)) && u32_at(bytes, 0) <= comm->rank &&
	       u32_at(bytes, 4) <= comm->size;
}

/* Of that file and owner; learned->files: nothing is known. */
static uint32_t find_learned(const struct nt_comm_layout_learned *learned, uint64_t file,
			     uint64_t owner)
{
	uint32_t i = 0;

	while (i < learned->files && (learned->of[i].file != file ||
				      (learned->of[i].is_stated && learned->of[i].owner != owner)))
		i++;
	return i;
}

int nt_comm_layout_nccl(const struct nt_memory *memory, uint32_t pid, uint64_t address,
			uint64_t file, uint64_t owner, const struct nt_comm_layout_learned *learned,
			struct nt_comm_layout_comm *ret_comm)
{
	struct nt_comm_layout_comm comm;
	uint64_t magic;
	int r;

	r = nt_memory_u64(memory, pid, address, &magic);
	if (r < 0)
		return r;
	if (magic != NCCL_MAGIC)
		return -ENOENT;
	if (nt_comm_layout_is_learned(learned, file, owner))
		return read_nccl(memory, pid, address,
				 learned->of[find_learned(learned, file, owner)].hash_offset,
				 ret_comm);
	for (size_t i = 0; i < sizeof(nccl_layouts) / sizeof(nccl_layouts[0]); i++) {
		if (read_nccl(memory, pid, address, nccl_layouts[i].hash, &comm) < 0 ||
		    !has_local_place(memory, pid, address + nccl_layouts[i].local, &comm))
			continue;
		*ret_comm = comm;
		return 0;
	}
	return -ENOENT;
}

static uint32_t find_pattern(const struct nt_memory *memory, uint32_t pid, uint64_t address,
			     const uint8_t *pattern, size_t size)
{
	nt_autofree uint8_t *chunk = malloc(NCCL_LEARN_CHUNK);

	if (!chunk)
		return 0;
	for (uint32_t at = NCCL_LEARN_FROM; at < NCCL_LEARN_UNTIL; at += NCCL_LEARN_CHUNK / 2) {
		const uint8_t *hit;

		if (nt_memory_read(memory, pid, address + at, chunk, NCCL_LEARN_CHUNK) < 0)
			return 0;
		hit = memmem(chunk, NCCL_LEARN_CHUNK, pattern, size);
		if (hit)
			return at + (uint32_t)(hit - chunk);
	}
	return 0;
}

static uint32_t files_of(const struct nt_comm_layout_learned *learned, uint64_t owner)
{
	uint32_t files = 0;

	for (uint32_t i = 0; i < learned->files; i++)
		files += learned->of[i].owner == owner;
	return files;
}

/* A single owner's files do not replace each other: each is searched once. */
static bool make_room(struct nt_comm_layout_learned *learned, uint64_t owner)
{
	uint32_t at = 0;

	if (learned->files < NT_COMM_LAYOUT_FILES)
		return true;
	for (uint32_t i = 1; i < learned->files; i++) {
		if (files_of(learned, learned->of[i].owner) >
		    files_of(learned, learned->of[at].owner))
			at = i;
	}
	if (files_of(learned, learned->of[at].owner) < files_of(learned, owner) + 2)
		return false;
	learned->files--;
	memmove(&learned->of[at], &learned->of[at + 1],
		(learned->files - at) * sizeof(learned->of[0]));
	return true;
}

void nt_comm_layout_learn(const struct nt_memory *memory, uint32_t pid, uint64_t address,
			  uint64_t file, uint64_t owner, uint64_t hash, uint32_t rank,
			  uint32_t size, struct nt_comm_layout_learned *learned)
{
	uint8_t pattern[NCCL_SIZE + 4];
	uint64_t magic;

	if (find_learned(learned, file, owner) < learned->files)
		return;
	if (!file || nt_memory_u64(memory, pid, address, &magic) < 0 || magic != NCCL_MAGIC ||
	    !make_room(learned, owner))
		return;
	memcpy(pattern, &hash, sizeof(hash));
	memcpy(pattern + NCCL_RANK, &rank, sizeof(rank));
	memcpy(pattern + NCCL_SIZE, &size, sizeof(size));
	learned->of[learned->files].file = file;
	learned->of[learned->files].owner = owner;
	learned->of[learned->files].is_stated = false;
	learned->of[learned->files].hash_offset =
		find_pattern(memory, pid, address, pattern, sizeof(pattern));
	learned->files++;
}

bool nt_comm_layout_is_learned(const struct nt_comm_layout_learned *learned, uint64_t file,
			       uint64_t owner)
{
	const uint32_t i = find_learned(learned, file, owner);

	return i < learned->files && learned->of[i].hash_offset;
}

/* NCCL_LEARN_CHUNK: none of the places is in the chunk. */
static uint32_t find_stated(const uint8_t *chunk, const struct nt_ras_comm *stated, size_t count)
{
	for (uint32_t at = 0; at + NCCL_READ <= NCCL_LEARN_CHUNK; at += 8) {
		const struct nt_ras_comm here = {.hash = u64_at(chunk, at),
						 .rank = u32_at(chunk, at + NCCL_RANK),
						 .size = u32_at(chunk, at + NCCL_SIZE)};

		if (here.hash && is_place(here.rank, here.size) &&
		    nt_ras_answer_find(stated, count, &here))
			return at;
	}
	return NCCL_LEARN_CHUNK;
}

/* 0: not found. */
static uint32_t find_in_comm(const struct nt_memory *memory, uint32_t pid, uint64_t address,
			     const struct nt_ras_comm *stated, size_t count)
{
	nt_autofree uint8_t *chunk = malloc(NCCL_LEARN_CHUNK);
	uint64_t magic;

	if (!chunk || nt_memory_u64(memory, pid, address, &magic) < 0 || magic != NCCL_MAGIC)
		return 0;
	/* A place at the end of a chunk is whole in the next one. */
	for (uint32_t at = NCCL_LEARN_FROM; at < NCCL_LEARN_UNTIL;
	     at += NCCL_LEARN_CHUNK - NCCL_READ + 8) {
		uint32_t hit;

		if (nt_memory_read(memory, pid, address + at, chunk, NCCL_LEARN_CHUNK) < 0)
			return 0;
		hit = find_stated(chunk, stated, count);
		if (hit < NCCL_LEARN_CHUNK)
			return at + hit;
	}
	return 0;
}

bool nt_comm_layout_learn_stated(const struct nt_memory *memory, uint32_t pid, uint64_t address,
				 uint64_t file, uint64_t owner, const struct nt_ras_comm *stated,
				 size_t count, struct nt_comm_layout_learned *learned)
{
	uint32_t offset, i;

	if (!file || !count || nt_comm_layout_is_learned(learned, file, owner))
		return false;
	offset = find_in_comm(memory, pid, address, stated, count);
	if (!offset)
		return false;
	i = find_learned(learned, file, owner);
	if (i == learned->files) {
		if (!make_room(learned, owner))
			return false;
		i = learned->files++;
	}
	learned->of[i].file = file;
	learned->of[i].owner = owner;
	learned->of[i].hash_offset = offset;
	learned->of[i].is_stated = true;
	return true;
}

/* ---- MPI and Gloo --------------------------------------------------------------------------- */

int nt_comm_layout_open_mpi(const struct nt_memory *memory, uint32_t pid, uint64_t address,
			    struct nt_comm_layout_comm *ret_comm)
{
	uint8_t bytes[MPI_BYTES], group[8];
	struct nt_comm_layout_comm comm = {0};
	int r;

	r = nt_memory_read(memory, pid, address, bytes, sizeof(bytes));
	if (r < 0)
		return r;
	if (!memchr(bytes + MPI_NAME, '\0', MPI_NAME_BYTES))
		return -ENOENT;
	comm.rank = u32_at(bytes, MPI_RANK);
	if (comm.rank >= MAX_RANKS)
		return -ENOENT;
	nt_ascii_copy_text(comm.name, sizeof(comm.name), (const char *)bytes + MPI_NAME);
	r = nt_memory_read(memory, pid, u64_at(bytes, MPI_GROUP) + GROUP_SIZE, group,
			   sizeof(group));
	/* Another release's layout: the rank alone is accepted if the name confirms it. */
	if (r == 0 && u32_at(group, 4) == comm.rank && is_place(comm.rank, u32_at(group, 0)))
		comm.size = u32_at(group, 0);
	else if (strncmp(comm.name, "MPI", 3) != 0)
		return -ENOENT;
	*ret_comm = comm;
	return 0;
}

int nt_comm_layout_gloo(const struct nt_memory *memory, uint32_t pid, uint64_t address,
			struct nt_comm_layout_comm *ret_comm)
{
	uint8_t bytes[GLOO_BYTES];
	int r = nt_memory_read(memory, pid, address, bytes, sizeof(bytes));

	if (r < 0)
		return r;
	for (size_t at = 0; at <= 8; at += 8) {
		if (!is_place(u32_at(bytes, at), u32_at(bytes, at + 4)))
			continue;
		*ret_comm = (struct nt_comm_layout_comm){
			.rank = u32_at(bytes, at),
			.size = u32_at(bytes, at + 4),
		};
		return 0;
	}
	return -ENOENT;
}
