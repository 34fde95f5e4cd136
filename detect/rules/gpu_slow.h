/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A slow GPU where own work is not observable (tier T1): it computes while its peers wait, and its
 * driver states what holds its clock down. No single sign accuses a rank:
 *
 * - The job's steps are longer, and no other incident explains that.
 * - Its multiprocessors are active for longer in each step than its peers', by half of what the step
 *   grew. That is growth of its own work, unless it waits inside kernels that occupy the whole GPU.
 * - Its tensor cores take longer for the work of a step, its peers' do not. No kernel that waits uses
 *   tensor cores: their clock is slow, or they have more to do.
 * - Its clock was held down since then, and neither before nor on its peers.
 */
#ifndef NT_DETECT_RULES_GPU_SLOW_H
#define NT_DETECT_RULES_GPU_SLOW_H

struct nt_detect;
struct nt_frame;

/* -ENOMEM. */
int nt_gpu_slow_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
