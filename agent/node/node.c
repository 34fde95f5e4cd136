/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/node.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/node/kernel_text.h"
#include "common/base/ascii.h"
#include "common/base/buf.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	TEXT_BYTES = 1 << 20, /* /proc/stat of a large machine has some hundred KiB */
};

void nt_node_add_value(struct nt_node *node, const char *name, double value)
{
	if (node->metrics < NT_NODE_METRICS)
		node->metric[node->metrics++] = (struct nt_metric_value){name, value};
}

void nt_node_add(struct nt_node *node, const struct nt_metric_value *metric, size_t metrics)
{
	for (size_t i = 0; i < metrics; i++)
		nt_node_add_value(node, metric[i].name, metric[i].value);
}

void nt_node_take_nic(struct nt_node *node, const struct nt_nic *nic)
{
	if (nic->has_tcp) {
		nt_node_add_value(node, "tcp_retransmits", (double)nic->tcp.retransmits);
		nt_node_add_value(node, "tcp_resets", (double)nic->tcp.resets);
	}
	if (!nic->ports)
		return;
	nt_node_add_value(node, "rdma_retransmits", (double)nic->port.total[NT_NIC_RETRANSMITS]);
	nt_node_add_value(node, "rdma_errors", (double)nic->port.total[NT_NIC_ERRORS]);
	nt_node_add_value(node, "rdma_congestion", (double)nic->port.total[NT_NIC_CONGESTION]);
}

void nt_node_take_ports(struct nt_node *node, const struct nt_port_rates *rates)
{
	const uint64_t *total = rates->sum.total;

	if (rates->has_bytes) {
		nt_node_add_value(node, "rdma_sent_bytes", (double)total[NT_PORT_SENT_BYTES]);
		nt_node_add_value(node, "rdma_received_bytes",
				  (double)total[NT_PORT_RECEIVED_BYTES]);
	}
	if (rates->has_naks)
		nt_node_add_value(node, "rdma_naks", (double)total[NT_PORT_NAKS]);
}

/* A line for each processor, of hexadecimal numbers; the second counts drops. */
void nt_node_take_softnet(struct nt_node *node, const char *text, size_t len)
{
	uint64_t sum = 0, drops;
	const char *line, *word;
	size_t line_len, word_len;
	bool is_known = false;

	while (nt_kernel_text_cut_line(&text, &len, &line, &line_len)) {
		const bool has_first = nt_ascii_cut_word(&line, &line_len, &word, &word_len);

		if (!has_first || !nt_ascii_cut_word(&line, &line_len, &word, &word_len) ||
		    nt_parse_hex(word, word_len, UINT32_MAX, &drops) < 0)
			continue;
		sum += drops;
		is_known = true;
	}
	if (is_known)
		nt_node_add_value(node, "softnet_drops", (double)sum);
}

/* "784\t0\t2466193": open files come first. */
void nt_node_take_files(struct nt_node *node, const char *text, size_t len)
{
	const char *end = len ? memchr(text, '\t', len) : NULL;
	uint64_t files;

	if (end && nt_parse_u64(text, (size_t)(end - text), 0, UINT64_MAX, &files) == 0)
		nt_node_add_value(node, "files_open", (double)files);
}

static void add_disks(struct nt_node *node)
{
	const struct nt_disks *disks = &node->disks;
	const uint64_t *total = disks->sum.total;

	if (!disks->sum.devices)
		return;
	nt_node_add_value(node, "disk_read_bytes", (double)total[NT_DISK_READ_BYTES]);
	nt_node_add_value(node, "disk_written_bytes", (double)total[NT_DISK_WRITTEN_BYTES]);
	nt_node_add_value(node, "disk_operations", (double)total[NT_DISK_OPERATIONS]);
	nt_node_add_value(node, "disk_wait_seconds", (double)total[NT_DISK_WAIT_MS] / 1e3);
	nt_node_add_value(node, "disk_busy_seconds", (double)total[NT_DISK_BUSY_MS] / 1e3);
	nt_node_add_value(node, "disk_requests_in_flight", (double)disks->in_flight);
	if (disks->has_busy)
		nt_node_add_value(node, "disk_busy_most", disks->busy_most);
}

