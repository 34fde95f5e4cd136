/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growable arrays. */
#include "common/base/array.h"

#include <errno.h>
#include <stdlib.h>

int nt_array_room(void **array, uint32_t *cap, uint32_t used, size_t size)
{
	uint32_t more = *cap ? *cap : 4;
	void *grown;

	if (used < *cap)
		return 0;
	while (more <= used)
		more = more > UINT32_MAX / 2 ? UINT32_MAX : 2 * more;
	grown = realloc(*array, more * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*cap = more;
	return 0;
}
