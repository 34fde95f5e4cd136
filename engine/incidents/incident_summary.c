/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Order of a summary: culprit, effect, size, reference, onset, cause. The first words of a line are
 * the ones to act on.
 */
#include "engine/incidents/incident_summary.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/system/clock.h"
#include "engine/stacks/incident_stack.h"
#include "proto/text.h"

enum {
	TIME_AT = 11, /* in 2026-11-21T03:00:12Z */
	TIME_LEN = 8,
};

/* Keeps the first error, so that a chain of appends needs one check. */
struct writer {
	struct nt_buf *buf;
	int error;
};

#define put(writer, ...)                                                                           \
	do {                                                                                       \
		if (!(writer)->error)                                                              \
			(writer)->error = nt_buf_printf((writer)->buf, __VA_ARGS__);               \
	} while (0)

static void put_name(struct writer *writer, const char *name)
{
	char clean[NT_INCIDENT_SUMMARY_MAX_NAME + 1];

	(void)nt_text_clean(name, strlen(name), clean, NT_INCIDENT_SUMMARY_MAX_NAME);
	put(writer, "%s", clean);
}

static void put_count(struct writer *writer, size_t count, const char *one)
{
	put(writer, "%zu %s%s", count, one, count == 1 ? "" : "s");
}

/* At most three digits, no trailing zeros: 52 ms, 1.4 s, 0.31 ms. */
static void put_value(struct writer *writer, double value, const char *unit)
{
	if (strcmp(unit, "ms") == 0 && fabs(value) >= 1000) {
		value /= 1000;
		unit = "s";
	}
	put(writer, "%.*f %s", fabs(value) >= 10 ? 0 : 1, value, unit);
}

static bool is_rank(const struct nt_culprit *culprit)
{
	return culprit->has_rank;
}

static bool same_node(const struct nt_wire_incident *incident)
{
	for (size_t i = 1; i < incident->culprits; i++)
		if (strcmp(incident->culprit[i].node, incident->culprit[0].node) != 0)
			return false;
	return incident->culprits && incident->culprit[0].node[0];
}

/* "rank 11 (gpu-07, GPU-…)": the node, and what identifies its GPU. */
static void put_place(struct writer *writer, const struct nt_culprit *culprit)
{
	const char *second = culprit->gpu[0] ? culprit->gpu : culprit->pod;

	if (!culprit->node[0] && !second[0])
		return;
	put(writer, " (");
	put_name(writer, culprit->node[0] ? culprit->node : second);
	if (culprit->node[0] && second[0]) {
		put(writer, ", ");
		put_name(writer, second);
	}
	put(writer, ")");
}

static void put_ranks(struct writer *writer, const struct nt_wire_incident *incident)
{
	const size_t count = incident->culprits;
	const size_t listed =
		count > NT_INCIDENT_SUMMARY_MAX_RANKS ? NT_INCIDENT_SUMMARY_MAX_RANKS - 1 : count;

	put(writer, "ranks ");
	for (size_t i = 0; i < listed; i++) {
		const char *before = i == 0 ? "" : i + 1 == count ? " and " : ", ";

		put(writer, "%s%u", before, incident->culprit[i].rank);
		if (!same_node(incident))
			put_place(writer, &incident->culprit[i]);
	}
	if (listed < count)
		put(writer, " and %zu more", count - listed);
	if (same_node(incident)) {
		put(writer, " (");
		put_name(writer, incident->culprit[0].node);
		put(writer, ")");
	}
}

static void put_part(struct writer *writer, const struct nt_culprit *culprit)
{
	if (is_rank(culprit)) {
		put(writer, "rank %u", culprit->rank);
		put_place(writer, culprit);
		return;
	}
	if (strcmp(culprit->kind, "path") == 0) {
		put(writer, "the path from ");
		put_name(writer, culprit->node);
		put(writer, " to ");
		put_name(writer, culprit->peer);
		return;
	}
	if (strcmp(culprit->kind, "communicator") == 0) {
		put(writer, "the communicator of ");
		put_count(writer, culprit->rank_count, "rank");
		return;
	}
	if (strcmp(culprit->kind, "stage") == 0) {
		put(writer, "a stage of ");
		put_count(writer, culprit->rank_count, "rank");
		return;
	}
	put(writer, "%s ", culprit->kind);
	put_name(writer, culprit->node[0] ? culprit->node : culprit->name);
}

