/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bus as a Kafka cluster: kafka://HOST:PORT[,HOST:PORT…][/PREFIX]. Topics are made by
 * `neutracer topics create` alone, never by use.
 *
 * common/kafka/: url, cause (errors of the library as ours), health, secrets (files and their
 * changes), client (a handle and the thread that serves it), outbox (what is not acknowledged),
 * writer, reader, partition (where a reader is), group (whose partition it is), topics (what the
 * cluster should have).
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
