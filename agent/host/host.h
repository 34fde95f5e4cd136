/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a thread and its process did with their time, from /proc; the files stay open. */
#ifndef NT_AGENT_HOST_HOST_H
#define NT_AGENT_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

/* Totals since the thread began; process_cpu_ns since the process did. */
struct nt_host_sample {
	uint64_t on_cpu_ns, run_queue_ns;
	/* Blocked in I/O. 0 unless the kernel accounts for delays (kernel.task_delayacct). */
	uint64_t io_wait_ns;
	uint64_t read_bytes, write_bytes; /* of storage, by the thread */
	uint64_t read_chars, write_chars; /* by its calls: of memory file systems and pipes too */
	uint64_t major_faults;
	uint64_t process_cpu_ns;
	/* Not of the thread: what the ports of its node have counted since boot (agent/host/nic.h). */
	uint64_t nic_retransmits, nic_errors, nic_congestion;
	char state; /* R, S, D …; 0: not known */
};

struct nt_host;

/* -ENOENT or -ESRCH where the thread is gone. */
NT_MUST_CHECK int nt_host_open(uint32_t pid, uint32_t tid, struct nt_host **ret_host);
void nt_host_close(struct nt_host *host);
NT_DEFINE_AUTO(nt_host, nt_host_close)

uint32_t nt_host_tid(const struct nt_host *host);

/* Files that cannot be read (io without the right to) leave their fields 0. -ESRCH: it has ended. */
NT_MUST_CHECK int nt_host_read(struct nt_host *host, struct nt_host_sample *ret_sample);

/* The parts, for tests: text of /proc/PID/stat, schedstat and io. False: malformed. */
bool nt_host_parse_stat(const char *text, size_t len, uint64_t tick_ns,
			struct nt_host_sample *sample, uint64_t *ret_cpu_ns);
bool nt_host_parse_schedstat(const char *text, size_t len, struct nt_host_sample *sample);
void nt_host_parse_io(const char *text, size_t len, struct nt_host_sample *sample);

#endif
