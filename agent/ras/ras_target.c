/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras_target.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ras/ras_exchange.h"
#include "common/base/buf.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	PATH = 64,
	ENVIRON_BYTES = 1 << 20,
	STATUS_BYTES = 64 << 10,
};

/* ---- text ----------------------------------------------------------------------------------- */

/* The value of a NAME=value string; NULL: it has another name. */
static const char *value_of(const char *entry, size_t len, const char *name, size_t *ret_len)
{
	const size_t name_len = strlen(name);

	if (len <= name_len || memcmp(entry, name, name_len) != 0 || entry[name_len] != '=')
		return NULL;
	*ret_len = len - name_len - 1;
	return entry + name_len + 1;
}

/* Behind the last colon: "localhost:28028", "[::1]:28028". 0: there is none that is usable. */
static uint16_t port_of(const char *address, size_t len)
{
	const char *colon = memrchr(address, ':', len);
	uint64_t port;

	if (!colon || nt_parse_u64(colon + 1, len - (size_t)(colon + 1 - address),
				   NT_RAS_PORT_LEAST, UINT16_MAX, &port) < 0)
		return 0;
	return (uint16_t)port;
}

void nt_ras_target_environ(const char *data, size_t size, struct nt_ras_target *ret_target)
{
	struct nt_ras_target target = {.port = NT_RAS_PORT};

	for (size_t at = 0; at < size;) {
		const char *end = memchr(data + at, '\0', size - at), *value;
		size_t len = end ? (size_t)(end - (data + at)) : size - at, value_len;

		value = value_of(data + at, len, "NCCL_RAS_ADDR", &value_len);
		if (value)
			target.port = port_of(value, value_len);
		value = value_of(data + at, len, "NCCL_RAS_ENABLE", &value_len);
		if (value)
			target.is_off = value_len == 1 && *value == '0';
		at += len + 1;
	}
	*ret_target = target;
}

uint32_t nt_ras_target_pid(const char *status, size_t size)
{
	static const char name[] = "\nNSpid:";
	const char *line = size ? memmem(status, size, name, sizeof(name) - 1) : NULL, *end, *last;
	uint64_t pid;

	if (!line)
		return 0;
	line += sizeof(name) - 1;
	end = memchr(line, '\n', size - (size_t)(line - status));
	if (!end)
		return 0;
	last = memrchr(line, '\t', (size_t)(end - line));
	if (!last || nt_parse_u64(last + 1, (size_t)(end - last - 1), 1, INT32_MAX, &pid) < 0)
		return 0;
	return (uint32_t)pid;
}

/* ---- a running process ---------------------------------------------------------------------- */

static int read_text(uint32_t pid, const char *name, size_t most, struct nt_buf *buf)
{
	char path[PATH];

	(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return nt_file_read(path, most, buf);
}

int nt_ras_target_read(uint32_t pid, uint16_t *ret_port, uint32_t *ret_pid)
{
	nt_autobuf struct nt_buf env = {0}, status = {0};
	struct nt_ras_target target;
	uint32_t inner;
	int r = read_text(pid, "environ", ENVIRON_BYTES, &env);

	if (r == 0)
		r = read_text(pid, "status", STATUS_BYTES, &status);
	if (r < 0)
		return r == -EFBIG ? -EADDRNOTAVAIL : r;
	nt_ras_target_environ((const char *)env.data, env.len, &target);
	if (target.is_off)
		return -ECANCELED;
	if (!target.port)
		return -EADDRNOTAVAIL;
	inner = nt_ras_target_pid((const char *)status.data, status.len);
	*ret_port = target.port;
	*ret_pid = inner ?: pid;
	return 0;
}

static int enter_namespace(uint32_t pid)
{
	struct stat own, other;
	nt_autoclose int fd = -1;
	char path[PATH];

	(void)snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &other) < 0 || stat("/proc/self/ns/net", &own) < 0)
		return -errno;
	if (own.st_dev == other.st_dev && own.st_ino == other.st_ino)
		return 0;
	return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

static int finish(int fd, uint64_t until_ns)
{
	socklen_t size = sizeof(int);
	int error = 0, r = nt_ras_exchange_wait(fd, POLLOUT, until_ns);

	if (r < 0)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return -error;
}

static int connect_to(const struct sockaddr *address, socklen_t size, uint64_t until_ns)
{
	nt_autoclose int fd =
		socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	if (connect(fd, address, size) < 0) {
		r = errno == EINPROGRESS ? finish(fd, until_ns) : -errno;
		if (r < 0)
			return r;
	}
	return nt_take_fd(&fd);
}

int nt_ras_target_connect(uint32_t pid, uint16_t port, uint64_t until_ns)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
					.sin6_port = htons(port),
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int r = enter_namespace(pid);

	if (r < 0)
		return r;
	/* "localhost" may be either. */
	r = connect_to((const struct sockaddr *)&v4, sizeof(v4), until_ns);
	if (r == -ECONNREFUSED)
		r = connect_to((const struct sockaddr *)&v6, sizeof(v6), until_ns);
	return r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT ? -ECONNREFUSED : r;
}
