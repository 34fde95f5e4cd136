/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The detection of one job: frames in, incidents out. A pure step: no I/O, no clock, no globals;
 * the same frames give the same incidents byte for byte. See docs/verdicts.md for the rules.
 */
#ifndef NT_DETECT_DETECT_H
#define NT_DETECT_DETECT_H

#include <stddef.h>
#include <stdint.h>

#include "detect/frame.h"

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
	NT_CULPRIT_COMMUNICATOR, /* accuses nobody */
	NT_CULPRIT_STAGE, /* accuses nobody */
};

/* Names as in the incident object: "compute", "warning", "firing", "rank". */
const char *nt_class_name(enum nt_class class);
const char *nt_severity_name(enum nt_severity severity);
const char *nt_incident_state_name(enum nt_incident_state state);
const char *nt_culprit_kind_name(enum nt_culprit_kind kind);

/* The shipped defaults are nt_rules_default(): one set for all cases. */
struct nt_rules {
	double size_floor; /* 0.03: what a finding must cost, of the step */
	double kpi_floor; /* 0.01: smallest peer spread, of the step */
	double z_clip; /* 3 */
	double drift; /* 1 */
	double threshold_base; /* 2 */
	double false_alarms_a_day; /* allowed, per job: 1/30 */
	double critical_slowdown; /* 1.2 */
	uint32_t width_windows; /* 20: windows that the width is the median over */
	uint32_t pending_windows; /* 2 */
	uint64_t resolve_min_ns; /* 60 s: see "Resolve" */
	uint32_t resolve_windows; /* 20 */
	uint64_t hang_min_ns; /* 15 s */
	double hang_periods; /* 10 */
	uint64_t missing_after_ns; /* 5 s */
	uint64_t silence_floor_ns; /* 30 min: a pause of all is silent until then */
	uint64_t lost_sight_ns; /* 60 s: the same where nobody sees whether it is one */
	uint64_t checkpoint_note_ns; /* 15 s */
	uint64_t slow_host_ns; /* 10 min: a laggard that works is slow, not hung, until then */
	uint64_t
		young_ns; /* 10 min: until then all may wait for long; 0: what waits is known to hang */
	uint64_t new_normal_ns; /* 30 min */
	double price_gpu_hour; /* < 0: unknown */
};

struct nt_rules nt_rules_default(void);

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

/* One incident as it stands. Pointers are valid until the next step or free of its detector. */
struct nt_finding {
	uint64_t
		id; /* hash of (job, attempt, first culprit or "job", n-th such): fixed from pending */
	enum nt_incident_state state;
	bool fired; /* now or before: what never did is not to be shown when it is over, either */
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

struct nt_detect;

/* job_hash and attempt only enter the ids. -ENOMEM. */
int nt_detect_new(const struct nt_rules *rules, uint64_t job_hash, uint32_t attempt,
		  struct nt_detect **ret_detect) __attribute__((warn_unused_result));
void nt_detect_free(struct nt_detect *detect);

/*
 * One frame. *ret_finding are the incidents that this frame opened, changed or resolved, pending
 * ones included; they belong to the detector. -EINVAL for a frame that breaks its own rules (ranks
 * not ascending, more than NT_FRAME_MAX_RANKS, end before start or before the last frame's end):
 * the state is then untouched. -ENOMEM.
 */
int nt_detect_step(struct nt_detect *detect, const struct nt_frame *frame,
		   const struct nt_finding **ret_finding, size_t *ret_findings)
	__attribute__((warn_unused_result));

/* All incidents that are pending or firing now. Valid until the next step. */
void nt_detect_open(const struct nt_detect *detect, const struct nt_finding **ret_finding,
		    size_t *ret_findings);

/* Takes what is seen now as normal: baselines start afresh, open incidents resolve. */
void nt_detect_rebaseline(struct nt_detect *detect);

/* What is known of a rank now, for tables. False where the rank is not known. */
struct nt_rank_view {
	uint8_t tier;
	bool own_observable;
	double own_ns, own_peers_ns; /* per step; of the last frame */
	double host_ns, host_peers_ns;
	double kpi, width, cusum, threshold;
	const uint32_t *peers;
	size_t peer_count;
};
bool nt_detect_rank(const struct nt_detect *detect, uint32_t rank, struct nt_rank_view *ret_view);
/* Median step time of the job in the last frame, ns; 0: none seen. */
double nt_detect_step_ns(const struct nt_detect *detect);
/* How often some members of a communicator were not heard in time, so that nothing was judged. */
uint64_t nt_detect_unheard(const struct nt_detect *detect);

/*
 * The state as bytes, versioned and independent of byte order; the caller frees *ret_data. Loading
 * takes bytes from anywhere: -EBADMSG for what is damaged or of another version.
 */
int nt_detect_save(const struct nt_detect *detect, uint8_t **ret_data, size_t *ret_size)
	__attribute__((warn_unused_result));
int nt_detect_load(const struct nt_rules *rules, const uint8_t *data, size_t size,
		   struct nt_detect **ret_detect) __attribute__((warn_unused_result));

#endif
