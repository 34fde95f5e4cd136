/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What one reading of the node's metrics costs the agent: time, bytes of /proc, and bytes of the
 * message. The GPUs are not in it: a worker reads them. -v lists the metrics.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/node/node.h"
#include "common/system/clock.h"
#include "proto/node_metric.h"

enum {
	READINGS = 501,
	MIDDLE = READINGS / 2,
	HIGH = READINGS * 99 / 100,
};

#define SYS        "/sys"
#define INFINIBAND "/sys/class/infiniband"
#define SNMP       "/proc/1/net/snmp"

static int compare_ns(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void list(const struct nt_node *node)
{
	for (size_t i = 0; i < node->metrics; i++) {
		const struct nt_node_metric *row = nt_node_metric_find(node->metric[i].name);

		printf("%-32s %20.6f %-12s %s\n", node->metric[i].name, node->metric[i].value,
		       row ? row->unit : "not in the table", row && row->is_scored ? "scored" : "");
	}
}

static size_t encoded_bytes(struct nt_node *node)
{
	nt_autobuf struct nt_buf buf = {0};
	const struct nt_message message = {
		.agent = "node-0000",
		.boot = 1,
		.seq = 1,
		.key = "node-0000",
		.body = NT_BODY_NODE,
		.node = {.node = "node-0000", .metric = node->metric, .metrics = node->metrics},
	};

	return nt_message_encode(&message, &buf) == 0 ? buf.len : 0;
}

/* Processor time: other programs on the machine do not count. */
static uint64_t cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	static struct nt_node node;
	static struct nt_port_rates rates;
	static struct nt_nic nic;
	static uint64_t spent[READINGS];
	double middle, high;

	for (size_t i = 0; i < READINGS; i++) {
		const uint64_t begin = cpu_ns(), now_ns = nt_clock_mono_ns();

		nt_node_read(&node, "/proc", SYS, now_ns);
		nt_port_rates_read(INFINIBAND, now_ns, &rates);
		nt_nic_read(INFINIBAND, SNMP, &nic);
		nt_node_take_nic(&node, &nic);
		nt_node_take_ports(&node, &rates);
		spent[i] = cpu_ns() - begin;
	}
	if (argc > 1 && strcmp(argv[1], "-v") == 0)
		list(&node);
	qsort(spent, READINGS, sizeof(spent[0]), compare_ns);
	middle = (double)spent[MIDDLE] / 1e3;
	high = (double)spent[HIGH] / 1e3;
	printf("one reading: %zu metrics, %llu bytes of /proc, %zu bytes as a message; %.0f us of "
	       "processor time (median), %.0f us (99 %%); every 5 s that is %.4f %% of a processor\n",
	       node.metrics, (unsigned long long)node.bytes_read, encoded_bytes(&node), middle,
	       high, middle / 5e6 * 100);
	return EXIT_SUCCESS;
}
