/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The caps of all arrays of a message, and messages with arrays of any length. */
#ifndef NT_TESTS_UNIT_PROTO_WIRE_CAPS_H
#define NT_TESTS_UNIT_PROTO_WIRE_CAPS_H

#include "tests/unit/proto/wire_bytes.h"

struct cap {
	uint32_t path[4]; /* fields, the envelope's first; 0 ends it */
	uint32_t field;
	uint32_t max;
	enum { EMPTY_MESSAGES, NUMBERS, TEXTS } what;
};

static const struct cap caps[] = {
	{{ENVELOPE_WINDOW}, WINDOW_COMM, NT_WIRE_MAX_COMMS, EMPTY_MESSAGES},
	{{ENVELOPE_WINDOW}, WINDOW_SAMPLE, NT_WIRE_MAX_SAMPLES, EMPTY_MESSAGES},
	{{ENVELOPE_WINDOW, WINDOW_SAMPLE_COLUMNS},
	 SAMPLE_COLUMNS_NUMBER,
	 NT_WIRE_MAX_SAMPLES,
	 NUMBERS},
	{{ENVELOPE_WINDOW, WINDOW_COMM, COMM_RECENT_COLUMNS},
	 SIGNATURE_COLUMNS_NUMBER,
	 NT_WIRE_MAX_RECENT,
	 NUMBERS},
	{{ENVELOPE_WINDOW, WINDOW_TRANSFER_COLUMNS},
	 TRANSFER_COLUMNS_CALLS,
	 NT_WIRE_MAX_TRANSFERS,
	 NUMBERS},
	{{ENVELOPE_WINDOW}, WINDOW_PEER, NT_WIRE_MAX_PEERS, EMPTY_MESSAGES},
	{{ENVELOPE_WINDOW, WINDOW_COMM}, COMM_OP, NT_WIRE_MAX_OPS, EMPTY_MESSAGES},
	{{ENVELOPE_WINDOW, WINDOW_COMM}, COMM_RECENT, NT_WIRE_MAX_RECENT, EMPTY_MESSAGES},
	{{ENVELOPE_NODE}, NODE_METRIC, NT_WIRE_MAX_METRICS, EMPTY_MESSAGES},
	{{ENVELOPE_NODE}, NODE_JOB, NT_WIRE_MAX_JOBS, TEXTS},
	{{ENVELOPE_NODE}, NODE_LIMIT, NT_WIRE_MAX_LIMITS, EMPTY_MESSAGES},
	{{ENVELOPE_DETAIL}, DETAIL_WORD, NT_WIRE_MAX_WORDS, NUMBERS},
	{{ENVELOPE_DETAIL}, DETAIL_STACK, NT_WIRE_MAX_STACK, NUMBERS},
	{{ENVELOPE_DETAIL}, DETAIL_RECORD, NT_WIRE_MAX_DETAILS, EMPTY_MESSAGES},
	{{ENVELOPE_DETAIL}, DETAIL_COUNT, NT_WIRE_MAX_DETAIL_KINDS, EMPTY_MESSAGES},
	{{ENVELOPE_DETAIL, DETAIL_RECORD}, DETAIL_CALL_WORD, NT_WIRE_MAX_DETAIL_WORDS, NUMBERS},
	{{ENVELOPE_INCIDENT}, INCIDENT_CULPRIT, NT_WIRE_MAX_CULPRITS, EMPTY_MESSAGES},
	{{ENVELOPE_INCIDENT}, INCIDENT_EVIDENCE, NT_WIRE_MAX_EVIDENCE, EMPTY_MESSAGES},
	{{ENVELOPE_INCIDENT}, INCIDENT_DELIVERY, NT_WIRE_MAX_DELIVERIES, EMPTY_MESSAGES},
	{{ENVELOPE_INCIDENT, INCIDENT_CULPRIT}, CULPRIT_PEERS, NT_WIRE_MAX_CULPRITS, NUMBERS},
	{{ENVELOPE_INCIDENT, INCIDENT_CULPRIT}, CULPRIT_RANKS, NT_WIRE_MAX_CULPRITS, NUMBERS},
	{{ENVELOPE_STATE}, STATE_POSITION, NT_WIRE_MAX_POSITIONS, EMPTY_MESSAGES},
};

/* Packed numbers, as the encoder writes them, or single ones. */
static inline void put_array(struct nt_buf *buf, const struct cap *cap, uint32_t n, bool packed)
{
	nt_autobuf struct nt_buf numbers = {0};
	int depth = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (cap->what == NUMBERS && packed)
			put_varint(&numbers, i);
		else if (cap->what == NUMBERS)
			put_number(buf, cap->field, i);
		else
			put_bytes(buf, cap->field, "text", cap->what == TEXTS ? 4 : 0);
	}
	if (numbers.len)
		put_bytes(buf, cap->field, numbers.data, numbers.len);
	while (depth < 4 && cap->path[depth])
		depth++;
	while (depth > 0)
		wrap(buf, cap->path[--depth]);
}

#endif
