/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What discovery reads: lines of /proc, cgroup files, the kernel's records. All of it untrusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "agent/discover/map_ring.h"
#include "agent/host/cgroup_filter.h"
#include "agent/host/proc.h"
#include "common/system/clock.h"

/* ---- /proc/PID/maps ----------------------------------------------------------------------- */

static bool parse(const char *line, struct nt_mapping *mapping)
{
	static char copy[512];

	(void)snprintf(copy, sizeof(copy), "%s", line);
	return nt_proc_parse_mapping(copy, mapping);
}

static void an_executable_mapping_of_a_file_is_taken(void **state)
{
	struct nt_mapping m;

	(void)state;
	assert_true(parse("7f8000001000-7f8000003000 r-xp 00001000 08:01 1234  "
			  "/opt/my lib/libnccl.so.2\n",
			  &m));
	assert_int_equal(m.start, 0x7f8000001000);
	assert_int_equal(m.end, 0x7f8000003000);
	assert_int_equal(m.offset, 0x1000);
	assert_int_equal(m.ino, 1234);
	assert_string_equal(m.path, "/opt/my lib/libnccl.so.2");
	assert_false(m.deleted);
}

static void a_deleted_file_is_told_from_its_name(void **state)
{
	struct nt_mapping m;
	char only[] = " (deleted)", twice[] = "/x (deleted) (deleted)";

	(void)state;
	assert_true(parse("1000-2000 r-xp 0 08:01 7 /tmp/libnccl.so.2 (deleted)\n", &m));
	assert_string_equal(m.path, "/tmp/libnccl.so.2");
	assert_true(m.deleted);
	assert_false(nt_proc_cut_deleted(only));
	assert_true(nt_proc_cut_deleted(twice));
	assert_string_equal(twice, "/x (deleted)");
}

static void other_mappings_are_passed_over(void **state)
{
	static const char *const lines[] = {
		"1000-2000 r--p 00000000 08:01 7 /lib/libc.so.6\n",
		"1000-2000 rw-p 00000000 00:00 0 [heap]\n",
		"1000-2000 r-xp 00000000 00:00 0 [vdso]\n",
		"1000-2000 r-xp 00000000 00:00 0 \n",
		"1000-2000 r-xp 00000000 00:00 0\n",
		"1000-2000 r-xp 00000000 08:01 0 /no/inode\n",
		"1000 r-xp 00000000 08:01 7 /x\n",
		"-2000 r-xp 00000000 08:01 7 /x\n",
		"zz-2000 r-xp 00000000 08:01 7 /x\n",
		"1000-2000 x 00000000 08:01 7 /x\n",
		"1000-2000 r-xp 00000000 08:01 -7 /x\n",
		"1000-2000 r-xp x 08:01 7 /x\n",
		"1000-2000 r-xp 00000000 08:01 99999999999999999999999 /x\n",
		"1000-2000",
		" ",
		"\n",
		"",
	};
	struct nt_mapping m;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (parse(lines[i], &m))
			fail_msg("'%s'", lines[i]);
}

static void count_mapping(void *data, const struct nt_mapping *mapping)
{
	size_t *count = data;

	assert_true(mapping->end > mapping->start);
	assert_int_equal(mapping->path[0], '/');
	(*count)++;
}

static void our_own_mappings_can_be_walked(void **state)
{
	size_t count = 0;

	(void)state;
	assert_int_equal(nt_proc_mappings((uint32_t)getpid(), count_mapping, &count), 0);
	assert_true(count >= 2); /* this program and the C library */
	assert_int_equal(nt_proc_mappings(INT32_MAX, count_mapping, &count), -ESRCH);
}

static void our_own_start_is_in_the_past(void **state)
{
	uint64_t start_ns = 0;

	(void)state;
	assert_int_equal(nt_proc_start_ns((uint32_t)getpid(), &start_ns), 0);
	assert_true(start_ns > 0 && start_ns <= nt_clock_boot_ns());
	assert_int_equal(nt_proc_start_ns(INT32_MAX, &start_ns), -ESRCH);
	assert_false(nt_proc_has_ended((uint32_t)getpid()));
	assert_true(nt_proc_has_ended(INT32_MAX));
}

/* ---- cgroups ------------------------------------------------------------------------------ */

static const char mounts[] =
	"20 1 8:1 / / rw,relatime - ext4 /dev/vda rw\n"
	"31 30 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
	"33 31 0:29 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
	"34 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	"50 31 0:29 /kubepods /mnt/pods rw - cgroup cgroup rw,memory\n"
	"broken\n"
	"\n";

