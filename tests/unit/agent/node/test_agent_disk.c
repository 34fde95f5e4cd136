/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)

/* With hardware: sda, nvme0n1, c/d0. */
static void open_disks(struct nt_disks *disks)
{
	static const char *const name[] = {"sda", "nvme0n1", "c/d0"};

	memset(disks, 0, sizeof(*disks));
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		(void)snprintf(disks->hardware.name[disks->hardware.names++], NT_HARDWARE_NAME,
			       "%s", name[i]);
}

#define TAKE(disks, text, now_ns) nt_disks_take(disks, text, sizeof(text) - 1, now_ns)

static void whole_disks_are_summed(void **state)
{
	static struct nt_disks disks;

	(void)state;
	open_disks(&disks);
	TAKE(&disks,
	     "   8       0 sda 10 1 100 40 20 2 200 60 3 500 90 5 0 50 7 2 1\n"
	     "   8       1 sda1 10 1 100 40 20 2 200 60 3 500 90 5 0 50 7 2 1\n" /* a partition */
	     "   7       0 loop0 9 9 9 9 9 9 9 9 9 9 9\n"
	     " 104       0 c/d0 1 0 2 3 4 0 5 6 1 8 9\n", /* an older kernel */
	     SECOND_NS);
	assert_int_equal(disks.sum.devices, 2);
	assert_int_equal(disks.sum.total[NT_DISK_READ_BYTES], 102 * 512);
	assert_int_equal(disks.sum.total[NT_DISK_WRITTEN_BYTES], 205 * 512);
	assert_int_equal(disks.sum.total[NT_DISK_OPERATIONS], 10 + 20 + 5 + 2 + 1 + 4);
	assert_int_equal(disks.sum.total[NT_DISK_WAIT_MS], 40 + 60 + 7 + 1 + 3 + 6);
	assert_int_equal(disks.sum.total[NT_DISK_BUSY_MS], 508);
	assert_int_equal(disks.in_flight, 4);
	assert_false(disks.has_busy);
}

static void the_busiest_disk_is_a_part_of_the_time(void **state)
{
	static struct nt_disks disks;

	(void)state;
	open_disks(&disks);
	TAKE(&disks, "8 0 sda 0 0 0 0 0 0 0 0 0 4294967000 0\n1 0 nvme0n1 0 0 0 0 0 0 0 0 0 7 0\n",
	     SECOND_NS);
	/* Times wrap at 32 bits. */
	TAKE(&disks, "8 0 sda 0 0 0 0 0 0 0 0 0 704 0\n1 0 nvme0n1 0 0 0 0 0 0 0 0 0 257 0\n",
	     3 * SECOND_NS);
	assert_true(disks.has_busy);
	assert_float_equal(disks.busy_most, 0.5, 1e-9);
	/* No more than the whole, and nothing of a disk that is gone. */
	TAKE(&disks, "1 0 nvme0n1 0 0 0 0 0 0 0 0 0 99999 0\n", 4 * SECOND_NS);
	assert_float_equal(disks.busy_most, 1.0, 0.0);
	TAKE(&disks, "", 5 * SECOND_NS);
	assert_false(disks.has_busy);
	assert_int_equal(disks.sum.devices, 0);
}

static void what_makes_no_sense_is_left_out(void **state)
{
	static struct nt_disks disks;

	(void)state;
	open_disks(&disks);
	TAKE(&disks,
	     "8 0 sda\n8 0 sda 1 2 3 4 5 6 7 8 9 10\nx 0 sda 1 2 3 4 5 6 7 8 9 10 11\n"
	     "8 0 sda 1 2 3 4 5 6 7 8 9 10 -1\n\n8",
	     SECOND_NS);
	assert_int_equal(disks.sum.devices, 0);
	TAKE(&disks,
	     "8 0 sda 18446744073709551615 0 18446744073709551615 18446744073709551615 1 1 1 1 1 "
	     "18446744073709551615 1\n",
	     SECOND_NS); /* the clock stands still */
	assert_int_equal(disks.sum.devices, 1);
	assert_false(disks.has_busy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_disks_are_summed),
		cmocka_unit_test(the_busiest_disk_is_a_part_of_the_time),
		cmocka_unit_test(what_makes_no_sense_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
