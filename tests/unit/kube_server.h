/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A small HTTP server that simulates an API server. Each request is passed to the test's handler,
 * which writes the reply whole, in pieces, or not at all. One thread per connection.
 */
#ifndef NT_TESTS_UNIT_KUBE_SERVER_H
#define NT_TESTS_UNIT_KUBE_SERVER_H

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	KUBE_REQUEST = 16384,
	KUBE_CONNECTIONS = 64,
};

struct kube_request {
	char head[KUBE_REQUEST]; /* from the method on, without the empty line */
	char body[KUBE_REQUEST];
};

struct kube_server {
	/* Returns whether the connection stays open for another request. */
	bool (*handle)(struct kube_server *server, int fd, const struct kube_request *request);
	void *data;
	int fd;
	uint16_t port;
	char url[64];
	pthread_t thread[KUBE_CONNECTIONS];
	int connection[KUBE_CONNECTIONS];
	atomic_uint connections;
	atomic_bool ends;
	atomic_uint requests;
	pthread_t acceptor;
};

struct kube_connection {
	struct kube_server *server;
	int fd;
};

static inline bool kube_send(int fd, const char *data, size_t len, int flags)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL | flags);

		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static inline bool kube_say(int fd, const char *text)
{
	return kube_send(fd, text, strlen(text), 0);
}

/* A whole reply; the connection stays open. status: "200 OK". */
static inline bool kube_reply(int fd, const char *status, const char *body)
{
	char head[256];

	(void)snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status,
		       strlen(body));
	/* In one segment: the second of two would wait until the first is acknowledged. */
	return kube_send(fd, head, strlen(head), *body ? MSG_MORE : 0) && kube_say(fd, body);
}

/* The head of a stream, and its pieces; a stream ends with the connection. */
static inline bool kube_stream(int fd)
{
	return kube_say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static inline bool kube_piece(int fd, const char *text, size_t len)
{
	char size[32];

	(void)snprintf(size, sizeof(size), "%zx\r\n", len);
	return kube_send(fd, size, strlen(size), MSG_MORE) && kube_send(fd, text, len, MSG_MORE) &&
	       kube_say(fd, "\r\n");
}

/* Waits until the peer closes or the test ends; false: timeout. */
static inline bool kube_is_left(struct kube_server *server, int fd, int timeout_ms)
{
	struct pollfd poller = {.fd = fd, .events = POLLRDHUP | POLLIN};

	return poll(&poller, 1, timeout_ms) > 0 || atomic_load(&server->ends);
}

static inline bool kube_receive(int fd, struct kube_request *request)
{
	size_t len = 0, want = 0, body;
	char *end = NULL, *length;
	ssize_t n;

	memset(request, 0, sizeof(*request));
	while (!end) {
		n = recv(fd, request->head + len, sizeof(request->head) - len - 1, 0);
		if (n <= 0 || request->head[0] < 'A' || request->head[0] > 'Z')
			return false; /* or TLS, which is not supported */
		len += (size_t)n;
		end = strstr(request->head, "\r\n\r\n");
	}
	body = len - (size_t)(end + 4 - request->head);
	memcpy(request->body, end + 4, body);
	*end = '\0';
	length = strcasestr(request->head, "\r\nContent-Length: ");
	for (length += length ? 18 : 0; length && *length >= '0' && *length <= '9'; length++)
		want = want * 10 + (size_t)(*length - '0');
	assert(want < sizeof(request->body));
	while (body < want) {
		n = recv(fd, request->body + body, sizeof(request->body) - body - 1, 0);
		if (n <= 0)
			return false;
		body += (size_t)n;
	}
	return true;
}

static inline void *kube_serve(void *data)
{
	struct kube_connection *connection = data;
	struct kube_server *server = connection->server;
	struct kube_request *request = calloc(1, sizeof(*request));
	int fd = connection->fd;

	free(connection);
	assert(request);
	while (kube_receive(fd, request)) {
		atomic_fetch_add(&server->requests, 1);
		if (!server->handle(server, fd, request))
			break;
	}
	free(request);
	(void)shutdown(fd, SHUT_RDWR);
	return NULL;
}

static inline void *kube_accept(void *data)
{
	struct kube_server *server = data;

	for (;;) {
		int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
		struct kube_connection *connection;
		unsigned int n = atomic_load(&server->connections);

		if (fd < 0)
			return NULL;
		assert(n < KUBE_CONNECTIONS);
		connection = calloc(1, sizeof(*connection));
		assert(connection);
		*connection = (struct kube_connection){server, fd};
		server->connection[n] = fd;
		/* Before it answers: a test may have all replies before this thread runs again. */
		atomic_store(&server->connections, n + 1);
		assert(!pthread_create(&server->thread[n], NULL, kube_serve, connection));
	}
}

/* On 127.0.0.1; port 0: any that is free. server->handle and data are set. */
static inline void kube_start(struct kube_server *server, uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(address);
	int yes = 1;

	atomic_store(&server->ends, false);
	atomic_store(&server->connections, 0);
	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(server->fd >= 0);
	(void)setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	assert(bind(server->fd, (const struct sockaddr *)&address, len) == 0);
	assert(listen(server->fd, 16) == 0);
	assert(getsockname(server->fd, (struct sockaddr *)&address, &len) == 0);
	server->port = ntohs(address.sin_port);
	(void)snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u", server->port);
	assert(!pthread_create(&server->acceptor, NULL, kube_accept, server));
}

static inline void kube_end(struct kube_server *server)
{
	unsigned int n;

	atomic_store(&server->ends, true);
	(void)shutdown(server->fd, SHUT_RDWR);
	(void)pthread_join(server->acceptor, NULL);
	n = atomic_load(&server->connections);
	for (unsigned int i = 0; i < n; i++)
		(void)shutdown(server->connection[i], SHUT_RDWR);
	for (unsigned int i = 0; i < n; i++) {
		(void)pthread_join(server->thread[i], NULL);
		(void)close(server->connection[i]);
	}
	(void)close(server->fd);
}

#endif
