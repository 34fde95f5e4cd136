/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cluster/play/play.h"

bool cl_calls_add(struct cl_calls *calls, const struct cl_call *call)
{
	if (calls->count == calls->room && calls->first) {
		memmove(calls->call, calls->call + calls->first,
			(calls->count - calls->first) * sizeof(*calls->call));
		calls->count -= calls->first;
		calls->first = 0;
	}
	if (calls->count == calls->room) {
		size_t room = calls->room ? 2 * calls->room : 64;
		struct cl_call *grown = reallocarray(calls->call, room, sizeof(*grown));

		if (!grown)
			return false;
		calls->call = grown;
		calls->room = room;
	}
	calls->call[calls->count++] = *call;
	return true;
}
