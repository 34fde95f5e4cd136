/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Main programs that hold one of our libraries themselves, linked statically. A program's symbols are
 * looked at once, for as long as its file stays the same.
 */
#ifndef NT_AGENT_PROGRAM_H
#define NT_AGENT_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/cleanup.h"

enum {
	NT_PROGRAMS_MAX =
		4096, /* known at a time; the oldest of the user with the most makes room */
};

struct nt_programs;

/* NULL where memory is short. */
struct nt_programs *nt_programs_new(void);
void nt_programs_free(struct nt_programs *programs);
NT_DEFINE_AUTO(nt_programs, nt_programs_free)

/* Does the program at path, whose stat is st, hold one? */
bool nt_programs_hold(struct nt_programs *programs, const char *path, const struct stat *st);

/* How many made room. */
uint64_t nt_programs_over_cap(const struct nt_programs *programs);

#endif
