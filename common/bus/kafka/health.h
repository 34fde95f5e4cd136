/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Health of a client: its last reported state. Its functions may be called by any thread. */
#ifndef NT_COMMON_BUS_KAFKA_HEALTH_H
#define NT_COMMON_BUS_KAFKA_HEALTH_H

#include <pthread.h>
#include <stdbool.h>

#include "common/bus/bus.h"

struct nt_kafka_health {
	pthread_mutex_t lock;
	struct nt_bus_health now;
	struct nt_bus_health hint; /* last error of one broker: the cause, once none is reachable */
	bool is_alone; /* no broker is reachable */
	bool has_spoken; /* a broker has ever answered: the protocol matches */
	uint64_t errors[NT_BUS_CAUSE_END];
	uint64_t waits_mono_ns; /* since when an assignment of the group is due; 0: none is */
};

void nt_kafka_health_init(struct nt_kafka_health *health);
void nt_kafka_health_release(struct nt_kafka_health *health);

/* An operation succeeded. */
void nt_kafka_health_succeed(struct nt_kafka_health *health);
/* The text is made printable: parts of it come from brokers. */
void nt_kafka_health_fail(struct nt_kafka_health *health, enum nt_bus_cause cause, const char *fmt,
			  ...) __attribute__((format(printf, 3, 4)));
/* One broker failed: counted, and reported if it is or becomes the last one. */
void nt_kafka_health_hint(struct nt_kafka_health *health, enum nt_bus_cause cause, const char *fmt,
			  ...) __attribute__((format(printf, 3, 4)));
/*
 * No broker is reachable. The library does not report a closed connection: assumed without a hint.
 */
void nt_kafka_health_alone(struct nt_kafka_health *health, const char *servers);

/*
 * A member without an assignment does no work, even with healthy brokers. An assignment also clears
 * NT_BUS_FENCED.
 */
void nt_kafka_health_wait(struct nt_kafka_health *health);
void nt_kafka_health_share(struct nt_kafka_health *health);

/* How long an assignment has been due without an error; 0: none is due, or there is an error. */
uint64_t nt_kafka_health_waits_ns(struct nt_kafka_health *health);

/* In place: text of brokers must not contain terminal control sequences. */
void nt_kafka_make_printable(char *text);

void nt_kafka_health_get(struct nt_kafka_health *health, struct nt_bus_health *ret_health);
void nt_kafka_health_add_errors(struct nt_kafka_health *health, uint64_t errors[NT_BUS_CAUSE_END]);

#endif
