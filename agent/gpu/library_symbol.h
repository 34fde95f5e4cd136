/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions of a library, which may be missing in some release. */
#ifndef NT_AGENT_GPU_LIBRARY_SYMBOL_H
#define NT_AGENT_GPU_LIBRARY_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A row of a table: the pointer to the function is at `at` of a struct of such pointers. */
struct nt_library_function {
	size_t at;
	const char *name;
	bool needed;
};

/* Writes the function's address to a pointer to a function: NULL if there is none, and false. */
static inline bool nt_library_symbol(void *library, const char *name, void *ret_function)
{
	void *symbol = dlsym(library, name);

	/* Not a cast: ISO C has none from an object's to a function's address. */
	memcpy(ret_function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

/* Fills the struct of pointers by the table. The name of a needed function that is missing, or NULL. */
static inline const char *nt_library_functions(void *library,
					       const struct nt_library_function *table, size_t rows,
					       void *ret_functions)
{
	for (size_t i = 0; i < rows; i++)
		if (!nt_library_symbol(library, table[i].name,
				       (char *)ret_functions + table[i].at) &&
		    table[i].needed)
			return table[i].name;
	return NULL;
}

#endif
