/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arrays that grow. */
#ifndef NT_DETECT_MATH_ARRAY_H
#define NT_DETECT_MATH_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Room for one more element of that size behind `used`, doubling where it is short. -ENOMEM. */
int nt_array_room(void **array, uint32_t *cap, uint32_t used, size_t size)
	__attribute__((warn_unused_result));

#endif
