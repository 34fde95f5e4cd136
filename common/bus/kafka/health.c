/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/health.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/system/clock.h"

void nt_kafka_health_init(struct nt_kafka_health *health)
{
	memset(health, 0, sizeof(*health));
	(void)pthread_mutex_init(&health->lock, NULL);
	health->now.cause = NT_BUS_CONNECTING;
	health->now.since_mono_ns = nt_clock_mono_ns();
	(void)snprintf(health->now.text, sizeof(health->now.text), "connecting");
}

void nt_kafka_health_release(struct nt_kafka_health *health)
{
	(void)pthread_mutex_destroy(&health->lock);
}

void nt_kafka_make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = ' ';
}

/* With the lock held. An unchanged cause keeps its start time. */
static void set(struct nt_bus_health *now, enum nt_bus_cause cause)
{
	if (now->cause == cause)
		return;
	now->cause = cause;
	now->since_mono_ns = nt_clock_mono_ns();
}

__attribute__((format(printf, 2, 0))) static void set_text(struct nt_bus_health *now,
							   const char *fmt, va_list args)
{
	(void)vsnprintf(now->text, sizeof(now->text), fmt, args);
	nt_kafka_make_printable(now->text);
}

void nt_kafka_health_succeed(struct nt_kafka_health *health)
{
	(void)pthread_mutex_lock(&health->lock);
	/* A fenced member stays fenced, even with healthy brokers. */
	if (health->now.cause != NT_BUS_FENCED) {
		set(&health->now, NT_BUS_WELL);
		health->now.text[0] = '\0';
	}
	health->hint.cause = NT_BUS_WELL;
	health->is_alone = false;
	health->has_spoken = true;
	(void)pthread_mutex_unlock(&health->lock);
}

void nt_kafka_health_fail(struct nt_kafka_health *health, enum nt_bus_cause cause, const char *fmt,
			  ...)
{
	va_list args;

	va_start(args, fmt);
	(void)pthread_mutex_lock(&health->lock);
	health->errors[cause]++;
	health->is_alone = false;
	/* The brokers do answer: earlier causes are obsolete. They then close the connection. */
	if (cause == NT_BUS_REFUSED || cause == NT_BUS_CERTIFICATE)
		health->hint.cause = NT_BUS_WELL;
	set(&health->now, cause);
	set_text(&health->now, fmt, args);
	(void)pthread_mutex_unlock(&health->lock);
	va_end(args);
}

/* With the lock held. */
static void set_from_hint(struct nt_kafka_health *health)
{
	set(&health->now, health->hint.cause);
	memcpy(health->now.text, health->hint.text, sizeof(health->now.text));
}

void nt_kafka_health_hint(struct nt_kafka_health *health, enum nt_bus_cause cause, const char *fmt,
			  ...)
{
	va_list args;

	va_start(args, fmt);
	(void)pthread_mutex_lock(&health->lock);
	health->errors[cause]++;
	set(&health->hint, cause);
	set_text(&health->hint, fmt, args);
	/* An observed cause replaces an assumed or an earlier one. */
	if (health->is_alone && cause == NT_BUS_UNREACHABLE)
		set_from_hint(health);
	(void)pthread_mutex_unlock(&health->lock);
	va_end(args);
}

void nt_kafka_health_alone(struct nt_kafka_health *health, const char *servers)
{
	(void)pthread_mutex_lock(&health->lock);
	if (health->hint.cause != NT_BUS_WELL) {
		health->is_alone = true;
		set_from_hint(health);
	} else if (health->now.cause != NT_BUS_REFUSED && health->now.cause != NT_BUS_CERTIFICATE) {
		health->is_alone = true;
		health->errors[NT_BUS_UNREACHABLE]++;
		set(&health->now, NT_BUS_UNREACHABLE);
		(void)snprintf(health->now.text, sizeof(health->now.text),
			       health->has_spoken
				       ? "no broker at %.120s is left: the connection was closed"
				       : "no broker at %.120s responds: do they expect TLS or a "
					 "password (bus-ca-file, bus-user), or neither?",
			       servers);
	}
	(void)pthread_mutex_unlock(&health->lock);
}

void nt_kafka_health_wait(struct nt_kafka_health *health)
{
	(void)pthread_mutex_lock(&health->lock);
	if (!health->waits_mono_ns)
		health->waits_mono_ns = nt_clock_mono_ns();
	(void)pthread_mutex_unlock(&health->lock);
}

void nt_kafka_health_share(struct nt_kafka_health *health)
{
	(void)pthread_mutex_lock(&health->lock);
	health->waits_mono_ns = 0;
	if (health->now.cause == NT_BUS_FENCED)
		set(&health->now, NT_BUS_CONNECTING);
	(void)pthread_mutex_unlock(&health->lock);
	nt_kafka_health_succeed(health);
}

uint64_t nt_kafka_health_waits_ns(struct nt_kafka_health *health)
{
	uint64_t waits_ns = 0, since_ns;

	(void)pthread_mutex_lock(&health->lock);
	if (health->now.cause == NT_BUS_WELL && health->waits_mono_ns) {
		since_ns = health->waits_mono_ns > health->now.since_mono_ns
				   ? health->waits_mono_ns
				   : health->now.since_mono_ns;
		waits_ns = nt_clock_mono_ns() - since_ns;
	}
	(void)pthread_mutex_unlock(&health->lock);
	return waits_ns;
}

void nt_kafka_health_get(struct nt_kafka_health *health, struct nt_bus_health *ret_health)
{
	(void)pthread_mutex_lock(&health->lock);
	*ret_health = health->now;
	if (health->now.cause == NT_BUS_WELL && health->waits_mono_ns) {
		ret_health->cause = NT_BUS_CONNECTING;
		ret_health->since_mono_ns = health->waits_mono_ns;
		(void)snprintf(ret_health->text, sizeof(ret_health->text),
			       "waiting for a share of the work from the group");
	}
	(void)pthread_mutex_unlock(&health->lock);
}

void nt_kafka_health_add_errors(struct nt_kafka_health *health, uint64_t errors[NT_BUS_CAUSE_END])
{
	(void)pthread_mutex_lock(&health->lock);
	for (int i = 0; i < NT_BUS_CAUSE_END; i++)
		errors[i] += health->errors[i];
	(void)pthread_mutex_unlock(&health->lock);
}
