/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/socket/sockets.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "agent/socket/socket_reader.h"
#include "agent/socket/socket_table.h"
#include "common/base/table.h"
#include "common/system/clock.h"
#include "common/system/thread.h"

struct watched_process {
	uint32_t pid; /* the key */
	bool is_pending; /* its reading is under way, or not taken yet */
	uint64_t read_ns, due_ns; /* when it was last begun; the next one */
	struct nt_socket_table table;
	UT_hash_handle hh;
};

/* One reading: written by the thread while `is_requested`, by the loop otherwise. */
struct socket_reading {
	uint32_t pid;
	int result;
	uint64_t boot_ns, took_ns;
	size_t records, left_out;
	struct nt_socket_record record[NT_SOCKETS];
};

struct nt_sockets {
	struct nt_socket_reader *reader;
	struct watched_process *process;
	struct nt_sockets_stats stats;
	struct nt_socket_rows rows;
	struct nt_tcp_window window;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_requested, is_ending; /* under the lock */
	bool is_pending; /* of the loop: the reading belongs to a process */
	struct socket_reading reading;
};

/* ---- the thread ------------------------------------------------------------------------------ */

static void read_process(struct nt_socket_reader *reader, struct socket_reading *reading)
{
	const uint64_t begin_ns = nt_clock_mono_ns();

	reading->result = nt_socket_reader_read(reader, reading->pid, reading->record, NT_SOCKETS,
						&reading->records, &reading->left_out);
	reading->boot_ns = nt_clock_boot_ns();
	reading->took_ns = nt_clock_mono_ns() - begin_ns;
}

