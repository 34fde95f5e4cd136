/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/record.h"

#include "common/system/clock.h"

int64_t nt_kafka_time_ms(uint64_t real_ns)
{
	int64_t ms = (int64_t)(real_ns / NT_MILLISECOND);

	return ms > 0 ? ms : 1;
}

bool nt_kafka_time_encode(uint64_t real_ns, uint8_t bytes[NT_KAFKA_TIME_BYTES])
{
	for (int i = 0; i < NT_KAFKA_TIME_BYTES; i++)
		bytes[i] = (uint8_t)(real_ns >> (8 * (NT_KAFKA_TIME_BYTES - 1 - i)));
	return (uint64_t)nt_kafka_time_ms(real_ns) * NT_MILLISECOND != real_ns;
}

uint64_t nt_kafka_time_of(const rd_kafka_message_t *message)
{
	rd_kafka_headers_t *headers;
	rd_kafka_timestamp_type_t type;
	const uint8_t *bytes;
	const void *value;
	uint64_t real_ns = 0;
	size_t size;
	int64_t ms;

	if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
	    rd_kafka_header_get_last(headers, NT_KAFKA_TIME_HEADER, &value, &size) ==
		    RD_KAFKA_RESP_ERR_NO_ERROR &&
	    size == NT_KAFKA_TIME_BYTES && value) {
		bytes = value;
		for (int i = 0; i < NT_KAFKA_TIME_BYTES; i++)
			real_ns = real_ns << 8 | bytes[i];
		return real_ns;
	}
	ms = rd_kafka_message_timestamp(message, &type);
	if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || ms < 0 ||
	    (uint64_t)ms > UINT64_MAX / NT_MILLISECOND)
		return 0;
	return (uint64_t)ms * NT_MILLISECOND;
}