static void add_net(struct nt_node *node)
{
	const uint64_t *total = node->net.sum.total;

	if (!node->net.sum.devices)
		return;
	nt_node_add_value(node, "net_received_bytes", (double)total[NT_NET_RECEIVED_BYTES]);
	nt_node_add_value(node, "net_sent_bytes", (double)total[NT_NET_SENT_BYTES]);
	nt_node_add_value(node, "net_packets", (double)total[NT_NET_PACKETS]);
	nt_node_add_value(node, "net_errors", (double)total[NT_NET_ERRORS]);
	nt_node_add_value(node, "net_drops", (double)total[NT_NET_DROPS]);
}

static void add_clock(struct nt_node *node)
{
	const struct nt_processor_clock *clock = &node->clock;

	if (clock->has_frequency)
		nt_node_add_value(node, "cpu_frequency_hertz", clock->frequency_hertz);
	if (clock->has_throttled)
		nt_node_add_value(node, "cpu_throttled_seconds",
				  (double)clock->throttled.total[0] / 1e3);
}

/* ---- a reading ------------------------------------------------------------------------------- */

/* The new content of buf. */
static bool read_text(struct nt_node *node, const char *proc, const char *file, struct nt_buf *buf)
{
	char path[PATH_MAX];
	const int len = snprintf(path, sizeof(path), "%s/%s", proc, file);

	nt_buf_clear(buf);
	if (len < 0 || (size_t)len >= sizeof(path) || nt_file_read(path, TEXT_BYTES, buf) < 0)
		return false;
	node->bytes_read += buf->len;
	return true;
}

static void read_texts(struct nt_node *node, const char *proc, struct nt_buf *buf)
{
	static const struct {
		const char *file;
		void (*take)(struct nt_node *node, const char *text, size_t len);
	} source[] = {
		{"stat", nt_node_take_stat},
		{"loadavg", nt_node_take_load},
		{"meminfo", nt_node_take_memory},
		{"vmstat", nt_node_take_vmstat},
		{"net/softnet_stat", nt_node_take_softnet},
		{"sys/fs/file-nr", nt_node_take_files},
	};

	for (size_t i = 0; i < sizeof(source) / sizeof(source[0]); i++)
		if (read_text(node, proc, source[i].file, buf))
			source[i].take(node, (const char *)buf->data, buf->len);
}

static void read_pressure(struct nt_node *node, const char *proc, struct nt_buf *buf)
{
	/* Processors: of a whole node the kernel reports 0 for all threads that wait. */
	static const struct {
		const char *file, *some, *full;
	} pressure[] = {
		{"pressure/cpu", "cpu_pressure_some_seconds", NULL},
		{"pressure/memory", "memory_pressure_some_seconds", "memory_pressure_full_seconds"},
		{"pressure/io", "io_pressure_some_seconds", "io_pressure_full_seconds"},
	};

	for (size_t i = 0; i < sizeof(pressure) / sizeof(pressure[0]); i++)
		if (read_text(node, proc, pressure[i].file, buf))
			nt_node_take_pressure(node, pressure[i].some, pressure[i].full,
					      (const char *)buf->data, buf->len);
}

/* "SYS/FILE"; an empty path if it is too long. */
static const char *make_path(const char *sys, const char *file, char path[PATH_MAX])
{
	const int len = snprintf(path, PATH_MAX, "%s/%s", sys, file);

	if (len < 0 || len >= PATH_MAX)
		path[0] = '\0';
	return path;
}

void nt_node_read(struct nt_node *node, const char *proc, const char *sys, uint64_t now_ns)
{
	nt_autobuf struct nt_buf buf = {0};
	char path[PATH_MAX];

	node->metrics = 0;
	node->bytes_read = 0;
	read_texts(node, proc, &buf);
	read_pressure(node, proc, &buf);
	nt_hardware_refresh(&node->disks.hardware, make_path(sys, "block", path));
	if (read_text(node, proc, "diskstats", &buf)) {
		nt_disks_take(&node->disks, (const char *)buf.data, buf.len, now_ns);
		add_disks(node);
	}
	nt_hardware_refresh(&node->net.hardware, make_path(sys, "class/net", path));
	if (read_text(node, proc, "1/net/dev", &buf)) {
		nt_net_devices_take(&node->net, (const char *)buf.data, buf.len);
		add_net(node);
	}
	nt_processor_clock_read(make_path(sys, "devices/system/cpu", path), &node->clock);
	add_clock(node);
}

uint64_t nt_node_over_cap(const struct nt_node *node)
{
	return node->disks.hardware.over_cap + node->disks.sum.over_cap +
	       node->net.hardware.over_cap + node->net.sum.over_cap + node->clock.packages_over_cap;
}
