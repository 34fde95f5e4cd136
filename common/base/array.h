/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growable arrays. */
#ifndef NT_COMMON_BASE_ARRAY_H
#define NT_COMMON_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Ensures room for one more element after `used`; doubles the capacity. -ENOMEM. */
int nt_array_room(void **array, uint32_t *cap, uint32_t used, size_t size)
	__attribute__((warn_unused_result));

#endif
