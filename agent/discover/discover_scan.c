/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scans of the whole host: at the start, after lost records, and for changes without a record. */
#include <errno.h>
#include <string.h>

#include "agent/discover/discover_impl.h"
#include "agent/host/proc.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"

enum {
	RESCAN_NS = 1000000000, /* minimum between scans … */
	RESCAN_TIMES = 10, /* … and this many times the last one's duration */
	SCAN_PIDS = 256, /* per pass, so that the loop is not held up */
	SCAN_QUEUED = 1024, /* queued inspections at which a scan waits … */
	/* … for so long: one owner's full queue does not stop it */
	SCAN_WAIT_NS = 100000000,
	RECHECKED = 512, /* processes per second */
	DUE = 64, /* released from quarantine, per second */
	OUTSIDE_AT_ONCE = 512, /* checked every second */
};

/* Between scans for processes left out: where there is room for them, and to count them. */
#define READMIT_NS (10 * NT_SECOND)
#define RECOUNT_NS NT_MINUTE

static uint64_t losses(const struct nt_discover *d)
{
	struct nt_quarantine_stats quarantine;

	nt_quarantine_stats(d->options.quarantine, 0, &quarantine);
	return d->lost + d->catalog.lost + quarantine.lost;
}

int nt_discover_begin_scan(struct nt_discover *d, uint64_t now_ns)
{
	d->scan = opendir("/proc");
	if (!d->scan)
		return -errno;
	d->scan_makes_up = d->rescan;
	d->rescan = false;
	d->scan_begin_ns = now_ns;
	d->scan_pass_ns = 0;
	d->lost_before = losses(d);
	d->stats.scans++;
	nt_process_table_recount(&d->table);
	return 0;
}

static void end_scan(struct nt_discover *d)
{
	(void)closedir(nt_take(d->scan));
	d->scan_end_ns = nt_clock_boot_ns();
	d->scan_ns = d->scan_end_ns - d->scan_begin_ns;
}

bool nt_discover_has_idle_workers(const struct nt_discover *d)
{
	struct nt_inspector_stats stats;

	nt_inspector_stats(d->inspector, &stats);
	return stats.pending < SCAN_QUEUED;
}

/* One pass. Processes started behind the scan's position have records of their own. */
void nt_discover_scan(struct nt_discover *d, uint64_t now_ns)
{
	struct dirent *entry;
	uint32_t pid;
	int pids = 0;

	if (!nt_discover_has_idle_workers(d) && now_ns - d->scan_pass_ns < SCAN_WAIT_NS)
		return;
	d->scan_pass_ns = now_ns;
	d->scanning_first = d->stats.scans == 1;
	while (pids < SCAN_PIDS && (entry = readdir(d->scan))) {
		if (nt_parse_u32(entry->d_name, strlen(entry->d_name), 1, INT32_MAX, &pid) < 0)
			continue;
		nt_discover_see_process(d, pid);
		pids++;
	}
	d->scanning_first = false;
	if (pids < SCAN_PIDS)
		end_scan(d);
}

/* Finds processes that were moved into the subtree. */
static void recheck_outside(struct nt_discover *d)
{
	unsigned int n = HASH_COUNT(d->outside.process);

	for (unsigned int i = 0; i < n && i < OUTSIDE_AT_ONCE && d->outside.process; i++) {
		uint32_t pid = d->outside.process->pid;

		if (nt_proc_has_ended(pid))
			nt_outside_processes_remove(&d->outside, pid);
		else
			nt_discover_see_process(d, pid); /* if still outside, it moves to the end */
	}
}

/* Detects exits whose records were lost, and retries postponed processes. */
void nt_discover_recheck(struct nt_discover *d)
{
	uint64_t now_ns = nt_clock_boot_ns(), start_ns, due_ns;
	size_t count = nt_process_table_count(&d->table);
	uint32_t pid;

	for (size_t i = 0; i < count && i < RECHECKED; i++) {
		struct nt_mapping_process *p = nt_process_table_next(&d->table);
		int r = nt_proc_start_ns(p->pid, &start_ns);

		if (r == -ESRCH || (r == 0 && start_ns != p->start_ns))
			nt_discover_end_process(d, p, now_ns);
	}
	recheck_outside(d);
	for (int i = 0; i < DUE && nt_quarantine_due(d->options.quarantine, now_ns, &pid, &due_ns);
	     i++)
		if (nt_proc_start_ns(pid, &start_ns) == 0 && start_ns == due_ns)
			nt_discover_see_process(d, pid);
	nt_workers_reap(d->options.workers);
}

bool nt_discover_is_scanning(const struct nt_discover *discover)
{
	uint64_t oldest_ns = nt_inspector_oldest_ns(discover->inspector);

	return discover->scan || (oldest_ns && oldest_ns <= discover->scan_end_ns);
}

/*
 * True if a scan is due because processes were left out or queues were full: they may have room
 * now.
 */
bool nt_discover_should_readmit(const struct nt_discover *d, uint64_t now_ns)
{
	const uint64_t pause_ns = nt_share_has_room(&d->table.share) ? READMIT_NS : RECOUNT_NS;
	struct nt_share_report report;

	if (now_ns - d->scan_end_ns < pause_ns || nt_discover_is_scanning(d))
		return false;
	nt_share_read(&d->table.share, &report);
	return report.left_out > 0 || losses(d) != d->lost_before;
}

/* True if a scan may begin: scans take at most a tenth of the time. */
bool nt_discover_may_scan(const struct nt_discover *d, uint64_t now_ns)
{
	uint64_t pause_ns = RESCAN_TIMES * d->scan_ns;

	return now_ns - d->scan_end_ns >= (pause_ns > RESCAN_NS ? pause_ns : RESCAN_NS);
}
