/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sorts the sampled calls of a frame for the detector. */
#ifndef NT_ENGINE_FRAME_SAMPLES_H
#define NT_ENGINE_FRAME_SAMPLES_H

#include <stddef.h>

#include "common/base/cleanup.h"
#include "detect/model/frame.h"
#include "proto/arena.h"

/*
 * Stable sort by communicator, epoch, number, rank and operation. Fast in the usual case: ranks
 * ascend and have sampled the same few calls. The result is a new array in the arena. -ENOMEM.
 */
NT_MUST_CHECK int nt_samples_sort(struct nt_arena *arena, struct nt_frame_sample *sample,
				  size_t samples, struct nt_frame_sample **ret_sample);

#endif
