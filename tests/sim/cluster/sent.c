/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/sent.h"

#include <stdlib.h>

bool cl_sents_add(struct cl_sents *sents, const struct cl_sent *sent)
{
	if (sents->count == sents->room) {
		size_t room = sents->room ? 2 * sents->room : 64;
		struct cl_sent *grown = reallocarray(sents->sent, room, sizeof(*grown));

		if (!grown)
			return false;
		sents->sent = grown;
		sents->room = room;
	}
	sents->sent[sents->count++] = *sent;
	return true;
}
