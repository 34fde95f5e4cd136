/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/partition.h"

#include <errno.h>
#include <stdlib.h>

int nt_kafka_partitions_grow(struct nt_kafka_partitions *partitions, enum nt_topic topic,
			     uint32_t count, bool is_owned, uint64_t from_real_ns)
{
	struct nt_kafka_partition *grown;

	if (count <= partitions->count)
		return 0;
	if (count > NT_KAFKA_MAX_PARTITIONS)
		return -EINVAL;
	grown = reallocarray(partitions->partition, count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (uint32_t i = partitions->count; i < count; i++)
		grown[i] = (struct nt_kafka_partition){
			.topic = topic,
			.id = i,
			.is_owned = is_owned,
			.start = from_real_ns ? NT_KAFKA_FROM_TIME : NT_KAFKA_FROM_OLDEST,
			.from_real_ns = from_real_ns,
		};
	partitions->partition = grown;
	partitions->count = count;
	return 0;
}

void nt_kafka_partitions_release(struct nt_kafka_partitions *partitions)
{
	free(partitions->partition);
	*partitions = (struct nt_kafka_partitions){0};
}
