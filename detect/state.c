/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of a job's detector: all that a later step reads and does not compute. */
#include <errno.h>
#include <stdlib.h>

#include "common/base/codec.h"
#include "common/base/hash.h"
#include "detect/detect.h"
#include "detect/incidents/findings.h"
#include "detect/model/detector_state.h"
#include "detect/state_part.h"

enum {
	STATE_MAGIC = 0x5344544e, /* "NTDS" */
	STATE_VERSION = NT_STATE_RHYTHM,
	STATE_SUM_BYTES = 8,
};

static void code_history(struct nt_codec *codec, struct nt_history *history)
{
	nt_code_u32(codec, &history->count, NT_HISTORY_ROUNDS);
	nt_code_u32(codec, &history->next, NT_HISTORY_ROUNDS - 1);
	nt_code_fail(codec, history->count < NT_HISTORY_ROUNDS && history->next != history->count);
	for (uint32_t i = 0; i < history->count && i < NT_HISTORY_ROUNDS; i++) {
		nt_code_u64(codec, &history->round[i].start_ns);
		nt_code_real(codec, &history->round[i].steps);
		nt_code_real(codec, &history->round[i].step_ns);
		nt_code_real(codec, &history->round[i].calls);
	}
	nt_code_real(codec, &history->steps);
	nt_code_real(codec, &history->calls);
	nt_code_u64(codec, &history->begin_ns);
}

static void code_step(struct nt_codec *codec, struct nt_detect_step *step)
{
	nt_code_real(codec, &step->step_ns);
	nt_code_real(codec, &step->gc_ns);
	nt_code_real(codec, &step->gc_before_ns);
	nt_state_past(codec, &step->past, &step->lesson);
	nt_code_real(codec, &step->first.step_ns);
	nt_code_real(codec, &step->first.sigma_ns);
	nt_code_u64(codec, &step->said_ns);
	nt_state_cusum(codec, &step->level);
	code_history(codec, &step->history);
	nt_code_u64(codec, &step->charged_ns);
	nt_code_u64(codec, &step->moved_ns);
	nt_code_u64(codec, &step->longest_pause_ns);
	nt_code_u64(codec, &step->wide_frame);
	for (int i = 0; i < NT_SERIES_END; i++) {
		nt_state_cusum(codec, &step->job_wide[i].level);
		nt_code_real(codec, &step->job_wide[i].growth);
		nt_code_bool(codec, &step->job_wide[i].known);
		nt_code_real(codec, &step->job_wide[i].slow_cost);
		nt_code_real(codec, &step->job_wide[i].drop);
		nt_code_u64(codec, &step->job_wide[i].dropped_ns);
	}
}

static void code_gaps(struct nt_codec *codec, struct nt_completeness *gaps)
{
	nt_code_count(codec, &gaps->gaps, NT_COMPLETENESS_MAX);
	for (uint32_t i = 0; i < gaps->gaps; i++) {
		nt_code_u64(codec, &gaps->gap[i].start_ns);
		nt_code_u64(codec, &gaps->gap[i].end_ns);
		nt_code_real(codec, &gaps->gap[i].missing_ns);
	}
	nt_code_real(codec, &gaps->missing_ns);
}

/* Far windows of an older format were counted by a wider width: healthy ranks seem never to be far. */
static void forget_far_windows(struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->ranks; i++)
		for (int j = 0; j < NT_SERIES_END; j++) {
			struct nt_track *track = &detect->rank[i].track[j];

			track->far_given = (struct nt_far_rate){0};
			if (detect->rank[i].in_incident)
				continue;
			track->far_own = (struct nt_far_own){0};
			nt_cusum_clear(&track->rate);
		}
	for (uint32_t i = 0; i < detect->roles.groups; i++)
		for (int j = 0; j < NT_SERIES_END; j++)
			detect->roles.group[i].far_rate[j] = (struct nt_far_rate){0};
}

static void code_detect(struct nt_codec *codec, struct nt_detect *detect)
{
	nt_code_fixed(codec, &detect->job_hash);
	nt_code_u32(codec, &detect->attempt, UINT32_MAX);
	nt_code_u64(codec, &detect->frames);
	nt_code_u64(codec, &detect->start_ns);
	nt_code_u64(codec, &detect->end_ns);
	nt_code_real(codec, &detect->window_ns);
	nt_code_u32(codec, &detect->expected_ranks, UINT32_MAX);
	code_gaps(codec, &detect->gaps);
	nt_code_real(codec, &detect->threshold);
	nt_code_bool(codec, &detect->rebaseline);
	nt_code_u64(codec, &detect->dropped_ranks);
	nt_code_u64(codec, &detect->dropped_comms);
	nt_code_u64(codec, &detect->implausible);
	nt_code_u64(codec, &detect->lapsed_collective_rounds);
	nt_state_comms(codec, detect);
	if (!codec->error)
		nt_state_ranks(codec, detect);
	if (!codec->error)
		nt_state_groups(codec, detect);
	code_step(codec, &detect->step);
	if (!codec->error)
		nt_state_links(codec, &detect->links);
	if (!codec->error)
		nt_state_incidents(codec, &detect->incidents);
}

static void code_head(struct nt_codec *codec)
{
	uint64_t magic = STATE_MAGIC, version = STATE_VERSION;

	nt_code_fixed(codec, &magic);
	nt_code_number(codec, &version, STATE_VERSION);
	nt_code_fail(codec, magic != STATE_MAGIC || version < NT_STATE_OLDEST);
	codec->version = (uint32_t)version;
}

int nt_detect_save(const struct nt_detect *detect, uint8_t **ret_data, size_t *ret_size)
{
	nt_autobuf struct nt_buf buf = {.max = UINT32_MAX};
	struct nt_codec codec = {.out = &buf};
	uint64_t sum;

	code_head(&codec);
	/* One traversal serves both directions; saving only modifies the communicators' index. */
	code_detect(&codec, (struct nt_detect *)(uintptr_t)detect);
	sum = nt_hash_bytes(NT_HASH_SEED, buf.data, buf.len);
	nt_code_fixed(&codec, &sum);
	if (codec.error)
		return codec.error;
	*ret_size = buf.len;
	*ret_data = nt_take(buf.data);
	return 0;
}

int nt_detect_load(const struct nt_rules *rules, const uint8_t *data, size_t size,
		   struct nt_detect **ret_detect)
{
	struct nt_codec codec = {.loads = true, .in = data};
	struct nt_codec tail = {.loads = true, .in = data, .in_size = size};
	struct nt_detect *detect;
	uint64_t sum;
	int r;

	if (size < STATE_SUM_BYTES)
		return -EBADMSG;
	codec.in_size = tail.at = size - STATE_SUM_BYTES;
	nt_code_fixed(&tail, &sum);
	if (sum != nt_hash_bytes(NT_HASH_SEED, data, codec.in_size))
		return -EBADMSG;
	code_head(&codec);
	if (codec.error)
		return codec.error;
	r = nt_detect_new(rules, 0, 0, &detect);
	if (r < 0)
		return r;
	code_detect(&codec, detect);
	nt_code_fail(&codec, codec.at != codec.in_size);
	r = codec.error;
	if (r == 0 && codec.version < NT_STATE_RESIDUAL_WIDTH)
		forget_far_windows(detect);
	if (r == 0)
		r = nt_detect_make_room(detect, detect->ranks);
	if (r == 0)
		r = nt_findings_make(detect);
	if (r < 0) {
		nt_detect_free(detect);
		return r;
	}
	*ret_detect = detect;
	return 0;
}
