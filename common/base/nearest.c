/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/nearest.h"

#include <string.h>

enum {
	MAX_NAME = 64, /* longer names are not typing mistakes */
};

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* Edit distance from a to b: insert, delete, replace. */
static size_t distance(const char *a, const char *b)
{
	size_t row[MAX_NAME + 1];
	size_t n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t above = row[j + 1];

			row[j + 1] = min3(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
			diagonal = above;
		}
	}
	return row[n];
}

void nt_nearest_try(struct nt_nearest *nearest, const char *candidate)
{
	size_t d;

	if (strlen(nearest->name) > MAX_NAME || strlen(candidate) > MAX_NAME)
		return;
	d = distance(nearest->name, candidate);
	if (d > strlen(candidate) / 3 + 1 || (nearest->best && d >= nearest->distance))
		return;
	nearest->best = candidate;
	nearest->distance = d;
}
