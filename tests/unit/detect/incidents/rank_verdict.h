/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One rank of a healthy job, whose evidence a test writes, and the verdict on it. */
#ifndef NT_TESTS_UNIT_DETECT_INCIDENTS_RANK_VERDICT_H
#define NT_TESTS_UNIT_DETECT_INCIDENTS_RANK_VERDICT_H

#include "tests/unit/detect/detect_frames.h"

#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/incident_settle.h"
#include "detect/model/detector_state.h"
#include "detect/rules/verdict.h"

enum {
	RANKS = 8,
	CULPRIT = 3,
	THRESHOLD = 10,
	STEP = 1024, /* of the evidence, ns */
	EXCESS = 64, /* of it: more than the 0.03 that matter */
};

static struct nt_detect *detect;
static struct nt_detect_rank *rank;
static struct nt_track *own, *host;
static double *value, *peers; /* of its evidence */

/* High for as long as counts, and far above the others: a culprit, if nothing speaks for it. */
static const struct nt_cusum high = {.sum = THRESHOLD,
				     .windows = 1,
				     .costly = 1,
				     .onset_ns = 77,
				     .onset_frame = 7,
				     .cost = 0.5,
				     .peer_deviation = 0.5};

static inline int begin(void **state)
{
	struct sim sim;

	(void)state;
	detect = sim_detect();
	sim_init(&sim, RANKS, 1);
	sim_pass(&sim, detect, 30);
	sim_free(&sim);
	assert_int_equal(detect->roles.groups, 1);
	detect->threshold = THRESHOLD;
	for (int i = 0; i < NT_SERIES_END; i++)
		detect->roles.group[0].tail[i] = (struct nt_adaptation){0};
	for (uint32_t i = 0; i < RANKS; i++)
		detect->rank[i].round_frame = i == CULPRIT ? detect->frames : 0;
	rank = &detect->rank[CULPRIT];
	own = &rank->track[NT_SERIES_OWN];
	host = &rank->track[NT_SERIES_HOST];
	*host = (struct nt_track){.tier = NT_FRAME_T2};
	*own = (struct nt_track){.tier = NT_FRAME_T2,
				 .mode = NT_MODE_PEERS,
				 .peers_seen = RANKS - 1,
				 .frame = detect->frames,
				 .level = high};
	rank->tier = NT_FRAME_T2;
	rank->uses_gpu = true;
	/* And is so still. */
	own->peer_deviation = own->growth = 1.0;
	rank->track[NT_SERIES_HOST].peer_deviation = rank->track[NT_SERIES_HOST].growth = 1.0;
	rank->evidence = (struct nt_rank_evidence){.weight = 1.0};
	value = rank->evidence.value;
	peers = rank->evidence.peers;
	value[NT_STEP_METRIC_STEP] = STEP;
	value[NT_STEP_METRIC_OWN] = 512 + EXCESS;
	peers[NT_STEP_METRIC_OWN] = 512;
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	nt_detect_free(detect);
	return 0;
}

/* As if nothing had been found before, and nothing is learned from what is found. */
static inline void judge_anew(void)
{
	struct nt_detect_rank kept = *rank;

	assert_int_equal(nt_incidents_close(detect, NT_FAMILY_END), 0);
	nt_incidents_begin(detect);
	kept.in_incident = false;
	*rank = kept;
	for (uint32_t i = 0; i < detect->ranks; i++)
		detect->scratch.sum[i] = nt_detect_rank_sum(&detect->rank[i], &detect->rules);
	assert_int_equal(nt_verdict_slow(detect, NULL), 0);
	*rank = kept;
}

/* The culprit's blame, or NULL. */
static inline const struct nt_blame *judged(void)
{
	judge_anew();
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *incident = detect->incidents.open[i];

		if (incident->family != NT_FAMILY_SLOW)
			continue;
		assert_int_equal(incident->blames, 1);
		assert_int_equal(incident->blame[0].rank, CULPRIT);
		return &incident->blame[0];
	}
	return NULL;
}

static inline void assert_class(enum nt_class class, enum nt_evidence_text cause, int line)
{
	const struct nt_blame *blame = judged();

	if (!blame || blame->class != class || blame->cause != cause)
		fail_msg("line %d: %d for cause %d", line, blame ? blame->class : -1,
			 blame ? blame->cause : -1);
}

#define IS(class, cause) assert_class(NT_CLASS_##class, NT_EVIDENCE_TEXT_##cause, __LINE__)
#define CASE(name)       cmocka_unit_test_setup_teardown(name, begin, end)

#endif
