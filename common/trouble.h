/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * When to say that something is wrong with what we depend on: once for each cause when it begins, and
 * once when all has been well for a while. What flickers fills no log.
 */
#ifndef NT_COMMON_TROUBLE_H
#define NT_COMMON_TROUBLE_H

#include <stdint.h>

/* Zeroes: all is well. */
struct nt_trouble {
	uint32_t told; /* causes, as bits, since all was well last */
	uint64_t well_ns; /* since when, where something was told; 0: it is not well */
};

enum nt_trouble_news {
	NT_TROUBLE_NONE,
	NT_TROUBLE_BEGINS, /* of this cause */
	NT_TROUBLE_ENDS,
};

/* Every second or so. The cause is under 32; 0: all is well. Monotonic time. */
enum nt_trouble_news nt_trouble_look(struct nt_trouble *trouble, unsigned int cause,
				     uint64_t now_ns);

#endif
