/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * k-sigma test of a value against its own history: centre and width over a sliding window, k widths
 * allowed. Abnormal values are not learned, so a lasting fault does not become normal.
 */
#ifndef NT_DETECT_MATH_KSIGMA_H
#define NT_DETECT_MATH_KSIGMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NT_KSIGMA_MAX_WINDOW = 64,
};

enum nt_ksigma_direction {
	NT_KSIGMA_UP,
	NT_KSIGMA_DOWN,
	NT_KSIGMA_BOTH,
};

struct nt_ksigma_rules {
	uint32_t window; /* values remembered, at most NT_KSIGMA_MAX_WINDOW */
	uint32_t warm_up; /* values before it judges */
	double n_sigma;
	double bias; /* minimum distance, part of the centre */
	double abs_bias; /* minimum distance, absolute */
	double low, high; /* values outside are abnormal whatever the history */
	double min_width; /* of the centre */
	enum nt_ksigma_direction direction;
	bool mean; /* mean and sigma in place of median and MAD */
	/* sysTrace compatibility: see nt_ksigma_answer.upper. */
	bool trimmed; /* with ten values or more, omit the lowest and the highest */
	bool beyond; /* extend the bound by the larger of bias × bound and abs_bias */
	double zero_width; /* the width if all values are equal */
	double min_upper, max_upper, min_lower, max_lower; /* limits of the bounds */
};

struct nt_ksigma {
	double value[NT_KSIGMA_MAX_WINDOW];
	uint32_t count, next;
};

struct nt_ksigma_answer {
	bool ready, abnormal;
	double centre, width, z;
	double lower, upper; /* set with `beyond`; a value of `upper` or more is abnormal */
};

struct nt_ksigma_rules nt_ksigma_rules_default(void);
/* Judges the value and learns it if it is normal. */
struct nt_ksigma_answer nt_ksigma_add(struct nt_ksigma *ksigma, const struct nt_ksigma_rules *rules,
				      double value);
/* Judges without learning. */
struct nt_ksigma_answer nt_ksigma_judge(const struct nt_ksigma *ksigma,
					const struct nt_ksigma_rules *rules, double value);
void nt_ksigma_learn(struct nt_ksigma *ksigma, const struct nt_ksigma_rules *rules, double value);

#endif
