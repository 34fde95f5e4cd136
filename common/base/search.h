/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Binary search in ascending data. Pure: any room may include it. */
#ifndef NT_COMMON_BASE_SEARCH_H
#define NT_COMMON_BASE_SEARCH_H

/*
 * The first index `i` of [from, to) at which the expression `holds` is true, or `to` if there is
 * none. `holds` must be false up to an index and true from there on. It is evaluated once for each
 * halving of the range. A macro, because a function call per comparison costs more than the
 * comparison in the per-frame loops. The result has the integer type of `to`.
 */
#define nt_search_first(from, to, i, holds)                                                        \
	({                                                                                         \
		__typeof__((to) + 0) nt_search_low_ = (from), nt_search_high_ = (to);              \
                                                                                                   \
		while (nt_search_low_ < nt_search_high_) {                                         \
			const __typeof__((to) + 0) i =                                             \
				nt_search_low_ + (nt_search_high_ - nt_search_low_) / 2;           \
                                                                                                   \
			if (holds)                                                                 \
				nt_search_high_ = i;                                               \
			else                                                                       \
				nt_search_low_ = i + 1;                                            \
		}                                                                                  \
		nt_search_low_;                                                                    \
	})

#endif
