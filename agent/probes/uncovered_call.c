/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/uncovered_call.h"

#include <string.h>

#include "agent/probes/probe.h"
#include "common/base/ascii.h"

#define MPI  "MPI_"
#define NCCL "nccl"

/* Beginnings of names behind the library's prefix. */
static const char *const mpi_calls[] = {
	"All",    "Barrier", "Bcast", "Bsend",   "Exscan", "Gather", "Mrecv", "Recv",
	"Reduce", "Rsend",   "Scan",  "Scatter", "Send",   "Ssend",  "Wait",  "Neighbor_",
};
static const char *const mpi_started[] = {
	"Iall",  "Ibarrier", "Ibcast", "Ibsend", "Iexscan",  "Igather", "Ineighbor_",
	"Irecv", "Ireduce",  "Irsend", "Iscan",  "Iscatter", "Isend",   "Issend",
};
static const char *const nccl_calls[] = {
	"All", "Broadcast", "Bcast", "Gather", "Recv", "Reduce", "Scatter", "Send",
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool starts_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool starts_with_any(const char *name, const char *const *prefix, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (starts_with(name, prefix[i]))
			return true;
	return false;
}

static bool is_mpi_call(const char *name)
{
	/* Calls without another rank; and those that prepare what MPI_Start starts. */
	if (starts_with(name, "Alloc_") || starts_with(name, "Reduce_local") ||
	    strstr(name, "_init"))
		return false;
	return starts_with_any(name, mpi_calls, COUNT(mpi_calls)) ||
	       starts_with_any(name, mpi_started, COUNT(mpi_started));
}

static bool has_row(const char *name)
{
	uint16_t rows = nt_probe_rows();

	for (uint16_t row = 0; row < rows; row++)
		if (strcmp(nt_probe_row(row)->symbol, name) == 0)
			return true;
	return false;
}

bool nt_uncovered_call(const char *name)
{
	bool is_call = false;

	if (starts_with(name, MPI))
		is_call = is_mpi_call(name + strlen(MPI));
	else if (starts_with(name, NCCL))
		is_call = starts_with_any(name + strlen(NCCL), nccl_calls, COUNT(nccl_calls));
	/* It calls ncclBroadcast, which has one. */
	return is_call && !has_row(name) && strcmp(name, "ncclBcast") != 0;
}

static void count(void *data, const char *name)
{
	struct nt_uncovered_calls *calls = data;

	if (!nt_uncovered_call(name))
		return;
	if (calls->count++ == 0)
		nt_ascii_copy_text(calls->first, sizeof(calls->first), name);
}

int nt_uncovered_calls_find(struct nt_elf *elf, enum nt_library library,
			    struct nt_uncovered_calls *ret_calls)
{
	struct nt_uncovered_calls calls = {0};
	const char *prefix = library == NT_LIBRARY_MPI    ? MPI
			     : library == NT_LIBRARY_NCCL ? NCCL
							  : NULL;
	int r;

	r = prefix ? nt_elf_each_name(elf, prefix, count, &calls) : 0;
	if (r < 0)
		return r;
	*ret_calls = calls;
	return 0;
}

bool nt_uncovered_calls_are_sound(const struct nt_uncovered_calls *calls)
{
	size_t len = strnlen(calls->first, sizeof(calls->first));

	return len < sizeof(calls->first) && (len > 0) == (calls->count > 0) &&
	       nt_ascii_is_visible(calls->first, len);
}
