/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The listening socket of an HTTP server. */
#ifndef NT_COMMON_HTTP_LISTENER_H
#define NT_COMMON_HTTP_LISTENER_H

#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/http/httpd.h"

/* Binds and listens, without blocking; the caller owns the descriptor. A negative errno. */
NT_MUST_CHECK int nt_listener_open(const char *text, int *ret_fd, uint16_t *ret_port,
				   struct nt_httpd_error *error);

/* Fills in the text, and returns r. */
int nt_httpd_fail(struct nt_httpd_error *error, int r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
