/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NIC counters. */
#include "detect/model/nic_counters.h"

#include <stdlib.h>

#include "detect/model/finding.h"
#include "detect/model/matrix.h"

void nt_nic_ports_free(struct nt_nic_ports *ports)
{
	free(ports->port);
	*ports = (struct nt_nic_ports){0};
}

void nt_nic_ports_clear(struct nt_nic_ports *ports, const struct nt_culprit_link *link)
{
	for (uint32_t i = 0; i < ports->ports; i++)
		if (ports->port[i].node == link->node ||
		    (link->kind == NT_CULPRIT_PATH && ports->port[i].node == link->peer))
			nt_cusum_clear(&ports->port[i].level);
}