/* Returns whether the subject is plural. */
static bool put_subject(struct writer *writer, const struct nt_wire_incident *incident)
{
	if (!incident->culprits) {
		put(writer, "the job");
		return false;
	}
	if (incident->culprits == 1) {
		put_part(writer, &incident->culprit[0]);
		return false;
	}
	for (size_t i = 0; i < incident->culprits; i++)
		if (!is_rank(&incident->culprit[i])) {
			put_part(writer, &incident->culprit[0]);
			put(writer, " and %zu more", incident->culprits - 1);
			return true;
		}
	put_ranks(writer, incident);
	return true;
}

static void put_since(struct writer *writer, const struct nt_wire_incident *incident)
{
	char since[NT_CLOCK_TEXT], until[NT_CLOCK_TEXT];

	(void)nt_clock_format(incident->since_real_ns, 0, since);
	if (incident->until_real_ns && strcmp(incident->state, "resolved") == 0) {
		(void)nt_clock_format(incident->until_real_ns, 0, until);
		put(writer, " from %.*s to %.*s", TIME_LEN, since + TIME_AT, TIME_LEN,
		    until + TIME_AT);
		return;
	}
	put(writer, " since %.*s", TIME_LEN, since + TIME_AT);
}

static const struct nt_wire_evidence *find_evidence(const struct nt_wire_incident *incident,
						    const char *what)
{
	for (size_t i = 0; i < incident->evidences; i++)
		if (strcmp(incident->evidence[i].what, what) == 0)
			return &incident->evidence[i];
	return NULL;
}

static bool is_cause(const struct nt_wire_incident *incident, const char *cause)
{
	return strcmp(incident->cause, cause) == 0;
}

/* The peers of the first culprit that are no culprits themselves. */
static size_t count_peers(const struct nt_wire_incident *incident)
{
	const struct nt_culprit *first = &incident->culprit[0];
	size_t count = first->peer_count;

	for (size_t i = 1; i < incident->culprits; i++)
		for (size_t j = 0; is_rank(&incident->culprit[i]) && j < first->peer_count; j++)
			count -= first->peers[j] == incident->culprit[i].rank;
	return count;
}

/* The reference of the evidence, which may be NULL: "its 7 peers", or its own past. */
static void put_peers(struct writer *writer, const struct nt_wire_incident *incident,
		      const struct nt_wire_evidence *evidence, bool several)
{
	const char *whose = several ? "their" : "its";
	const size_t all = incident->culprits ? incident->culprit[0].peer_count : 0;
	const size_t peers = all ? count_peers(incident) : 0;

	if (!incident->culprits)
		put(writer, "before");
	else if (evidence ? strcmp(evidence->method, "own past") == 0 : !all)
		put(writer, "%s own past", whose);
	else if (!all)
		put(writer, "%s peers on other nodes", whose);
	else if (!peers)
		put(writer, "%s peers", whose);
	else if (peers == 1)
		put(writer, "%s one peer", whose);
	else
		put(writer, "%s %zu peers", whose, peers);
}

/* "31 % slower than its 3 peers": from evidence with both values (`what`), else from the slow-down. */
static void put_slower(struct writer *writer, const struct nt_wire_incident *incident,
		       const char *what, bool several)
{
	const struct nt_wire_evidence *evidence = what ? find_evidence(incident, what) : NULL;
	double ratio = incident->slowdown;

	if (evidence && evidence->peers > 0 && evidence->value > evidence->peers)
		ratio = evidence->value / evidence->peers;
	if (ratio >= 2.5)
		put(writer, "%.1f times slower than ", ratio);
	else
		put(writer, "%.0f %% slower than ", (ratio - 1) * 100);
	put_peers(writer, incident, evidence, several);
}

