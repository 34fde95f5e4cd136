/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NIC counters. */
#include "detect/model/nic_counters.h"

#include <stdlib.h>

#include "detect/model/finding.h"
#include "detect/model/matrix.h"

void nt_nic_counters_free(struct nt_nic_counters *counters)
{
	free(counters->entry);
	*counters = (struct nt_nic_counters){0};
}

void nt_nic_counters_clear(struct nt_nic_counters *counters, const struct nt_culprit_link *link)
{
	for (uint32_t i = 0; i < counters->entries; i++)
		if (counters->entry[i].node == link->node ||
		    (link->kind == NT_CULPRIT_PATH && counters->entry[i].node == link->peer))
			nt_cusum_clear(&counters->entry[i].level);
}
