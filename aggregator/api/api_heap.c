/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The device memory of a rank's process in replies. */
#include "aggregator/api/api_impl.h"
#include "engine/snapshot.h"
#include "proto/json.h"

static json_t *count(uint64_t value)
{
	/* Values from a node may be any. */
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *number(bool is_known, uint32_t value)
{
	return is_known ? json_integer(value) : json_null();
}

static int set_place(json_t *object, const struct nt_rank_heap_place *place)
{
	int failed = 0;

	failed |= json_object_set_new(object, "file",
				      place->file[0] ? nt_json_text(place->file) : json_null());
	failed |= json_object_set_new(object, "offset", count(place->offset));
	return failed;
}

static json_t *device_json(const struct nt_rank_heap_device *device)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |=
		json_object_set_new(object, "device", number(device->number_known, device->number));
	failed |= json_object_set_new(object, "live_bytes", count(device->live_bytes));
	failed |= json_object_set_new(object, "high_bytes", count(device->high_bytes));
	failed |= json_object_set_new(object, "managed_bytes", count(device->managed_bytes));
	failed |= json_object_set_new(object, "blocks", count(device->blocks));
	return failed ? NULL : nt_take(object);
}

static json_t *site_json(const struct nt_rank_heap_site *site)
{
	nt_autojson json_t *object = json_object();
	int failed = set_place(object, &site->place);

	failed |= json_object_set_new(object, "live_bytes", count(site->live_bytes));
	failed |= json_object_set_new(object, "blocks", count(site->blocks));
	failed |= json_object_set_new(object, "growth_probability",
				      nt_json_number(site->growth_probability));
	failed |= json_object_set_new(object, "growth_bytes", count(site->growth_bytes));
	failed |= json_object_set_new(object, "leaks", json_boolean(site->leaks));
	return failed ? NULL : nt_take(object);
}

static json_t *holder_json(const struct nt_rank_heap_failure *failure)
{
	nt_autojson json_t *object = json_object();
	int failed = set_place(object, &failure->holder_place);

	failed |= json_object_set_new(object, "pid", json_integer(failure->holder_pid));
	failed |= json_object_set_new(object, "rank",
				      number(failure->holder_rank_known, failure->holder_rank));
	failed |= json_object_set_new(object, "live_bytes", count(failure->holder_bytes));
	failed |= json_object_set_new(object, "complete", json_boolean(failure->holder_is_whole));
	failed |= json_object_set_new(object, "site_bytes", count(failure->holder_site_bytes));
	return failed ? NULL : nt_take(object);
}

static json_t *failure_json(const struct nt_rank_heap_failure *failure)
{
	nt_autojson json_t *object = NULL;
	int failed;

	if (!failure->call[0])
		return json_null();
	object = json_object();
	failed = set_place(object, &failure->place);
	failed |= json_object_set_new(object, "call", nt_json_text(failure->call));
	failed |= json_object_set_new(object, "bytes", count(failure->bytes));
	failed |= json_object_set_new(object, "at", nt_json_time(failure->at_ns));
	failed |= json_object_set_new(object, "device",
				      number(failure->device_known, failure->device));
	failed |= json_object_set_new(object, "live_bytes", count(failure->live_bytes));
	failed |= json_object_set_new(object, "holder", holder_json(failure));
	return failed ? NULL : nt_take(object);
}

json_t *nt_api_heap(const struct nt_rank_heap *heap)
{
	nt_autojson json_t *object = NULL;
	nt_autojson json_t *devices = NULL;
	nt_autojson json_t *sites = NULL;
	int failed = 0;

	if (!heap)
		return json_null();
	object = json_object();
	devices = json_array();
	sites = json_array();
	for (uint32_t i = 0; i < heap->devices; i++)
		failed |= json_array_append_new(devices, device_json(&heap->device[i]));
	for (uint32_t i = 0; i < heap->sites; i++)
		failed |= json_array_append_new(sites, site_json(&heap->site[i]));
	failed |= json_object_set_new(object, "complete", json_boolean(heap->is_whole));
	failed |= json_object_set_new(object, "since",
				      heap->since_ns ? nt_json_time(heap->since_ns) : json_null());
	failed |= json_object_set_new(object, "devices", nt_take(devices));
	failed |= json_object_set_new(object, "sites", nt_take(sites));
	failed |= json_object_set_new(object, "failed_allocations", count(heap->failures));
	failed |= json_object_set_new(object, "out_of_memory", count(heap->out_of_memory));
	failed |= json_object_set_new(object, "last_out_of_memory", failure_json(&heap->failure));
	return failed ? NULL : nt_take(object);
}
