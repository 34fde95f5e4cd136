/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A value against its own history: centre and width over a sliding window, k widths allowed. It does
 * not learn from what it alarms on, so that a lasting fault is not taken for normal.
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
	uint32_t warm_up; /* values before it speaks */
	double n_sigma;
	double bias; /* and at least this part of the centre away */
	double abs_bias; /* and at least this much away */
	double low, high; /* values outside are abnormal whatever the history says */
	double min_width; /* of the centre */
	enum nt_ksigma_direction direction;
	bool mean; /* mean and sigma in place of median and MAD */
	/* As sysTrace has it: see nt_ksigma_answer.upper. */
	bool trimmed; /* of ten values or more the lowest and the highest do not count */
	bool beyond; /* the larger of bias, of the bound, and abs_bias is added to the bound */
	double zero_width; /* the width where all values are equal */
	double min_upper, max_upper, min_lower, max_lower; /* within which the bounds lie */
};

struct nt_ksigma {
	double value[NT_KSIGMA_MAX_WINDOW];
	uint32_t count, next;
};

struct nt_ksigma_answer {
	bool ready, abnormal;
	double centre, width, z;
	double lower, upper; /* where `beyond` asks for them; from `upper` on a value is abnormal */
};

struct nt_ksigma_rules nt_ksigma_rules_default(void);
/* Judges the value and, where it is normal, learns it. */
struct nt_ksigma_answer nt_ksigma_add(struct nt_ksigma *ksigma, const struct nt_ksigma_rules *rules,
				      double value);
/* Judges alone. */
struct nt_ksigma_answer nt_ksigma_judge(const struct nt_ksigma *ksigma,
					const struct nt_ksigma_rules *rules, double value);
void nt_ksigma_learn(struct nt_ksigma *ksigma, const struct nt_ksigma_rules *rules, double value);

#endif
