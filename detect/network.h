/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long a communicator's transfers take once everybody has arrived, against its own past. */
#ifndef NT_DETECT_NETWORK_H
#define NT_DETECT_NETWORK_H

#include <stdint.h>

#include "detect/cusum.h"
#include "detect/time.h"

struct nt_detect;
struct nt_comm;
struct nt_frame;

struct nt_network {
	struct nt_cusum level;
	struct nt_past past;
	uint64_t frame; /* of the last round, 0: none */
	double transfer, centre, cost, residual;
	uint8_t tier, method;
};

#endif
