/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/acceptor.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PAUSE_MS =
		50, /* when there are no descriptors or no memory: connections stay in the backlog */
};

/* Returns false if nothing can be accepted for now. */
static bool accept_one(struct nt_acceptor *acceptor)
{
	struct sockaddr_storage address = {0};
	socklen_t len = sizeof(address);
	int fd = accept4(acceptor->fd, (struct sockaddr *)&address, &len,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
	/* The thread is chosen by the number of the descriptor. It closes what it cannot take. */
	(void)MHD_add_connection(acceptor->daemon, fd, (struct sockaddr *)&address, len);
	return true;
}

static void *run(void *data)
{
	struct nt_acceptor *acceptor = data;
	struct pollfd wanted[] = {
		{.fd = acceptor->stop_fd, .events = POLLIN},
		{.fd = acceptor->fd, .events = POLLIN},
	};

	for (;;) {
		const int n = poll(wanted, 2, -1);

		if (n > 0 && wanted[0].revents)
			return NULL;
		if (n > 0 && !accept_one(acceptor))
			(void)poll(wanted, 1, PAUSE_MS);
	}
}

int nt_acceptor_start(struct nt_acceptor *acceptor, struct MHD_Daemon *daemon, int fd)
{
	nt_autoclose int stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r;

	if (stop_fd < 0)
		return -errno;
	*acceptor = (struct nt_acceptor){.daemon = daemon, .fd = fd, .stop_fd = stop_fd};
	r = -pthread_create(&acceptor->thread, NULL, run, acceptor);
	if (r < 0)
		return r;
	acceptor->runs = true;
	(void)nt_take_fd(&stop_fd);
	return 0;
}

void nt_acceptor_stop(struct nt_acceptor *acceptor)
{
	if (!acceptor->runs)
		return;
	(void)eventfd_write(acceptor->stop_fd, 1);
	(void)pthread_join(acceptor->thread, NULL);
	(void)close(acceptor->stop_fd);
	(void)close(acceptor->fd);
	acceptor->runs = false;
}