static const char own[] = "4:memory:/\n3:cpu,cpuacct:/\n2:name=systemd:/\n0::/\n";

static struct nt_cgroup_filter *cgroup_filter_of(const char *directory)
{
	struct nt_cgroup_filter *cgroup_filter = NULL;

	assert_int_equal(nt_cgroup_filter_parse(mounts, sizeof(mounts) - 1, own, sizeof(own) - 1,
						directory, &cgroup_filter),
			 0);
	return cgroup_filter;
}

static bool holds(const char *directory, const char *cgroup)
{
	struct nt_cgroup_filter *cgroup_filter = cgroup_filter_of(directory);
	bool matches = nt_cgroup_filter_matches(cgroup_filter, cgroup, strlen(cgroup));

	nt_cgroup_filter_free(cgroup_filter);
	return matches;
}

static void a_cgroup_filter_holds_itself_and_what_is_below(void **state)
{
	(void)state;
	assert_true(holds("/sys/fs/cgroup/memory/a/b", "4:memory:/a/b\n"));
	assert_true(holds("/sys/fs/cgroup/memory/a/b", "4:memory:/a/b/c\n"));
	assert_true(holds("/sys/fs/cgroup/memory/a/b/", "4:memory:/a/b/c"));
	assert_false(holds("/sys/fs/cgroup/memory/a/b", "4:memory:/a/bc\n"));
	assert_false(holds("/sys/fs/cgroup/memory/a/b", "4:memory:/a\n"));
	assert_false(holds("/sys/fs/cgroup/memory/a/b", "4:memory:/\n"));
	assert_true(holds("/sys/fs/cgroup/memory", "4:memory:/a\n"));
	assert_true(holds("/sys/fs/cgroup/memory", "4:memory:/\n"));
}

static void only_the_hierarchy_of_the_directory_counts(void **state)
{
	(void)state;
	assert_false(holds("/sys/fs/cgroup/memory/a", "3:cpu,cpuacct:/a\n0::/a\n"));
	assert_true(holds("/sys/fs/cgroup/memory/a", "3:cpu:/x\n4:memory:/a\n0::/x\n"));
	assert_true(holds("/sys/fs/cgroup/cpu,cpuacct/a", "3:cpu,cpuacct:/a\n"));
	assert_true(holds("/sys/fs/cgroup/systemd/a", "1:name=systemd:/a\n"));
	assert_true(holds("/sys/fs/cgroup/unified/a", "4:memory:/x\n0::/a/b\n"));
	assert_false(holds("/sys/fs/cgroup/unified/a", "4:memory:/a\n"));
}

static void a_mount_of_a_part_is_seen_through(void **state)
{
	(void)state;
	assert_true(holds("/mnt/pods/pod1", "4:memory:/kubepods/pod1/c\n"));
	assert_false(holds("/mnt/pods/pod1", "4:memory:/pod1\n"));
}

static void text_that_is_no_cgroup_file_holds_nothing(void **state)
{
	(void)state;
	assert_false(holds("/sys/fs/cgroup/memory", ""));
	assert_false(holds("/sys/fs/cgroup/memory", "\n\n"));
	assert_false(holds("/sys/fs/cgroup/memory", "4:memory"));
	assert_false(holds("/sys/fs/cgroup/memory", "memory:/"));
	assert_false(holds("/sys/fs/cgroup/memory/a", "4:memory:"));
	assert_false(holds("/sys/fs/cgroup/memory/a", "4:memoryx:/a\n5:xmemory:/a\n"));
}

static void a_directory_elsewhere_is_no_cgroup_filter(void **state)
{
	struct nt_cgroup_filter *cgroup_filter = NULL;

	(void)state;
	assert_int_equal(nt_cgroup_filter_parse(mounts, sizeof(mounts) - 1, own, sizeof(own) - 1,
						"/sys/fs/cgroupx/memory", &cgroup_filter),
			 -EINVAL);
	assert_int_equal(nt_cgroup_filter_new("/proc", &cgroup_filter), -EINVAL);
	assert_int_equal(nt_cgroup_filter_new("/proc/self/stat", &cgroup_filter), -ENOTDIR);
	assert_int_equal(nt_cgroup_filter_new("/no/such/directory", &cgroup_filter), -ENOENT);
	assert_null(cgroup_filter);
	nt_cgroup_filter_free(NULL);
}

