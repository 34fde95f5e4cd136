/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decoding of the records in the ring buffer between kernel and agent. */
#ifndef NT_AGENT_PROBES_EVENT_H
#define NT_AGENT_PROBES_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "common/base/cleanup.h"

/*
 * Decodes the event of a call. Words that were not sent are 0. ret_id points into the record
 * (NT_ID_BYTES), or is NULL. -EBADMSG: the record is malformed.
 */
NT_MUST_CHECK int nt_event_read(const void *record, size_t size, struct nt_event_call *ret_call,
				const uint8_t **ret_id);

/* Decodes the record of a process's end. -EBADMSG: the record is another one, or malformed. */
NT_MUST_CHECK int nt_event_read_end(const void *record, size_t size, struct nt_event_end *ret_end);

/*
 * Decodes a batch of GPU records: the first `records` are filled, others hold nothing. -EBADMSG: as
 * above.
 */
NT_MUST_CHECK int nt_event_read_gpu(const void *record, size_t size, struct nt_event_gpu *ret_gpu);

/* Decodes a matrix multiplication. -EBADMSG: as above. */
NT_MUST_CHECK int nt_event_read_gemm(const void *record, size_t size,
				     struct nt_event_gemm *ret_gemm);

/* Decodes what a capture multiplied. -EBADMSG: as above. */
NT_MUST_CHECK int nt_event_read_capture(const void *record, size_t size,
					struct nt_event_capture *ret_capture);

/* Decodes a sampled call. -EBADMSG: as above. */
NT_MUST_CHECK int nt_event_read_detail(const void *record, size_t size,
				       struct nt_event_detail *ret_detail);
/* Decodes what a verb did; device is terminated. -EBADMSG: as above. */
NT_MUST_CHECK int nt_event_read_verbs(const void *record, size_t size,
				      struct nt_event_verbs *ret_verbs);

/* Decodes the result of a query of a CUDA event. -EBADMSG: as above. */
NT_MUST_CHECK int nt_event_read_query(const void *record, size_t size,
				      struct nt_event_query *ret_query);

#endif
