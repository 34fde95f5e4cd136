/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/port_rates.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/node/port_walk.h"
#include "common/base/ascii.h"
#include "common/base/parse_number.h"

enum {
	WORD_BYTES = 4, /* of the counters of data */
};

/*
 * linux: drivers/infiniband/core/sysfs.c (counters); mlx5, bnxt_re, rxe (hw_counters). Signs of loss:
 * out of sequence, retried, not acknowledged, receiver not ready. The last three are of congestion.
 */
static const struct {
	const char *file, *name;
	uint32_t unit;
} known[] = {
	{"counters/port_xmit_data", "xmit_bytes", WORD_BYTES},
	{"counters/port_rcv_data", "rcv_bytes", WORD_BYTES},
	{"counters/port_xmit_packets", "xmit_packets", 1},
	{"counters/port_rcv_packets", "rcv_packets", 1},
	{"counters/port_xmit_discards", "xmit_discards", 1},
	{"counters/port_rcv_errors", "rcv_errors", 1},
	{"counters/port_xmit_wait", "xmit_wait", 1},
	{"hw_counters/out_of_sequence", "out_of_sequence", 1},
	{"hw_counters/packet_seq_err", "packet_seq_err", 1},
	{"hw_counters/implied_nak_seq_err", "implied_nak_seq_err", 1},
	{"hw_counters/local_ack_timeout_err", "local_ack_timeout_err", 1},
	{"hw_counters/roce_adp_retrans", "roce_adp_retrans", 1},
	{"hw_counters/rnr_nak_retry_err", "rnr_nak_retry_err", 1},
	{"hw_counters/duplicate_request", "duplicate_request", 1},
	{"hw_counters/out_of_buffer", "out_of_buffer", 1},
	{"hw_counters/retry_rnr_exceeded_err", "retry_rnr_exceeded", 1},
	{"hw_counters/send_rnr_err", "send_rnr_err", 1},
	{"hw_counters/completer_retry_err", "completer_retry_err", 1},
	{"hw_counters/np_cnp_sent", "np_cnp_sent", 1},
	{"hw_counters/rp_cnp_handled", "rp_cnp_handled", 1},
	{"hw_counters/np_ecn_marked_roce_packets", "np_ecn_marked", 1},
};

enum {
	SENT, /* rows of the table, and values of the sum */
	RECEIVED,
	KNOWN = sizeof(known) / sizeof(known[0]),
};

_Static_assert((int)KNOWN <= (int)NT_PORT_RATES_COUNTERS, "each has a place");

static void read_port_counters(const char *sys, const char *device, const char *port,
			       struct nt_port_counters *now)
{
	uint64_t number = 0;

	*now = (struct nt_port_counters){0};
	nt_ascii_copy_text(now->device, sizeof(now->device), device);
	if (nt_parse_u64(port, strlen(port), 0, UINT32_MAX, &number) == 0)
		now->port = (uint32_t)number;
	for (size_t i = 0; i < KNOWN; i++)
		if (nt_port_counter(sys, device, port, known[i].file, &now->value[i]) == 0)
			now->has |= 1U << i;
}

/* A counter that went back was reset, or has wrapped at 32 bits: no rate this time. */
static void add_rates(const struct nt_port_counters *now, const struct nt_port_counters *before,
		      double seconds, struct nt_port_rates *rates)
{
	struct nt_metric_value *rate = rates->rate[rates->ports];
	struct nt_rdma_port *port = &rates->port[rates->ports];

	memcpy(rates->device[rates->ports], now->device, sizeof(now->device));
	*port = (struct nt_rdma_port){
		.device = rates->device[rates->ports], .port = now->port, .rate = rate};
	rates->ports++;
	for (size_t i = 0; i < KNOWN; i++) {
		if (!(now->has & before->has & 1U << i) || now->value[i] < before->value[i])
			continue;
		rate[port->rates++] = (struct nt_metric_value){
			known[i].name,
			(double)(now->value[i] - before->value[i]) * known[i].unit / seconds};
	}
}

static void compare(const struct nt_port_counters *now, size_t ports, double seconds,
		    struct nt_port_rates *rates)
{
	for (size_t i = 0; i < ports; i++)
		for (size_t j = 0; j < rates->befores; j++)
			if (now[i].port == rates->before[j].port &&
			    strcmp(now[i].device, rates->before[j].device) == 0)
				add_rates(&now[i], &rates->before[j], seconds, rates);
}

static bool is_nak(size_t counter)
{
	static const char *const nak[] = {
		"out_of_sequence",
		"implied_nak_seq_err",
		"rnr_nak_retry_err",
		"duplicate_request",
	};

	for (size_t i = 0; i < sizeof(nak) / sizeof(nak[0]); i++)
		if (strcmp(known[counter].name, nak[i]) == 0)
			return true;
	return false;
}

static void add_port(const struct nt_port_counters *now, struct nt_port_rates *rates)
{
	const uint32_t bytes = 1U << SENT | 1U << RECEIVED;
	uint64_t value[NT_COUNTER_SUM_VALUES] = {0};
	char name[NT_PORT_RATES_NAME + 2 * NT_PARSE_TEXT];
	int len;

	if ((now->has & bytes) == bytes) {
		value[NT_PORT_SENT_BYTES] = now->value[SENT] * WORD_BYTES;
		value[NT_PORT_RECEIVED_BYTES] = now->value[RECEIVED] * WORD_BYTES;
		rates->has_bytes = true;
	}
	for (size_t i = 0; i < KNOWN; i++) {
		if (!(now->has >> i & 1) || !is_nak(i))
			continue;
		value[NT_PORT_NAKS] += now->value[i];
		rates->has_naks = true;
	}
	/* Other counters than before: another port, as the sums cannot be compared. */
	len = snprintf(name, sizeof(name), "%x/%u/%s", now->has, now->port, now->device);
	if (now->has && len > 0)
		(void)nt_counter_sum_add(&rates->sum, name, (size_t)len, value, NULL);
}

static void add_ports(const struct nt_port_counters *now, size_t ports, struct nt_port_rates *rates)
{
	rates->has_bytes = rates->has_naks = false;
	nt_counter_sum_begin(&rates->sum);
	for (size_t i = 0; i < ports; i++)
		add_port(&now[i], rates);
	nt_counter_sum_end(&rates->sum);
}

struct rates_reading {
	const char *sys;
	struct nt_port_counters now[NT_PORT_RATES_PORTS];
	size_t ports;
	uint64_t over_cap;
};

static void read_port(void *data, const char *device, const char *port)
{
	struct rates_reading *reading = data;

	if (reading->ports == NT_PORT_RATES_PORTS)
		reading->over_cap++;
	else
		read_port_counters(reading->sys, device, port, &reading->now[reading->ports++]);
}

void nt_port_rates_read(const char *sys, uint64_t now_ns, struct nt_port_rates *rates)
{
	struct rates_reading reading = {.sys = sys};
	const struct nt_port_counters *now = reading.now;
	size_t ports;

	nt_port_walk(sys, read_port, &reading);
	ports = reading.ports;
	rates->ports_over_cap += reading.over_cap;
	add_ports(now, ports, rates);
	rates->ports = 0;
	if (rates->before_ns && now_ns > rates->before_ns)
		compare(now, ports, (double)(now_ns - rates->before_ns) / 1e9, rates);
	memcpy(rates->before, now, ports * sizeof(now[0]));
	rates->befores = ports;
	rates->before_ns = now_ns;
}
