/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Assigns slow communicators to the incident that explains them. */
#include "detect/baseline/network_parts.h"

#include "detect/baseline/link_span.h"
#include "detect/baseline/network_rate.h"
#include "detect/model/detector_state.h"

bool nt_network_is_part(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			const struct nt_detect_comm *comm)
{
	const struct nt_detect_comm *named;

	if (incident->family != NT_FAMILY_NETWORK || incident->kind != NT_CULPRIT_COMMUNICATOR ||
	    !nt_network_began_at(detect, &comm->network, incident->since_ns))
		return false;
	named = nt_detect_comm_find(detect->comms, incident->comm);
	return named && nt_detect_link_is_shared(detect, named, comm);
}

void nt_network_release(struct nt_detect *detect, const struct nt_detect_incident *incident)
{
	struct nt_detect_comm *named = nt_detect_comm_find(detect->comms, incident->comm);

	if (named)
		nt_network_clear(&named->network);
	for (uint32_t i = 0; i < detect->comm_count; i++) {
		if (nt_network_is_part(detect, incident, detect->comm[i]))
			nt_network_clear(&detect->comm[i]->network);
	}
}
