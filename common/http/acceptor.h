/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread that accepts connections and hands them to the threads of libmicrohttpd in turn. Without it
 * each thread accepts by itself, and the kernel wakes always the same one: a browser's connections,
 * and mostly all, are then served by one thread, while the others idle.
 */
#ifndef NT_COMMON_HTTP_ACCEPTOR_H
#define NT_COMMON_HTTP_ACCEPTOR_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include "common/base/cleanup.h"

struct nt_acceptor {
	struct MHD_Daemon *daemon;
	int fd, stop_fd;
	bool runs;
	pthread_t thread;
};

/* Takes over fd, a listening socket that does not block, unless it fails: a negative errno. */
NT_MUST_CHECK int nt_acceptor_start(struct nt_acceptor *acceptor, struct MHD_Daemon *daemon,
				    int fd);
/* Before the daemon is stopped. Does nothing if it was not started. */
void nt_acceptor_stop(struct nt_acceptor *acceptor);

#endif
