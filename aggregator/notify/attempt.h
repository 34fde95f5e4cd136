/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What became of one attempt to tell a receiver something. */
#ifndef NT_AGGREGATOR_NOTIFY_ATTEMPT_H
#define NT_AGGREGATOR_NOTIFY_ATTEMPT_H

#include <stdint.h>

enum nt_attempt_outcome {
	NT_ATTEMPT_TAKEN,
	NT_ATTEMPT_LATER, /* no answer, or one that another attempt may change */
	NT_ATTEMPT_REFUSED, /* the same again would be refused again */
	NT_ATTEMPT_ABORTED, /* by us */
};

struct nt_attempt {
	enum nt_attempt_outcome outcome;
	long status; /* of HTTP; 0: no answer came */
	uint64_t retry_after_ns; /* as the receiver asks; 0: it does not */
	const char *reason; /* a constant, for the log; never part of a URL */
};

#endif
