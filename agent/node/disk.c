/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/disk.h"

#include "agent/node/kernel_text.h"
#include "common/base/ascii.h"

/* linux: Documentation/admin-guide/iostats.rst; the numbers behind the name. */
enum {
	READS,
	READ_SECTORS = 2,
	READ_MS,
	WRITES,
	WRITTEN_SECTORS = 6,
	WRITE_MS,
	IN_FLIGHT,
	BUSY_MS,
	FIELDS_LEAST = 11, /* older kernels have no more */
	DISCARDS = 11,
	DISCARD_MS = 14,
	FLUSHES,
	FLUSH_MS,
	FIELDS,

	SECTOR_BYTES = 512, /* whatever the disk has */
};

static bool cut_disk(const char *line, size_t len, const char **ret_name, size_t *ret_name_len,
		     uint64_t field[FIELDS])
{
	uint64_t major, minor;
	size_t fields = 0;

	if (!nt_kernel_text_cut_number(&line, &len, &major) ||
	    !nt_kernel_text_cut_number(&line, &len, &minor) ||
	    !nt_ascii_cut_word(&line, &len, ret_name, ret_name_len))
		return false;
	while (fields < FIELDS && nt_kernel_text_cut_number(&line, &len, &field[fields]))
		fields++;
	return fields >= FIELDS_LEAST;
}

static void take_disk(struct nt_disks *disks, const char *name, size_t name_len,
		      const uint64_t field[FIELDS], double past_ms)
{
	const uint64_t value[NT_COUNTER_SUM_VALUES] = {
		[NT_DISK_READ_BYTES] = field[READ_SECTORS] * SECTOR_BYTES,
		[NT_DISK_WRITTEN_BYTES] = field[WRITTEN_SECTORS] * SECTOR_BYTES,
		[NT_DISK_OPERATIONS] =
			field[READS] + field[WRITES] + field[DISCARDS] + field[FLUSHES],
		[NT_DISK_WAIT_MS] =
			field[READ_MS] + field[WRITE_MS] + field[DISCARD_MS] + field[FLUSH_MS],
		[NT_DISK_BUSY_MS] = field[BUSY_MS],
	};
	uint64_t growth[NT_COUNTER_SUM_VALUES];
	double busy;

	disks->in_flight += field[IN_FLIGHT];
	if (!nt_counter_sum_add(&disks->sum, name, name_len, value, growth) || past_ms <= 0)
		return;
	busy = (double)growth[NT_DISK_BUSY_MS] / past_ms;
	disks->has_busy = true;
	if (busy > disks->busy_most)
		disks->busy_most = busy < 1.0 ? busy : 1.0;
}

void nt_disks_take(struct nt_disks *disks, const char *text, size_t len, uint64_t now_ns)
{
	const double past_ms = disks->before_ns && now_ns > disks->before_ns
				       ? (double)(now_ns - disks->before_ns) / 1e6
				       : 0.0;
	const char *line, *name;
	size_t line_len, name_len;

	/* linux: block/genhd.c diskstats_show() writes times as numbers of 32 bits. */
	disks->sum.wraps = 1U << NT_DISK_WAIT_MS | 1U << NT_DISK_BUSY_MS;
	disks->in_flight = 0;
	disks->has_busy = false;
	disks->busy_most = 0.0;
	nt_counter_sum_begin(&disks->sum);
	while (nt_kernel_text_cut_line(&text, &len, &line, &line_len)) {
		uint64_t field[FIELDS] = {0};

		if (cut_disk(line, line_len, &name, &name_len, field) &&
		    nt_hardware_has(&disks->hardware, name, name_len))
			take_disk(disks, name, name_len, field, past_ms);
	}
	nt_counter_sum_end(&disks->sum);
	disks->before_ns = now_ns;
}
