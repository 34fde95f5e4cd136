/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The header "Cookie" of a request (RFC 6265): NAME=VALUE pairs, separated by "; ". */
#ifndef NT_COMMON_HTTP_COOKIE_H
#define NT_COMMON_HTTP_COOKIE_H

#include <stddef.h>

#include "common/base/cleanup.h"

/*
 * The value of the cookie of this name, into text; names are case-sensitive. -ENOENT: there is none.
 * -EEXIST: there are several, so that another site of the domain may have set one of them.
 */
NT_MUST_CHECK int nt_cookie_find(const char *text, size_t len, const char *name,
				 const char **ret_value, size_t *ret_len);

#endif
