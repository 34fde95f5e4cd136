/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps what the GPUs of ranks do while the job's steps are as usual, and since they are longer. */
#ifndef NT_DETECT_BASELINE_GPU_SPAN_LEARN_H
#define NT_DETECT_BASELINE_GPU_SPAN_LEARN_H

struct nt_detect;
struct nt_detect_rank;
struct nt_frame_rank;

/* Adds a rank's windows of the frame to one of its spans. */
void nt_gpu_span_learn(const struct nt_detect *detect, struct nt_detect_rank *rank,
		       const struct nt_frame_rank *seen);

#endif
