/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras_answer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_scan.h"
#include "common/base/parse_number.h"

enum {
	IN_PROGRESS = 7, /* ncclInProgress */
};

/* The rest of a rank is not stored: names, counts of launches. */
static const struct nt_json_pick status_members[] = {
	{.key = "init_state"},
	{.key = "considered_dead"},
	{0},
};
static const struct nt_json_pick rank_members[] = {
	{.key = "rank"},
	{.key = "pid"},
	{.key = "status", .inner = status_members},
	{0},
};

/* The source, cut off at the cap. */
struct status_source {
	ptrdiff_t (*fill)(void *context, char *data, size_t size);
	void *context;
	size_t bytes;
};

struct status_reader {
	struct nt_json_scan *scan;
	struct nt_ras_answer *answer;
	uint32_t pid;
	/* Of the current communicator; 0: not stated yet, or impossible. */
	uint64_t hash;
	uint32_t size;
};

static ptrdiff_t fill_capped(void *context, char *data, size_t size)
{
	struct status_source *source = context;
	ptrdiff_t n = source->fill(source->context, data, size);

	if (n <= 0)
		return n;
	source->bytes += (size_t)n;
	return source->bytes > NT_RAS_BYTES ? -EFBIG : n;
}

static bool is_number(const struct nt_json_value *value, int64_t least, int64_t most)
{
	return nt_json_value_is(value, NT_JSON_INTEGER) && value->integer >= least &&
	       value->integer <= most;
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static void keep(struct status_reader *reader, uint32_t rank)
{
	struct nt_ras_answer *answer = reader->answer;

	if (answer->comms == NT_RAS_COMMS) {
		answer->over_cap++;
		return;
	}
	answer->comm[answer->comms++] =
		(struct nt_ras_comm){.hash = reader->hash, .rank = rank, .size = reader->size};
}

/* A pid of -1 is an unknown process. */
static void take_rank(struct status_reader *reader, const struct nt_json_value *value,
		      bool is_missing)
{
	struct nt_ras_answer *answer = reader->answer;
	const struct nt_json_value *rank = nt_json_value_get(value, "rank"),
				   *pid = nt_json_value_get(value, "pid"),
				   *status = nt_json_value_get(value, "status");

	if (!reader->hash || !is_number(rank, 0, (int64_t)reader->size - 1) ||
	    !is_number(pid, -1, INT32_MAX)) {
		answer->impossible++;
		return;
	}
	if (is_missing) {
		answer->missing++;
		answer->dead += nt_json_value_is(nt_json_value_get(status, "considered_dead"),
						 NT_JSON_TRUE);
		return;
	}
	answer->ranks++;
	answer->initialising +=
		nt_json_value_integer(nt_json_value_get(status, "init_state")) == IN_PROGRESS;
	if (pid->integer == (int64_t)reader->pid)
		keep(reader, (uint32_t)rank->integer);
}

static int read_ranks(struct status_reader *reader, bool is_missing)
{
	const struct nt_json_value *value = NULL;
	const char *key;
	uint64_t line;
	int r = nt_json_scan_enter(reader->scan);

	while (r == 0 && (r = nt_json_scan_next(reader->scan, &key, &line)) > 0) {
		r = nt_json_scan_take(reader->scan, rank_members, &value);
		if (r == 0)
			take_rank(reader, value, is_missing);
	}
	return r;
}

/* ---- communicators -------------------------------------------------------------------------- */

/* "0x" and hexadecimal digits. 0: it is no hash. */
static uint64_t hash_of(const struct nt_json_value *value)
{
	const char *text = nt_json_value_text(value);
	uint64_t hash = 0;

	if (!text || strncmp(text, "0x", 2) != 0 ||
	    nt_parse_hex(text + 2, strlen(text + 2), UINT64_MAX, &hash) < 0)
		return 0;
	return hash;
}

/* Hash and size precede the ranks, as NCCL writes them. Without these no rank is kept. */
static int read_member(struct status_reader *reader, const char *key)
{
	const struct nt_json_value *value = NULL;
	enum nt_json_kind kind;
	uint64_t line;
	int r;

	if (strcmp(key, "ranks") == 0 || strcmp(key, "missing_ranks") == 0) {
		const bool is_missing = *key == 'm';

		if (!reader->size)
			reader->hash = 0;
		r = nt_json_scan_peek(reader->scan, &kind, &line);
		if (r < 0 || kind != NT_JSON_ARRAY)
			return r < 0 ? r : -EBADMSG;
		return read_ranks(reader, is_missing);
	}
	if (strcmp(key, "hash") == 0) {
		r = nt_json_scan_take(reader->scan, NULL, &value);
		reader->hash = r == 0 ? hash_of(value) : 0;
		return r;
	}
	if (strcmp(key, "size") == 0) {
		r = nt_json_scan_take(reader->scan, NULL, &value);
		reader->size =
			r == 0 && is_number(value, 1, NT_RAS_RANKS) ? (uint32_t)value->integer : 0;
		return r;
	}
	return nt_json_scan_skip(reader->scan);
}

/* Enters the value that is next, which must be of this kind. */
static int enter(struct nt_json_scan *scan, enum nt_json_kind wanted)
{
	enum nt_json_kind kind;
	uint64_t line;
	int r = nt_json_scan_peek(scan, &kind, &line);

	if (r < 0)
		return r;
	return kind == wanted ? nt_json_scan_enter(scan) : -EBADMSG;
}

static int read_communicator(struct status_reader *reader)
{
	const char *key;
	uint64_t line;
	int r = enter(reader->scan, NT_JSON_OBJECT);

	reader->hash = 0;
	reader->size = 0;
	while (r == 0 && (r = nt_json_scan_next(reader->scan, &key, &line)) > 0)
		r = read_member(reader, key);
	if (r < 0)
		return r;
	if (reader->hash && reader->size)
		reader->answer->communicators++;
	else
		reader->answer->impossible++;
	return 0;
}

static int read_communicators(struct status_reader *reader)
{
	const char *key;
	uint64_t line;
	int r = enter(reader->scan, NT_JSON_ARRAY);

	while (r == 0 && (r = nt_json_scan_next(reader->scan, &key, &line)) > 0)
		r = read_communicator(reader);
	return r;
}

static int read_status(struct status_reader *reader)
{
	bool is_status = false;
	const char *key;
	uint64_t line;
	int r = enter(reader->scan, NT_JSON_OBJECT);

	while (r == 0 && (r = nt_json_scan_next(reader->scan, &key, &line)) > 0) {
		if (strcmp(key, "communicators") == 0) {
			is_status = true;
			r = read_communicators(reader);
		} else {
			r = nt_json_scan_skip(reader->scan);
		}
	}
	if (r < 0)
		return r;
	return is_status ? 0 : -EBADMSG; /* what follows is ignored */
}

static int compare(const void *a, const void *b)
{
	const struct nt_ras_comm *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->rank == y->rank ? 0 : x->rank < y->rank ? -1 : 1;
}

const struct nt_ras_comm *nt_ras_answer_find(const struct nt_ras_comm *comm, size_t comms,
					     const struct nt_ras_comm *wanted)
{
	const struct nt_ras_comm *found =
		comms ? bsearch(wanted, comm, comms, sizeof(*comm), compare) : NULL;

	return found && found->size == wanted->size ? found : NULL;
}

int nt_ras_answer_read(ptrdiff_t (*fill)(void *context, char *data, size_t size), void *context,
		       uint32_t pid, struct nt_ras_answer *ret_answer)
{
	nt_auto(nt_json_scan) struct nt_json_scan *scan = NULL;
	struct status_source source = {.fill = fill, .context = context};
	struct nt_ras_answer answer = {0};
	struct status_reader reader = {.answer = &answer, .pid = pid};
	int r = nt_json_scan_new(fill_capped, &source, &scan);

	if (r < 0)
		return r;
	reader.scan = scan;
	r = read_status(&reader);
	if (r < 0)
		return r;
	if (answer.comms)
		qsort(answer.comm, answer.comms, sizeof(answer.comm[0]), compare);
	*ret_answer = answer;
	return 0;
}
