/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The time of a record on Kafka. Kafka's own timestamp has milliseconds and is used for seeking by
 * time. If that loses digits, the header "time-ns" has the nanoseconds (eight bytes, big-endian).
 */
#ifndef NT_COMMON_BUS_KAFKA_RECORD_H
#define NT_COMMON_BUS_KAFKA_RECORD_H

#include <librdkafka/rdkafka.h>

#include "common/bus/bus.h"

enum {
	NT_KAFKA_TIME_BYTES = 8,
};

#define NT_KAFKA_TIME_HEADER "time-ns"

/* False if Kafka's own timestamp is exact. */
bool nt_kafka_time_encode(uint64_t real_ns, uint8_t bytes[NT_KAFKA_TIME_BYTES]);
/* Never 0, which the library takes for "now". */
int64_t nt_kafka_time_ms(uint64_t real_ns);
/* Of a received message: from the header, or else from Kafka's timestamp. */
uint64_t nt_kafka_time_of(const rd_kafka_message_t *message);

#endif
