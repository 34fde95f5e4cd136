/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions of the library, which may be missing in some release. */
#ifndef NT_AGENT_GPU_NVML_SYMBOL_H
#define NT_AGENT_GPU_NVML_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Writes the function's address to a pointer to a function: NULL if there is none, and false. */
static inline bool nt_nvml_symbol(void *library, const char *name, void *ret_function)
{
	void *symbol = dlsym(library, name);

	/* Not a cast: ISO C has none from an object's to a function's address. */
	memcpy(ret_function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

#endif
