/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Slow ranks in the form of sysTrace's slow-node result. */
#include "cli/report/systrace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/search.h"
#include "proto/json.h"

enum {
	RESULT_NORMAL = 200,
	RESULT_ANOMALY = 201,
	MAX_MESSAGE = 4096,
};

static const char *const methods[] = {"SPACE", "TIME", "LACK"};

/* An accused rank, once, regardless of the number of incidents. */
struct accused {
	uint32_t rank;
	const char *node; /* borrowed */
	enum nt_systrace_method method;
	/* NULL: the trace lacks the rank, or peer_deviation is set */
	const struct nt_wire_incident *incident;
	const char *peer_deviation; /* NULL: the operation to watch */
	const uint32_t *peers;
	size_t peer_count;
};

struct result {
	const struct nt_report *report;
	const struct nt_trace *trace;
	struct accused *accused;
	size_t count, cap;
	bool found, compute, network, storage;
	uint64_t first_ns; /* when the first fault began */
	struct nt_buf message;
	json_t *abnormal, *normal;
};

static void release_result(struct result *result)
{
	free(result->accused);
	nt_buf_release(&result->message);
	json_decref(result->abnormal);
	json_decref(result->normal);
}

/* Imbalance, job-wide changes and notes are no anomaly of a rank. */
static bool is_fault(const struct nt_wire_incident *incident)
{
	return strcmp(incident->severity, "info") != 0;
}

