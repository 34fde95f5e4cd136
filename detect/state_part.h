/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of the parts of a detector's state. Private to state*.c. */
#ifndef NT_DETECT_STATE_PART_H
#define NT_DETECT_STATE_PART_H

#include "common/base/codec.h"
#include "detect/model/detector_state.h"

/* Formats that are read, by their first change. The last one is written. */
enum nt_state_format {
	NT_STATE_OLDEST = 24,
	NT_STATE_LOSS_LEARNED, /* packets sent again, and the usual part of starving */
	NT_STATE_PAUSES, /* faults that pause last until their last bad window */
	NT_STATE_NETWORK_RATE, /* how often transfers are slow */
	NT_STATE_RESIDUAL_WIDTH, /* how far ranks differ beyond what is permanent */
	NT_STATE_RHYTHM, /* how often a distance came, and what came between */
};

void nt_state_cusum(struct nt_codec *codec, struct nt_cusum *cusum);
void nt_state_past(struct nt_codec *codec, struct nt_past *past, struct nt_lesson *lesson);
void nt_state_far_rate(struct nt_codec *codec, struct nt_far_rate *rate);
void nt_state_far_rhythm(struct nt_codec *codec, struct nt_far_rhythm *rhythm);
void nt_state_ring(struct nt_codec *codec, struct nt_ring *ring);
/* To be called in this order: each part refers to earlier ones. */
void nt_state_comms(struct nt_codec *codec, struct nt_detect *detect);
void nt_state_ranks(struct nt_codec *codec, struct nt_detect *detect);
void nt_state_groups(struct nt_codec *codec, struct nt_detect *detect);
void nt_state_links(struct nt_codec *codec, struct nt_links *links);
void nt_state_incidents(struct nt_codec *codec, struct nt_incidents *incidents);

#endif
