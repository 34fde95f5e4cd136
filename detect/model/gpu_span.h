/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rank's GPU did over a span of time, by its driver: sums. Plain data. */
#ifndef NT_DETECT_MODEL_GPU_SPAN_H
#define NT_DETECT_MODEL_GPU_SPAN_H

/* What held the clock down. */
enum nt_gpu_held {
	NT_GPU_HELD_HARDWARE,
	NT_GPU_HELD_THERMAL,
	NT_GPU_HELD_POWER,
	NT_GPU_HELD_END,
};

struct nt_gpu_span {
	double known_ns; /* in which it is known what computed; 0: the span is empty */
	double sm_ns, tensor_ns; /* of these */
	double window_ns;
	double held_ns[NT_GPU_HELD_END]; /* of the windows */
	double step_ns, steps;
};

#endif