static bool is_stage(const struct nt_wire_incident *incident)
{
	return incident->culprits && strcmp(incident->culprit[0].kind, "stage") == 0;
}

static void put_compute(struct writer *writer, const struct nt_wire_incident *incident)
{
	static const char tensor[] = "time per step in which the gpu's tensor cores computed";
	bool several = put_subject(writer, incident);
	const char *what = is_stage(incident)                ? "own work of the role"
			   : find_evidence(incident, tensor) ? tensor
							     : "own work of the step";

	put(writer, several ? " compute " : " computes ");
	put_slower(writer, incident, what, several);
	put_since(writer, incident);
	/* Work is a part of the step, whose other parts are as long as before. */
	if (incident->slowdown >= 1.005)
		put(writer, "; steps take %.0f %% longer", (incident->slowdown - 1.0) * 100);
}

/* "spends 52 ms of each step on the host, its 7 peers 20 ms". */
static void put_time_spent(struct writer *writer, const struct nt_wire_incident *incident,
			   const char *what, const char *where)
{
	const struct nt_wire_evidence *evidence = find_evidence(incident, what);
	bool several = put_subject(writer, incident);

	if (!evidence) {
		put(writer, several ? " keep the others waiting" : " keeps the others waiting");
	} else {
		put(writer, several ? " spend " : " spends ");
		put_value(writer, evidence->value, evidence->unit);
		put(writer, " of each step %s", where);
		if (evidence->peers > 0) {
			put(writer, ", ");
			put_peers(writer, incident, evidence, several);
			put(writer, " ");
			put_value(writer, evidence->peers, evidence->unit);
			put(writer, ",");
		}
	}
	put_since(writer, incident);
}

static void put_network(struct writer *writer, const struct nt_wire_incident *incident)
{
	static const char *const decisive[] = {"shortest transfer from the node",
					       "shortest transfer to the node",
					       "transfer time of the step"};
	const struct nt_wire_evidence *evidence = NULL;
	bool several = put_subject(writer, incident);

	for (size_t i = 0; i < sizeof(decisive) / sizeof(decisive[0]) && !evidence; i++)
		evidence = find_evidence(incident, decisive[i]);

	put(writer, several ? " transfer " : " transfers ");
	if (evidence && evidence->peers > 0 && evidence->value > evidence->peers)
		put(writer, "%.1f times slower than %s", evidence->value / evidence->peers,
		    strcmp(evidence->method, "communicators alike") == 0 ? "others" : "before");
	else
		put(writer, "slowly");
	put_since(writer, incident);
}

/* ", by signal 9 (SIGKILL)" or ", with exit status 1". */
static void put_end(struct writer *writer, const struct nt_wire_incident *incident)
{
	const struct nt_wire_evidence *by =
		find_evidence(incident, "signal that ended the process");
	const struct nt_wire_evidence *with = find_evidence(incident, "exit status of the process");
	const char *name;

	if (by && by->value > 0 && by->value < NSIG) {
		name = sigabbrev_np((int)by->value);
		put(writer, ", by signal %.0f%s%s%s", by->value, name ? " (SIG" : "",
		    name ? name : "", name ? ")" : "");
	} else if (with) {
		put(writer, ", with exit status %.0f", with->value);
	}
}

/* ", after XID 79 of its GPU". */
static void put_xid(struct writer *writer, const struct nt_wire_incident *incident)
{
	const struct nt_wire_evidence *xid = find_evidence(incident, "xid of the gpu's last error");

	if (xid)
		put(writer, ", after XID %.0f of its GPU", xid->value);
}

