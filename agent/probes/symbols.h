/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rows of the probe table (agent/probes/probe.h) that one file defines. Flat: sent between
 * processes as it is.
 */
#ifndef NT_AGENT_PROBES_SYMBOLS_H
#define NT_AGENT_PROBES_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/elf/elf.h"
#include "agent/probes/probe.h"
#include "agent/probes/uncovered_call.h"

enum {
	NT_SYMBOLS_MAX = NT_ROWS_MAX,
};

struct nt_symbols_row {
	struct nt_elf_symbol symbol;
	uint16_t row;
};

struct nt_symbols {
	bool holds; /* has functions of a probed library: possibly linked statically */
	bool passed_over; /* a symbol table exceeds the budget and was not searched */
	uint16_t count;
	struct nt_uncovered_calls uncovered;
	struct nt_symbols_row row[NT_SYMBOLS_MAX]; /* in the order of the table */
};

/*
 * Finds the rows of `library` (UNKNOWN: all) but the timed ones in an open file, and sets `holds`.
 * budget: NULL is the default. Errors as of nt_elf_open_fd() and nt_elf_find_all(). -EOVERFLOW: the
 * file exceeds the budget, and a retry fails the same way.
 */
NT_MUST_CHECK int nt_symbols_read(int fd, const struct nt_elf_budget *budget,
				  enum nt_library library, struct nt_symbols *ret_symbols);

/* NULL: the file does not define this row. */
const struct nt_elf_symbol *nt_symbols_find(const struct nt_symbols *symbols, uint16_t row);

#endif
