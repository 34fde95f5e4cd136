/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CPU, I/O and wait times of a thread and its process, from /proc. The files stay open. */
#ifndef NT_AGENT_HOST_HOST_H
#define NT_AGENT_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/host/gpu_total.h"
#include "agent/host/system_total.h"
#include "common/base/cleanup.h"

/* Totals since the thread began; process_cpu_ns since the process did. */
struct nt_host_sample {
	uint64_t on_cpu_ns, run_queue_ns;
	/* Blocked in I/O. 0 unless the kernel accounts for delays (kernel.task_delayacct). */
	uint64_t io_wait_ns;
	uint64_t read_bytes, write_bytes; /* of storage, by the thread */
	uint64_t read_chars, write_chars; /* by system calls, incl. memory file systems and pipes */
	uint64_t major_faults;
	uint64_t process_cpu_ns;
	/* Of the whole node: NIC counters since boot (agent/node/nic.h). */
	uint64_t nic_retransmits, nic_errors, nic_congestion;
	/* Of the process's GPUs (agent/gpu/gpu_totals.h). */
	struct nt_gpu_total gpu;
	bool has_gpu;
	struct nt_system_total system; /* agent/system/system.h */
	bool has_system;
	char state; /* R, S, D …; 0: unknown */
};

struct nt_host;

/* -ENOENT or -ESRCH if the thread has ended. */
NT_MUST_CHECK int nt_host_open(uint32_t pid, uint32_t tid, struct nt_host **ret_host);
void nt_host_close(struct nt_host *host);
NT_DEFINE_AUTO(nt_host, nt_host_close)

uint32_t nt_host_tid(const struct nt_host *host);

/* Unreadable files (io without permission) leave their fields 0. -ESRCH: the thread has ended. */
NT_MUST_CHECK int nt_host_read(struct nt_host *host, struct nt_host_sample *ret_sample);

/* Exported for tests: parsers of /proc/PID/stat, schedstat and io. False: malformed. */
bool nt_host_parse_stat(const char *text, size_t len, uint64_t tick_ns,
			struct nt_host_sample *sample, uint64_t *ret_cpu_ns);
bool nt_host_parse_schedstat(const char *text, size_t len, struct nt_host_sample *sample);
void nt_host_parse_io(const char *text, size_t len, struct nt_host_sample *sample);

#endif
