/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a finding of the detection, which knows numbers, to the incident that people read. */
#ifndef NT_AGGREGATOR_INCIDENT_H
#define NT_AGGREGATOR_INCIDENT_H

#include "common/cleanup.h"

/* Negative: unknown, and then the incident says null. */
struct nt_prices {
	double gpu_hour; /* of `currency` */
	double gpu_watts; /* a GPU draws on average: there is no measured power yet */
	double co2_kg_per_kwh;
	const char *currency;
};

#endif
