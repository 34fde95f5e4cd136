/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/httpd_error.h"

#include <stdarg.h>
#include <stdio.h>

int nt_httpd_fail(struct nt_httpd_error *error, int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return r;
}
