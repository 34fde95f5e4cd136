/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/nic.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/ascii.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	COUNTER_BYTES = 64, /* one number and a line feed */
	SNMP_BYTES = 64 << 10,
};

static void close_dirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

#define auto_closedir __attribute__((cleanup(close_dirp)))

/* linux: drivers/infiniband/core/sysfs.c (counters), mlx5, bnxt_re, efa (hw_counters). */
static const struct {
	const char *name;
	enum { RETRANSMITS, ERRORS, CONGESTION, CLASSES } class;
} known[] = {
	{"hw_counters/packet_seq_err", RETRANSMITS},
	{"hw_counters/local_ack_timeout_err", RETRANSMITS},
	{"hw_counters/roce_adp_retrans", RETRANSMITS},
	{"hw_counters/to_retransmits", RETRANSMITS},
	{"hw_counters/retrans_pkts", RETRANSMITS},
	{"counters/symbol_error", ERRORS},
	{"counters/link_error_recovery", ERRORS},
	{"counters/link_downed", ERRORS},
	{"counters/port_rcv_errors", ERRORS},
	{"counters/port_xmit_discards", ERRORS},
	{"counters/local_link_integrity_errors", ERRORS},
	{"counters/excessive_buffer_overrun_errors", ERRORS},
	{"hw_counters/out_of_buffer", ERRORS},
	{"hw_counters/np_ecn_marked_roce_packets", CONGESTION},
	{"hw_counters/rp_cnp_handled", CONGESTION},
};

static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

static void read_port(const char *sys, const char *device, const char *port, struct nt_nic *nic)
{
	uint64_t *const sum[CLASSES] = {&nic->retransmits, &nic->errors, &nic->congestion};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		nt_autobuf struct nt_buf buf = {0};
		const char *text;
		uint64_t value;
		int len = snprintf(path, sizeof(path), "%s/%s/ports/%s/%s", sys, device, port,
				   known[i].name);

		if (len < 0 || (size_t)len >= sizeof(path) ||
		    nt_file_read(path, COUNTER_BYTES, &buf) < 0)
			continue;
		text = (const char *)buf.data;
		while (buf.len && text[buf.len - 1] == '\n')
			buf.len--;
		if (buf.len && nt_parse_u64(text, buf.len, 0, UINT64_MAX, &value) == 0)
			add(sum[known[i].class], value);
	}
}

static void read_device(const char *sys, const char *device, struct nt_nic *nic)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *entry;
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s/ports", sys, device);

	if (len < 0 || (size_t)len >= sizeof(path))
		return;
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (nic->ports == NT_NIC_PORTS) {
			nic->ports_over_cap++;
			continue;
		}
		nic->ports++;
		read_port(sys, device, entry->d_name, nic);
	}
}

/* The next line that begins with "Tcp:", without that. */
static bool next_line(const char **text, size_t *len, const char **line, size_t *line_len)
{
	while (*len) {
		const char *end = memchr(*text, '\n', *len);
		size_t size = end ? (size_t)(end - *text) : *len;

		*line = *text;
		*line_len = size;
		*text += size + (end != NULL);
		*len -= size + (end != NULL);
		if (size >= 4 && memcmp(*line, "Tcp:", 4) == 0) {
			*line += 4;
			*line_len -= 4;
			return true;
		}
	}
	return false;
}

/* A line of names, then one of their values. */
uint64_t nt_nic_parse_snmp(const char *text, size_t len)
{
	static const char wanted[] = "RetransSegs";
	const char *names, *values, *name, *value;
	size_t names_len, values_len, name_len, value_len;
	uint64_t number;

	if (!next_line(&text, &len, &names, &names_len) ||
	    !next_line(&text, &len, &values, &values_len))
		return 0;
	while (nt_ascii_cut_word(&names, &names_len, &name, &name_len) &&
	       nt_ascii_cut_word(&values, &values_len, &value, &value_len)) {
		if (name_len == sizeof(wanted) - 1 && memcmp(name, wanted, name_len) == 0)
			return nt_parse_u64(value, value_len, 0, UINT64_MAX, &number) == 0 ? number
											   : 0;
	}
	return 0;
}

void nt_nic_read(const char *sys, const char *snmp, struct nt_nic *ret_nic)
{
	auto_closedir DIR *dir = opendir(sys);
	nt_autobuf struct nt_buf buf = {0};
	struct nt_nic nic = {0};
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			read_device(sys, entry->d_name, &nic);
	}
	if (nt_file_read(snmp, SNMP_BYTES, &buf) == 0)
		add(&nic.retransmits, nt_nic_parse_snmp((const char *)buf.data, buf.len));
	*ret_nic = nic;
}
