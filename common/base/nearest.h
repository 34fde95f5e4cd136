/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Suggests the known word closest to a mistyped one. */
#ifndef NT_COMMON_BASE_NEAREST_H
#define NT_COMMON_BASE_NEAREST_H

#include <stddef.h>

/* Initialise with name alone; best stays NULL until a close word is found. All borrowed. */
struct nt_nearest {
	const char *name;
	const char *best;
	size_t distance;
};

void nt_nearest_try(struct nt_nearest *nearest, const char *candidate);

#endif
