/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a rank's GPUs in replies. */
#include "aggregator/api/api_impl.h"
#include "engine/snapshot.h"
#include "proto/json.h"

static json_t *held_down(const struct nt_snapshot_gpu *gpu)
{
	nt_autojson json_t *array = json_array();
	int failed = 0;

	if (gpu->by_temperature)
		failed |= json_array_append_new(array, json_string("temperature"));
	if (gpu->by_power)
		failed |= json_array_append_new(array, json_string("power cap"));
	if (gpu->by_hardware)
		failed |= json_array_append_new(array, json_string("hardware"));
	return failed ? NULL : nt_take(array);
}

/* Zero: the card does not state it. */
static json_t *stated(uint64_t value)
{
	return value ? json_integer((json_int_t)value) : json_null();
}

static int set_activity(json_t *object, const struct nt_snapshot_gpu_activity *activity)
{
	const struct {
		const char *name;
		double value;
	} member[] = {
		{"sm_active", activity->sm},
		{"sm_occupancy", activity->occupancy},
		{"tensor_active", activity->tensor},
		{"memory_bandwidth_used", activity->dram},
		{"nvlink_bytes_per_second", activity->nvlink},
		{"pcie_bytes_per_second", activity->pcie},
	};
	int failed = 0;

	for (size_t i = 0; i < sizeof(member) / sizeof(member[0]); i++)
		failed |= json_object_set_new(object, member[i].name,
					      activity->known ? nt_json_number(member[i].value)
							      : json_null());
	return failed;
}

json_t *nt_api_gpu_state(const struct nt_snapshot_gpu *gpu)
{
	nt_autojson json_t *object = NULL;
	int failed = 0;

	if (!gpu->clock_mhz && !gpu->celsius && !gpu->memory_total && !gpu->activity.known)
		return json_null();
	object = json_object();
	failed |= json_object_set_new(object, "clock_mhz", stated(gpu->clock_mhz));
	failed |= json_object_set_new(object, "most_clock_mhz", stated(gpu->most_clock_mhz));
	failed |= json_object_set_new(object, "temperature_celsius", stated(gpu->celsius));
	failed |= json_object_set_new(object, "memory_used_bytes", stated(gpu->memory_used));
	failed |= json_object_set_new(object, "memory_total_bytes", stated(gpu->memory_total));
	failed |= json_object_set_new(object, "held_down_by", held_down(gpu));
	failed |= json_object_set_new(object, "last_xid", stated(gpu->last_xid));
	failed |= set_activity(object, &gpu->activity);
	return failed ? NULL : nt_take(object);
}
