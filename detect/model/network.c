/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transfer times of a communicator. */
#include "detect/model/network.h"

#include "detect/thresholds/thresholds.h"

bool nt_network_loses(const struct nt_network *network)
{
	return network->retransmits >
	       NT_NIC_COUNTER_TIMES * network->retransmits_usual + NT_TCP_LOSS;
}

double nt_network_usual(const struct nt_network *network)
{
	return (network->reference > 0.0 ? network->reference : network->past.value_centre) *
	       network->calls;
}
