/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/process_reader.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "agent/discover/allowance.h"
#include "agent/discover/inspection.h"
#include "agent/host/proc.h"
#include "common/base/hash.h"
#include "common/system/clock.h"

enum {
	OWNERS = 1024, /* processes with a cached owner */
	LOOK_MS = 20, /* between two checks of a late worker */
};

/* A cached owner, read before the process's data: afterwards it may be gone. */
struct known {
	uint32_t pid;
	uint64_t start_ns;
	uint64_t checked_ns; /* monotonic: when the pid was last verified */
	struct nt_owner owner;
};

struct nt_process_reader {
	struct nt_workers *workers;
	struct nt_quarantine *quarantine;
	struct nt_process_reader_hooks hooks;
	struct nt_worker *worker; /* NULL: to be started */
	struct nt_allowance *allowance;
	struct known known[OWNERS];
	uint64_t seed; /* hash seed: collisions must not be predictable */
	uint64_t number;
	struct nt_process_reader_stats stats;
	uint8_t message[NT_WORKER_BYTES];
};

int nt_process_reader_new(struct nt_workers *workers, struct nt_quarantine *quarantine,
			  const struct nt_process_reader_hooks *hooks,
			  struct nt_process_reader **ret_reader)
{
	nt_auto(nt_process_reader) struct nt_process_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	reader->workers = workers;
	reader->quarantine = quarantine;
	reader->hooks = *hooks;
	reader->seed = nt_hash_mix(nt_clock_mono_ns());
	r = nt_allowance_new(&reader->allowance);
	if (r < 0)
		return r;
	r = nt_worker_start(workers, nt_inspection_serve, &reader->worker);
	if (r < 0)
		return r;
	*ret_reader = nt_take(reader);
	return 0;
}

void nt_process_reader_free(struct nt_process_reader *reader)
{
	if (!reader)
		return;
	nt_worker_kill(reader->workers, reader->worker);
	nt_allowance_free(reader->allowance);
	free(reader);
}

static void drop_worker(struct nt_process_reader *reader)
{
	nt_worker_kill(reader->workers, reader->worker);
	reader->worker = NULL;
}

/*
 * -ESRCH: it has ended. If it ends after the check, the read fails. Its pid could also be reused
 * between the check and the read.
 */
static int look_up(struct nt_process_reader *reader, uint32_t pid, uint64_t now_ns,
		   const struct known **ret_known)
{
	struct known *known = &reader->known[nt_hash_mix(reader->seed ^ pid) % OWNERS];
	uint64_t start_ns;
	int r;

	if (known->pid == pid && now_ns - known->checked_ns < NT_PROCESS_READER_KNOWN_NS) {
		*ret_known = known;
		return 0;
	}
	r = nt_proc_start_ns(pid, &start_ns);
	if (r < 0)
		return r;
	if (known->pid != pid || known->start_ns != start_ns) {
		*known = (struct known){.pid = pid, .start_ns = start_ns};
		if (nt_owner_read(pid, &known->owner) < 0)
			known->owner.id = 0;
	}
	known->checked_ns = now_ns;
	*ret_known = known;
	return 0;
}

/* -ETIMEDOUT: it is blocked; -EPIPE: it has died. */
static ssize_t wait_answer(struct nt_process_reader *reader)
{
	const uint64_t begin_ns = nt_clock_mono_ns();
	struct pollfd poller = {.fd = nt_worker_fd(reader->worker), .events = POLLIN};
	int fd = -1;

	for (bool is_late = false;;) {
		ssize_t n = nt_worker_take(reader->worker, reader->message, sizeof(reader->message),
					   &fd);
		uint64_t passed_ns = nt_clock_mono_ns() - begin_ns;

		nt_closep(&fd);
		if (n != -EAGAIN)
			return n;
		if (is_late)
			return -ETIMEDOUT;
		/* Polls once more: it may have answered since. */
		is_late = (passed_ns >= NT_PROCESS_READER_STALL_NS &&
			   nt_worker_waits(reader->worker)) ||
			  passed_ns >= NT_PROCESS_READER_BUSY_NS;
		if (!is_late)
			(void)poll(&poller, 1, LOOK_MS);
	}
}

static int check_answer(const struct nt_process_reader *reader, ssize_t len,
			uint64_t *ret_waited_ns, const uint8_t **ret_body, size_t *ret_len)
{
	struct nt_inspection_answer answer;
	int r = nt_inspection_parse(reader->message, (size_t)len, &answer, ret_body, ret_len);

	if (r < 0 || answer.kind != NT_ANSWER_BYTES || answer.number != reader->number)
		return -EPIPE; /* not a valid answer: the worker is abandoned */
	*ret_waited_ns = answer.waited_ns;
	return answer.result < 0 ? answer.result : 1;
}