static void without_a_cgroup_filter_everything_is_inside(void **state)
{
	(void)state;
	assert_true(nt_cgroup_filter_holds(NULL, INT32_MAX));
}

/* ---- records ------------------------------------------------------------------------------ */

struct raw {
	struct perf_event_header header;
	union {
		struct {
			uint32_t pid, tid;
			uint64_t addr, len, pgoff;
			uint32_t maj, min;
			uint64_t ino, generation;
			uint32_t prot, flags;
			char path[16];
			uint32_t trailer_pid, trailer_tid;
			uint64_t time;
		} map;
		struct {
			uint32_t pid, parent, tid, ptid;
			uint64_t time;
			uint32_t trailer_pid, trailer_tid;
			uint64_t trailer_time;
		} task;
		struct {
			uint32_t pid, tid;
			char name[8];
			uint32_t trailer_pid, trailer_tid;
			uint64_t time;
		} comm;
		struct {
			uint64_t id, lost;
			uint32_t trailer_pid, trailer_tid;
			uint64_t time;
		} lost;
	};
};

static int parse_raw(struct raw *raw, uint32_t type, size_t body, struct nt_map_record *record,
		     uint64_t *lost)
{
	raw->header.type = type;
	raw->header.size = (uint16_t)(sizeof(raw->header) + body);
	return nt_map_parse((char *)raw, raw->header.size, record, lost);
}

static void a_mapping_record_is_read(void **state)
{
	struct raw raw = {.map = {.pid = 7,
				  .tid = 8,
				  .addr = 0x1000,
				  .len = 0x2000,
				  .ino = 42,
				  .path = "/lib/x.so",
				  .time = 99}};
	struct nt_map_record record;
	uint64_t lost = 0;

	(void)state;
	assert_int_equal(parse_raw(&raw, PERF_RECORD_MMAP2, sizeof(raw.map), &record, &lost), 0);
	assert_int_equal(record.kind, NT_MAP_MAPPED);
	assert_int_equal(record.pid, 7);
	assert_int_equal(record.start, 0x1000);
	assert_int_equal(record.end, 0x3000);
	assert_int_equal(record.ino, 42);
	assert_int_equal(record.boot_ns, 99);
	assert_string_equal(record.path, "/lib/x.so");
	memset(raw.map.path, 'x', sizeof(raw.map.path));
	assert_int_equal(parse_raw(&raw, PERF_RECORD_MMAP2, sizeof(raw.map), &record, &lost),
			 -EBADMSG);
}

static void processes_are_told_from_threads(void **state)
{
	struct raw raw = {.task = {.pid = 7, .parent = 6, .tid = 7, .ptid = 6}};
	struct nt_map_record record;
	uint64_t lost = 0;

	(void)state;
	assert_int_equal(parse_raw(&raw, PERF_RECORD_FORK, sizeof(raw.task), &record, &lost), 0);
	assert_int_equal(record.kind, NT_MAP_FORKED);
	assert_int_equal(record.parent, 6);
	raw.task.parent = 7;
	raw.task.tid = 8;
	assert_int_equal(parse_raw(&raw, PERF_RECORD_FORK, sizeof(raw.task), &record, &lost),
			 -ENOENT);
	assert_int_equal(parse_raw(&raw, PERF_RECORD_EXIT, sizeof(raw.task), &record, &lost), 0);
	assert_int_equal(record.kind, NT_MAP_EXITED);
	assert_int_equal(record.tid, 8);
}

static void an_exec_is_told_from_a_change_of_name(void **state)
{
	struct raw raw = {.comm = {.pid = 7, .tid = 7, .name = "python3"}};
	struct nt_map_record record;
	uint64_t lost = 0;

	(void)state;
	assert_int_equal(parse_raw(&raw, PERF_RECORD_COMM, sizeof(raw.comm), &record, &lost),
			 -ENOENT);
	raw.header.misc = PERF_RECORD_MISC_COMM_EXEC;
	assert_int_equal(parse_raw(&raw, PERF_RECORD_COMM, sizeof(raw.comm), &record, &lost), 0);
	assert_int_equal(record.kind, NT_MAP_EXEC);
	assert_int_equal(record.pid, 7);
}

static void lost_records_are_counted(void **state)
{
	struct raw raw = {.lost = {.lost = 12}};
	struct nt_map_record record;
	uint64_t lost = 0;

	(void)state;
	assert_int_equal(parse_raw(&raw, PERF_RECORD_LOST, sizeof(raw.lost), &record, &lost),
			 NT_MAP_LOST);
	assert_int_equal(lost, 12);
}