static int add_accused(struct result *result, const struct accused *accused)
{
	if (result->count == result->cap) {
		const size_t cap = result->cap ? result->cap * 2 : 16;
		struct accused *grown = reallocarray(result->accused, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		result->accused = grown;
		result->cap = cap;
	}
	result->accused[result->count++] = *accused;
	return 0;
}

static enum nt_systrace_method method_of(const struct nt_wire_incident *incident)
{
	if (strcmp(incident->class, "missing") == 0)
		return NT_SYSTRACE_LACK;
	return incident->evidences && strcmp(incident->evidence[0].method, "ratio") == 0
		       ? NT_SYSTRACE_SPACE
		       : NT_SYSTRACE_TIME;
}

/* If the culprit is a node, all its ranks are accused, as the result has ranks only. */
static int accuse(struct result *result, const struct nt_wire_incident *incident,
		  const struct nt_culprit *culprit)
{
	struct accused accused = {
		.rank = culprit->rank,
		.node = culprit->node,
		.method = method_of(incident),
		.incident = incident,
		.peers = culprit->peers,
		.peer_count = culprit->peer_count,
	};

	if (culprit->has_rank)
		return add_accused(result, &accused);
	for (size_t i = 0; i < culprit->rank_count; i++) {
		int r;

		accused.rank = culprit->ranks[i];
		r = add_accused(result, &accused);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_text(struct result *result, const char *text)
{
	if (result->message.len + strlen(text) > MAX_MESSAGE)
		return 0;
	return nt_buf_printf(&result->message, "%s%s", result->message.len ? "; " : "", text);
}

static void flag(struct result *result, const struct nt_wire_incident *incident)
{
	if (strcmp(incident->class, "network") == 0 || strcmp(incident->cause, "network") == 0)
		result->network = true;
	else if (strcmp(incident->class, "storage") == 0)
		result->storage = true;
	else
		result->compute = true;
}

static int take_incident(struct result *result, const struct nt_wire_incident *incident)
{
	const size_t before = result->count;

	if (!is_fault(incident))
		return 0;
	if (!result->found || incident->since_real_ns < result->first_ns)
		result->first_ns = incident->since_real_ns;
	result->found = true;
	flag(result, incident);
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct nt_culprit *culprit = &incident->culprit[i];
		int r = nt_json_culprit_accuses(culprit) ? accuse(result, incident, culprit) : 0;

		if (r < 0)
			return r;
	}
	/* A link or a communicator cannot be expressed in ranks. */
	return result->count == before ? add_text(result, incident->summary) : 0;
}

static int take_lacking(struct result *result)
{
	const struct nt_trace *trace = result->trace;

	for (size_t i = 0; trace && i < trace->rank_infos; i++) {
		const struct nt_trace_rank_info *info = &trace->rank_info[i];
		struct accused accused = {.rank = info->rank, .method = NT_SYSTRACE_LACK};
		int r;

		if (!info->lacks)
			continue;
		if (result->report &&
		    (!result->found || result->report->start_ns < result->first_ns))
			result->first_ns = result->report->start_ns;
		result->found = true;
		result->compute = true;
		r = add_accused(result, &accused);
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct accused *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->method > y->method) - (x->method < y->method);
}

/* Sorts ascending and merges duplicates: the most specific one is kept. */
static void settle(struct result *result)
{
	size_t kept = 0;

	if (result->count)
		qsort(result->accused, result->count, sizeof(*result->accused), by_rank);
	for (size_t i = 0; i < result->count; i++)
		if (!kept || result->accused[kept - 1].rank != result->accused[i].rank)
			result->accused[kept++] = result->accused[i];
	result->count = kept;
}

static bool is_accused(const struct result *result, uint32_t rank)
{
	const size_t low = nt_search_first(0, result->count, i, result->accused[i].rank >= rank);

	return low < result->count && result->accused[low].rank == rank;
}

/* ---- the document ------------------------------------------------------------------------- */

/* sysTrace's name: the operation, or its launch if the host is late in launching it. */
static void name_peer_deviation(const struct result *result, uint32_t rank,
				const struct nt_wire_incident *incident, char *text, size_t size)
{
	const struct nt_trace_rank_info *info =
		result->trace ? nt_trace_find_rank_info(result->trace, rank) : NULL;
	const struct nt_trace *trace = result->trace;
	const bool host = incident && strcmp(incident->class, "host") == 0;

	/* A rank that lacks data is in a group watched by the others' operation. */
	for (size_t i = 0; info && !*info->op && i < trace->rank_infos; i++)
		if (*trace->rank_info[i].op)
			info = &trace->rank_info[i];
	if (info && *info->op)
		(void)snprintf(text, size, "%s%s", info->op, host ? "_launch" : "");
	else
		(void)snprintf(text, size, "%s",
			       incident && incident->evidences ? incident->evidence[0].what : "");
}

static const char *address_of(const struct result *result, uint32_t rank, const char *known)
{
	const struct nt_trace *trace = result->trace;
	const struct nt_trace_rank_info *info = trace ? nt_trace_find_rank_info(trace, rank) : NULL;

	if (known && *known)
		return known;
	return info && info->node < trace->nodes ? trace->node[info->node].name : "localhost";
}

static json_t *describe(const char *address, uint32_t rank, const char *peer_deviation,
			enum nt_systrace_method method, json_t *relatives, json_t *omitted)
{
	char id[16], device[32];

	(void)snprintf(id, sizeof(id), "%u", rank);
	(void)snprintf(device, sizeof(device), "rank_%u", rank);
	return json_pack("{s:s, s:o, s:s, s:o, s:s, s:[], s:o, s:o}", "objectId", id, "serverIp",
			 nt_json_text(address), "deviceInfo", device, "kpiId",
			 nt_json_text(peer_deviation), "methodType", methods[method], "kpiData",
			 "relaIds", relatives, "omittedDevices", omitted);
}

static bool is_listed(const json_t *list, uint32_t rank)
{
	char id[16];
	json_t *each;
	size_t i;

	(void)snprintf(id, sizeof(id), "%u", rank);
	json_array_foreach(list, i, each)
	{
		if (strcmp(json_string_value(json_object_get(each, "objectId")), id) == 0)
			return true;
	}
	return false;
}

static int describe_normal(struct result *result, const struct accused *accused, uint32_t peer,
			   const char *peer_deviation)
{
	if (is_listed(result->normal, peer))
		return 0;
	return json_array_append_new(result->normal,
				     describe(address_of(result, peer, NULL), peer, peer_deviation,
					      accused->method, json_array(), json_array())) < 0
		       ? -ENOMEM
		       : 0;
}

/* sysTrace compares the ranks of one operation; we may have more peers than these. */
static bool is_relative(const struct result *result, uint32_t rank, uint32_t peer)
{
	const struct nt_trace *trace = result->trace;
	const struct nt_trace_rank_info *mine = trace ? nt_trace_find_rank_info(trace, rank) : NULL;
	const struct nt_trace_rank_info *other =
		trace ? nt_trace_find_rank_info(trace, peer) : NULL;

	if (is_accused(result, peer))
		return false;
	return !mine || !mine->group || (other && other->group == mine->group);
}

static int describe_accused(struct result *result, const struct accused *accused)
{
	nt_autojson json_t *relatives = json_array();
	nt_autojson json_t *omitted = json_array();
	size_t normal = 0;
	char peer_deviation[128];

	if (accused->peer_deviation)
		(void)snprintf(peer_deviation, sizeof(peer_deviation), "%s",
			       accused->peer_deviation);
	else
		name_peer_deviation(result, accused->rank, accused->incident, peer_deviation,
				    sizeof(peer_deviation));
	for (size_t i = 0; accused->method == NT_SYSTRACE_SPACE && i < accused->peer_count; i++) {
		const uint32_t peer = accused->peers[i];
		const bool listed = normal < NT_SYSTRACE_MAX_NORMAL;

		if (!is_relative(result, accused->rank, peer))
			continue;
		normal++;
		if (json_array_append_new(listed ? relatives : omitted, json_integer(peer)) < 0)
			return -ENOMEM;
		if (listed && describe_normal(result, accused, peer, peer_deviation) < 0)
			return -ENOMEM;
	}
	return json_array_append_new(result->abnormal,
				     describe(address_of(result, accused->rank, accused->node),
					      accused->rank, peer_deviation, accused->method,
					      json_incref(relatives), json_incref(omitted))) < 0
		       ? -ENOMEM
		       : 0;
}

/* Limitations are no failure, but are reported in the field for failures. */
static int add_notes(struct result *result)
{
	nt_autobuf struct nt_buf notes = {0};
	char *line, *rest;
	int r;

	r = result->report ? nt_report_notes(result->report, "", &notes) : 0;
	r = r ?: nt_buf_append(&notes, "", 1);
	if (r < 0)
		return r;
	for (line = (char *)notes.data; *line; line = rest) {
		rest = strchrnul(line, '\n');
		if (*rest)
			*rest++ = '\0';
		r = add_text(result, line);
		if (r < 0)
			return r;
	}
	return nt_buf_append(&result->message, "", 1);
}

static int write_result(struct result *result, uint64_t time_ns, struct nt_buf *buf)
{
	nt_autojson json_t *root = NULL;
	int r = 0;

	settle(result);
	for (size_t i = 0; i < result->count && r == 0; i++)
		r = describe_accused(result, &result->accused[i]);
	r = r ?: add_notes(result);
	if (r < 0)
		return r;
	root = json_pack("{s:i, s:b, s:b, s:b, s:O, s:O, s:o, s:I}", "resultCode",
			 result->found ? RESULT_ANOMALY : RESULT_NORMAL, "compute", result->compute,
			 "network", result->network, "storage", result->storage, "abnormalDetail",
			 result->abnormal, "normalDetail", result->normal, "errorMsg",
			 result->message.len > 1 ? nt_json_text((const char *)result->message.data)
						 : json_string(""),
			 "timestamp", (json_int_t)(time_ns / 1000000000));
	if (!root)
		return -ENOMEM;
	return nt_json_dump(root, true, buf);
}

int nt_systrace_document(const struct nt_systrace_verdict *verdict, const struct nt_trace *trace,
			 struct nt_buf *buf)
{
	__attribute__((cleanup(release_result))) struct result result = {
		.trace = trace,
		.compute = verdict->compute,
		.network = verdict->network,
		.found = verdict->count > 0,
		.abnormal = json_array(),
		.normal = json_array(),
	};
	int r = result.abnormal && result.normal ? 0 : -ENOMEM;

	for (size_t i = 0; i < verdict->count && r == 0; i++) {
		const struct nt_systrace_accused *from = &verdict->accused[i];
		const struct accused accused = {
			.rank = from->rank,
			.method = from->method,
			.peer_deviation = from->peer_deviation,
			.peers = from->peers,
			.peer_count = from->peer_count,
		};

		r = add_accused(&result, &accused);
	}
	r = r ?: take_lacking(&result);
	if (r == 0 && *verdict->message)
		r = add_text(&result, verdict->message);
	return r ?: write_result(&result, verdict->time_ns, buf);
}

int nt_systrace_result(const struct nt_report *report, const struct nt_trace *trace,
		       struct nt_buf *buf)
{
	__attribute__((cleanup(release_result))) struct result result = {
		.report = report,
		.trace = trace,
		.abnormal = json_array(),
		.normal = json_array(),
	};
	const struct nt_judgement *judgement = report->judgement;
	int r = result.abnormal && result.normal ? 0 : -ENOMEM;

	for (size_t i = 0; i < judgement->incidents && r == 0; i++)
		r = take_incident(&result, &judgement->judged[i].incident);
	r = r ?: take_lacking(&result);
	return r ?: write_result(&result, result.found ? result.first_ns : report->end_ns, buf);
}
