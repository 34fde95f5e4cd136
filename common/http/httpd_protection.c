/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Headers of replies that protect browsers. */
#include <string.h>

#include "common/http/httpd_impl.h"

/*
 * Browsers must neither guess types nor frame, share or send on what is served. Only HTML loads
 * anything, and only from this server.
 */
void nt_httpd_add_protection(struct MHD_Response *response, const char *content_type)
{
	bool is_page = content_type && !strncmp(content_type, "text/html", 9);

	(void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	(void)MHD_add_response_header(response, "X-Frame-Options", "DENY");
	(void)MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	(void)MHD_add_response_header(
		response, "Content-Security-Policy",
		is_page ? "default-src 'none'; script-src 'self'; style-src 'self'; "
			  "connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
			  "base-uri 'none'; form-action 'none'"
			: "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
			  "form-action 'none'");
	if (is_page)
		(void)MHD_add_response_header(response, "Cross-Origin-Opener-Policy",
					      "same-origin");
}
