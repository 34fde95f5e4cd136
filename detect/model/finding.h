/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A finding: one incident in its current state, as numbers, and the names of its enums. */
#ifndef NT_DETECT_MODEL_FINDING_H
#define NT_DETECT_MODEL_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nt_class {
	NT_CLASS_COMPUTE,
	NT_CLASS_NETWORK,
	NT_CLASS_HOST,
	NT_CLASS_STORAGE,
	NT_CLASS_MISSING,
	NT_CLASS_HANG,
	NT_CLASS_MISMATCH,
	NT_CLASS_NODE,
	NT_CLASS_UNKNOWN,
	NT_CLASS_IMBALANCE,
	NT_CLASS_JOB_WIDE,
	NT_CLASS_END,
};

enum nt_severity {
	NT_SEVERITY_INFO,
	NT_SEVERITY_WARNING,
	NT_SEVERITY_CRITICAL,
};

enum nt_incident_state {
	NT_INCIDENT_PENDING,
	NT_INCIDENT_FIRING,
	NT_INCIDENT_RESOLVED,
};

enum nt_culprit_kind {
	NT_CULPRIT_RANK,
	NT_CULPRIT_NODE,
	NT_CULPRIT_NIC,
	NT_CULPRIT_PATH,
	NT_CULPRIT_COMMUNICATOR, /* accuses no rank */
	NT_CULPRIT_STAGE, /* accuses no rank */
};

/* Names as in the incident object: "compute", "warning", "firing", "rank". */
const char *nt_class_name(enum nt_class class);
const char *nt_severity_name(enum nt_severity severity);
const char *nt_incident_state_name(enum nt_incident_state state);
const char *nt_culprit_kind_name(enum nt_culprit_kind kind);

/* `what`, `unit`, `method` and `cause` point to constants. */
struct nt_finding_evidence {
	const char *what, *unit, *method;
	double value, peers, width;
	uint32_t windows;
};

struct nt_finding_culprit {
	enum nt_culprit_kind kind;
	uint32_t rank; /* kind rank */
	uint32_t node; /* kinds rank, node, nic, path: index, or NT_FRAME_NO_NODE */
	uint32_t peer_node; /* kind path */
	uint64_t comm; /* kind communicator */
	const uint32_t *peers; /* ranks it was compared with */
	size_t peer_count;
	const uint32_t *ranks; /* kinds node, communicator, stage: its ranks */
	size_t rank_count;
};

enum {
	NT_FINDING_MAX_EVIDENCE = 12,
};

/* One incident. Pointers are valid until the detector's next step or its end. */
struct nt_finding {
	/* hash of (job, attempt, first culprit or "job", n-th such): fixed from pending */
	uint64_t id;
	enum nt_incident_state state;
	bool fired; /* now or before; an incident that never fired is not shown */
	enum nt_class class;
	enum nt_severity severity;
	const char *cause; /* or NULL */
	const struct nt_finding_culprit *culprit;
	size_t culprits;
	uint64_t since_ns, until_ns, seen_ns; /* until 0: open */
	double slowdown;
	double gpu_hours; /* < 0: not known */
	uint8_t tier; /* enum nt_frame_tier */
	double confidence, completeness;
	struct nt_finding_evidence evidence[NT_FINDING_MAX_EVIDENCE];
	size_t evidences;
	uint64_t version; /* grows with every change */
};

#endif
