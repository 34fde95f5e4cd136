/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The listening socket of an HTTP server. */
#ifndef NT_COMMON_HTTP_LISTENER_H
#define NT_COMMON_HTTP_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/http/httpd_error.h"

/* Binds and listens, without blocking; the caller owns the descriptor. A negative errno. */
NT_MUST_CHECK int nt_listener_open(const char *text, int *ret_fd, uint16_t *ret_port,
				   struct nt_httpd_error *error);

/* Whether the text has the form "ADDRESS:PORT". The address need not exist. */
bool nt_listener_is_sound(const char *text);

#endif
