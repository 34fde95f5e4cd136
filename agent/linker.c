/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/linker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/thread.h"

enum {
	PATH_BYTES = 64,
};

struct request {
	uint64_t token;
	int fd; /* owned; -1: the bundle is to be freed */
	uint32_t pid;
	uint64_t look_ns;
	struct nt_bundle *bundle; /* owned */
	struct request *next;
	struct nt_linker_result result;
	size_t targets;
	struct nt_target target[];
};

struct queue {
	struct request *first, **last;
	size_t count;
};

struct nt_linker {
	const struct nt_kernel *kernel;
	pthread_t thread;
	bool runs, ends;
	int event; /* counts results */
	pthread_mutex_t lock; /* of the two queues and `ends` */
	pthread_cond_t wake;
	struct queue waiting, done;
};

static void push(struct queue *queue, struct request *request)
{
	if (!queue->first)
		queue->last = &queue->first;
	request->next = NULL;
	*queue->last = request;
	queue->last = &request->next;
	queue->count++;
}

static struct request *pop(struct queue *queue)
{
	struct request *request = queue->first;

	if (!request)
		return NULL;
	queue->first = request->next;
	queue->count--;
	return request;
}

static void request_free(struct request *request)
{
	nt_bundle_free(request->bundle);
	nt_bundle_free(request->result.bundle);
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
	result->r = nt_bundle_new(linker->kernel, path, request->pid, request->target,
				  request->targets, &result->bundle);
	result->from_ns = result->until_ns = nt_clock_boot_ns();
	if (result->r < 0 || !request->look_ns)
		return;
	pause_for(request->look_ns);
	nt_bundle_free(nt_take(result->bundle));
	result->until_ns = nt_clock_boot_ns();
}

static void *run(void *data)
{
	struct nt_linker *linker = data;
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&linker->lock);
	for (;;) {
		struct request *request = pop(&linker->waiting);

		if (!request && linker->ends)
			break;
		if (!request) {
			(void)pthread_cond_wait(&linker->wake, &linker->lock);
			continue;
		}
		/* At the end only what is attached has to go. */
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
		push(&linker->done, request);
		(void)!write(linker->event, &one, sizeof(one));
	}
	(void)pthread_mutex_unlock(&linker->lock);
	return NULL;
}

/* ---- the loop -------------------------------------------------------------------------------- */

int nt_linker_new(const struct nt_kernel *kernel, struct nt_linker **ret_linker)
{
	nt_auto(nt_linker) struct nt_linker *linker = calloc(1, sizeof(*linker));
	int r;

	if (!linker)
		return -ENOMEM;
	linker->kernel = kernel;
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
	while ((request = pop(&linker->waiting)))
		request_free(request);
	while ((request = pop(&linker->done)))
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

static void submit(struct nt_linker *linker, struct request *request)
{
	(void)pthread_mutex_lock(&linker->lock);
	push(&linker->waiting, request);
	(void)pthread_cond_signal(&linker->wake);
	(void)pthread_mutex_unlock(&linker->lock);
}

static size_t count_waiting(struct nt_linker *linker)
{
	size_t count;

	(void)pthread_mutex_lock(&linker->lock);
	count = linker->waiting.count;
	(void)pthread_mutex_unlock(&linker->lock);
	return count;
}

int nt_linker_make(struct nt_linker *linker, uint64_t token, int fd, uint32_t pid,
		   const struct nt_target *target, size_t targets, uint64_t look_ns)
{
	struct request *request;

	if (count_waiting(linker) >= NT_LINKER_REQUESTS)
		return -EAGAIN;
	request = calloc(1, sizeof(*request) + targets * sizeof(*target));
	if (!request)
		return -ENOMEM;
	request->token = token;
	request->pid = pid;
	request->look_ns = look_ns;
	request->targets = targets;
	memcpy(request->target, target, targets * sizeof(*target));
	request->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (request->fd < 0) {
		int r = -errno;

		free(request);
		return r;
	}
	submit(linker, request);
	return 0;
}

void nt_linker_drop(struct nt_linker *linker, struct nt_bundle *bundle)
{
	struct request *request;

	if (!bundle)
		return;
	request = calloc(1, sizeof(*request));
	/* Without memory it is freed here, which takes longer, and nothing stays attached. */
	if (!request) {
		nt_bundle_free(bundle);
		return;
	}
	request->fd = -1;
	request->bundle = bundle;
	submit(linker, request);
}

bool nt_linker_next(struct nt_linker *linker, struct nt_linker_result *ret_result)
{
	struct request *request;
	uint64_t count;

	(void)!read(linker->event, &count, sizeof(count));
	(void)pthread_mutex_lock(&linker->lock);
	request = pop(&linker->done);
	(void)pthread_mutex_unlock(&linker->lock);
	if (!request)
		return false;
	*ret_result = request->result;
	request->result.bundle = NULL;
	request_free(request);
	return true;
}
