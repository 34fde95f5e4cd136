/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/alarm.h"

#include "detect/thresholds/thresholds.h"

struct nt_score_alarm_rules nt_score_alarm_rules_default(void)
{
	return (struct nt_score_alarm_rules){
		.rows = NT_ANOMALY_ALARM_ROWS,
		.release = NT_ANOMALY_RELEASE,
	};
}

enum nt_score_alarm_change nt_score_alarm_take(struct nt_score_alarm *alarm,
					       const struct nt_score_alarm_rules *rules,
					       double score, double threshold)
{
	if (alarm->is_raised) {
		if (score >= rules->release * threshold)
			return NT_SCORE_ALARM_SAME;
		*alarm = (struct nt_score_alarm){0};
		return NT_SCORE_ALARM_ENDED;
	}
	if (!(score > threshold)) {
		alarm->over = 0;
		return NT_SCORE_ALARM_SAME;
	}
	alarm->over++;
	if (alarm->over < rules->rows)
		return NT_SCORE_ALARM_SAME;
	alarm->is_raised = true;
	return NT_SCORE_ALARM_BEGAN;
}

void nt_score_alarm_code(struct nt_codec *codec, struct nt_score_alarm *alarm)
{
	nt_code_bool(codec, &alarm->is_raised);
	nt_code_u32(codec, &alarm->over, UINT32_MAX - 1);
}
