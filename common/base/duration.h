/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Units of time, in nanoseconds. */
#ifndef NT_COMMON_BASE_DURATION_H
#define NT_COMMON_BASE_DURATION_H

#define NT_MICROSECOND 1000ULL
#define NT_MILLISECOND (1000ULL * NT_MICROSECOND)
#define NT_SECOND      (1000ULL * NT_MILLISECOND)
#define NT_MINUTE      (60ULL * NT_SECOND)
#define NT_HOUR        (60ULL * NT_MINUTE)
#define NT_DAY         (24ULL * NT_HOUR)

#endif
