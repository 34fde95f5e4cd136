/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Packets that TCP loses. The transfers of such a network are slow in some steps only, and their times
 * tell little. Two signs together tell more: the job loses time, and its sockets send packets again.
 */
#ifndef NT_DETECT_INCIDENTS_NETWORK_LOSS_H
#define NT_DETECT_INCIDENTS_NETWORK_LOSS_H

#include "detect/incidents/incident_raise.h"
#include "detect/model/detector_state.h"

/* Updates the rate at which the members send packets again. Once a round of the communicator. */
void nt_network_loss_learn(const struct nt_detect *detect, struct nt_detect_comm *comm);

/* Whether the open incident of that family names a communicator that still loses packets. */
bool nt_network_loss_is_named(const struct nt_detect *detect, enum nt_family family);

/*
 * `proposal`: all ranks are slower, without a culprit. If a communicator loses packets, it is the culprit
 * instead, with that cause and evidence.
 */
void nt_network_loss_blame(const struct nt_detect *detect, struct nt_proposal *proposal);

#endif
