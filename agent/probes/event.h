/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A record of the ring between kernel and agent, checked. */
#ifndef NT_AGENT_PROBES_EVENT_H
#define NT_AGENT_PROBES_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "common/base/cleanup.h"

/*
 * The words that were not sent are 0. ret_id lies in the record: NT_ID_BYTES, or NULL. -EBADMSG if
 * the record is not what it says to be: the ring is ours, but a bug must not spread.
 */
NT_MUST_CHECK int nt_event_read(const void *record, size_t size, struct nt_event_call *ret_call,
				const uint8_t **ret_id);

/* The record of a process's end. -EBADMSG: it is none. */
NT_MUST_CHECK int nt_event_read_end(const void *record, size_t size, struct nt_event_end *ret_end);

#endif
