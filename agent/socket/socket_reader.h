/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads the TCP sockets of a process from the kernel (bpf/socket.bpf.c). The process does nothing for
 * it. A read visits each open file of the process: it belongs on a thread of its own.
 */
#ifndef NT_AGENT_SOCKET_SOCKET_READER_H
#define NT_AGENT_SOCKET_SOCKET_READER_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/socket_record.h"
#include "common/base/cleanup.h"

struct nt_socket_reader;

/* -ENOTSUP: this kernel has no such iterator (before 6.1). -EPERM, -ENOMEM. */
NT_MUST_CHECK int nt_socket_reader_new(struct nt_socket_reader **ret_reader);
/* Accepts NULL. */
void nt_socket_reader_free(struct nt_socket_reader *reader);
NT_DEFINE_AUTO(nt_socket_reader, nt_socket_reader_free)

/*
 * The connected sockets of a process, at most `max`; *ret_left_out counts further ones, up to a
 * limit. A socket that the process has under several numbers comes several times. -ESRCH.
 */
NT_MUST_CHECK int nt_socket_reader_read(struct nt_socket_reader *reader, uint32_t pid,
					struct nt_socket_record *ret_record, size_t max,
					size_t *ret_count, size_t *ret_left_out);

#endif
