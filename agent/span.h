/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The timed rows of the table (agent/probe.h), attached to one process alone: its file is run by
 * many that are none of our business, and who is not probed pays nothing.
 */
#ifndef NT_AGENT_SPAN_H
#define NT_AGENT_SPAN_H

#include <stddef.h>
#include <stdint.h>

#include "agent/kernel.h"
#include "agent/probe.h"
#include "common/cleanup.h"

enum {
	NT_SPAN_PLACES = 8, /* copies of one function or mark; with more it is not probed */
};

struct nt_span;

/*
 * Attaches the first row of `library` that the open file has. -ENOENT: it has none. -ESTALE or
 * -ESRCH: the process is gone.
 */
NT_MUST_CHECK int nt_span_new(const struct nt_kernel *kernel, int fd, uint32_t pid, int library,
			      struct nt_span **ret_span);
/* Detaches. Accepts NULL. */
void nt_span_free(struct nt_span *span);
NT_DEFINE_AUTO(nt_span, nt_span_free)

#endif
