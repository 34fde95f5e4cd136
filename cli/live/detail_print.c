/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/detail_print.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "common/base/parse_number.h"
#include "common/system/clock.h"

enum {
	TIME_DIGITS = 9,
	DATE_TEXT = 11, /* of it: the date, with its T */
	HEX_TEXT = 20,
	MAX_RANK_DIGITS = 9,
};

/* ---- selection ------------------------------------------------------------------------------ */

static bool is_job(const char *text, size_t len, const struct nt_message *message)
{
	const char *name = message->detail.rank.job, *key = message->key;

	return (strlen(name) == len && !memcmp(name, text, len)) ||
	       (strlen(key) == len && !memcmp(key, text, len));
}

bool nt_detail_is_wanted(const char *target, const struct nt_message *message)
{
	const char *slash = target ? strrchr(target, '/') : NULL;
	uint32_t rank = 0;

	if (!target || is_job(target, strlen(target), message))
		return true;
	if (!slash || !slash[1] || strlen(slash + 1) > MAX_RANK_DIGITS ||
	    strspn(slash + 1, "0123456789") != strlen(slash + 1))
		return false;
	for (const char *digit = slash + 1; *digit; digit++)
		rank = 10 * rank + (uint32_t)(*digit - '0');
	return message->detail.rank.rank_known && message->detail.rank.rank == rank &&
	       is_job(target, (size_t)(slash - target), message);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static const char *time_text(const struct nt_message *message, uint64_t boot_ns,
			     char text[NT_CLOCK_TEXT])
{
	return nt_clock_format(nt_message_real_ns(message, boot_ns), TIME_DIGITS, text);
}

void nt_detail_print_head(FILE *out)
{
	(void)fprintf(out, "%-19s %-6s %-20s %-8s %-28s %7s %10s %9s %9s %s\n", "TIME", "RANK",
		      "POD OR NODE", "KIND", "CALL", "THREAD", "DURATION", "BYTES", "NUMBER",
		      "SAMPLED");
}

static const char *duration_text(const struct nt_detail_call *call, char text[NT_PARSE_TEXT])
{
	if (call->return_boot_ns < call->entry_boot_ns || !call->return_boot_ns)
		return "-";
	(void)snprintf(text, NT_PARSE_TEXT, "%.1fus",
		       (double)(call->return_boot_ns - call->entry_boot_ns) / 1e3);
	return text;
}

static const char *number_text(uint64_t number, char text[NT_PARSE_TEXT])
{
	if (!number)
		return "-";
	(void)snprintf(text, NT_PARSE_TEXT, "%" PRIu64, number);
	return text;
}

static const char *sampled_text(double probability, char text[NT_PARSE_TEXT])
{
	if (probability >= 1)
		return "all";
	(void)snprintf(text, NT_PARSE_TEXT, "%.3g", probability);
	return text;
}

static void print_record(const struct nt_message *message, const struct nt_detail_call *call,
			 FILE *out)
{
	const struct nt_rank_id *rank = &message->detail.rank;
	char time[NT_CLOCK_TEXT], duration[NT_PARSE_TEXT], bytes[NT_PARSE_TEXT],
		number[NT_PARSE_TEXT], sampled[NT_PARSE_TEXT], name[NT_PARSE_TEXT] = "-";

	if (rank->rank_known)
		(void)snprintf(name, sizeof(name), "%u", rank->rank);
	(void)fprintf(out, "%-19s %-6s %-20s %-8s %-28s %7u %10s %9s %9s %s\n",
		      time_text(message, call->entry_boot_ns, time) + DATE_TEXT, name,
		      *rank->pod ? rank->pod : rank->node, nt_detail_kind_name(call->kind),
		      call->call, call->thread, duration_text(call, duration),
		      number_text(call->bytes, bytes), number_text(call->number, number),
		      sampled_text(call->probability, sampled));
}

void nt_detail_print(const struct nt_message *message, FILE *out)
{
	const struct nt_detail *detail = &message->detail;

	for (size_t i = 0; i < detail->records; i++)
		print_record(message, &detail->record[i], out);
	for (size_t i = 0; i < detail->counts; i++)
		if (detail->count[i].lost)
			(void)fprintf(out,
				      "# rank %u: %" PRIu64 " of %" PRIu64
				      " calls of kind '%s' are lost\n",
				      detail->rank.rank, detail->count[i].lost,
				      detail->count[i].seen,
				      nt_detail_kind_name(detail->count[i].kind));
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *tags_of(const struct nt_message *message)
{
	const struct nt_rank_id *rank = &message->detail.rank;

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:I}", "job", rank->job, "job_key",
			 message->key, "namespace", rank->namespace, "pod", rank->pod, "container",
			 rank->container, "node", rank->node, "rank",
			 rank->rank_known ? json_integer(rank->rank) : json_null(), "pid",
			 (json_int_t)rank->pid);
}

