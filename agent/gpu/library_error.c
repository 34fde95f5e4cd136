/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/library_error.h"

#include <stdio.h>

void nt_library_error_say(char error[NT_LIBRARY_ERROR], const char *what, const char *why)
{
	(void)snprintf(error, NT_LIBRARY_ERROR, "%s: %s", what, why ? why : "unknown error");
}
