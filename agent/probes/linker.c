/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/linker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/probes/link_queue.h"
#include "common/system/clock.h"
#include "common/system/thread.h"

enum {
	PATH_BYTES = 64,
};

struct request {
	struct nt_link_entry entry; /* must be first */
	uint64_t token;
	int fd; /* owned; -1: the request is to free the link set */
	uint32_t pid;
	uint64_t look_ns;
	struct nt_link_set *link_set; /* owned */
	struct nt_rank_probe *probe; /* owned; to be freed, like the link set */
	struct nt_rank_probe_sites *sites; /* owned; or NULL */
	struct nt_linker_result result;
	size_t targets;
	struct nt_probe_target target[];
};

struct nt_linker {
	const struct nt_bpf_loader *loader;
	pthread_t thread;
	bool runs, ends;
	int event; /* eventfd: counts results */
	pthread_mutex_t lock; /* of the two queues and `ends` */
	pthread_cond_t wake;
	struct nt_link_queue waiting;
	struct nt_link_list done;
};

/* Maps NULL to NULL. */
static struct request *request_of(struct nt_link_entry *entry)
{
	return (struct request *)(void *)entry;
}

static void request_free(struct request *request)
{
	nt_link_set_free(request->link_set);
	nt_rank_probe_free(request->probe);
	nt_rank_probe_free(request->result.probe);
	free(request->sites);
	nt_link_set_free(request->result.link_set);
	free(request->result.refused);
	nt_closep(&request->fd);
	free(request);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void pause_for(uint64_t ns)
{
	struct timespec time = {
		.tv_sec = (time_t)(ns / NT_SECOND),
		.tv_nsec = (long)(ns % NT_SECOND),
	};

	while (nanosleep(&time, &time) < 0 && errno == EINTR)
		;
}

static void carry_out(struct nt_linker *linker, struct request *request)
{
	struct nt_linker_result *result = &request->result;
	char path[PATH_BYTES];

	result->token = request->token;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", request->fd);
	if (request->sites)
		result->r = nt_rank_probe_new_at(linker->loader, request->fd, request->pid,
						 request->sites, &result->probe);
	else if (result->refused)
		result->r =
			nt_link_set_attach(linker->loader, path, request->target, request->targets,
					   result->refused, &result->link_set);
	else
		result->r = nt_link_set_new(linker->loader, path, request->pid, request->target,
					    request->targets, &result->link_set);
	result->from_ns = result->until_ns = nt_clock_boot_ns();
	if (result->r < 0 || !request->look_ns)
		return;
	pause_for(request->look_ns);
	nt_link_set_free(nt_take(result->link_set));
	result->until_ns = nt_clock_boot_ns();
}

static void *run(void *data)
{
	struct nt_linker *linker = data;
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&linker->lock);
	for (;;) {
		struct request *request = request_of(nt_link_queue_pop(&linker->waiting));

		if (!request && linker->ends)
			break;
		if (!request) {
			(void)pthread_cond_wait(&linker->wake, &linker->lock);
			continue;
		}
		/* On exit only requests to free are carried out. */
		if (linker->ends && request->fd >= 0) {
			request_free(request);
			continue;
		}
		(void)pthread_mutex_unlock(&linker->lock);
		if (request->fd >= 0)
			carry_out(linker, request);
		else
			request_free(nt_take(request));
		(void)pthread_mutex_lock(&linker->lock);
		if (!request)
			continue;
		nt_link_list_push(&linker->done, &request->entry);
		(void)!write(linker->event, &one, sizeof(one));
	}
	(void)pthread_mutex_unlock(&linker->lock);
	return NULL;
}

/* ---- the loop -------------------------------------------------------------------------------- */

int nt_linker_new(const struct nt_bpf_loader *loader, struct nt_linker **ret_linker)
{
	nt_auto(nt_linker) struct nt_linker *linker = calloc(1, sizeof(*linker));
	int r;

	if (!linker)
		return -ENOMEM;
	linker->loader = loader;
	(void)pthread_mutex_init(&linker->lock, NULL);
	(void)pthread_cond_init(&linker->wake, NULL);
	linker->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (linker->event < 0)
		return -errno;
	r = nt_thread_start(&linker->thread, run, linker);
	if (r < 0)
		return r;
	linker->runs = true;
	*ret_linker = nt_take(linker);
	return 0;
}

