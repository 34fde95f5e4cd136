/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long a communicator's transfers take. */
#include "detect/model/network.h"

double nt_network_usual(const struct nt_network *network)
{
	return network->past.value_centre * network->calls;
}
