/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/proc.h"
#include "agent/ras/ras_exchange.h"
#include "agent/ras/ras_target.h"
#include "common/system/log.h"

enum {
	CPU_SECONDS = 10,
};

/* Of the worker's own: it reports a timeout before it is killed. */
#define UNTIL_NS (25 * NT_SECOND)

struct ras_request {
	uint32_t pid;
	uint64_t start_ns;
};

/* From the worker; flat. */
struct ras_reply {
	int32_t result;
	struct nt_ras_answer answer;
};

_Static_assert(sizeof(struct ras_reply) <= NT_WORKER_BYTES, "one message");

struct nt_ras {
	struct nt_workers *workers;
	struct nt_worker *worker; /* NULL: no request is under way */
	struct nt_ras_want asked;
	uint64_t asked_ns;
	struct nt_ras_schedule schedule;
	struct nt_ras_stats stats;
	struct ras_reply reply;
};

static const struct {
	int result;
	enum nt_ras_result as;
	const char *text;
} causes[] = {
	{-ECANCELED, NT_RAS_OFF, "it is off (NCCL_RAS_ENABLE=0)"},
	{-EADDRNOTAVAIL, NT_RAS_BAD_PORT, "NCCL_RAS_ADDR has no usable port"},
	{-EPERM, NT_RAS_DENIED, "its network namespace cannot be entered without CAP_SYS_ADMIN"},
	{-ECONNREFUSED, NT_RAS_UNREACHABLE, "nothing listens on its port"},
	{-ECONNRESET, NT_RAS_UNREACHABLE, "the connection was reset"},
	{-EPIPE, NT_RAS_UNREACHABLE, "the connection was closed"},
	{-EPROTONOSUPPORT, NT_RAS_UNSUPPORTED, "NCCL is older than 2.28.7, or it is not NCCL"},
	{-EBADMSG, NT_RAS_MALFORMED, "its answer is not a status"},
	{-EFBIG, NT_RAS_MALFORMED, "its answer is too large"},
	{-ETIMEDOUT, NT_RAS_STALLED, "it did not answer in time"},
};

/* ---- the worker ----------------------------------------------------------------------------- */

static int serve_request(const struct ras_request *request, struct nt_ras_answer *answer)
{
	const uint64_t until_ns = nt_clock_mono_ns() + UNTIL_NS;
	nt_autoclose int fd = -1;
	uint64_t start_ns;
	uint32_t inner;
	uint16_t port;
	int r = nt_ras_target_read(request->pid, &port, &inner);

	if (r < 0)
		return r;
	fd = nt_ras_target_connect(request->pid, port, until_ns);
	if (fd < 0)
		return fd;
	/* The pid may have been reused before the namespace was entered. */
	r = nt_proc_start_ns(request->pid, &start_ns);
	if (r < 0 || start_ns != request->start_ns)
		return -ESRCH;
	return nt_ras_exchange(fd, inner, until_ns, answer);
}

static void serve(int socket, const uint8_t *data, size_t len, int fd)
{
	static struct ras_reply reply;
	struct ras_request request;

	(void)fd;
	if (len != sizeof(request))
		return;
	memcpy(&request, data, sizeof(request));
	nt_worker_limit_cpu(CPU_SECONDS);
	reply.result = serve_request(&request, &reply.answer);
	nt_worker_answer(socket, &reply, sizeof(reply), -1);
}

/* ---- the agent ------------------------------------------------------------------------------ */

int nt_ras_new(struct nt_workers *workers, struct nt_ras **ret_ras)
{
	struct nt_ras *ras = calloc(1, sizeof(*ras));

	if (!ras)
		return -ENOMEM;
	ras->workers = workers;
	*ret_ras = ras;
	return 0;
}

void nt_ras_free(struct nt_ras *ras)
{
	if (!ras)
		return;
	nt_worker_kill(ras->workers, ras->worker);
	free(ras);
}

