/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bus on a Kafka cluster: kafka://HOST:PORT[,HOST:PORT…][/PREFIX]. Topics are created only by
 * `neutracer topics create`, never by use.
 *
 * The files of common/bus/kafka/ are named by what they hold. cause: translation of the library's
 * errors. credentials: files and their changes. client: configuration of handles. outbox:
 * unacknowledged records. partition: read positions. group: assignment. topics: required topics.
 */
#ifndef NT_COMMON_BUS_BUS_KAFKA_H
#define NT_COMMON_BUS_BUS_KAFKA_H

#include <stdint.h>

#include "common/bus/bus.h"

NT_MUST_CHECK int nt_kafka_open(const char *url, const struct nt_bus_options *options,
				struct nt_bus **ret_bus);
/* group: NULL for none. */
NT_MUST_CHECK int nt_kafka_reader_open(const char *url, uint32_t topics,
				       const struct nt_bus_options *options,
				       const struct nt_bus_group *group,
				       struct nt_bus_reader **ret_reader);

#endif
