/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls that a recording lacks. The device was busy with one that was lost, which looks like a gap between
 * two others: like own work.
 */
#ifndef NT_CLI_SYSTRACE_LOST_CALLS_H
#define NT_CLI_SYSTRACE_LOST_CALLS_H

#include "cli/systrace/timeline.h"

/*
 * Sets lost_ns of each step: for the calls of which it has fewer than most steps, the median time of such a
 * call; at most what the gaps of the step exceed those of the median step by. A step that lacks more than
 * one call, and more than an eighth, is another kind of step. -ENOMEM.
 */
NT_MUST_CHECK int nt_lost_calls_find(const struct nt_markers *markers,
				     const struct nt_timeline *line, struct nt_steps *steps);

#endif
