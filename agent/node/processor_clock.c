/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/processor_clock.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	NUMBER_BYTES = 64, /* one number and a line feed */
	HERTZ_PER_KILOHERTZ = 1000,
};

#define FREQUENCY "cpufreq/scaling_cur_freq"
#define PACKAGE   "topology/physical_package_id"
/* linux: arch/x86/kernel/cpu/mce/therm_throt.c (since 5.7) */
#define THROTTLED "thermal_throttle/package_throttle_total_time_ms"

static bool make_path(const char *sys, uint32_t processor, const char *file, char path[PATH_MAX])
{
	const int len = snprintf(path, PATH_MAX, "%s/cpu%u/%s", sys, processor, file);

	return len > 0 && len < PATH_MAX;
}

static bool read_number(const char *sys, uint32_t processor, const char *file, uint64_t *ret_value)
{
	nt_autobuf struct nt_buf buf = {0};
	char path[PATH_MAX];

	if (!make_path(sys, processor, file, path) || nt_file_read(path, NUMBER_BYTES, &buf) < 0)
		return false;
	while (buf.len && buf.data[buf.len - 1] == '\n')
		buf.len--;
	return buf.len &&
	       nt_parse_u64((const char *)buf.data, buf.len, 0, UINT64_MAX, ret_value) == 0;
}

static bool exists(const char *sys, uint32_t processor, const char *file)
{
	char path[PATH_MAX];

	return make_path(sys, processor, file, path) && access(path, F_OK) == 0;
}

static void add_package(struct nt_processor_clock *clock, uint32_t processor, uint64_t package)
{
	for (size_t i = 0; i < clock->packages; i++)
		if (clock->package[i] == package)
			return;
	if (clock->packages == NT_PROCESSOR_CLOCK_PACKAGES) {
		clock->packages_over_cap++;
		return;
	}
	clock->package[clock->packages] = package;
	clock->package_processor[clock->packages++] = processor;
}

static void list_processors(const char *sys, struct nt_processor_clock *clock)
{
	uint32_t processors = 0;
	uint64_t package;

	/* Those that are offline have a directory too. */
	while (processors < NT_PROCESSOR_CLOCK_PROCESSORS && exists(sys, processors, "")) {
		if (exists(sys, processors, THROTTLED) &&
		    read_number(sys, processors, PACKAGE, &package))
			add_package(clock, processors, package);
		processors++;
	}
	for (uint32_t i = 0; i < NT_PROCESSOR_CLOCK_SAMPLES && i < processors; i++) {
		const uint32_t samples = processors < NT_PROCESSOR_CLOCK_SAMPLES
						 ? processors
						 : NT_PROCESSOR_CLOCK_SAMPLES;
		const uint32_t processor = i * processors / samples;

		if (exists(sys, processor, FREQUENCY))
			clock->sample[clock->samples++] = processor;
	}
}

static void read_frequency(const char *sys, struct nt_processor_clock *clock)
{
	uint32_t known = 0;
	double sum = 0.0;

	for (size_t i = 0; i < clock->samples; i++) {
		uint64_t kilohertz;

		if (!read_number(sys, clock->sample[i], FREQUENCY, &kilohertz))
			continue;
		sum += (double)kilohertz * HERTZ_PER_KILOHERTZ;
		known++;
	}
	clock->has_frequency = known > 0;
	clock->frequency_hertz = known ? sum / known : 0.0;
}

static void read_throttled(const char *sys, struct nt_processor_clock *clock)
{
	clock->has_throttled = false;
	nt_counter_sum_begin(&clock->throttled);
	for (size_t i = 0; i < clock->packages; i++) {
		uint64_t value[NT_COUNTER_SUM_VALUES] = {0};
		char name[NT_PARSE_TEXT];
		const int len = snprintf(name, sizeof(name), "%zu", i);

		if (!read_number(sys, clock->package_processor[i], THROTTLED, &value[0]))
			continue;
		(void)nt_counter_sum_add(&clock->throttled, name, (size_t)len, value, NULL);
		clock->has_throttled = true;
	}
	nt_counter_sum_end(&clock->throttled);
}

void nt_processor_clock_read(const char *sys, struct nt_processor_clock *clock)
{
	if (!clock->is_listed)
		list_processors(sys, clock);
	clock->is_listed = true;
	read_frequency(sys, clock);
	read_throttled(sys, clock);
}
