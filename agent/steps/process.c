/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/identity/owner.h"
#include "agent/profile/window_profile.h"
#include "agent/stack/window_stack.h"
#include "agent/steps/gpu_records.h"
#include "common/base/ascii.h"
#include "common/base/buf.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	PATH_BYTES = 64,
	PROC_TEXT = 64 << 10,
	STAT_PARENT = 1, /* fields behind the command, from 0 */
	STAT_START = 19,
};

struct nt_process *nt_process_new(uint32_t pid, uint64_t start_ns)
{
	struct nt_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->pid = pid;
	process->start_ns = start_ns;
	nt_environ_parse("", 0, &process->facts.env);
	return process;
}

void nt_process_free(struct nt_process *process)
{
	struct nt_communicator *comm, *next;

	if (!process)
		return;
	HASH_ITER(hh, process->comms, comm, next)
	{
		HASH_DEL(process->comms, comm);
		nt_communicator_free(comm);
	}
	for (comm = process->ended; comm; comm = next) {
		next = comm->next_ended;
		nt_communicator_free(comm);
	}
	nt_graph_free(process->graph);
	nt_gpu_records_free(process->gpu_records);
	nt_gemm_spans_free(process->gemm_spans);
	nt_gpu_heap_free(process->heap);
	nt_window_stack_free(process->stack);
	for (uint32_t i = 0; i < process->profiles; i++)
		nt_window_profile_free(process->profile[i]);
	free(process);
}

struct nt_thread *nt_process_thread(struct nt_process *process, uint32_t tid)
{
	for (uint32_t i = 0; i < process->threads; i++) {
		if (process->thread[i].tid == tid)
			return &process->thread[i];
	}
	if (process->threads == NT_PROCESS_THREADS)
		return NULL;
	process->thread[process->threads] = (struct nt_thread){.tid = tid};
	return &process->thread[process->threads++];
}

bool nt_process_uses_gpu(const struct nt_process *process)
{
	return process->libraries & (1U << NT_LIBRARY_CUDA | 1U << NT_LIBRARY_CUDART);
}

/* ---- /proc ---------------------------------------------------------------------------------- */

/* Field i behind the command in the text of /proc/PID/stat. */
static uint64_t stat_field(const char *text, size_t len, int field)
{
	const char *at = memrchr(text, ')', len), *end = text + len;
	uint64_t value = 0;

	if (!at)
		return 0;
	at++;
	for (int i = 0; at < end; i++) {
		const char *stop;

		while (at < end && *at == ' ')
			at++;
		stop = memchr(at, ' ', (size_t)(end - at));
		stop = stop ? stop : end;
		if (i == field) {
			(void)!nt_parse_u64(at, (size_t)(stop - at), 0, UINT64_MAX, &value);
			return value;
		}
		at = stop;
	}
	return 0;
}

static int read_proc(uint32_t pid, const char *name, struct nt_buf *buf)
{
	char path[PATH_BYTES];

	nt_buf_clear(buf);
	(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return nt_file_read(path, PROC_TEXT, buf);
}

static uint64_t hash_parent(uint32_t pid, struct nt_buf *buf)
{
	uint64_t parent, start = 0;

	if (read_proc(pid, "stat", buf) < 0)
		return 0;
	parent = stat_field((const char *)buf->data, buf->len, STAT_PARENT);
	if (parent && parent <= UINT32_MAX && read_proc((uint32_t)parent, "stat", buf) == 0)
		start = stat_field((const char *)buf->data, buf->len, STAT_START);
	return nt_hash_u64(nt_hash_u64(NT_HASH_SEED, parent), start);
}

static void copy_line(char *to, size_t size, const char *from, size_t len)
{
	const char *end = len ? memchr(from, '\n', len) : NULL;

	nt_ascii_copy(to, size, from, end ? (size_t)(end - from) : len);
}

int nt_process_describe(uint32_t pid, const struct nt_environ *env,
			struct nt_process_facts *ret_facts)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_process_facts facts = {.env = *env};
	int r;

	r = read_proc(pid, "comm", &buf);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	copy_line(facts.command, sizeof(facts.command), (const char *)buf.data, buf.len);
	if (read_proc(pid, "cgroup", &buf) == 0)
		nt_cgroup_parse((const char *)buf.data, buf.len, &facts.cgroup);
	facts.parent = hash_parent(pid, &buf);
	if (read_proc(pid, "status", &buf) == 0)
		facts.has_uid =
			nt_owner_parse_real_uid((const char *)buf.data, buf.len, &facts.uid) == 0;
	*ret_facts = facts;
	return 0;
}