void nt_linker_free(struct nt_linker *linker)
{
	struct request *request;

	if (!linker)
		return;
	if (linker->runs) {
		(void)pthread_mutex_lock(&linker->lock);
		linker->ends = true;
		(void)pthread_cond_signal(&linker->wake);
		(void)pthread_mutex_unlock(&linker->lock);
		(void)pthread_join(linker->thread, NULL);
	}
	while ((request = request_of(nt_link_queue_pop(&linker->waiting))))
		request_free(request);
	while ((request = request_of(nt_link_list_pop(&linker->done))))
		request_free(request);
	(void)pthread_mutex_destroy(&linker->lock);
	(void)pthread_cond_destroy(&linker->wake);
	if (linker->event > 0)
		(void)close(linker->event);
	free(linker);
}

int nt_linker_fd(const struct nt_linker *linker)
{
	return linker->event;
}

static int submit(struct nt_linker *linker, enum nt_link_job job, uint64_t owner,
		  struct request *request)
{
	int r;

	(void)pthread_mutex_lock(&linker->lock);
	r = nt_link_queue_push(&linker->waiting, job, owner, &request->entry);
	(void)pthread_cond_signal(&linker->wake);
	(void)pthread_mutex_unlock(&linker->lock);
	return r;
}

bool nt_linker_has_room(struct nt_linker *linker, uint64_t owner, bool look)
{
	bool has;

	(void)pthread_mutex_lock(&linker->lock);
	has = nt_link_queue_has_room(&linker->waiting, look ? NT_LINK_LOOK : NT_LINK_MAKE, owner);
	(void)pthread_mutex_unlock(&linker->lock);
	return has;
}

/* Copies into the request what it has to own. */
static int fill(struct request *request, const struct nt_linker_request *wanted)
{
	request->token = wanted->token;
	request->pid = wanted->pid;
	request->look_ns = wanted->look_ns;
	request->targets = wanted->targets;
	if (wanted->targets)
		memcpy(request->target, wanted->target, wanted->targets * sizeof(*wanted->target));
	if (wanted->halves) {
		request->result.refused = calloc(wanted->targets + 1, sizeof(bool));
		if (!request->result.refused)
			return -ENOMEM;
	}
	if (wanted->sites) {
		request->sites = malloc(sizeof(*request->sites));
		if (!request->sites)
			return -ENOMEM;
		*request->sites = *wanted->sites;
	}
	request->fd = fcntl(wanted->fd, F_DUPFD_CLOEXEC, 0);
	return request->fd < 0 ? -errno : 0;
}

int nt_linker_make(struct nt_linker *linker, const struct nt_linker_request *wanted)
{
	struct request *request;
	int r;

	if (!nt_linker_has_room(linker, wanted->owner, wanted->look_ns > 0))
		return -EAGAIN;
	request = calloc(1, sizeof(*request) + wanted->targets * sizeof(*wanted->target));
	if (!request)
		return -ENOMEM;
	request->fd = -1;
	r = fill(request, wanted);
	if (r == 0)
		r = submit(linker, wanted->look_ns ? NT_LINK_LOOK : NT_LINK_MAKE, wanted->owner,
			   request);
	if (r < 0)
		request_free(request);
	return r;
}

/* One of the two is NULL. */
static void drop(struct nt_linker *linker, uint64_t owner, struct nt_link_set *link_set,
		 struct nt_rank_probe *probe)
{
	struct request *request = calloc(1, sizeof(*request));

	/* Out of memory: freed here, which blocks, but nothing stays attached. */
	if (!request) {
		nt_link_set_free(link_set);
		nt_rank_probe_free(probe);
		return;
	}
	request->fd = -1;
	request->link_set = link_set;
	request->probe = probe;
	(void)submit(linker, NT_LINK_FREE, owner, request);
}

void nt_linker_drop(struct nt_linker *linker, uint64_t owner, struct nt_link_set *link_set)
{
	if (link_set)
		drop(linker, owner, link_set, NULL);
}

void nt_linker_drop_rank_probe(struct nt_linker *linker, struct nt_rank_probe *probe)
{
	if (probe)
		drop(linker, 0, NULL, probe);
}

bool nt_linker_next(struct nt_linker *linker, struct nt_linker_result *ret_result)
{
	struct request *request;
	uint64_t count;

	(void)!read(linker->event, &count, sizeof(count));
	(void)pthread_mutex_lock(&linker->lock);
	request = request_of(nt_link_list_pop(&linker->done));
	(void)pthread_mutex_unlock(&linker->lock);
	if (!request)
		return false;
	*ret_result = request->result;
	request->result.link_set = NULL;
	request->result.probe = NULL;
	request->result.refused = NULL;
	request_free(request);
	return true;
}
