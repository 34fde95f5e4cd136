/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How messages of an incident fared, as published with it and as stored. Private to aggregator/store/. */
#ifndef NT_AGGREGATOR_STORE_STORE_DELIVERY_H
#define NT_AGGREGATOR_STORE_STORE_DELIVERY_H

#include "aggregator/store/store_impl.h"

/* Ordered by certainty: of two outcomes of one message, the later one wins. */
enum nt_outcome {
	NT_OUTCOME_PARKED, /* waiting at another aggregator */
	NT_OUTCOME_WAITING,
	NT_OUTCOME_SKIPPED,
	NT_OUTCOME_FAILED,
	NT_OUTCOME_EXPIRED,
	NT_OUTCOME_SENT,
	NT_OUTCOME_END,
};

/* A stored message, matched with a delivery of an incident. */
struct nt_delivery_row {
	char receiver[NT_STORE_MAX_NAME];
	bool resolved;
	enum nt_store_severity severity;
	int outcome; /* of enum nt_outcome */
	uint32_t attempts;
	uint64_t real_ns;
};

struct nt_delivery_rows {
	struct nt_delivery_row row[NT_WIRE_MAX_DELIVERIES];
	size_t count;
};

/* The caller holds the lock. */
NT_MUST_CHECK int nt_delivery_read_rows(struct nt_store *store, const char *incident,
					struct nt_delivery_rows *ret_rows);
NT_MUST_CHECK int nt_delivery_write_row(struct nt_store *store, const char *incident,
					const struct nt_delivery_row *row);

/* -EINVAL: it makes no sense. */
NT_MUST_CHECK int nt_delivery_read(const struct nt_delivery *delivery,
				   struct nt_delivery_row *ret_row);
/* Borrows the row. */
struct nt_delivery nt_delivery_of(const struct nt_delivery_row *row);

/* The row of the same message; NULL: none. An incident has one resolved message, regardless of severity. */
const struct nt_delivery_row *nt_delivery_find(const struct nt_delivery_rows *rows,
					       const struct nt_delivery_row *like);

#endif
