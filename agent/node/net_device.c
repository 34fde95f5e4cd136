/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/net_device.h"

#include <string.h>

#include "agent/node/kernel_text.h"

/* linux: net/core/net-procfs.c dev_seq_printf_stats(): the numbers behind "NAME:". */
enum {
	RECEIVED_BYTES,
	RECEIVED_PACKETS,
	RECEIVE_ERRORS,
	RECEIVE_DROPS,
	SENT_BYTES = 8,
	SENT_PACKETS,
	SEND_ERRORS,
	SEND_DROPS,
	FIELDS = 16,
};

/* False: a line of the head, or malformed. */
static bool cut_device(const char *line, size_t len, const char **ret_name, size_t *ret_name_len,
		       uint64_t field[FIELDS])
{
	const char *colon;
	size_t fields = 0;

	while (len && *line == ' ') {
		line++;
		len--;
	}
	colon = memchr(line, ':', len);
	if (!colon || colon == line)
		return false;
	*ret_name = line;
	*ret_name_len = (size_t)(colon - line);
	len -= *ret_name_len + 1;
	line = colon + 1;
	while (fields < FIELDS && nt_kernel_text_cut_number(&line, &len, &field[fields]))
		fields++;
	return fields == FIELDS;
}

static bool is_counted(const struct nt_hardware *hardware, const char *name, size_t len)
{
	if (hardware->names)
		return nt_hardware_has(hardware, name, len);
	return len != 2 || memcmp(name, "lo", 2) != 0;
}

void nt_net_devices_take(struct nt_net_devices *devices, const char *text, size_t len)
{
	const char *line, *name;
	size_t line_len, name_len;

	nt_counter_sum_begin(&devices->sum);
	while (nt_kernel_text_cut_line(&text, &len, &line, &line_len)) {
		uint64_t field[FIELDS];

		if (!cut_device(line, line_len, &name, &name_len, field) ||
		    !is_counted(&devices->hardware, name, name_len))
			continue;
		(void)nt_counter_sum_add(
			&devices->sum, name, name_len,
			(const uint64_t[NT_COUNTER_SUM_VALUES]){
				[NT_NET_RECEIVED_BYTES] = field[RECEIVED_BYTES],
				[NT_NET_SENT_BYTES] = field[SENT_BYTES],
				[NT_NET_PACKETS] = field[RECEIVED_PACKETS] + field[SENT_PACKETS],
				[NT_NET_ERRORS] = field[RECEIVE_ERRORS] + field[SEND_ERRORS],
				[NT_NET_DROPS] = field[RECEIVE_DROPS] + field[SEND_DROPS],
			},
			NULL);
	}
	nt_counter_sum_end(&devices->sum);
}
