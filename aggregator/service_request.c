/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Requests of other threads, executed by the deciding thread in its next turn, and events for their
 * streams.
 */
#include "aggregator/service_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/system/clock.h"
#include "common/system/log.h"

static bool parse_id(const char *text, uint64_t *ret_id)
{
	uint64_t id = 0;
	size_t i;

	for (i = 0; text[i]; i++) {
		const char *digits = "0123456789abcdef", *digit = strchr(digits, text[i]);

		if (!digit || i == NT_JOB_ID_LEN)
			return false;
		id = id << 4 | (uint64_t)(digit - digits);
	}
	*ret_id = id;
	return i == NT_JOB_ID_LEN;
}

/* Called under the lock. Duplicate requests are merged. */
static int add_request(struct nt_service *service, uint64_t id)
{
	for (size_t i = 0; i < service->requests; i++)
		if (service->request[i] == id)
			return 0;
	if (service->requests == NT_SERVICE_MAX_REQUESTS)
		return -EBUSY;
	service->request[service->requests++] = id;
	return 0;
}

int nt_service_rebaseline(struct nt_service *service, const char *job_id)
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(service->board);
	bool known = snapshot && nt_snapshot_find(snapshot, job_id);
	uint64_t id;
	int r;

	nt_snapshot_release(snapshot);
	if (!known || !parse_id(job_id, &id))
		return -ENOENT;
	(void)pthread_mutex_lock(&service->lock);
	r = add_request(service, id);
	(void)pthread_mutex_unlock(&service->lock);
	return r;
}

struct nt_level_desk *nt_service_level_desk(const struct nt_service *service)
{
	return service->level_desk;
}

struct nt_profile_desk *nt_service_profile_desk(const struct nt_service *service)
{
	return service->profile_desk;
}

struct nt_node_desk *nt_service_node_desk(const struct nt_service *service)
{
	return service->node_desk;
}

static void rebaseline(struct nt_service *service, uint64_t job_id)
{
	for (struct nt_shard *shard = service->shard; shard; shard = shard->hh.next) {
		if (nt_engine_rebaseline(shard->engine, job_id) < 0)
			continue;
		shard->saved = false;
		nt_info("job %016" PRIx64 ": current state taken as normal", job_id);
	}
}

void nt_service_take_requests(struct nt_service *service)
{
	uint64_t request[NT_SERVICE_MAX_REQUESTS];
	size_t requests;

	(void)pthread_mutex_lock(&service->lock);
	requests = service->requests;
	memcpy(request, service->request, sizeof(request));
	service->requests = 0;
	(void)pthread_mutex_unlock(&service->lock);
	for (size_t i = 0; i < requests; i++)
		rebaseline(service, request[i]);
}

void nt_service_post_events(struct nt_service *service, const struct nt_snapshot *snapshot)
{
	nt_autofree struct nt_level_entry *entry = NULL;
	size_t count;

	if (!service->options.event_desk)
		return;
	nt_event_desk_look(service->options.event_desk, snapshot);
	/* Without memory for the list no level has changed. */
	if (nt_level_desk_list(service->level_desk, &entry, &count) == 0)
		nt_event_desk_look_levels(service->options.event_desk, entry, count, snapshot,
					  nt_clock_real_ns());
}