bool nt_ras_is_sound(const struct nt_ras_answer *answer)
{
	if (answer->comms > NT_RAS_COMMS)
		return false;
	for (uint32_t i = 0; i < answer->comms; i++) {
		const struct nt_ras_comm *comm = &answer->comm[i];

		if (!comm->hash || comm->size > NT_RAS_RANKS || comm->rank >= comm->size)
			return false;
	}
	return true;
}

/* At most a line a minute: see the schedule. */
static void count_failure(struct nt_ras *ras, int result)
{
	enum nt_ras_result as = NT_RAS_FAILED;
	const char *text = NULL;

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (causes[i].result == result) {
			as = causes[i].as;
			text = causes[i].text;
		}
	}
	ras->stats.results[as]++;
	(void)nt_warn(text ? 0 : result,
		      "request the status of its job from NCCL in process %u%s%s: communicators "
		      "from before the agent stay unknown",
		      ras->asked.pid, text ? ": " : "", text ?: "");
}

static void count_answer(struct nt_ras *ras)
{
	const struct nt_ras_answer *answer = &ras->reply.answer;

	ras->stats.results[NT_RAS_ANSWERED]++;
	ras->stats.over_cap += answer->over_cap;
	ras->stats.impossible += answer->impossible;
	ras->stats.ranks = answer->ranks;
	ras->stats.missing = answer->missing;
	nt_info("NCCL states %u communicators of the job of process %u, with %u ranks, of which %u "
		"are being initialised; %u ranks do not answer, of which %u are considered dead",
		answer->communicators, ras->asked.pid, answer->ranks, answer->initialising,
		answer->missing, answer->dead);
}

void nt_ras_ask(struct nt_ras *ras, const struct nt_ras_want *want, size_t wants, uint64_t now_ns)
{
	const struct nt_ras_want *next;
	struct ras_request request = {0};
	int r;

	if (ras->worker)
		return;
	next = nt_ras_schedule_pick(&ras->schedule, want, wants, now_ns);
	if (!next)
		return;
	ras->asked = *next;
	ras->asked_ns = now_ns;
	request.pid = next->pid;
	request.start_ns = next->start_ns;
	r = nt_worker_start(ras->workers, serve, &ras->worker);
	if (r == 0)
		r = nt_worker_send(ras->worker, &request, sizeof(request), -1);
	if (r == 0)
		return;
	nt_worker_kill(ras->workers, nt_take(ras->worker));
	count_failure(ras, r == -EPIPE ? -EIO : r);
}

const struct nt_ras_answer *nt_ras_take(struct nt_ras *ras, uint64_t now_ns,
					struct nt_ras_want *ret_want)
{
	struct ras_reply *reply = &ras->reply;
	int fd = -1, r = 0;
	ssize_t n;

	if (!ras->worker)
		return NULL;
	n = nt_worker_take(ras->worker, reply, sizeof(*reply), &fd);
	nt_closep(&fd); /* none was requested */
	if (n == -EAGAIN && now_ns - ras->asked_ns < NT_RAS_STALL_NS)
		return NULL;
	nt_worker_kill(ras->workers, nt_take(ras->worker));
	if (n == -EAGAIN)
		r = -ETIMEDOUT;
	else if (n == sizeof(*reply) && reply->result < 0)
		r = reply->result;
	else if (n != sizeof(*reply) || reply->result > 0 || !nt_ras_is_sound(&reply->answer))
		r = -EIO;
	if (r < 0) {
		count_failure(ras, r);
		return NULL;
	}
	count_answer(ras);
	*ret_want = ras->asked;
	return &reply->answer;
}

void nt_ras_stats(const struct nt_ras *ras, struct nt_ras_stats *ret_stats)
{
	*ret_stats = ras->stats;
	ret_stats->files_over_cap = ras->schedule.over_cap;
	ret_stats->unplaced = ras->schedule.unplaced;
}
