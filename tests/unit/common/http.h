/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An HTTP client for tests of servers: sends raw requests, splits replies. */
#ifndef NT_TESTS_UNIT_COMMON_HTTP_H
#define NT_TESTS_UNIT_COMMON_HTTP_H

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/buf.h"

struct http_reply {
	int status; /* 0: the connection ended without one */
	char *head, *body; /* into text */
	struct nt_buf text;
};

static inline void http_release(struct http_reply *reply)
{
	nt_buf_release(&reply->text);
}
#define http_auto __attribute__((cleanup(http_release)))

static inline int http_connect(uint16_t port)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct timeval patience = {.tv_sec = 600};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert(fd >= 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

/* All data until the peer closes. */
static inline struct http_reply http_receive(int fd)
{
	struct http_reply reply = {0};
	ssize_t n;

	do {
		assert(nt_buf_reserve(&reply.text, 65536) == 0);
		n = recv(fd, reply.text.data + reply.text.len, 65536, 0);
		reply.text.len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	assert(nt_buf_append(&reply.text, "", 1) == 0);
	reply.head = (char *)reply.text.data;
	if (!strncmp(reply.head, "HTTP/1.1 ", 9))
		for (int i = 9; i < 12; i++)
			reply.status = reply.status * 10 + (reply.head[i] - '0');
	reply.body = strstr(reply.head, "\r\n\r\n");
	if (reply.body) {
		reply.body[2] = '\0';
		reply.body += 4;
	}
	return reply;
}

static inline struct http_reply http_exchange(uint16_t port, const void *request, size_t len)
{
	nt_autoclose int fd = http_connect(port);

	/* A server that rejects early may close before all is sent. */
	for (size_t done = 0; done < len;) {
		ssize_t n = send(fd, (const char *)request + done, len - done, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return http_receive(fd);
}

/* headers: complete lines, each with \r\n, or "". */
static inline struct http_reply http_request(uint16_t port, const char *method, const char *target,
					     const char *headers, const char *body)
{
	nt_autobuf struct nt_buf request = {0};

	assert(nt_buf_printf(&request, "%s %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s",
			     method, target, headers) == 0);
	if (body)
		assert(nt_buf_printf(&request, "Content-Length: %zu\r\n", strlen(body)) == 0);
	assert(nt_buf_printf(&request, "\r\n%s", body ? body : "") == 0);
	return http_exchange(port, request.data, request.len);
}

/* Whether a header line begins so. Case-sensitive. */
static inline int http_has(const struct http_reply *reply, const char *line)
{
	char wanted[512];

	(void)snprintf(wanted, sizeof(wanted), "\r\n%s", line);
	return strstr(reply->head, wanted) != NULL;
}

#endif
