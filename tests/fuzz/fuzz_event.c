/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A record of the ring: what is accepted is a whole event, and no byte beyond it is read. */
#include <assert.h>
#include <string.h>

#include "agent/probes/event.h"
#include "tests/fuzz/cost.h"

static int run(const uint8_t *data, size_t size)
{
	struct nt_event_call call;
	const uint8_t *id = NULL;
	size_t sent = size < sizeof(call) ? size : sizeof(call);

	if (nt_event_read(data, size, &call, &id) < 0)
		return 0;
	assert(call.h.size == size);
	assert(memcmp(&call, data, sent) == 0);
	for (size_t i = sent; i < sizeof(call); i++)
		assert(((const uint8_t *)&call)[i] == 0);
	assert((id != NULL) == (call.h.type == NT_EVENT_INIT));
	assert(!id || id + NT_ID_BYTES == data + size);
	return 0;
}

FUZZ_TARGET(run, .peak = {4096, 0}, .steps = {1000, 4})
