/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/counter_sum.h"

#include <string.h>

#include "common/base/ascii.h"

#define WRAP (UINT64_C(1) << 32)

static void add_to(uint64_t *total, uint64_t value)
{
	if (__builtin_add_overflow(*total, value, total))
		*total = UINT64_MAX;
}

/* 0 after a reset. A sum of counters of 32 bits falls by the wrap of one of them. */
static uint64_t grow(uint64_t before, uint64_t now, bool wraps)
{
	/* Far too large if it fell by more than a wrap. */
	const uint64_t wrapped = now + WRAP - before;

	if (now >= before)
		return now - before;
	return wraps && wrapped < WRAP / 2 ? wrapped : 0;
}

void nt_counter_sum_begin(struct nt_counter_sum *sum)
{
	for (size_t i = 0; i < sum->devices; i++)
		sum->device[i].is_present = false;
}

static struct nt_counter_sum_device *find_device(struct nt_counter_sum *sum, const char *name)
{
	for (size_t i = 0; i < sum->devices; i++)
		if (strcmp(sum->device[i].name, name) == 0)
			return &sum->device[i];
	return NULL;
}

/* NULL: at the cap. */
static struct nt_counter_sum_device *make_device(struct nt_counter_sum *sum, const char *name,
						 const uint64_t *value)
{
	struct nt_counter_sum_device *device;

	if (sum->devices == NT_COUNTER_SUM_DEVICES) {
		sum->over_cap++;
		return NULL;
	}
	device = &sum->device[sum->devices++];
	memcpy(device->name, name, sizeof(device->name));
	memcpy(device->value, value, sizeof(device->value));
	device->is_present = true;
	for (size_t i = 0; !sum->has_begun && i < NT_COUNTER_SUM_VALUES; i++)
		add_to(&sum->total[i], value[i]);
	return device;
}

bool nt_counter_sum_add(struct nt_counter_sum *sum, const char *name, size_t name_len,
			const uint64_t value[NT_COUNTER_SUM_VALUES],
			uint64_t ret_growth[NT_COUNTER_SUM_VALUES])
{
	char key[NT_COUNTER_SUM_NAME] = {0};
	struct nt_counter_sum_device *device;

	nt_ascii_copy(key, sizeof(key), name, name_len);
	device = find_device(sum, key);
	if (!device)
		(void)make_device(sum, key, value);
	if (!device || device->is_present)
		return false;
	for (size_t i = 0; i < NT_COUNTER_SUM_VALUES; i++) {
		const uint64_t growth = grow(device->value[i], value[i], sum->wraps >> i & 1);

		add_to(&sum->total[i], growth);
		device->value[i] = value[i];
		if (ret_growth)
			ret_growth[i] = growth;
	}
	device->is_present = true;
	return true;
}

void nt_counter_sum_end(struct nt_counter_sum *sum)
{
	size_t kept = 0;

	for (size_t i = 0; i < sum->devices; i++)
		if (sum->device[i].is_present)
			sum->device[kept++] = sum->device[i];
	sum->devices = kept;
	sum->has_begun = true;
}
