/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sampled calls of a frame in the order that the detection wants. */
#ifndef NT_ENGINE_SAMPLES_H
#define NT_ENGINE_SAMPLES_H

#include <stddef.h>

#include "common/base/cleanup.h"
#include "detect/model/frame.h"
#include "proto/arena.h"

/*
 * By communicator, epoch, number, rank and operation; equal ones stay in their order. Fast where
 * ranks have sampled the same few calls, as they do, and come in ascending order. The result is
 * another array, in the arena. -ENOMEM.
 */
NT_MUST_CHECK int nt_samples_sort(struct nt_arena *arena, struct nt_frame_sample *sample,
				  size_t samples, struct nt_frame_sample **ret_sample);

#endif
