/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peer groups. */
#include "detect/model/group.h"

#include <stdlib.h>

void nt_peer_groups_free(struct nt_peer_groups *roles)
{
	for (uint32_t i = 0; i < roles->groups; i++)
		free(roles->group[i].past);
	free(roles->group);
	free(roles->member);
	free(roles->peer);
	*roles = (struct nt_peer_groups){0};
}
