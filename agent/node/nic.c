/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/nic.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/node/kernel_text.h"
#include "agent/node/port_walk.h"
#include "common/base/ascii.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	SNMP_BYTES = 64 << 10,
};

/* linux: drivers/infiniband/core/sysfs.c (counters), mlx5, bnxt_re, efa (hw_counters). */
static const struct {
	const char *name;
	enum nt_nic_class class;
} known[] = {
	{"hw_counters/packet_seq_err", NT_NIC_RETRANSMITS},
	{"hw_counters/local_ack_timeout_err", NT_NIC_RETRANSMITS},
	{"hw_counters/roce_adp_retrans", NT_NIC_RETRANSMITS},
	{"hw_counters/to_retransmits", NT_NIC_RETRANSMITS},
	{"hw_counters/retrans_pkts", NT_NIC_RETRANSMITS},
	{"counters/symbol_error", NT_NIC_ERRORS},
	{"counters/link_error_recovery", NT_NIC_ERRORS},
	{"counters/link_downed", NT_NIC_ERRORS},
	{"counters/port_rcv_errors", NT_NIC_ERRORS},
	{"counters/port_xmit_discards", NT_NIC_ERRORS},
	{"counters/local_link_integrity_errors", NT_NIC_ERRORS},
	{"counters/excessive_buffer_overrun_errors", NT_NIC_ERRORS},
	{"hw_counters/out_of_buffer", NT_NIC_ERRORS},
	{"hw_counters/np_ecn_marked_roce_packets", NT_NIC_CONGESTION},
	{"hw_counters/rp_cnp_handled", NT_NIC_CONGESTION},
};

static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

/* A counter that is there, and cannot be read now. */
static bool is_transient(int error)
{
	return error == -EBUSY || error == -EAGAIN || error == -EIO || error == -ETIMEDOUT ||
	       error == -EINTR || error == -ENOMEM;
}

/* False: a counter cannot be read now. Without it the sum would fall, and rise again. */
static bool read_classes(const char *sys, const char *device, const char *port,
			 uint64_t class[NT_COUNTER_SUM_VALUES])
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint64_t value = 0;
		const int r = nt_port_counter(sys, device, port, known[i].name, &value);

		if (is_transient(r))
			return false;
		if (r == 0)
			add(&class[known[i].class], value);
	}
	return true;
}

struct nic_reading {
	const char *sys;
	struct nt_nic *nic;
};

static void read_port(void *data, const char *device, const char *port)
{
	const struct nic_reading *reading = data;
	uint64_t class[NT_COUNTER_SUM_VALUES] = {0};
	struct nt_nic *nic = reading->nic;
	char name[PATH_MAX];
	int len;

	if (nic->ports == NT_NIC_PORTS) {
		nic->ports_over_cap++;
		return;
	}
	nic->ports++;
	len = snprintf(name, sizeof(name), "%s/%s", device, port);
	if (len > 0 && (size_t)len < sizeof(name) &&
	    read_classes(reading->sys, device, port, class))
		(void)nt_counter_sum_add(&nic->port, name, (size_t)len, class, NULL);
}

/* The next line that begins with "Tcp:", without that. */
static bool next_line(const char **text, size_t *len, const char **line, size_t *line_len)
{
	static const char prefix[] = "Tcp:";

	while (nt_kernel_text_cut_line(text, len, line, line_len)) {
		if (*line_len < sizeof(prefix) - 1 ||
		    memcmp(*line, prefix, sizeof(prefix) - 1) != 0)
			continue;
		*line += sizeof(prefix) - 1;
		*line_len -= sizeof(prefix) - 1;
		return true;
	}
	return false;
}

static bool is_name(const char *word, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(word, name, len) == 0;
}

/* A line of names, then one of their values. */
bool nt_nic_parse_snmp(const char *text, size_t len, struct nt_nic_tcp *ret_tcp)
{
	const char *names, *values, *name, *value;
	size_t names_len, values_len, name_len, value_len;
	bool has_retransmits = false, has_resets = false;
	struct nt_nic_tcp tcp = {0};

	if (!next_line(&text, &len, &names, &names_len) ||
	    !next_line(&text, &len, &values, &values_len))
		return false;
	while (nt_ascii_cut_word(&names, &names_len, &name, &name_len) &&
	       nt_ascii_cut_word(&values, &values_len, &value, &value_len)) {
		if (is_name(name, name_len, "RetransSegs"))
			has_retransmits = nt_parse_u64(value, value_len, 0, UINT64_MAX,
						       &tcp.retransmits) == 0;
		else if (is_name(name, name_len, "EstabResets"))
			has_resets =
				nt_parse_u64(value, value_len, 0, UINT64_MAX, &tcp.resets) == 0;
	}
	if (!has_retransmits || !has_resets)
		return false;
	*ret_tcp = tcp;
	return true;
}

void nt_nic_read(const char *sys, const char *snmp, struct nt_nic *nic)
{
	struct nic_reading reading = {.sys = sys, .nic = nic};
	nt_autobuf struct nt_buf buf = {0};

	nic->ports = nic->ports_over_cap = 0;
	nt_counter_sum_begin(&nic->port);
	nt_port_walk(sys, read_port, &reading);
	nt_counter_sum_end(&nic->port);
	nic->has_tcp = nt_file_read(snmp, SNMP_BYTES, &buf) == 0 &&
		       nt_nic_parse_snmp((const char *)buf.data, buf.len, &nic->tcp);
	nic->retransmits = nic->port.total[NT_NIC_RETRANSMITS];
	add(&nic->retransmits, nic->tcp.retransmits);
	nic->errors = nic->port.total[NT_NIC_ERRORS];
	nic->congestion = nic->port.total[NT_NIC_CONGESTION];
}