static void records_that_are_too_short_are_malformed(void **state)
{
	static const uint32_t types[] = {PERF_RECORD_MMAP2, PERF_RECORD_FORK, PERF_RECORD_EXIT,
					 PERF_RECORD_COMM, PERF_RECORD_LOST};
	static const size_t bodies[] = {
		sizeof(((struct raw *)0)->map) - 16, sizeof(((struct raw *)0)->task),
		sizeof(((struct raw *)0)->task), sizeof(((struct raw *)0)->comm) - 8,
		sizeof(((struct raw *)0)->lost)};
	struct nt_map_record record;
	uint64_t lost = 0;

	(void)state;
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (size_t body = 0; body < bodies[t]; body++) {
			struct raw raw = {.header = {.misc = PERF_RECORD_MISC_COMM_EXEC}};

			assert_int_equal(parse_raw(&raw, types[t], body, &record, &lost), -EBADMSG);
		}
}

/* ---- rings ------------------------------------------------------------------------------- */

enum {
	RING_BYTES = 16384,
	SEEN_MAX = 64,
};

/* A ring as the kernel writes it. */
struct made_ring {
	struct perf_event_mmap_page page;
	char data[RING_BYTES];
};

struct seen {
	uint32_t pid[SEEN_MAX];
	unsigned int records;
};

static void write_bytes(struct made_ring *made, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		made->data[(made->page.data_head + i) % RING_BYTES] = ((const char *)bytes)[i];
	made->page.data_head += size;
}

/* The exec of a process at a time. */
static void write_exec(struct made_ring *made, uint32_t pid, uint64_t boot_ns)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		char name[8];
		uint32_t trailer_pid, trailer_tid;
		uint64_t boot_ns;
	} record = {
		.header = {.type = PERF_RECORD_COMM,
			   .misc = PERF_RECORD_MISC_COMM_EXEC,
			   .size = sizeof(record)},
		.pid = pid,
		.tid = pid,
		.boot_ns = boot_ns,
	};

	write_bytes(made, &record, sizeof(record));
}

static void note_record(void *data, struct nt_map_record *record)
{
	struct seen *seen = data;

	assert_true(seen->records < SEEN_MAX);
	seen->pid[seen->records++] = record->pid;
}

static struct nt_map_ring ring_of(struct made_ring *made)
{
	return (struct nt_map_ring){.page = &made->page, .data = made->data, .size = RING_BYTES};
}

static uint64_t read_some(struct nt_map_ring *ring, size_t rings, size_t max, struct seen *seen,
			  bool *ret_more)
{
	static char record[NT_MAP_RECORD_BYTES];
	unsigned int records = 0;
	uint64_t lost;

	*seen = (struct seen){0};
	lost = nt_map_rings_read(ring, rings, record, max, note_record, seen, &records, ret_more);
	assert_int_equal(records, seen->records);
	return lost;
}

static uint64_t read_rings(struct nt_map_ring *ring, size_t rings, struct seen *seen)
{
	bool more = true;
	uint64_t lost = read_some(ring, rings, SIZE_MAX, seen, &more);

	assert_false(more);
	return lost;
}

