/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of the learned state of a series. */
#include "detect/state_part.h"
#include "detect/thresholds/thresholds.h"

void nt_state_cusum(struct nt_codec *codec, struct nt_cusum *cusum)
{
	nt_code_real(codec, &cusum->sum);
	nt_code_fail(codec, cusum->sum < 0.0);
	/* Most sums are zero, and then so are the other members. */
	if (cusum->sum == 0.0)
		return;
	nt_code_u64(codec, &cusum->onset_ns);
	nt_code_u64(codec, &cusum->onset_frame);
	nt_code_u32(codec, &cusum->windows, UINT32_MAX);
	nt_code_u32(codec, &cusum->costly, UINT32_MAX);
	nt_code_fail(codec, cusum->costly > cusum->windows || !cusum->windows);
	nt_code_real(codec, &cusum->cost);
	nt_code_real(codec, &cusum->cost_peak);
	nt_code_real(codec, &cusum->peer_deviation);
	nt_code_real(codec, &cusum->peer_deviation_peak);
}

void nt_state_past(struct nt_codec *codec, struct nt_past *past, struct nt_lesson *lesson)
{
	nt_code_bool(codec, &past->ready);
	if (past->ready) {
		past->count = NT_PAST_WINDOWS;
		nt_code_real(codec, &past->peer_deviation_centre);
		nt_code_real(codec, &past->value_centre);
		nt_code_real(codec, &past->value_width);
		nt_code_real(codec, &past->peer_deviation_width);
		return;
	}
	nt_code_u32(codec, &past->count, NT_PAST_WINDOWS - 1);
	for (uint32_t i = 0; i < past->count; i++) {
		nt_code_real(codec, &lesson->peer_deviation[i]);
		nt_code_real(codec, &lesson->value[i]);
		nt_code_u64(codec, &lesson->frame[i]);
	}
}

void nt_state_far_rhythm(struct nt_codec *codec, struct nt_far_rhythm *rhythm)
{
	nt_code_real(codec, &rhythm->at);
	nt_code_real(codec, &rhythm->gap);
	nt_code_real(codec, &rhythm->cost);
	if (codec->version < NT_STATE_RHYTHM) {
		bool is_equal = false;

		nt_code_bool(codec, &is_equal);
		if (rhythm->gap > 0.0) {
			rhythm->times = 1;
			*(is_equal ? &rhythm->on : &rhythm->off) = rhythm->cost;
		}
		return;
	}
	nt_code_u8(codec, &rhythm->times, UINT8_MAX);
	nt_code_real(codec, &rhythm->on);
	nt_code_real(codec, &rhythm->off);
}

void nt_state_far_rate(struct nt_codec *codec, struct nt_far_rate *rate)
{
	nt_code_real(codec, &rate->windows);
	for (int i = 1; i <= NT_FAR_SIZES; i++) {
		nt_code_real(codec, &rate->far[i]);
		nt_code_fail(codec, rate->far[i] < 0.0 || rate->far[i] > rate->windows);
	}
}

void nt_state_ring(struct nt_codec *codec, struct nt_ring *ring)
{
	nt_code_u32(codec, &ring->count, NT_RING_MAX);
	nt_code_u32(codec, &ring->next, NT_RING_MAX);
	nt_code_fail(codec, ring->next > ring->count || (ring->count && !ring->next));
	nt_code_reals(codec, ring->value, ring->count);
}