static json_t *words_of(const struct nt_detail_call *call)
{
	json_t *words = json_array();

	/* As text: numbers of JSON are exact up to 2^53. */
	for (size_t i = 0; words && i < call->words; i++) {
		char text[HEX_TEXT];

		(void)snprintf(text, sizeof(text), "0x%" PRIx64, call->word[i]);
		if (json_array_append_new(words, json_string(text)) < 0) {
			json_decref(words);
			return NULL;
		}
	}
	return words;
}

/* Adds the members of the record. False: out of memory. */
static bool add_call(const struct nt_message *message, const struct nt_detail_call *call,
		     json_t *object)
{
	const bool returned = call->return_boot_ns >= call->entry_boot_ns && call->return_boot_ns;
	char time[NT_CLOCK_TEXT], comm[HEX_TEXT];
	json_t *more, *duration, *result;

	(void)snprintf(comm, sizeof(comm), "%016" PRIx64, call->comm);
	duration = returned ? json_integer((json_int_t)(call->return_boot_ns - call->entry_boot_ns))
			    : json_null();
	result = returned ? json_integer((json_int_t)call->result) : json_null();
	more = json_pack(
		"{s:s, s:s, s:I, s:s, s:I, s:o, s:I, s:o, s:s, s:s*, s:I, s:o, s:f, s:o}", "kind",
		nt_detail_kind_name(call->kind), "call", call->call, "thread",
		(json_int_t)call->thread, "time", time_text(message, call->entry_boot_ns, time),
		"entry_boot_ns", (json_int_t)call->entry_boot_ns, "duration_ns", duration, "bytes",
		(json_int_t)call->bytes, "result", result, "op", nt_op_name(call->op), "comm",
		call->comm ? comm : NULL, "number", (json_int_t)call->number, "peer",
		call->peer ? json_integer((json_int_t)call->peer - 1) : json_null(), "probability",
		call->probability, "words", words_of(call));
	return more && json_object_update_new(object, more) == 0;
}

static int dump(json_t *object, FILE *out)
{
	int r = json_dumpf(object, out, JSON_COMPACT);

	(void)fputc('\n', out);
	return r < 0 ? -ENOMEM : 0;
}

static int print_counts(const struct nt_message *message, FILE *out)
{
	const struct nt_detail *detail = &message->detail;
	json_t *object = tags_of(message), *counts = json_array();
	int r = object && counts ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < detail->counts; i++)
		if (json_array_append_new(counts,
					  json_pack("{s:s, s:I, s:I}", "kind",
						    nt_detail_kind_name(detail->count[i].kind),
						    "seen", (json_int_t)detail->count[i].seen,
						    "lost", (json_int_t)detail->count[i].lost)) < 0)
			r = -ENOMEM;
	if (r == 0 &&
	    (json_object_set(object, "counts", counts) < 0 ||
	     json_object_set_new(object, "granted", json_real(detail->granted)) < 0 ||
	     json_object_set_new(object, "level", json_integer((json_int_t)detail->level)) < 0))
		r = -ENOMEM;
	if (r == 0)
		r = dump(object, out);
	json_decref(counts);
	json_decref(object);
	return r;
}

int nt_detail_print_json(const struct nt_message *message, FILE *out)
{
	const struct nt_detail *detail = &message->detail;
	int r = 0;

	for (size_t i = 0; r == 0 && i < detail->records; i++) {
		json_t *object = tags_of(message);

		r = object && add_call(message, &detail->record[i], object) ? dump(object, out)
									    : -ENOMEM;
		json_decref(object);
	}
	return r == 0 && detail->counts ? print_counts(message, out) : r;
}
