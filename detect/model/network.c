/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transfer times of a communicator. */
#include "detect/model/network.h"

#include "detect/thresholds/thresholds.h"

bool nt_network_loses(const struct nt_network *network)
{
	return network->retransmits >
	       NT_NIC_COUNTER_TIMES * network->retransmits_usual + NT_TCP_LOSS;
}

void nt_network_clear(struct nt_network *network)
{
	nt_cusum_clear(&network->level);
	nt_cusum_clear(&network->rate);
}

double nt_network_usual(const struct nt_network *network)
{
	return (network->reference > 0.0 ? network->reference : network->past.value_centre) *
	       network->calls;
}