static void records_of_several_cpus_come_by_time(void **state)
{
	static struct made_ring made[3];
	struct nt_map_ring ring[3] = {ring_of(&made[0]), ring_of(&made[1]), ring_of(&made[2])};
	struct seen seen;

	(void)state;
	write_exec(&made[0], 3, 30);
	write_exec(&made[0], 4, 40);
	write_exec(&made[1], 1, 10);
	write_exec(&made[1], 6, 60);
	write_exec(&made[2], 2, 20);
	write_exec(&made[2], 5, 50);
	assert_int_equal(read_rings(ring, 3, &seen), 0);
	assert_int_equal(seen.records, 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(seen.pid[i], i + 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(made[i].page.data_tail, made[i].page.data_head);
	assert_int_equal(read_rings(ring, 3, &seen), 0);
	assert_int_equal(seen.records, 0);
}

static void what_one_read_does_not_take_comes_with_the_next(void **state)
{
	static struct made_ring made[2];
	struct nt_map_ring ring[2] = {ring_of(&made[0]), ring_of(&made[1])};
	struct seen seen;
	bool more = false;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		write_exec(&made[i % 2], i, 10 * i);
	assert_int_equal(read_some(ring, 2, 7, &seen, &more), 0);
	assert_true(more);
	assert_int_equal(seen.records, 7);
	assert_int_equal(seen.pid[6], 6);
	write_exec(&made[0], 10, 100);
	assert_int_equal(read_some(ring, 2, 4, &seen, &more), 0);
	assert_false(more);
	assert_int_equal(seen.records, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(seen.pid[i], 7 + i);
}

static void a_ring_is_read_across_its_end(void **state)
{
	static struct made_ring made;
	struct nt_map_ring ring = ring_of(&made);
	struct seen seen;

	(void)state;
	for (uint32_t round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 13; i++)
			write_exec(&made, 13 * round + i, 1000 * round + i);
		assert_int_equal(read_rings(&ring, 1, &seen), 0);
		assert_int_equal(seen.records, 13);
		for (uint32_t i = 0; i < 13; i++)
			assert_int_equal(seen.pid[i], 13 * round + i);
	}
}

static void a_ring_out_of_step_is_left_and_counted(void **state)
{
	static struct made_ring made[2];
	struct nt_map_ring ring[2] = {ring_of(&made[0]), ring_of(&made[1])};
	struct perf_event_header broken = {.type = PERF_RECORD_COMM, .size = 4};
	struct seen seen;

	(void)state;
	write_exec(&made[0], 1, 10);
	write_bytes(&made[0], &broken, sizeof(broken));
	write_exec(&made[0], 9, 90);
	write_exec(&made[1], 2, 20);
	assert_int_equal(read_rings(ring, 2, &seen), 1);
	assert_int_equal(seen.records, 2);
	assert_int_equal(seen.pid[1], 2);
	broken.size = 2000; /* more than there is */
	write_bytes(&made[0], &broken, sizeof(broken));
	assert_int_equal(read_rings(ring, 2, &seen), 1);
	write_exec(&made[0], 3, 30);
	assert_int_equal(read_rings(ring, 2, &seen), 0);
	assert_int_equal(seen.pid[0], 3);
}

static void a_full_ring_counts_as_a_loss(void **state)
{
	static struct made_ring made;
	struct nt_map_ring ring = ring_of(&made);
	struct seen seen;
	bool more = false;
	struct perf_event_header other = {.type = 0xffff, .size = 64};
	char filler[64] = {0};

	(void)state;
	memcpy(filler, &other, sizeof(other));
	while (made.page.data_head + 64 <= RING_BYTES - 64)
		write_bytes(&made, filler, sizeof(filler));
	assert_int_equal(read_some(&ring, 1, 1, &seen, &more), 1);
	/* Full as before, though it is read on: that is not another loss. */
	assert_int_equal(read_some(&ring, 1, 1, &seen, &more), 0);
	assert_true(more);
	assert_int_equal(read_rings(&ring, 1, &seen), 0);
	write_bytes(&made, filler, sizeof(filler));
	assert_int_equal(read_rings(&ring, 1, &seen), 0);
	assert_int_equal(seen.records, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_executable_mapping_of_a_file_is_taken),
		cmocka_unit_test(a_deleted_file_is_told_from_its_name),
		cmocka_unit_test(other_mappings_are_passed_over),
		cmocka_unit_test(our_own_mappings_can_be_walked),
		cmocka_unit_test(our_own_start_is_in_the_past),
		cmocka_unit_test(a_cgroup_filter_holds_itself_and_what_is_below),
		cmocka_unit_test(only_the_hierarchy_of_the_directory_counts),
		cmocka_unit_test(a_mount_of_a_part_is_seen_through),
		cmocka_unit_test(text_that_is_no_cgroup_file_holds_nothing),
		cmocka_unit_test(a_directory_elsewhere_is_no_cgroup_filter),
		cmocka_unit_test(without_a_cgroup_filter_everything_is_inside),
		cmocka_unit_test(a_mapping_record_is_read),
		cmocka_unit_test(processes_are_told_from_threads),
		cmocka_unit_test(an_exec_is_told_from_a_change_of_name),
		cmocka_unit_test(lost_records_are_counted),
		cmocka_unit_test(records_that_are_too_short_are_malformed),
		cmocka_unit_test(records_of_several_cpus_come_by_time),
		cmocka_unit_test(what_one_read_does_not_take_comes_with_the_next),
		cmocka_unit_test(a_ring_is_read_across_its_end),
		cmocka_unit_test(a_ring_out_of_step_is_left_and_counted),
		cmocka_unit_test(a_full_ring_counts_as_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
