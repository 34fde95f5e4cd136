/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/event_ring.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"

enum {
	MAX_EVENTS = 1024,
	MAX_BYTES = 2 << 20,
	BOOT_DIGITS = 16,
};

/* The topics follow the text in the same block, each with its NUL; an empty one ends them. */
struct ring_slot {
	char *text; /* "id: …\nevent: …\ndata: …\n\n" */
	size_t text_len, bytes;
};

struct nt_event_ring {
	pthread_mutex_t lock; /* protects everything below but boot and the caps */
	uint64_t boot;
	size_t max_events, max_bytes;
	uint64_t first, last; /* numbers; first > last: empty */
	struct nt_event_ring_stats stats;
	struct ring_slot slot[]; /* of event n: n % max_events */
};

static uint64_t make_boot(void)
{
	uint64_t boot;

	if (getrandom(&boot, sizeof(boot), 0) != sizeof(boot))
		boot = nt_hash_mix(nt_clock_real_ns() ^ nt_clock_mono_ns());
	return boot;
}

int nt_event_ring_new(const struct nt_event_ring_options *options, struct nt_event_ring **ret_ring)
{
	const size_t events = options && options->max_events ? options->max_events : MAX_EVENTS;
	struct nt_event_ring *ring = calloc(1, sizeof(*ring) + events * sizeof(ring->slot[0]));

	if (!ring)
		return -ENOMEM;
	pthread_mutex_init(&ring->lock, NULL);
	ring->boot = make_boot();
	ring->max_events = events;
	ring->max_bytes = options && options->max_bytes ? options->max_bytes : MAX_BYTES;
	ring->first = 1;
	*ret_ring = ring;
	return 0;
}

void nt_event_ring_free(struct nt_event_ring *ring)
{
	if (!ring)
		return;
	for (size_t i = 0; i < ring->max_events; i++)
		free(ring->slot[i].text);
	pthread_mutex_destroy(&ring->lock);
	free(ring);
}

void nt_event_ring_id(const struct nt_event_ring *ring, uint64_t number,
		      char ret_id[NT_EVENT_ID_BYTES])
{
	(void)snprintf(ret_id, NT_EVENT_ID_BYTES, "%016" PRIx64 "-%" PRIu64, ring->boot, number);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int check_event(const struct nt_event *event)
{
	if (strpbrk(event->kind, "\r\n") || strpbrk(event->data, "\r\n"))
		return -EINVAL;
	if (strlen(event->data) > NT_EVENT_DATA_BYTES)
		return -EMSGSIZE;
	for (size_t i = 0; i < NT_EVENT_TOPICS; i++)
		if (event->topic[i] && strlen(event->topic[i]) >= NT_EVENT_TOPIC_BYTES)
			return -EMSGSIZE;
	return 0;
}

static int format_event(const struct nt_event_ring *ring, const struct nt_event *event,
			uint64_t number, struct ring_slot *ret_slot)
{
	nt_autobuf struct nt_buf text = {0};
	char id[NT_EVENT_ID_BYTES];
	size_t text_len;
	int r;

	nt_event_ring_id(ring, number, id);
	r = nt_buf_printf(&text, "id: %s\nevent: %s\ndata: %s\n\n", id, event->kind, event->data);
	text_len = text.len;
	for (size_t i = 0; r == 0 && i < NT_EVENT_TOPICS; i++)
		if (event->topic[i] && *event->topic[i])
			r = nt_buf_append(&text, event->topic[i], strlen(event->topic[i]) + 1);
	if (r == 0)
		r = nt_buf_append(&text, "", 1);
	if (r < 0)
		return r;
	*ret_slot = (struct ring_slot){(char *)text.data, text_len, text.len};
	text = (struct nt_buf){0};
	return 0;
}

static void remove_first(struct nt_event_ring *ring)
{
	struct ring_slot *slot = &ring->slot[ring->first % ring->max_events];

	ring->stats.bytes -= slot->bytes;
	ring->stats.events--;
	ring->stats.evicted++;
	ring->first++;
	free(slot->text);
	*slot = (struct ring_slot){0};
}

int nt_event_ring_post(struct nt_event_ring *ring, const struct nt_event *event)
{
	struct ring_slot slot;
	int r = check_event(event);

	pthread_mutex_lock(&ring->lock);
	if (r == 0)
		r = format_event(ring, event, ring->last + 1, &slot);
	if (r == 0 && slot.bytes > ring->max_bytes) {
		free(slot.text);
		r = -EMSGSIZE;
	}
	if (r < 0) {
		ring->stats.refused++;
		pthread_mutex_unlock(&ring->lock);
		return r;
	}
	while (ring->stats.events == ring->max_events ||
	       (ring->stats.events && ring->stats.bytes + slot.bytes > ring->max_bytes))
		remove_first(ring);
	ring->slot[++ring->last % ring->max_events] = slot;
	ring->stats.events++;
	ring->stats.bytes += slot.bytes;
	ring->stats.posted++;
	pthread_mutex_unlock(&ring->lock);
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

uint64_t nt_event_ring_last(struct nt_event_ring *ring)
{
	uint64_t last;

	pthread_mutex_lock(&ring->lock);
	last = ring->last;
	pthread_mutex_unlock(&ring->lock);
	return last;
}

int nt_event_ring_find(struct nt_event_ring *ring, const char *id, uint64_t *ret_number)
{
	const size_t len = strlen(id);
	uint64_t boot, number;
	int r = 0;

	if (len <= BOOT_DIGITS + 1 || id[BOOT_DIGITS] != '-' ||
	    nt_parse_hex(id, BOOT_DIGITS, UINT64_MAX, &boot) < 0 ||
	    nt_parse_u64(id + BOOT_DIGITS + 1, len - BOOT_DIGITS - 1, 0, UINT64_MAX, &number) < 0)
		return -EINVAL;
	pthread_mutex_lock(&ring->lock);
	if (boot != ring->boot || number > ring->last || number + 1 < ring->first)
		r = -ESTALE;
	pthread_mutex_unlock(&ring->lock);
	if (r == 0)
		*ret_number = number;
	return r;
}

static bool is_of(const struct ring_slot *slot, const char *topic)
{
	const char *own = slot->text + slot->text_len;

	if (!topic)
		return true;
	for (; *own; own += strlen(own) + 1)
		if (!strcmp(own, topic))
			return true;
	return false;
}

int nt_event_ring_read(struct nt_event_ring *ring, const char *topic, size_t max_bytes,
		       uint64_t *number, struct nt_buf *out)
{
	const size_t until = out->len + max_bytes;
	int r = 0;

	pthread_mutex_lock(&ring->lock);
	if (*number + 1 < ring->first)
		r = -ESTALE;
	while (r == 0 && *number < ring->last && out->len < until) {
		const struct ring_slot *slot = &ring->slot[(*number + 1) % ring->max_events];

		if (is_of(slot, topic))
			r = nt_buf_append(out, slot->text, slot->text_len);
		if (r == 0)
			(*number)++;
	}
	pthread_mutex_unlock(&ring->lock);
	return r;
}

void nt_event_ring_stats(struct nt_event_ring *ring, struct nt_event_ring_stats *ret_stats)
{
	pthread_mutex_lock(&ring->lock);
	*ret_stats = ring->stats;
	pthread_mutex_unlock(&ring->lock);
}
