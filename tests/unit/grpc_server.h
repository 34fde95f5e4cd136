/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A gRPC server on a Unix socket: HTTP/2 with as little of it as one call needs. */
#ifndef NT_TESTS_UNIT_GRPC_SERVER_H
#define NT_TESTS_UNIT_GRPC_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "tests/unit/scratch.h"

enum {
	DATA = 0,
	HEADERS = 1,
	SETTINGS = 4,
	PING = 6,
	END_STREAM = 1,
	ACK = 1,
	END_HEADERS = 4,
	FRAME_HEAD = 9,
	PREFACE = 24,
	CALLS = 64,
};

struct grpc_server {
	char path[SCRATCH_BYTES + 32];
	int fd;
	pthread_t thread;
	atomic_bool ends;
	atomic_uint calls;
	char request[8192]; /* the gRPC frame of the last call */
	size_t request_len;
	pthread_mutex_t lock; /* over the reply */
	struct nt_buf reply; /* with its gRPC frame */
	const char *status;
};

static inline bool grpc_receive(int fd, void *data, size_t len)
{
	return len == 0 || recv(fd, data, len, MSG_WAITALL) == (ssize_t)len;
}

static inline void grpc_send_frame(int fd, uint8_t type, uint8_t flags, uint32_t stream,
				   const void *data, size_t len)
{
	const uint8_t head[FRAME_HEAD] = {(uint8_t)(len >> 16),
					  (uint8_t)(len >> 8),
					  (uint8_t)len,
					  type,
					  flags,
					  (uint8_t)(stream >> 24),
					  (uint8_t)(stream >> 16),
					  (uint8_t)(stream >> 8),
					  (uint8_t)stream};

	(void)send(fd, head, sizeof(head), MSG_NOSIGNAL);
	if (len)
		(void)send(fd, data, len, MSG_NOSIGNAL);
}

/* A literal that is not indexed, after the static inline table's ":status: 200" where asked for. */
static inline void grpc_send_header(int fd, uint32_t stream, bool first, uint8_t flags,
				    const char *name, const char *value)
{
	uint8_t block[128];
	size_t n = 0;

	if (first)
		block[n++] = 0x88;
	block[n++] = 0;
	block[n++] = (uint8_t)strlen(name);
	memcpy(block + n, name, strlen(name));
	n += strlen(name);
	block[n++] = (uint8_t)strlen(value);
	memcpy(block + n, value, strlen(value));
	n += strlen(value);
	grpc_send_frame(fd, HEADERS, flags | END_HEADERS, stream, block, n);
}

static inline void grpc_reply(struct grpc_server *server, int fd, uint32_t stream)
{
	enum { PIECE = 16000 };

	(void)pthread_mutex_lock(&server->lock);
	grpc_send_header(fd, stream, true, 0, "content-type", "application/grpc");
	for (size_t at = 0; at < server->reply.len; at += PIECE)
		grpc_send_frame(fd, DATA, 0, stream, server->reply.data + at,
				server->reply.len - at < PIECE ? server->reply.len - at : PIECE);
	grpc_send_header(fd, stream, false, END_STREAM, "grpc-status", server->status);
	(void)pthread_mutex_unlock(&server->lock);
	atomic_fetch_add(&server->calls, 1);
}

static inline void grpc_serve(struct grpc_server *server, int fd)
{
	uint8_t head[FRAME_HEAD], body[16384];

	if (!grpc_receive(fd, body, PREFACE) || memcmp(body, "PRI * HTTP/2.0", 14) != 0)
		return;
	grpc_send_frame(fd, SETTINGS, 0, 0, NULL, 0);
	while (grpc_receive(fd, head, sizeof(head))) {
		size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		uint32_t stream = (uint32_t)head[7] << 8 | head[8];

		if (len > sizeof(body) || !grpc_receive(fd, body, len))
			return;
		if (head[3] == SETTINGS && !(head[4] & ACK))
			grpc_send_frame(fd, SETTINGS, ACK, 0, NULL, 0);
		if (head[3] == PING && !(head[4] & ACK))
			grpc_send_frame(fd, PING, ACK, 0, body, len);
		if (head[3] == DATA && len <= sizeof(server->request)) {
			memcpy(server->request, body, len);
			server->request_len = len;
		}
		if (head[3] == DATA && head[4] & END_STREAM)
			grpc_reply(server, fd, stream);
	}
}

static inline void *grpc_run(void *data)
{
	struct grpc_server *server = data;

	while (!atomic_load(&server->ends)) {
		int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
		const struct timeval patience = {.tv_usec = 200000};

		if (fd < 0)
			break;
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		grpc_serve(server, fd);
		(void)close(fd);
	}
	return NULL;
}

static inline void grpc_begin(struct grpc_server *server)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->path);
	server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server->fd, 4), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, grpc_run, server), 0);
}

static inline void grpc_end(struct grpc_server *server)
{
	atomic_store(&server->ends, true);
	(void)shutdown(server->fd, SHUT_RDWR);
	(void)pthread_join(server->thread, NULL);
	(void)close(server->fd);
	nt_buf_release(&server->reply);
}

/* What is to be replied from now on. */
static inline void grpc_set_reply(struct grpc_server *server, const void *message, size_t len,
				  size_t said, const char *status)
{
	const uint8_t head[5] = {0, (uint8_t)(said >> 24), (uint8_t)(said >> 16),
				 (uint8_t)(said >> 8), (uint8_t)said};

	(void)pthread_mutex_lock(&server->lock);
	nt_buf_clear(&server->reply);
	assert_int_equal(nt_buf_append(&server->reply, head, sizeof(head)), 0);
	assert_int_equal(nt_buf_append(&server->reply, message, len), 0);
	server->status = status;
	(void)pthread_mutex_unlock(&server->lock);
}

#endif
