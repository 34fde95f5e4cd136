/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Why an HTTP server did not start. */
#ifndef NT_COMMON_HTTP_HTTPD_ERROR_H
#define NT_COMMON_HTTP_HTTPD_ERROR_H

struct nt_httpd_error {
	char text[512]; /* one line */
};

/* Fills in the text, and returns r. */
int nt_httpd_fail(struct nt_httpd_error *error, int r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
