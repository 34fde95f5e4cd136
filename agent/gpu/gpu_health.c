/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpu_health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/log.h"

/* From the worker; flat. */
struct answer {
	int32_t result; /* of opening the library */
	char error[NT_LIBRARY_ERROR];
	struct nt_gpu_cards cards;
};

_Static_assert(sizeof(struct answer) <= NT_WORKER_BYTES, "one message");

struct nt_gpu_health {
	struct nt_workers *workers;
	enum nt_gpu_vendor vendor;
	const char *library; /* NULL: by its own names */
	struct nt_worker *worker;
	uint64_t asked_ns; /* when the awaited answer was requested; 0: none is awaited */
	uint64_t begun_ns; /* the same of the last answer */
	uint64_t rests_until_ns;
	pid_t killed; /* the last worker that was killed; 0: none */
	int result; /* of the last attempt */
	bool is_said; /* the log states that result */
	bool has_cards;
	struct answer answer;
	struct nt_gpu_totals totals;
	struct nt_gpu_health_stats stats;
};

/* ---- the worker ----------------------------------------------------------------------------- */

/*
 * The request is the vendor, and the library's path or "". The library stays open: XIDs are reported
 * to registered processes only.
 */
static void serve(int socket, const uint8_t *request, size_t len, int fd)
{
	static void *state;
	static struct answer answer;
	const struct nt_gpu_library *library;
	const char *path = (const char *)request + 1;

	(void)fd;
	if (len < 2 || *request >= NT_GPU_VENDORS || request[len - 1])
		return;
	library = &nt_gpu_libraries[*request];
	if (!state)
		answer.result = library->open(*path ? path : NULL, answer.error, &state);
	if (state)
		library->read(state, &answer.cards);
	nt_worker_answer(socket, &answer, sizeof(answer), -1);
}

/* ---- the agent ------------------------------------------------------------------------------ */

int nt_gpu_health_new(struct nt_workers *workers, enum nt_gpu_vendor vendor, const char *library,
		      struct nt_gpu_health **ret_health)
{
	struct nt_gpu_health *health = calloc(1, sizeof(*health));

	if (!health)
		return -ENOMEM;
	health->workers = workers;
	health->vendor = vendor;
	health->library = library;
	*ret_health = health;
	return 0;
}

void nt_gpu_health_free(struct nt_gpu_health *health)
{
	if (!health)
		return;
	nt_worker_kill(health->workers, health->worker);
	free(health);
}

const struct nt_gpu_cards *nt_gpu_health_cards(const struct nt_gpu_health *health)
{
	return health->has_cards ? &health->answer.cards : NULL;
}

bool nt_gpu_health_of(const struct nt_gpu_health *health, uint32_t pid, const char *gpu,
		      struct nt_gpu_total *ret_total)
{
	return health->has_cards && nt_gpu_totals_get(&health->totals, pid, gpu, ret_total);
}

uint64_t nt_gpu_health_begun_ns(const struct nt_gpu_health *health)
{
	return health->begun_ns;
}

enum nt_gpu_shared nt_gpu_health_shared(const struct nt_gpu_health *health, uint32_t pid,
					uint32_t other)
{
	return health->has_cards ? nt_gpu_totals_shared(&health->totals, pid, other)
				 : NT_GPU_SHARED_UNKNOWN;
}

const struct nt_gpu_health_stats *nt_gpu_health_stats(const struct nt_gpu_health *health)
{
	return &health->stats;
}

/* One line for each change, not for each attempt. */
static void say(struct nt_gpu_health *health, int result)
{
	if (health->is_said && health->result == result)
		return;
	health->result = result;
	health->is_said = true;
	if (result == 0)
		nt_info("the health of %u GPUs is read through '%s'", health->answer.cards.count,
			health->library ? health->library : nt_gpu_libraries[health->vendor].name);
	else if (result == -ENOENT || result == -ENODEV)
		nt_info("the health of GPUs is not read: %s", health->answer.error);
	else
		(void)nt_warn(result, "read the health of GPUs%s%s",
			      *health->answer.error ? ": " : "", health->answer.error);
}

static void give_up(struct nt_gpu_health *health, int result, uint64_t now_ns)
{
	const bool is_absent = result == -ENOENT || result == -ENODEV;

	if (health->worker)
		health->killed = nt_worker_pid(health->worker);
	nt_worker_kill(health->workers, health->worker);
	health->worker = NULL;
	health->asked_ns = 0;
	health->has_cards = false;
	health->rests_until_ns =
		now_ns + (is_absent ? NT_GPU_HEALTH_LATE_NS : NT_GPU_HEALTH_REST_NS);
	health->stats.failures += !is_absent && result != -ETIMEDOUT;
	health->stats.stalls += result == -ETIMEDOUT;
	say(health, result);
}

static void take(struct nt_gpu_health *health, uint64_t now_ns)
{
	struct answer *answer = &health->answer;
	int fd = -1;
	ssize_t n = nt_worker_take(health->worker, answer, sizeof(*answer), &fd);

	if (fd >= 0)
		nt_closep(&fd); /* none was asked for */
	if (n == -EAGAIN) {
		if (now_ns - health->asked_ns < NT_GPU_HEALTH_STALL_NS)
			return;
		*answer->error = '\0';
		give_up(health, -ETIMEDOUT, now_ns);
		return;
	}
	if (n != sizeof(*answer) || !memchr(answer->error, '\0', sizeof(answer->error)) ||
	    answer->result > 0 || !nt_gpu_cards_are_sound(&answer->cards)) {
		*answer->error = '\0';
		give_up(health, n < 0 ? (int)n : -EBADMSG, now_ns);
		return;
	}
	if (answer->result < 0) {
		give_up(health, answer->result, now_ns);
		return;
	}
	health->begun_ns = health->asked_ns;
	health->asked_ns = 0;
	health->has_cards = true;
	health->stats.reads++;
	nt_gpu_totals_add(&health->totals, &answer->cards, now_ns);
	say(health, 0);
}

/*
 * A driver that hangs may hold a worker in the kernel, which then does not die. Others of them would
 * wait there, too, and all workers of the agent share NT_WORKERS_LEFT.
 */
static bool is_held_up(const struct nt_gpu_health *health)
{
	for (size_t i = 0; i < health->workers->lefts; i++)
		if (health->workers->left[i] == health->killed)
			return true;
	return false;
}

static int send_request(const struct nt_gpu_health *health)
{
	const char *path = health->library ? health->library : "";
	const size_t len = strlen(path) + 1;
	nt_autofree char *request = malloc(1 + len);

	if (!request)
		return -ENOMEM;
	*request = (char)health->vendor;
	memcpy(request + 1, path, len);
	return nt_worker_send(health->worker, request, 1 + len, -1);
}

static void ask(struct nt_gpu_health *health, uint64_t now_ns)
{
	int r = 0;

	if (!health->worker) {
		nt_workers_reap(health->workers);
		if (is_held_up(health)) {
			health->rests_until_ns = now_ns + NT_GPU_HEALTH_REST_NS;
			return;
		}
	}
	if (!health->worker)
		r = nt_worker_start(health->workers, serve, &health->worker);
	if (r == 0)
		r = send_request(health);
	if (r < 0) {
		*health->answer.error = '\0';
		give_up(health, r, now_ns);
		return;
	}
	health->asked_ns = now_ns;
}

void nt_gpu_health_tick(struct nt_gpu_health *health, uint64_t now_ns)
{
	if (health->asked_ns)
		take(health, now_ns);
	if (!health->asked_ns && now_ns >= health->rests_until_ns)
		ask(health, now_ns);
}
