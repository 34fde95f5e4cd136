/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The outcome of one delivery attempt. */
#ifndef NT_AGGREGATOR_NOTIFY_ATTEMPT_H
#define NT_AGGREGATOR_NOTIFY_ATTEMPT_H

#include <stdint.h>

enum {
	NT_ATTEMPT_TEXT = 256, /* bytes of a shown answer, with its NUL */
};

enum nt_attempt_outcome {
	NT_ATTEMPT_TAKEN,
	NT_ATTEMPT_LATER, /* temporary failure: retry */
	NT_ATTEMPT_REFUSED, /* permanent failure */
	NT_ATTEMPT_ABORTED, /* by us */
};

struct nt_attempt {
	enum nt_attempt_outcome outcome;
	long status; /* of HTTP; 0: no answer came */
	long long code; /* of the receiver's own, in the body; 0: none */
	uint64_t retry_after_ns; /* requested by the receiver; 0: none */
	const char *reason; /* a constant, for the log; never part of a URL */
	/* The answer's first bytes, cleaned. Never logged, as it may repeat a URL. */
	char answer[NT_ATTEMPT_TEXT];
};

#endif
