/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Linked into a program in the place of detect/detect.h (ld --wrap): detectors work as ever, and
 * their frames are appended to the file that the environment names, $NT_FRAMES.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/ablation/frames.h"
#include "detect/detect.h"

enum {
	DETECTORS_MAX = 1 << 16,
};

int __real_nt_detect_new(const struct nt_rules *rules, uint64_t job_hash, uint32_t attempt,
			 struct nt_detect **ret_detect);
int __real_nt_detect_step(struct nt_detect *detect, const struct nt_frame *frame,
			  const struct nt_finding **ret_finding, size_t *ret_findings);
int __wrap_nt_detect_new(const struct nt_rules *rules, uint64_t job_hash, uint32_t attempt,
			 struct nt_detect **ret_detect);
int __wrap_nt_detect_step(struct nt_detect *detect, const struct nt_frame *frame,
			  const struct nt_finding **ret_finding, size_t *ret_findings);

static FILE *file;
static const struct nt_detect *known[DETECTORS_MAX];
static uint32_t detectors;

static FILE *open_file(void)
{
	const char *path = getenv("NT_FRAMES");

	if (!file && path)
		file = fopen(path, "we");
	return file;
}

int __wrap_nt_detect_new(const struct nt_rules *rules, uint64_t job_hash, uint32_t attempt,
			 struct nt_detect **ret_detect)
{
	const struct ab_record record = {
		.detector = detectors,
		.is_first = true,
		.is_young = rules->young_ns > 0,
		.attempt = attempt,
		.job_hash = job_hash,
	};
	int r = __real_nt_detect_new(rules, job_hash, attempt, ret_detect);

	if (r < 0 || !open_file())
		return r;
	if (detectors == DETECTORS_MAX)
		return -ENOSPC;
	known[detectors++] = *ret_detect;
	return fwrite(&record, sizeof(record), 1, file) == 1 ? r : -EIO;
}

int __wrap_nt_detect_step(struct nt_detect *detect, const struct nt_frame *frame,
			  const struct nt_finding **ret_finding, size_t *ret_findings)
{
	struct ab_record record = {0};
	uint32_t i = detectors;

	/* An address may be used again: the latest one counts. */
	while (i > 0 && known[i - 1] != detect)
		i--;
	if (file && i) {
		record.detector = i - 1;
		if (fwrite(&record, sizeof(record), 1, file) != 1 ||
		    ab_frame_write(file, frame) < 0)
			return -EIO;
	}
	return __real_nt_detect_step(detect, frame, ret_finding, ret_findings);
}