static void put_missing(struct writer *writer, const struct nt_wire_incident *incident)
{
	char since[NT_CLOCK_TEXT];
	bool several = put_subject(writer, incident);

	if (find_evidence(incident, "time until all others had ended")) {
		/* All may have ended at once: then the error of its GPU is the evidence, not the order. */
		put(writer, find_evidence(incident, "xid of the gpu's last error")
				    ? " ended"
				    : " ended first");
		put_end(writer, incident);
		put_xid(writer, incident);
		(void)nt_clock_format(incident->since_real_ns, 0, since);
		put(writer, ", at %.*s, and the job with it", TIME_LEN, since + TIME_AT);
		return;
	}
	put(writer, several ? " are gone" : " is gone");
	put_since(writer, incident);
	put(writer, " while others go on or wait for %s", several ? "them" : "it");
	put_end(writer, incident);
	put_xid(writer, incident);
}

static const char *const lost_sight = "ranks whose calls are seen a part of the time, and all";

static void put_hang(struct writer *writer, const struct nt_wire_incident *incident)
{
	bool several;

	if (!incident->culprits || !is_rank(&incident->culprit[0])) {
		put(writer, "the job hangs");
		put_since(writer, incident);
		if (incident->culprits) {
			put(writer, " in ");
			put_part(writer, &incident->culprit[0]);
		} else if (find_evidence(incident, lost_sight)) {
			put(writer, "; the late rank is not known, as not all calls are recorded");
		}
		return;
	}
	several = put_subject(writer, incident);
	if (find_evidence(incident, "ranks named, whose processes are stopped"))
		put(writer, several ? " are stopped while others wait for them"
				    : " is stopped while others wait for it");
	else if (find_evidence(incident, "time inside a send, receive or wait"))
		put(writer, several ? " do not make the calls that others wait for"
				    : " does not make the call that others wait for");
	else if (is_cause(incident, "no dump"))
		put(writer,
		    several ? " left no dumps, and ranks wait in calls of which they are members"
			    : " left no dump, and ranks wait in a call of which it is a member");
	else if (is_cause(incident, "device or link"))
		put(writer, several ? " have not left a collective that others have left"
				    : " has not left a collective that others have left");
	else
		put(writer, several ? " have not entered the collective that others wait in"
				    : " has not entered the collective that others wait in");
	put_since(writer, incident);
}

static void put_mismatch(struct writer *writer, const struct nt_wire_incident *incident)
{
	bool several = put_subject(writer, incident);

	put(writer, several ? " call" : " calls");
	put(writer, " another operation, size or type than the other ranks of the communicator");
	put_since(writer, incident);
}

/* A rank that deviates and is not accused; the cause says why. */
static void put_undecided(struct writer *writer, const struct nt_wire_incident *incident)
{
	const struct nt_wire_evidence *marked =
		find_evidence(incident, "windows in which the rank is far behind its peers");

	(void)put_subject(writer, incident);
	put(writer, " is far behind its peers");
	if (marked)
		put(writer, " in %.0f %% of its windows", marked->value);
	put_since(writer, incident);
}

static void put_unknown(struct writer *writer, const struct nt_wire_incident *incident)
{
	bool several;

	if (incident->culprits && strcmp(incident->severity, "info") == 0) {
		put_undecided(writer, incident);
		return;
	}
	if (!incident->culprits) {
		put(writer, "the ranks fall into two groups of different speed");
		put_since(writer, incident);
		return;
	}
	several = put_subject(writer, incident);
	put(writer, several ? " are abnormal" : " is abnormal");
	put_since(writer, incident);
}

static void put_imbalance(struct writer *writer, const struct nt_wire_incident *incident)
{
	put(writer, "the work is uneven%s, no rank is at fault",
	    find_evidence(incident, "what the slowest rank of each window costs, each time another")
		    ? " by turns"
		    : "");
	if (incident->culprits) {
		put(writer, ": ");
		put_part(writer, &incident->culprit[0]);
		put(writer, " has more of it");
	}
	put(writer, ",");
	put_since(writer, incident);
}

static void put_job_wide(struct writer *writer, const struct nt_wire_incident *incident)
{
	put(writer, "all ranks together are ");
	put_slower(writer, incident, NULL, true);
	put_since(writer, incident);
}

