/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a client is: what it said last about its brokers. Its functions may be called by any thread. */
#ifndef NT_COMMON_BUS_KAFKA_HEALTH_H
#define NT_COMMON_BUS_KAFKA_HEALTH_H

#include <pthread.h>
#include <stdbool.h>

#include "common/bus/bus.h"

struct nt_kafka_health {
	pthread_mutex_t lock;
	struct nt_bus_health now;
	struct nt_bus_health hint; /* of one broker: the reason, once none is left */
	bool is_alone; /* none is left */
	bool has_spoken; /* a broker, ever: they understand us */
	uint64_t errors[NT_BUS_CAUSE_END];
	uint64_t waits_mono_ns; /* since when a group owes us a share; 0: none does */
};

void nt_kafka_health_init(struct nt_kafka_health *health);
void nt_kafka_health_release(struct nt_kafka_health *health);

/* Something worked. */
void nt_kafka_health_succeed(struct nt_kafka_health *health);
/* The text is made printable: parts of it come from brokers. */
void nt_kafka_health_fail(struct nt_kafka_health *health, enum nt_bus_cause cause, const char *fmt,
			  ...) __attribute__((format(printf, 3, 4)));
/* One broker failed so: counted, and told where it is the last one or turns out to be. */
void nt_kafka_health_hint(struct nt_kafka_health *health, enum nt_bus_cause cause, const char *fmt,
			  ...) __attribute__((format(printf, 3, 4)));
/* No broker is left. The library keeps to itself that one hung up: without a hint it was that. */
void nt_kafka_health_alone(struct nt_kafka_health *health, const char *servers);

/*
 * A member without a share does no work, however well its brokers are. With it the member may be
 * fenced off no longer.
 */
void nt_kafka_health_wait(struct nt_kafka_health *health);
void nt_kafka_health_share(struct nt_kafka_health *health);

/* How long a share has been owed although nothing is wrong; 0: none is, or something is. */
uint64_t nt_kafka_health_waits_ns(struct nt_kafka_health *health);

/* In place: what brokers say must not command a terminal. */
void nt_kafka_make_printable(char *text);

void nt_kafka_health_get(struct nt_kafka_health *health, struct nt_bus_health *ret_health);
void nt_kafka_health_add_errors(struct nt_kafka_health *health, uint64_t errors[NT_BUS_CAUSE_END]);

#endif
