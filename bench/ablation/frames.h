/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Frames on disk, for the machine that wrote them: what detectors were given, to be judged again by
 * another build of detect/. A file holds the frames of many detectors, each under its number.
 */
#ifndef NT_BENCH_ABLATION_FRAMES_H
#define NT_BENCH_ABLATION_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "detect/model/frame.h"

/* The head of a record. A first record of a detector has no frame. */
struct ab_record {
	uint32_t detector;
	bool is_first;
	bool is_young; /* its job may be young: see young_ns of struct nt_rules */
	uint32_t attempt;
	uint64_t job_hash;
};

/* A frame and the memory that it points to. */
struct ab_frame {
	struct nt_frame frame;
	void **part;
	size_t parts, cap;
};

/* 0 or -errno. */
int ab_frame_write(FILE *file, const struct nt_frame *frame);
int ab_frame_read(FILE *file, struct ab_frame *ret_frame);
void ab_frame_clear(struct ab_frame *frame);

#endif
