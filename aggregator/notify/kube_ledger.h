/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The incidents that accused a node lately, as an annotation of the node: "ID@BEGIN:END,…" in
 * seconds since 1970, END 0 while it is open. The API server thus holds it, whichever aggregator
 * writes it. Annotations can be written by others: what is malformed is left out.
 */
#ifndef NT_AGGREGATOR_NOTIFY_KUBE_LEDGER_H
#define NT_AGGREGATOR_NOTIFY_KUBE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_KUBE_LEDGER_ENTRIES = 32, /* the oldest is dropped first */
	NT_KUBE_LEDGER_ID = 64, /* bytes with the NUL */
	NT_KUBE_LEDGER_OPEN_S = 7 * 86400, /* then an open incident counts as ended */
};

struct nt_kube_ledger {
	struct {
		char id[NT_KUBE_LEDGER_ID];
		uint64_t begin_s, end_s; /* real time; end 0: open */
	} entry[NT_KUBE_LEDGER_ENTRIES];
	size_t entries; /* oldest first */
};

void nt_kube_ledger_read(const char *text, struct nt_kube_ledger *ret_ledger);
/* Appends the text. -ENOMEM. */
NT_MUST_CHECK int nt_kube_ledger_write(const struct nt_kube_ledger *ledger, struct nt_buf *buf);

/* A beginning or an end; known ones change nothing. False: there was nothing to change. */
bool nt_kube_ledger_note(struct nt_kube_ledger *ledger, const char *id, bool is_end,
			 uint64_t now_s);
/* Removes what ended more than span_s ago. */
void nt_kube_ledger_forget(struct nt_kube_ledger *ledger, uint64_t now_s, uint64_t span_s);
/* Incidents that began within span_s. */
size_t nt_kube_ledger_count(const struct nt_kube_ledger *ledger, uint64_t now_s, uint64_t span_s);
/* Whether none is open, and none began or ended within span_s. */
bool nt_kube_ledger_is_quiet(const struct nt_kube_ledger *ledger, uint64_t now_s, uint64_t span_s);

#endif