static void put_node(struct writer *writer, const struct nt_wire_incident *incident)
{
	bool several = put_subject(writer, incident);

	put(writer, several ? " behave unlike their peers" : " behaves unlike its peers");
	put_since(writer, incident);
}

static void put_body(struct writer *writer, enum nt_class class,
		     const struct nt_wire_incident *incident)
{
	switch (class) {
	case NT_CLASS_COMPUTE:
		put_compute(writer, incident);
		return;
	case NT_CLASS_NETWORK:
		put_network(writer, incident);
		return;
	case NT_CLASS_HOST:
		put_time_spent(writer, incident, "host work of the step", "on the host");
		return;
	case NT_CLASS_STORAGE:
		put_time_spent(writer, incident, "I/O wait of the step", "waiting for storage");
		return;
	case NT_CLASS_MISSING:
		put_missing(writer, incident);
		return;
	case NT_CLASS_HANG:
		put_hang(writer, incident);
		return;
	case NT_CLASS_MISMATCH:
		put_mismatch(writer, incident);
		return;
	case NT_CLASS_NODE:
		put_node(writer, incident);
		return;
	case NT_CLASS_IMBALANCE:
		put_imbalance(writer, incident);
		return;
	case NT_CLASS_JOB_WIDE:
		put_job_wide(writer, incident);
		return;
	case NT_CLASS_UNKNOWN:
	case NT_CLASS_END:
		break;
	}
	put_unknown(writer, incident);
}

static const char *const no_verdict = "no verdict";

static void put_taker(struct writer *writer, const struct nt_wire_incident *incident)
{
	const size_t len = strlen(NT_INCIDENT_TAKEN_BY);

	for (size_t i = 0; i < incident->evidences; i++) {
		if (strncmp(incident->evidence[i].what, NT_INCIDENT_TAKEN_BY, len) != 0)
			continue;
		put(writer, " by ");
		put_name(writer, incident->evidence[i].what + len);
	}
}

/* Only causes that the sentence does not contain yet. */
static void put_cause(struct writer *writer, enum nt_class class,
		      const struct nt_wire_incident *incident)
{
	if (strncmp(incident->cause, no_verdict, strlen(no_verdict)) == 0) {
		put(writer, "; ");
		put_name(writer, incident->cause);
		return;
	}
	if (class == NT_CLASS_UNKNOWN) {
		put(writer, "; the cause is not known");
		return;
	}
	if (class == NT_CLASS_HANG && is_cause(incident, "slow host")) {
		put(writer, "; its process is at work");
		return;
	}
	if (!incident->cause[0] || class == NT_CLASS_HANG || class == NT_CLASS_MISMATCH)
		return;
	put(writer, "; cause: ");
	put_name(writer, incident->cause);
	put_taker(writer, incident);
}

static void put_frame(struct writer *writer, const struct nt_wire_incident *incident)
{
	const struct nt_wire_stack_frame *frame = nt_incident_stack_innermost(incident);
	const char *slash = frame ? strrchr(frame->file, '/') : NULL;

	if (!frame)
		return;
	put(writer, "; innermost Python frame: ");
	put_name(writer, frame->function);
	put(writer, " (");
	put_name(writer, slash ? slash + 1 : frame->file);
	if (frame->line)
		put(writer, ":%u", frame->line);
	put(writer, ")");
}

int nt_incident_summary_write(enum nt_class class, const struct nt_wire_incident *incident,
			      struct nt_arena *arena, const char **ret_text)
{
	nt_autobuf struct nt_buf buf = {0};
	struct writer writer = {.buf = &buf};
	char *text;

	put_body(&writer, class, incident);
	put_cause(&writer, class, incident);
	put_frame(&writer, incident);
	if (writer.error)
		return writer.error;
	text = nt_arena_alloc(arena, buf.len + 1);
	if (!text)
		return -ENOMEM;
	(void)nt_text_clean((const char *)buf.data, buf.len, text, NT_WIRE_MAX_TEXT);
	*ret_text = text;
	return 0;
}
