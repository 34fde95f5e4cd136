/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of a state as bytes, shared by the files that put it together alone. */
#ifndef NT_DETECT_STATE_PART_H
#define NT_DETECT_STATE_PART_H

#include "detect/codec.h"
#include "detect/core.h"

void nt_state_cusum(struct nt_codec *codec, struct nt_cusum *cusum);
void nt_state_past(struct nt_codec *codec, struct nt_past *past, struct nt_lesson *lesson);
void nt_state_network(struct nt_codec *codec, struct nt_network *network);
void nt_state_hearing(struct nt_codec *codec, struct nt_hearing *hearing);
/* What a member of a communicator, which the link leads to, has said in a hearing that goes on. */
void nt_state_spoken(struct nt_codec *codec, struct nt_link *link);
void nt_state_links(struct nt_codec *codec, struct nt_links *links);

#endif
