/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Incidents: pending, firing, resolved. Plain data. */
#ifndef NT_DETECT_MODEL_INCIDENT_H
#define NT_DETECT_MODEL_INCIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/model/evidence_text.h"
#include "detect/model/finding.h"
#include "detect/model/recovery.h"

enum {
	NT_INCIDENT_MAX_OPEN = 256,
	NT_INCIDENT_MAX_NAMES = 65536, /* first culprits that are counted for ids */
};

/* Findings of different families are never merged. */
enum nt_family {
	NT_FAMILY_SLOW, /* ranks and nodes */
	NT_FAMILY_NETWORK,
	NT_FAMILY_APART, /* two populations */
	NT_FAMILY_IMBALANCE,
	NT_FAMILY_WHOLE_ROLE, /* its work grew */
	NT_FAMILY_JOB_WIDE,
	NT_FAMILY_STALL, /* hang, mismatch, and the note on a slow host */
	NT_FAMILY_MISSING,
	NT_FAMILY_PAUSE, /* no rank in a call for too long */
	NT_FAMILY_UNDECIDED, /* a note on what no other rule explains */
	NT_FAMILY_GPU, /* slow ranks whose own work is not observable, by the driver of their GPU */
	NT_FAMILY_END,
};

struct nt_detect_evidence {
	uint8_t what, unit, method; /* enum nt_evidence_text */
	double value, peers, width;
	uint32_t windows;
};

/* A rule's result for one frame. */
struct nt_proposal {
	enum nt_family family;
	enum nt_class class;
	enum nt_evidence_text cause;
	bool note; /* severity info at any cost */
	bool final; /* no later window can contradict it: it fires at once */
	enum nt_culprit_kind kind; /* of all its culprits */
	const uint32_t *rank; /* culprits of kind rank; ranks of kinds communicator and stage */
	size_t ranks;
	uint64_t comm;
	uint64_t onset_ns;
	double cost; /* part of the step; < 0: the job stands still, slow-down undefined */
	uint8_t series; /* family slow */
	uint64_t onset_frame; /* family slow */
	bool unsure; /* the cost may be much larger */
	bool of_node; /* family slow: all its peers are on its node, which became slow */
	uint8_t tier;
	double chance; /* of a false alarm */
	struct nt_detect_evidence evidence[NT_FINDING_MAX_EVIDENCE];
	size_t evidences;
};

/* Lost time: the job's step times before the onset and since. */
struct nt_lost_time {
	double before_ns; /* 0: not known */
	double clean_ns; /* before any incident that is open now */
	double first; /* steps of the job before the onset */
	double steps, step_ns; /* since the onset: number and total time */
	double due_ns; /* excess time not yet added to gpu_hours */
	/* Excess and total time since the onset, of about the last new_normal_ns: the slow-down. */
	double excess_ns, of_ns;
	uint64_t frame; /* counted up to here */
	bool unknown; /* the share of the time cannot be measured */
};

/* The incident's figures in its last bad window, reported when it resolves. */
struct nt_fault {
	bool held;
	uint8_t class, cause, tier;
	double cost, worst_cost, chance, slowdown, gpu_hours;
	double steps, step_ns; /* of the lost time */
	struct nt_detect_evidence evidence[NT_FINDING_MAX_EVIDENCE];
	uint32_t evidences;
};

struct nt_blame {
	uint32_t rank;
	uint64_t onset_ns;
	double cost, chance; /* slow means */
	uint8_t class, cause, tier, series;
	uint32_t absent; /* windows since it last stood */
	bool of_node; /* see struct nt_proposal */
	bool stands; /* scratch of the step */
	struct nt_recovery recovery;
};

struct nt_detect_incident {
	uint64_t id, version;
	uint8_t family, class, cause, severity, state, kind, tier;
	bool note, taken_over, unsure;
	bool stands, judged, changed; /* scratch of the step */
	bool is_marked; /* it counts as changed in the next step. Not saved */
	uint32_t stood; /* windows in which it stood while pending */
	uint32_t absent; /* windows since it last stood; frames for families that need no window */
	uint64_t comm;
	uint64_t since_ns, until_ns, seen_ns, fired_ns, counted_ns;
	double slowdown, gpu_hours, confidence, completeness;
	double reported_slowdown, reported_completeness; /* as last reported */
	double missing_before_ns; /* missing input before since_ns: see completeness.h */
	struct nt_lost_time lost_time;
	struct nt_blame *blame; /* family slow: ascending by rank */
	uint32_t blames, blame_cap;
	uint32_t *list; /* other families: ranks, ascending */
	uint32_t listed, list_cap;
	double cost, chance;
	struct nt_recovery recovery; /* families that are judged as a whole */
	struct nt_detect_evidence evidence[NT_FINDING_MAX_EVIDENCE]; /* of its worst culprit */
	uint32_t evidences;
	double shown_cost; /* scratch of the step: cost of that culprit */
	double window_cost; /* scratch of the step: from nt_incidents_judge() */
	struct nt_fault fault;
	/* For the finding, rebuilt in each step. */
	struct nt_finding_culprit *culprit;
	uint32_t *node_rank; /* the ranks of its culprits of kind node */
	uint32_t culprits;
};

struct nt_name {
	uint8_t kind; /* enum nt_culprit_kind, or UINT8_MAX for "job" */
	uint64_t id;
	uint32_t count;
};

struct nt_incidents {
	struct nt_detect_incident **open; /* in the order of their opening */
	uint32_t opens, open_cap;
	/* resolved in this step; their findings are valid until the next */
	struct nt_detect_incident **gone;
	uint32_t gones, gone_cap;
	struct nt_name *name; /* ascending by (kind, id) */
	uint32_t names, name_cap;
	struct nt_finding *answer, *standing;
	uint32_t answers, answer_cap, standings, standing_cap;
	uint64_t refused; /* at the cap */
};

/* Whether two onsets count as simultaneous, which makes them one incident. */
bool nt_incidents_are_together(uint64_t onset_ns, uint64_t other_ns, double window_ns);
/* Whether the incident is only judged in windows; others are judged in every frame. */
bool nt_incident_needs_windows(const struct nt_detect_incident *incident);
/* Adds a culprit, at most one per rank. -ENOMEM. */
int nt_blame_insert(struct nt_detect_incident *incident, const struct nt_blame *blame);
/* Discards the step times before the onsets of all open incidents. */
void nt_lost_times_forget(struct nt_incidents *incidents);
void nt_incident_free(struct nt_detect_incident *incident);
void nt_incidents_free(struct nt_incidents *incidents);

#endif
