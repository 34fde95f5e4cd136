/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras_exchange.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/system/clock.h"

enum {
	LINE = 128, /* bytes of a reply; NCCL's are shorter */
};

struct connection {
	int fd;
	uint64_t until_ns;
};

int nt_ras_exchange_wait(int fd, short events, uint64_t until_ns)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};

	for (;;) {
		const uint64_t now_ns = nt_clock_mono_ns();
		uint64_t left_ns = until_ns - now_ns;
		int n;

		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		left_ns = left_ns < NT_MINUTE ? left_ns : NT_MINUTE;
		n = poll(&poll_fd, 1, (int)(left_ns / NT_MILLISECOND) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int send_line(const struct connection *connection, const char *line)
{
	size_t len = strlen(line);

	while (len) {
		ssize_t n = send(connection->fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		int r;

		if (n >= 0) {
			line += n;
			len -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = nt_ras_exchange_wait(connection->fd, POLLOUT, connection->until_ns);
		if (r < 0)
			return r;
	}
	return 0;
}

static ptrdiff_t receive(void *context, char *data, size_t size)
{
	const struct connection *connection = context;

	for (;;) {
		ssize_t n = recv(connection->fd, data, size, MSG_DONTWAIT);
		int r;

		if (n >= 0)
			return n;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = nt_ras_exchange_wait(connection->fd, POLLIN, connection->until_ns);
		if (r < 0)
			return r;
	}
}

/* Byte by byte: what follows a line belongs to the next reader. */
static int receive_line(struct connection *connection, char ret_line[LINE])
{
	size_t len = 0;

	while (len < LINE - 1) {
		char c;
		ptrdiff_t n = receive(connection, &c, 1);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return -EPROTONOSUPPORT;
		if (c == '\n') {
			ret_line[len] = '\0';
			return 0;
		}
		ret_line[len++] = c;
	}
	return -EPROTONOSUPPORT;
}

static int expect(struct connection *connection, const char *request, const char *reply)
{
	char line[LINE];
	int r = send_line(connection, request);

	if (r == 0)
		r = receive_line(connection, line);
	if (r < 0)
		return r;
	return strncmp(line, reply, strlen(reply)) == 0 ? 0 : -EPROTONOSUPPORT;
}

int nt_ras_exchange(int fd, uint32_t pid, uint64_t until_ns, struct nt_ras_answer *ret_answer)
{
	struct connection connection = {.fd = fd, .until_ns = until_ns};
	int r;

	/* NCCL ignores our number and replies with its own; later ones are assumed to be compatible. */
	r = expect(&connection, "CLIENT PROTOCOL 2\n", "SERVER PROTOCOL ");
	if (r == 0)
		r = expect(&connection, "SET FORMAT json\n", "OK");
	if (r == 0)
		r = send_line(&connection, "STATUS\n");
	if (r < 0)
		return r;
	return nt_ras_answer_read(receive, &connection, pid, ret_answer);
}
