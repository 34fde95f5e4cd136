/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Order among numbers, in place and in linear time: by the bits of their keys, not by comparing. */
#ifndef NT_COMMON_BASE_SORT_H
#define NT_COMMON_BASE_SORT_H

#include <stddef.h>

/* Ascending; -0 before 0, and what is not a number at the ends. */
void nt_sort(double *value, size_t n);
/*
 * Reorders until value[from..to], from <= to < n, holds what a sort would put there; the rest is in
 * no order.
 */
void nt_sort_select(double *value, size_t n, size_t from, size_t to);

#endif