static int read_known(struct nt_process_reader *reader, const struct known *known,
		      struct nt_inspection_request *request, const uint8_t **ret_body,
		      size_t *ret_len)
{
	uint64_t waited_ns = 0;
	ssize_t n;
	bool held;
	int r = 0;

	if (!nt_quarantine_is_empty(reader->quarantine) &&
	    nt_quarantine_holds(reader->quarantine, known->pid, known->start_ns, known->owner.id,
				nt_clock_boot_ns())) {
		reader->stats.refused++;
		return -EBUSY;
	}
	if (!reader->worker)
		r = nt_worker_start(reader->workers, nt_inspection_serve, &reader->worker);
	if (r < 0) {
		reader->stats.refused++;
		return -EBUSY;
	}
	request->number = ++reader->number;
	r = nt_worker_send(reader->worker, request, sizeof(*request), -1);
	n = r < 0 ? -EPIPE : wait_answer(reader);
	r = n > 0 ? check_answer(reader, n, &waited_ns, ret_body, ret_len) : (int)n;
	if (n != -ETIMEDOUT && r != -EPIPE) {
		if (waited_ns &&
		    nt_quarantine_spend(reader->quarantine, known->pid, known->start_ns,
					known->owner.id, waited_ns, nt_clock_boot_ns()))
			reader->hooks.stalled(reader->hooks.data, known->pid, &known->owner, false);
		return r;
	}
	drop_worker(reader);
	if (n != -ETIMEDOUT)
		return -EIO;
	reader->stats.stalled++;
	held = nt_quarantine_strike(reader->quarantine, known->pid, known->start_ns,
				    known->owner.id, nt_clock_boot_ns());
	reader->hooks.stalled(reader->hooks.data, known->pid, &known->owner, held);
	return -ETIMEDOUT;
}

/* Returns 1 with the bytes, which are valid until the next read. */
static int read_process(struct nt_process_reader *reader, struct nt_inspection_request *request,
			const uint8_t **ret_body, size_t *ret_len)
{
	const enum nt_allowance_account account =
		request->kind == NT_INSPECT_IO ? NT_ALLOWANCE_WINDOWS : NT_ALLOWANCE_CALLS;
	const uint64_t begin_ns = nt_clock_mono_ns();
	const struct known *known;
	uint64_t end_ns;
	int r;

	r = look_up(reader, request->pid, begin_ns, &known);
	if (r < 0)
		return r;
	if (!nt_allowance_has(reader->allowance, account, known->pid, known->start_ns,
			      known->owner.id, begin_ns)) {
		reader->stats.over_allowance++;
		return -EBUSY;
	}
	r = read_known(reader, known, request, ret_body, ret_len);
	if (r == -ETIMEDOUT)
		return r; /* charged by the quarantine, which counts stalls */
	end_ns = nt_clock_mono_ns();
	nt_allowance_spend(reader->allowance, account, known->pid, known->start_ns, known->owner.id,
			   end_ns - begin_ns, end_ns);
	return r;
}

static int read_memory(void *data, uint32_t pid, uint64_t address, void *buf, size_t size)
{
	struct nt_inspection_request request = {
		.kind = NT_INSPECT_MEMORY,
		.pid = pid,
		.address = address,
		.size = size,
	};
	const uint8_t *body;
	size_t len;
	int r;

	if (size > NT_INSPECTION_MEMORY)
		return -E2BIG;
	r = read_process(data, &request, &body, &len);
	if (r < 0)
		return r;
	if (len != size)
		return -EBADMSG;
	memcpy(buf, body, size);
	return 0;
}

struct nt_memory nt_process_reader_memory(struct nt_process_reader *reader)
{
	return (struct nt_memory){.read = read_memory, .data = reader};
}

int nt_process_reader_environ(struct nt_process_reader *reader, uint32_t pid,
			      struct nt_environ *ret_environ)
{
	struct nt_inspection_request request = {.kind = NT_INSPECT_ENVIRON, .pid = pid};
	const uint8_t *body = NULL;
	size_t len = 0;
	int r = read_process(reader, &request, &body, &len);

	return r < 0 ? r : nt_inspection_parse_environ(body, len, ret_environ);
}

ssize_t nt_process_reader_io(struct nt_process_reader *reader, uint32_t pid, uint32_t tid,
			     char *text, size_t size)
{
	struct nt_inspection_request request = {.kind = NT_INSPECT_IO, .pid = pid, .tid = tid};
	const uint8_t *body;
	size_t len;
	int r = read_process(reader, &request, &body, &len);

	if (r < 0)
		return r;
	len = len > size ? size : len;
	memcpy(text, body, len);
	return (ssize_t)len;
}

void nt_process_reader_stats(const struct nt_process_reader *reader,
			     struct nt_process_reader_stats *ret_stats)
{
	*ret_stats = reader->stats;
	ret_stats->debts_over_cap = nt_allowance_over_cap(reader->allowance);
}
