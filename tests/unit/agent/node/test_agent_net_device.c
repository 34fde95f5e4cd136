/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/net_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TAKE(devices, text) nt_net_devices_take(devices, text, sizeof(text) - 1)

#define HEAD                                                                                       \
	"Inter-|   Receive                            |  Transmit\n"                               \
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs " \
	"drop fifo colls carrier compressed\n"

static void cards_are_summed_and_other_devices_are_not(void **state)
{
	static struct nt_net_devices devices;
	const uint64_t *total = devices.sum.total;

	(void)state;
	(void)snprintf(devices.hardware.name[devices.hardware.names++], NT_HARDWARE_NAME, "%s",
		       "eth0");
	(void)snprintf(devices.hardware.name[devices.hardware.names++], NT_HARDWARE_NAME, "%s",
		       "eth1");
	TAKE(&devices, HEAD "    lo: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
			    "  eth0: 1000 10 1 2 0 0 0 5 2000 20 4 8 0 0 0 0\n"
			    "eth1:100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n"
			    "veth0@if2: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
			    "eth01: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n");
	assert_int_equal(devices.sum.devices, 2);
	assert_int_equal(total[NT_NET_RECEIVED_BYTES], 1100);
	assert_int_equal(total[NT_NET_SENT_BYTES], 2200);
	assert_int_equal(total[NT_NET_PACKETS], 33);
	assert_int_equal(total[NT_NET_ERRORS], 5);
	assert_int_equal(total[NT_NET_DROPS], 10);
}

static void without_cards_all_but_the_loopback_count(void **state)
{
	static struct nt_net_devices devices;

	(void)state;
	TAKE(&devices, HEAD "lo: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
			    "l: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
			    "eth0: 7 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1");
	assert_int_equal(devices.sum.devices, 2);
	assert_int_equal(devices.sum.total[NT_NET_RECEIVED_BYTES], 8);
}

static void malformed_lines_are_left_out(void **state)
{
	static struct nt_net_devices devices;

	(void)state;
	TAKE(&devices, "\n:\n: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\na: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
		       "b: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 x\n      ");
	assert_int_equal(devices.sum.devices, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cards_are_summed_and_other_devices_are_not),
		cmocka_unit_test(without_cards_all_but_the_loopback_count),
		cmocka_unit_test(malformed_lines_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
