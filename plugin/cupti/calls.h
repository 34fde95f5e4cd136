/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the CUPTI library that is loaded in this process, found at run time. */
#ifndef NT_PLUGIN_CUPTI_CALLS_H
#define NT_PLUGIN_CUPTI_CALLS_H

#include "plugin/cupti/cupti_abi.h"

/* The environment variable that names the library, where it is not found by its usual names. */
#define NT_CUPTI_LIBRARY "NEUTRACER_CUPTI_LIBRARY"

struct nt_cupti_calls {
	int (*get_version)(uint32_t *ret_version);
	int (*register_clock)(nt_cupti_clock_fn *clock);
	int (*register_callbacks)(nt_cupti_request_fn *request, nt_cupti_complete_fn *complete);
	int (*enable)(int kind);
	int (*disable)(int kind);
	int (*flush)(uint32_t flag);
	int (*next_record)(uint8_t *buffer, size_t valid_size, void **record);
	int (*dropped)(void *context, uint32_t stream, size_t *ret_dropped);
	/* In 12.8 and later, not in 12.4; else NULL: single calls of the runtime and the driver. */
	int (*enable_runtime)(uint32_t call, uint8_t on);
	int (*enable_driver)(uint32_t call, uint8_t on);
	uint32_t version;
};

/*
 * The library that the environment names, else that which the process has mapped, else one by its name. 0 or -1: there is none, or it
 * lacks a call. May load a file: not for threads of the program.
 */
int nt_cupti_calls_load(struct nt_cupti_calls *ret_calls);

/* Reports calls that enqueue kernels, or no longer. Without single calls: all calls. 0 or an error. */
int nt_cupti_calls_launches(const struct nt_cupti_calls *calls, int on);
/* True for a call that enqueues kernels. */
int nt_cupti_calls_is_launch(uint32_t kind, uint32_t call);

#endif
