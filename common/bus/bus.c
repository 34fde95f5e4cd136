/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/bus.h"

#include <errno.h>

#include "common/bus/bus_impl.h"

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

const char *nt_bus_cause_name(enum nt_bus_cause cause)
{
	static const char *const names[NT_BUS_CAUSE_END] = {
		[NT_BUS_WELL] = "well",
		[NT_BUS_CONNECTING] = "connecting",
		[NT_BUS_UNREACHABLE] = "unreachable",
		[NT_BUS_REFUSED] = "refused",
		[NT_BUS_CERTIFICATE] = "certificate",
		[NT_BUS_DENIED] = "denied",
		[NT_BUS_NO_TOPIC] = "no-topic",
		[NT_BUS_TOO_LARGE] = "too-large",
		[NT_BUS_TIMED_OUT] = "timed-out",
		[NT_BUS_FENCED] = "fenced",
		[NT_BUS_FAILED] = "failed",
	};

	return (unsigned int)cause < NT_BUS_CAUSE_END ? names[cause] : "";
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
	if (bus->get_stats)
		bus->get_stats(bus, ret_stats);
}

void nt_bus_health(const struct nt_bus *bus, struct nt_bus_health *ret_health)
{
	*ret_health = (struct nt_bus_health){.cause = NT_BUS_WELL};
	if (bus->get_health)
		bus->get_health(bus, ret_health);
}

/* Without a group protocol this reader owns everything. */
static void own_all(struct nt_bus_reader *reader, bool is_assigned)
{
	const struct nt_bus_group *group = &reader->group;

	if (!reader->is_joined || reader->is_assigned == is_assigned)
		return;
	reader->is_assigned = is_assigned;
	for (int i = 0; i < NT_TOPIC_END; i++) {
		struct nt_bus_position position = {
			.topic = (enum nt_topic)i,
			.partition = NT_BUS_EVERY_PARTITION,
			.offset = NT_BUS_OLDEST,
		};

		if (!(group->grouped >> i & 1))
			continue;
		if (is_assigned && group->assigned)
			group->assigned(group->data, &position);
		if (!is_assigned && group->revoked)
			group->revoked(group->data, &position, false);
	}
}

void nt_bus_reader_close(struct nt_bus_reader *reader)
{
	if (!reader)
		return;
	own_all(reader, false);
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
	own_all(reader, true);
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
	if (reader->get_stats)
		reader->get_stats(reader, ret_stats);
}

void nt_bus_reader_health(const struct nt_bus_reader *reader, struct nt_bus_health *ret_health)
{
	*ret_health = (struct nt_bus_health){.cause = NT_BUS_WELL};
	if (reader->get_health)
		reader->get_health(reader, ret_health);
}

size_t nt_bus_reader_damage(const struct nt_bus_reader *reader, struct nt_bus_damage *ret_damage,
			    size_t most)
{
	return reader->damage ? reader->damage(reader, ret_damage, most) : 0;
}

static int set_paused(struct nt_bus_reader *reader, uint32_t topics, bool is_paused)
{
	if (topics >= 1U << NT_TOPIC_END)
		return -EINVAL;
	reader->paused = is_paused ? reader->paused | topics : reader->paused & ~topics;
	return reader->pause ? reader->pause(reader) : 0;
}

int nt_bus_reader_pause(struct nt_bus_reader *reader, uint32_t topics)
{
	return set_paused(reader, topics, true);
}

int nt_bus_reader_resume(struct nt_bus_reader *reader, uint32_t topics)
{
	return set_paused(reader, topics, false);
}

int nt_bus_reader_lag(struct nt_bus_reader *reader, uint32_t topics, uint64_t now_real_ns,
		      struct nt_bus_lag *ret_lag)
{
	return reader->lag ? reader->lag(reader, topics, now_real_ns, ret_lag) : -EOPNOTSUPP;
}

int nt_bus_reader_commit(struct nt_bus_reader *reader, const struct nt_bus_position *positions,
			 size_t count)
{
	return reader->commit ? reader->commit(reader, positions, count) : 0;
}
