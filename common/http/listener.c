/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/parse_number.h"

enum {
	BACKLOG = 4096, /* a burst of slow clients must not delay a probe by a lost SYN */
};

int nt_httpd_fail(struct nt_httpd_error *error, int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return r;
}

/* A listening socket, or a negative errno. */
static int bind_one(const struct addrinfo *address)
{
	nt_autoclose int fd = -1;
	int on = 1, off = 0;

	fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -errno;
	/* "[::]" accepts IPv4 too. */
	if (address->ai_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
		return -errno;
	if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, BACKLOG))
		return -errno;
	return nt_take_fd(&fd);
}

struct listen {
	char host[256];
	const char *port_text; /* points into the parsed text */
	uint32_t port;
};

/* Splits "ADDRESS:PORT", and removes the brackets of an IPv6 address. */
static int split_listen(const char *text, struct listen *ret_listen)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (!colon || !len || len >= sizeof(ret_listen->host) ||
	    nt_parse_u32(colon + 1, strlen(colon + 1), 0, UINT16_MAX, &ret_listen->port) < 0)
		return -EINVAL;
	memcpy(ret_listen->host, text, len);
	ret_listen->host[len] = '\0';
	ret_listen->port_text = colon + 1;
	return 0;
}

bool nt_httpd_listen_is_sound(const char *text)
{
	struct listen listen;

	return split_listen(text, &listen) == 0;
}

int nt_listener_open(const char *text, int *ret_fd, uint16_t *ret_port,
		     struct nt_httpd_error *error)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} bound = {.v6 = {0}};
	socklen_t bound_len = sizeof(bound);
	struct addrinfo *address;
	nt_autoclose int fd = -1;
	struct listen listen;
	int r;

	if (split_listen(text, &listen) < 0)
		return nt_httpd_fail(error, -EINVAL,
				     "invalid listen address '%s': must be ADDRESS:PORT", text);
	r = getaddrinfo(listen.host, listen.port_text, &hints, &address);
	if (r)
		return nt_httpd_fail(error, -EINVAL, "invalid listen address '%s': %s", listen.host,
				     gai_strerror(r));
	fd = bind_one(address);
	freeaddrinfo(address);
	if (fd < 0)
		return nt_httpd_fail(error, fd, "listen on %s port %u: %s", listen.host,
				     listen.port, strerrordesc_np(-fd));
	if (getsockname(fd, &bound.any, &bound_len))
		return nt_httpd_fail(error, -errno, "listen on %s port %u: %m", listen.host,
				     listen.port);
	*ret_port = ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
	*ret_fd = nt_take_fd(&fd);
	return 0;
}