static void *read_sockets(void *data)
{
	struct nt_sockets *sockets = data;

	(void)pthread_mutex_lock(&sockets->lock);
	while (!sockets->is_ending) {
		if (!sockets->is_requested) {
			(void)pthread_cond_wait(&sockets->changed, &sockets->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&sockets->lock);
		read_process(sockets->reader, &sockets->reading);
		(void)pthread_mutex_lock(&sockets->lock);
		sockets->is_requested = false;
	}
	(void)pthread_mutex_unlock(&sockets->lock);
	return NULL;
}

/* ---- the loop -------------------------------------------------------------------------------- */

int nt_sockets_new(struct nt_sockets **ret_sockets)
{
	nt_auto(nt_sockets) struct nt_sockets *sockets = calloc(1, sizeof(*sockets));
	int r;

	if (!sockets)
		return -ENOMEM;
	(void)pthread_mutex_init(&sockets->lock, NULL);
	nt_thread_condition_init(&sockets->changed);
	r = nt_socket_reader_new(&sockets->reader);
	if (r == 0)
		r = nt_thread_start(&sockets->thread, read_sockets, sockets);
	if (r < 0)
		return r;
	sockets->has_thread = true;
	*ret_sockets = nt_take(sockets);
	return 0;
}

static void drop(struct nt_sockets *sockets, struct watched_process *process)
{
	HASH_DEL(sockets->process, process);
	nt_socket_table_release(&process->table);
	free(process);
}

void nt_sockets_free(struct nt_sockets *sockets)
{
	struct watched_process *process, *next;

	if (!sockets)
		return;
	(void)pthread_mutex_lock(&sockets->lock);
	sockets->is_ending = true;
	(void)pthread_cond_signal(&sockets->changed);
	(void)pthread_mutex_unlock(&sockets->lock);
	if (sockets->has_thread)
		(void)pthread_join(sockets->thread, NULL);
	HASH_ITER(hh, sockets->process, process, next)
	drop(sockets, process);
	nt_socket_reader_free(sockets->reader);
	(void)pthread_cond_destroy(&sockets->changed);
	(void)pthread_mutex_destroy(&sockets->lock);
	free(sockets);
}

static struct watched_process *find(const struct nt_sockets *sockets, uint32_t pid)
{
	struct watched_process *process = NULL;

	HASH_FIND(hh, sockets->process, &pid, sizeof(pid), process);
	return process;
}

void nt_sockets_add(struct nt_sockets *sockets, uint32_t pid)
{
	struct watched_process *process;

	if (!sockets || find(sockets, pid))
		return;
	process = HASH_COUNT(sockets->process) < NT_SOCKETS_PROCESSES ? calloc(1, sizeof(*process))
								      : NULL;
	if (!process) {
		sockets->stats.processes_over_cap++;
		return;
	}
	process->pid = pid;
	HASH_ADD(hh, sockets->process, pid, sizeof(process->pid), process);
	if (nt_table_has(process))
		return;
	sockets->stats.processes_over_cap++;
	free(process);
}

void nt_sockets_end(struct nt_sockets *sockets, uint32_t pid)
{
	struct watched_process *process = sockets ? find(sockets, pid) : NULL;

	if (process)
		drop(sockets, process);
}

static void take_reading(struct nt_sockets *sockets)
{
	const struct socket_reading *reading = &sockets->reading;
	struct watched_process *process = find(sockets, reading->pid);
	struct nt_sockets_stats *stats = &sockets->stats;
	int r = reading->result;

	sockets->is_pending = false;
	stats->readings++;
	stats->read_ns += reading->took_ns;
	/* Another process may have its number by now: then no reading of it is pending. */
	if (r == 0 && process && process->is_pending)
		r = nt_socket_table_take(&process->table, reading->record, reading->records,
					 reading->left_out, reading->boot_ns);
	if (r < 0)
		stats->failed++;
	if (!process || !process->is_pending)
		return;
	process->is_pending = false;
	process->due_ns = process->read_ns + nt_socket_pause_ns(reading->took_ns);
	stats->sockets_over_cap += process->table.over_cap;
}

/* The one that is due for the longest time; NULL: none. */
static struct watched_process *find_due(const struct nt_sockets *sockets, uint64_t now_ns)
{
	struct watched_process *due = NULL;

	for (struct watched_process *p = sockets->process; p; p = p->hh.next)
		if (p->due_ns <= now_ns && (!due || p->due_ns < due->due_ns))
			due = p;
	return due;
}

void nt_sockets_tick(struct nt_sockets *sockets, uint64_t now_ns)
{
	struct watched_process *due;
	bool is_busy;

	if (!sockets)
		return;
	(void)pthread_mutex_lock(&sockets->lock);
	is_busy = sockets->is_requested;
	(void)pthread_mutex_unlock(&sockets->lock);
	if (is_busy)
		return;
	if (sockets->is_pending)
		take_reading(sockets);
	due = find_due(sockets, now_ns);
	if (!due)
		return;
	due->is_pending = true;
	due->read_ns = now_ns;
	due->due_ns = now_ns + nt_socket_pause_ns(0);
	sockets->is_pending = true;
	sockets->reading.pid = due->pid;
	(void)pthread_mutex_lock(&sockets->lock);
	sockets->is_requested = true;
	(void)pthread_cond_signal(&sockets->changed);
	(void)pthread_mutex_unlock(&sockets->lock);
}

const struct nt_tcp_window *nt_sockets_take_window(struct nt_sockets *sockets, uint32_t pid)
{
	struct watched_process *process = sockets ? find(sockets, pid) : NULL;

	if (!process || !nt_socket_table_window(&process->table, &sockets->rows, &sockets->window))
		return NULL;
	sockets->stats.unsent += sockets->window.unsent;
	return &sockets->window;
}

void nt_sockets_stats(const struct nt_sockets *sockets, struct nt_sockets_stats *ret_stats)
{
	*ret_stats = sockets ? sockets->stats : (struct nt_sockets_stats){0};
	if (!sockets)
		return;
	ret_stats->processes = HASH_COUNT(sockets->process);
	for (const struct watched_process *p = sockets->process; p; p = p->hh.next)
		ret_stats->sockets += HASH_COUNT(p->table.socket);
}
