/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reports requests that change something, or would have, once their reply is determined. */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/http/httpd_impl.h"

static void format_address(struct MHD_Connection *connection, char text[NT_HTTPD_ADDRESS_BYTES])
{
	const union MHD_ConnectionInfo *peer =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *address = peer ? peer->client_addr : NULL;

	text[0] = '\0';
	if (address && address->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)address;

		(void)inet_ntop(AF_INET, &v4->sin_addr, text, NT_HTTPD_ADDRESS_BYTES);
	} else if (address && address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const void *)address;

		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
			(void)inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text,
					NT_HTTPD_ADDRESS_BYTES);
		else
			(void)inet_ntop(AF_INET6, &v6->sin6_addr, text, NT_HTTPD_ADDRESS_BYTES);
	}
}

/* The path in visible ASCII characters without quotes, cut at the end of its buffer. */
static void format_path(const struct nt_target *target, char text[NT_HTTPD_PATH_BYTES])
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < target->segments; i++) {
		const char *at = target->segment[i];

		for (bool first = true; first || *at; first = false) {
			unsigned char c = first ? '/' : (unsigned char)*at++;
			bool plain = first || isalnum(c) || strchr("-._~:@!$&()*+,;=", c);

			if (len + 4 > NT_HTTPD_PATH_BYTES)
				return;
			len += (size_t)snprintf(text + len, NT_HTTPD_PATH_BYTES - len,
						plain ? "%c" : "%%%02X", c);
		}
	}
}

void nt_httpd_report_write(const struct nt_httpd *httpd, const struct nt_httpd_request *request,
			   unsigned int status)
{
	char address[NT_HTTPD_ADDRESS_BYTES], path[NT_HTTPD_PATH_BYTES];
	char certificate[NT_HTTPD_CERTIFICATE_BYTES];
	struct nt_httpd_write write = {
		.identity = &request->identity,
		.certificate = certificate,
		.address = address,
		.method = request->method,
		.path = path,
		.request_id = request->id,
		.body = request->body.data,
		.body_len = request->body.len,
		.status = status,
	};

	if (!httpd->on_write || !request->is_write)
		return;
	nt_httpd_certificate_name(httpd, request, certificate);
	format_address(request->connection, address);
	format_path(&request->target, path);
	httpd->on_write(httpd->data, &write);
}
