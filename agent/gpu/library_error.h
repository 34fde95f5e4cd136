/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Why a library of a GPU's driver cannot be used, in its own words. */
#ifndef NT_AGENT_GPU_LIBRARY_ERROR_H
#define NT_AGENT_GPU_LIBRARY_ERROR_H

enum {
	NT_LIBRARY_ERROR = 96, /* bytes of a message with its NUL */
};

/* Writes "what: why", cut if need be; why: NULL for an unknown error. */
void nt_library_error_say(char error[NT_LIBRARY_ERROR], const char *what, const char *why);

#endif
