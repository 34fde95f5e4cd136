/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/event.h"

#include <errno.h>
#include <string.h>

enum {
	WORD_BYTES = 8,
};

int nt_event_read(const void *record, size_t size, struct nt_event_call *ret_call,
		  const uint8_t **ret_id)
{
	struct nt_event_call call = {0};
	struct nt_event_header h;

	if (size < sizeof(h))
		return -EBADMSG;
	memcpy(&h, record, sizeof(h));
	if (h.size != size)
		return -EBADMSG;
	switch (h.type) {
	case NT_EVENT_CALL:
		if (size < NT_CALL_BYTES(0) || size > sizeof(call) || size % WORD_BYTES != 0)
			return -EBADMSG;
		memcpy(&call, record, size);
		*ret_id = NULL;
		break;
	case NT_EVENT_INIT:
		if (size != sizeof(struct nt_event_init))
			return -EBADMSG;
		memcpy(&call, record, sizeof(call));
		*ret_id = (const uint8_t *)record + offsetof(struct nt_event_init, id);
		break;
	default:
		return -EBADMSG;
	}
	*ret_call = call;
	return 0;
}

int nt_event_read_end(const void *record, size_t size, struct nt_event_end *ret_end)
{
	struct nt_event_header h;

	if (size != sizeof(*ret_end))
		return -EBADMSG;
	memcpy(&h, record, sizeof(h));
	if (h.type != NT_EVENT_END || h.size != size)
		return -EBADMSG;
	memcpy(ret_end, record, size);
	return 0;
}

int nt_event_read_gpu(const void *record, size_t size, struct nt_event_gpu *ret_gpu)
{
	struct nt_event_gpu head;
	const size_t head_bytes = offsetof(struct nt_event_gpu, record);

	if (size < head_bytes || size > sizeof(*ret_gpu))
		return -EBADMSG;
	memcpy(&head, record, head_bytes);
	if (head.h.type != NT_EVENT_GPU || head.h.size != size || !head.records ||
	    head.records > NT_GPU_BATCH || size < NT_GPU_BYTES(head.records))
		return -EBADMSG;
	memcpy(ret_gpu, record, NT_GPU_BYTES(head.records));
	return 0;
}

int nt_event_read_gemm(const void *record, size_t size, struct nt_event_gemm *ret_gemm)
{
	struct nt_event_gemm gemm;

	if (size != sizeof(gemm))
		return -EBADMSG;
	memcpy(&gemm, record, sizeof(gemm));
	if (gemm.h.type != NT_EVENT_GEMM || gemm.h.size != size)
		return -EBADMSG;
	*ret_gemm = gemm;
	return 0;
}

int nt_event_read_capture(const void *record, size_t size, struct nt_event_capture *ret_capture)
{
	struct nt_event_header h;

	if (size != sizeof(*ret_capture))
		return -EBADMSG;
	memcpy(&h, record, sizeof(h));
	if (h.type != NT_EVENT_CAPTURE || h.size != size)
		return -EBADMSG;
	memcpy(ret_capture, record, size);
	return 0;
}

int nt_event_read_detail(const void *record, size_t size, struct nt_event_detail *ret_detail)
{
	struct nt_event_detail detail;

	if (size != sizeof(detail))
		return -EBADMSG;
	memcpy(&detail, record, sizeof(detail));
	if (detail.h.type != NT_EVENT_DETAIL || detail.h.size != size ||
	    detail.class >= NT_DETAIL_CLASSES ||
	    ((detail.h.flags & NT_CALL_RETURNED) && detail.ret_ns < detail.h.entry_ns))
		return -EBADMSG;
	*ret_detail = detail;
	return 0;
}

int nt_event_read_verbs(const void *record, size_t size, struct nt_event_verbs *ret_verbs)
{
	struct nt_event_verbs verbs;

	if (size != sizeof(verbs))
		return -EBADMSG;
	memcpy(&verbs, record, sizeof(verbs));
	if (verbs.h.type != NT_EVENT_VERBS || verbs.h.size != size || verbs.verb >= NT_VERB_END ||
	    !memchr(verbs.device, '\0', sizeof(verbs.device)))
		return -EBADMSG;
	*ret_verbs = verbs;
	return 0;
}

int nt_event_read_query(const void *record, size_t size, struct nt_event_query *ret_query)
{
	struct nt_event_query query;

	if (size != sizeof(query))
		return -EBADMSG;
	memcpy(&query, record, sizeof(query));
	if (query.h.type != NT_EVENT_QUERY || query.h.size != size)
		return -EBADMSG;
	*ret_query = query;
	return 0;
}
