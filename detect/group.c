/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Groups. */
#include "detect/group.h"

#include <stdlib.h>

void nt_roles_free(struct nt_roles *roles)
{
	for (uint32_t i = 0; i < roles->groups; i++)
		free(roles->group[i].past);
	free(roles->group);
	free(roles->member);
	free(roles->peer);
	*roles = (struct nt_roles){0};
}
