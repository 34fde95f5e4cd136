/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/node.h"

#include <string.h>

#include "common/base/ascii.h"
#include "common/base/buf.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	TEXT_BYTES = 256 << 10, /* /proc/stat of a large machine */
	CPU_FIELDS = 8, /* user to steal; guests are in user already */
	CPU_IDLE = 3,
	CPU_IOWAIT = 4,
	KIB = 1024,
};

static void add(struct nt_node *node, const char *name, double value)
{
	if (node->metrics < NT_NODE_METRICS)
		node->metric[node->metrics++] = (struct nt_metric_value){name, value};
}

/* Finds the line that starts with the name, and skips that; false: there is none. */
static bool find_line(const char *text, size_t len, const char *name, const char **line,
		      size_t *line_len)
{
	size_t name_len = strlen(name);

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t stop = end ? (size_t)(end - text) : len;

		if (stop - at > name_len && memcmp(text + at, name, name_len) == 0) {
			*line = text + at + name_len;
			*line_len = stop - at - name_len;
			return true;
		}
		at = stop + 1;
	}
	return false;
}

static bool cut_number(const char **line, size_t *len, uint64_t *value)
{
	const char *word;
	size_t word_len;

	return nt_ascii_cut_word(line, len, &word, &word_len) &&
	       nt_parse_u64(word, word_len, 0, UINT64_MAX, value) == 0;
}

static bool find_number(const char *text, size_t len, const char *name, uint64_t *value)
{
	const char *line;
	size_t line_len;

	return find_line(text, len, name, &line, &line_len) && cut_number(&line, &line_len, value);
}

void nt_node_take_stat(struct nt_node *node, const char *text, size_t len)
{
	uint64_t field[CPU_FIELDS] = {0}, total = 0, idle, value;
	const char *line;
	size_t line_len;

	if (find_line(text, len, "cpu ", &line, &line_len)) {
		for (int i = 0; i < CPU_FIELDS && cut_number(&line, &line_len, &field[i]); i++)
			total += field[i];
		idle = field[CPU_IDLE] + field[CPU_IOWAIT];
		if (node->total_ticks && total > node->total_ticks)
			add(node, "cpu_busy",
			    (double)(total - idle - node->busy_ticks) /
				    (double)(total - node->total_ticks));
		node->total_ticks = total;
		node->busy_ticks = total - idle;
	}
	if (find_number(text, len, "procs_running ", &value))
		add(node, "processes_running", (double)value);
	if (find_number(text, len, "procs_blocked ", &value))
		add(node, "processes_blocked", (double)value);
}

void nt_node_take_memory(struct nt_node *node, const char *text, size_t len)
{
	uint64_t total, free_kib;

	if (find_number(text, len, "MemTotal:", &total))
		add(node, "memory_total_bytes", (double)total * KIB);
	if (find_number(text, len, "MemAvailable:", &free_kib))
		add(node, "memory_available_bytes", (double)free_kib * KIB);
	if (find_number(text, len, "Dirty:", &total))
		add(node, "memory_dirty_bytes", (double)total * KIB);
	if (find_number(text, len, "SwapTotal:", &total) &&
	    find_number(text, len, "SwapFree:", &free_kib) && free_kib <= total)
		add(node, "swap_used_bytes", (double)(total - free_kib) * KIB);
}

void nt_node_take_load(struct nt_node *node, const char *text, size_t len)
{
	const char *word;
	size_t word_len;
	double load;

	if (nt_ascii_cut_word(&text, &len, &word, &word_len) &&
	    nt_parse_double(word, word_len, 0, 1e9, &load) == 0)
		add(node, "load_1m", load);
}

/* "some avg10=1.23 …": the part of the last ten seconds in which some, or all, waited. */
static void take_average(struct nt_node *node, const char *name, const char *prefix,
			 const char *text, size_t len)
{
	const char *line, *word;
	size_t line_len, word_len;
	double percent;

	if (find_line(text, len, prefix, &line, &line_len) &&
	    nt_ascii_cut_word(&line, &line_len, &word, &word_len) &&
	    nt_parse_double(word, word_len, 0, 100, &percent) == 0)
		add(node, name, percent / 100);
}

void nt_node_take_pressure(struct nt_node *node, const char *some_name, const char *full_name,
			   const char *text, size_t len)
{
	take_average(node, some_name, "some avg10=", text, len);
	take_average(node, full_name, "full avg10=", text, len);
}

void nt_node_add(struct nt_node *node, const struct nt_metric_value *metric, size_t metrics)
{
	for (size_t i = 0; i < metrics; i++)
		add(node, metric[i].name, metric[i].value);
}

void nt_node_take_nic(struct nt_node *node, const struct nt_nic *nic)
{
	if (!nic->ports && !nic->retransmits)
		return;
	add(node, "nic_retransmits", (double)nic->retransmits);
	add(node, "nic_errors", (double)nic->errors);
	add(node, "nic_congestion", (double)nic->congestion);
}

void nt_node_read(struct nt_node *node)
{
	static const struct {
		const char *path, *some, *full;
	} pressure[] = {
		{"/proc/pressure/cpu", "cpu_pressure_some", "cpu_pressure_full"},
		{"/proc/pressure/memory", "memory_pressure_some", "memory_pressure_full"},
		{"/proc/pressure/io", "io_pressure_some", "io_pressure_full"},
	};
	nt_autobuf struct nt_buf buf = {0};

	node->metrics = 0;
	if (nt_file_read("/proc/stat", TEXT_BYTES, &buf) == 0)
		nt_node_take_stat(node, (const char *)buf.data, buf.len);
	nt_buf_clear(&buf);
	if (nt_file_read("/proc/meminfo", TEXT_BYTES, &buf) == 0)
		nt_node_take_memory(node, (const char *)buf.data, buf.len);
	nt_buf_clear(&buf);
	if (nt_file_read("/proc/loadavg", TEXT_BYTES, &buf) == 0)
		nt_node_take_load(node, (const char *)buf.data, buf.len);
	for (size_t i = 0; i < sizeof(pressure) / sizeof(pressure[0]); i++) {
		nt_buf_clear(&buf);
		if (nt_file_read(pressure[i].path, TEXT_BYTES, &buf) == 0)
			nt_node_take_pressure(node, pressure[i].some, pressure[i].full,
					      (const char *)buf.data, buf.len);
	}
}
