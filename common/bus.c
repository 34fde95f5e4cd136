/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus.h"

#include <errno.h>
#include <string.h>

#include "common/bus_impl.h"
#include "common/bus_spool.h"

static const char spool_scheme[] = "spool:";

const char *nt_topic_name(enum nt_topic topic)
{
	static const char *const names[NT_TOPIC_END] = {
		[NT_TOPIC_WINDOW] = "neutracer.window.v1",
		[NT_TOPIC_NODE] = "neutracer.node.v1",
		[NT_TOPIC_DETAIL] = "neutracer.detail.v1",
		[NT_TOPIC_INCIDENT] = "neutracer.incident.v1",
		[NT_TOPIC_STATE] = "neutracer.state.v1",
		[NT_TOPIC_CONTROL] = "neutracer.control.v1",
		[NT_TOPIC_DLQ] = "neutracer.dlq.v1",
	};

	return (unsigned int)topic < NT_TOPIC_END ? names[topic] : "";
}

bool nt_topic_is_compacted(enum nt_topic topic)
{
	return topic == NT_TOPIC_INCIDENT || topic == NT_TOPIC_STATE || topic == NT_TOPIC_CONTROL;
}

/* The rest of a url of this scheme, or NULL. */
static const char *match_scheme(const char *url, const char *scheme)
{
	size_t len = strlen(scheme);

	return strncmp(url, scheme, len) == 0 && url[len] ? url + len : NULL;
}

int nt_bus_open(const char *url, const struct nt_bus_options *options, struct nt_bus **ret_bus)
{
	static const struct nt_bus_options defaults = {0};
	const char *dir = match_scheme(url, spool_scheme);

	if (dir)
		return nt_spool_open(dir, options ? options : &defaults, ret_bus);
	return -EINVAL;
}

void nt_bus_close(struct nt_bus *bus)
{
	if (bus)
		bus->close(bus);
}

int nt_bus_publish(struct nt_bus *bus, const struct nt_bus_record *record)
{
	if ((unsigned int)record->topic >= NT_TOPIC_END)
		return -EINVAL;
	if (record->key_len > NT_BUS_MAX_KEY || record->value_len > NT_BUS_MAX_VALUE) {
		bus->stats.dropped_too_large++;
		return -EMSGSIZE;
	}
	return bus->publish(bus, record);
}

int nt_bus_flush(struct nt_bus *bus)
{
	return bus->flush(bus);
}

void nt_bus_stats(const struct nt_bus *bus, struct nt_bus_stats *ret_stats)
{
	*ret_stats = bus->stats;
}

int nt_bus_reader_open(const char *url, uint32_t topics, struct nt_bus_reader **ret_reader)
{
	const char *dir = match_scheme(url, spool_scheme);

	if (!topics || topics >= 1U << NT_TOPIC_END)
		return -EINVAL;
	if (dir)
		return nt_spool_reader_open(dir, topics, ret_reader);
	return -EINVAL;
}

void nt_bus_reader_close(struct nt_bus_reader *reader)
{
	if (reader)
		reader->close(reader);
}

int nt_bus_reader_seek(struct nt_bus_reader *reader, const struct nt_bus_position *position)
{
	if ((unsigned int)position->topic >= NT_TOPIC_END)
		return -EINVAL;
	return reader->seek(reader, position);
}

int nt_bus_reader_seek_time(struct nt_bus_reader *reader, uint64_t real_ns)
{
	return reader->seek_time(reader, real_ns);
}

int nt_bus_reader_seek_end(struct nt_bus_reader *reader)
{
	return reader->seek_end(reader);
}

int nt_bus_reader_next(struct nt_bus_reader *reader, int timeout_ms,
		       struct nt_bus_record *ret_record)
{
	return reader->next(reader, timeout_ms, ret_record);
}

int nt_bus_reader_fd(const struct nt_bus_reader *reader)
{
	return reader->fd(reader);
}

uint64_t nt_bus_reader_missed(const struct nt_bus_reader *reader)
{
	return reader->missed;
}

void nt_bus_reader_stats(const struct nt_bus_reader *reader, struct nt_bus_stats *ret_stats)
{
	*ret_stats = reader->stats;
}
