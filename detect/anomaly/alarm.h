/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Duration and hysteresis: an alarm begins after several rows over the threshold, and ends when the
 * score is well below it, so that one anomaly is one alarm.
 */
#ifndef NT_DETECT_ANOMALY_ALARM_H
#define NT_DETECT_ANOMALY_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/codec.h"

struct nt_score_alarm_rules {
	uint32_t rows; /* over the threshold before an alarm begins */
	double release; /* of the threshold, below which it ends */
};

/* Zero-initialised: no alarm. */
struct nt_score_alarm {
	bool is_raised;
	uint32_t over; /* consecutive rows over the threshold */
};

enum nt_score_alarm_change {
	NT_SCORE_ALARM_SAME,
	NT_SCORE_ALARM_BEGAN,
	NT_SCORE_ALARM_ENDED,
};

struct nt_score_alarm_rules nt_score_alarm_rules_default(void);

enum nt_score_alarm_change nt_score_alarm_take(struct nt_score_alarm *alarm,
					       const struct nt_score_alarm_rules *rules,
					       double score, double threshold);

void nt_score_alarm_code(struct nt_codec *codec, struct nt_score_alarm *alarm);

#endif
