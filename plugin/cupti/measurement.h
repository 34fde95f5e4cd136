/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measurement of the GPU while the agent asks for it. It is off until the first request: CUPTI is
 * then not even loaded.
 *
 * CUPTI's callbacks and settings are of the process. If another client has them, or takes them, no
 * measurement is made and nothing of the other's is changed. The last second of a measurement
 * decides: if nothing was delivered, another client may have taken over, and what is enabled is
 * left to it. If nothing was delivered from the begin of a measurement on, all is disabled: what
 * another client gets without having asked may fill its memory. Requests are then passed over.
 */
#ifndef NT_PLUGIN_CUPTI_MEASUREMENT_H
#define NT_PLUGIN_CUPTI_MEASUREMENT_H

#include <stdint.h>

/* Of the thread: how often the request is looked at, and buffers are fetched. */
enum {
	NT_MEASUREMENT_IDLE_MS = 1000,
	NT_MEASUREMENT_BUSY_MS = 100,
};

/* Looks at the request, and does what is due. Returns the milliseconds until the next call. */
uint32_t nt_measurement_tick(void);

#endif
