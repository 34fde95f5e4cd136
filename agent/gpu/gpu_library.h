/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The library in which a driver states the health of its GPUs: NVIDIA's or AMD's, loaded when it is
 * there. Its calls can block for as long as the driver does, so that only workers make them.
 */
#ifndef NT_AGENT_GPU_GPU_LIBRARY_H
#define NT_AGENT_GPU_GPU_LIBRARY_H

#include "agent/gpu/gpu_card.h"
#include "agent/gpu/library_error.h"

enum nt_gpu_vendor {
	NT_GPU_NVIDIA,
	NT_GPU_AMD,
	NT_GPU_VENDORS,
};

struct nt_gpu_library {
	const char *device; /* what all users of the driver open: without it there is no driver */
	const char *name; /* of the library, for the log */
	/*
	 * Loads and initialises it. path: NULL for the names that the loader may find. -ENOENT: there
	 * is none; -ENODEV: it has no driver or no GPU; -EPROTO: it lacks a function, or its release is
	 * not known; -EIO. `error`: the reason as the library states it.
	 */
	int (*open)(const char *path, char error[NT_LIBRARY_ERROR], void **ret_state);
	/* Reads all cards. A value that a card lacks is not known. */
	void (*read)(void *state, struct nt_gpu_cards *ret_cards);
};

extern const struct nt_gpu_library nt_gpu_libraries[NT_GPU_VENDORS];

#endif
