/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stand-in for libnvidia-ml.so.1. The file in SIM_NVML has its answers (answers.h).
 *
 *   init RESULT 0          what nvmlInit_v2() returns
 *   hang SECONDS 0         every call of nvmlDeviceGetTemperature() takes so long
 *   crash 0 0              and this one never returns
 *   NUMBER NAME VALUE      a value of a GPU; "result": of all its calls. Without a line a value is
 *                          not supported.
 *   NUMBER pid PID         a process that computes on it; any number of lines
 *   xid NUMBER XID         an event of that GPU, reported once
 *   NUMBER mig 1           it is divided by MIG,
 *   NUMBER instance ID     into instances, which are cards "NUMBER/ID" in other lines, of "xid" as well
 *   late-pid NUMBER PID    when this process has ended, its card has it no longer, and
 *   late-xid NUMBER XID    this event of that GPU is reported, once
 *   NUMBER gpm 1           it has GPM, if the library is opened afterwards
 *   NUMBER gpm-METRIC VALUE  a metric of GPM by its number in nvml.h: thousandths of a percent, or of
 *                          a MiB a second
 *   NUMBER gpm-nan-METRIC 0  that metric is not a number
 *   NUMBER model NAME      its model, with "_" in place of blanks
 */
#include "tests/sim/lib/health/nvml.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/lib/health/answers.h"

enum {
	SUCCESS = 0,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	TIMEOUT = 10,
	CARDS = 96,
	WORD = ANSWERS_WORD,
	EVENT_XID = 8,
	INVALID_ARGUMENT = 2,
	GPM_METRICS = 64,
	INSTANCES = 32,
};

static struct nvmlDevice_st cards[CARDS], instances[CARDS][INSTANCES];
static unsigned int xids_reported;
static bool is_late_reported;

/* As it is named in the file. */
static void label(const struct nvmlDevice_st *card, char name[WORD])
{
	if (card->instance < 0)
		(void)snprintf(name, WORD, "%u", card->number);
	else
		(void)snprintf(name, WORD, "%u/%d", card->number, card->instance);
}

static bool find(const char *first, const char *second, unsigned int skip,
		 unsigned long long *ret_second, unsigned long long *ret_value)
{
	return answers_find("SIM_NVML", first, second, skip, ret_second, ret_value);
}

static int get(const struct nvmlDevice_st *card, const char *name, unsigned long long *ret_value)
{
	char number[WORD];
	unsigned long long value = 0;

	label(card, number);
	if (find(number, "result", 0, NULL, &value))
		return (int)value;
	return find(number, name, 0, NULL, ret_value) ? SUCCESS : NOT_SUPPORTED;
}

static int get_int(const struct nvmlDevice_st *card, const char *name, unsigned int *ret_value)
{
	unsigned long long value = 0;
	const int r = get(card, name, &value);

	if (r == SUCCESS)
		*ret_value = (unsigned int)value;
	return r;
}

int nvmlInit_v2(void)
{
	unsigned long long ignored, result;

	for (unsigned int i = 0; i < CARDS; i++) {
		cards[i] = (struct nvmlDevice_st){.number = i, .instance = -1};
		for (int j = 0; j < INSTANCES; j++)
			instances[i][j] = (struct nvmlDevice_st){.number = i, .instance = j};
	}
	return find("init", NULL, 0, &result, &ignored) ? (int)result : SUCCESS;
}

int nvmlShutdown(void)
{
	return SUCCESS;
}

const char *nvmlErrorString(int result)
{
	return result == 9 ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	char number[WORD];
	unsigned long long value;

	for (*count = 0; *count < CARDS; ++*count) {
		(void)snprintf(number, sizeof(number), "%u", *count);
		if (!find(number, NULL, 0, NULL, &value))
			break;
	}
	return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvmlDevice_st **device)
{
	*device = index < CARDS ? &cards[index] : NULL;
	return index < CARDS ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetUUID(struct nvmlDevice_st *device, char *uuid, unsigned int len)
{
	if (device->instance < 0)
		(void)snprintf(uuid, len, "GPU-%08x-0000-0000-0000-000000000000", device->number);
	else
		(void)snprintf(uuid, len, "MIG-%08x-0000-0000-0000-%012x", device->number,
			       (unsigned int)device->instance);
	return SUCCESS;
}

int nvmlDeviceGetName(struct nvmlDevice_st *device, char *name, unsigned int len)
{
	char first[WORD], text[ANSWERS_LINE];

	(void)snprintf(first, sizeof(first), "%u", device->number);
	if (!answers_text("SIM_NVML", first, "model", text))
		return NOT_SUPPORTED;
	if (strlen(text) >= len)
		return INSUFFICIENT_SIZE;
	(void)snprintf(name, len, "%s", text);
	return SUCCESS;
}

int nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, int type, unsigned int *mhz)
{
	return get_int(device, type == 2 ? "memory-clock" : "clock", mhz);
}

int nvmlDeviceGetMaxClockInfo(struct nvmlDevice_st *device, int type, unsigned int *mhz)
{
	return type == 1 ? get_int(device, "most-clock", mhz) : NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(struct nvmlDevice_st *device, int sensor, unsigned int *celsius)
{
	unsigned long long ignored, seconds;

	(void)sensor;
	if (find("hang", NULL, 0, &seconds, &ignored))
		(void)sleep((unsigned int)seconds);
	if (find("crash", NULL, 0, NULL, &ignored))
		(void)raise(SIGKILL);
	return get_int(device, "temperature", celsius);
}

/* "new-temperature" has no other function, as in a library without the one above. */
int nvmlDeviceGetTemperatureV(struct nvmlDevice_st *device, struct nvml_temperature *temperature)
{
	unsigned int celsius = 0;
	int r = temperature->version == (1 << 24 | sizeof(*temperature)) && temperature->sensor == 0
			? get_int(device, "new-temperature", &celsius)
			: NOT_SUPPORTED;

	temperature->celsius = (int)celsius;
	return r;
}

int nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned int *mw)
{
	return get_int(device, "power", mw);
}

int nvmlDeviceGetEnforcedPowerLimit(struct nvmlDevice_st *device, unsigned int *mw)
{
	return get_int(device, "power-limit", mw);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *device,
					      unsigned long long *reasons)
{
	return get(device, "reasons", reasons);
}

int nvmlDeviceGetMemoryInfo(struct nvmlDevice_st *device, unsigned long long *memory)
{
	const int r = get(device, "memory-total", &memory[0]);

	return r == SUCCESS ? get(device, "memory-used", &memory[2]) : r;
}

int nvmlDeviceGetViolationStatus(struct nvmlDevice_st *device, int policy,
				 unsigned long long *violation)
{
	return get(device, policy == 0 ? "power-capped" : "thermal", &violation[1]);
}

int nvmlDeviceGetTotalEccErrors(struct nvmlDevice_st *device, int type, int counter,
				unsigned long long *errors)
{
	(void)counter;
	return get(device, type ? "uncorrected" : "corrected", errors);
}

int nvmlDeviceGetRemappedRows(struct nvmlDevice_st *device, unsigned int *correctable,
			      unsigned int *uncorrectable, unsigned int *pending,
			      unsigned int *failed)
{
	*uncorrectable = *pending = *failed = 0;
	return get_int(device, "remapped", correctable);
}

int nvmlDeviceGetPcieReplayCounter(struct nvmlDevice_st *device, unsigned int *replays)
{
	return get_int(device, "replays", replays);
}

int nvmlDeviceGetNvLinkErrorCounter(struct nvmlDevice_st *device, unsigned int link, int counter,
				    unsigned long long *errors)
{
	return link < 2 && counter == 0 ? get(device, "link-errors", errors) : NOT_SUPPORTED;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice_st *device, unsigned int *count,
					    struct nvml_process *process)
{
	const unsigned int cap = *count;
	unsigned long long pid = 0;
	char number[WORD];

	label(device, number);
	*count = 0;
	for (unsigned int at = 0; find(number, "pid", at, NULL, &pid); at++) {
		if (answers_ended("SIM_NVML", pid))
			continue;
		if (*count < cap)
			process[*count] = (struct nvml_process){.pid = (unsigned int)pid};
		++*count;
	}
	return *count <= cap ? SUCCESS : INSUFFICIENT_SIZE;
}

/* Holds the values of the time until now. */
static int fill(struct nvmlDevice_st *device, struct nvmlGpmSample_st *sample)
{
	/* Others are not supported: the file is read for each. */
	static const unsigned int metric[] = {2, 3, 5, 10, 20, 21, 60, 61};
	unsigned long long value;
	char name[WORD];

	if (get(device, "gpm", &value) != SUCCESS)
		return NOT_SUPPORTED;
	sample->device = device;
	for (unsigned int i = 0; i < GPM_METRICS; i++)
		sample->value[i] = -1.0;
	for (size_t i = 0; i < sizeof(metric) / sizeof(metric[0]); i++) {
		(void)snprintf(name, sizeof(name), "gpm-%u", metric[i]);
		if (get(device, name, &value) == SUCCESS) {
			sample->value[metric[i]] = (double)value / 1000.0;
			continue;
		}
		(void)snprintf(name, sizeof(name), "gpm-nan-%u", metric[i]);
		if (get(device, name, &value) == SUCCESS)
			sample->value[metric[i]] = NAN;
	}
	return SUCCESS;
}

int nvmlDeviceGetMigMode(struct nvmlDevice_st *device, unsigned int *mode, unsigned int *pending)
{
	*pending = 0;
	return get_int(device, "mig", mode);
}

int nvmlDeviceGetMaxMigDeviceCount(struct nvmlDevice_st *device, unsigned int *count)
{
	(void)device;
	*count = INSTANCES;
	return SUCCESS;
}

/* Every second index has one. */
int nvmlDeviceGetMigDeviceHandleByIndex(struct nvmlDevice_st *device, unsigned int index,
					struct nvmlDevice_st **instance)
{
	unsigned long long id = 0;
	char number[WORD];

	label(device, number);
	if (index % 2 || !find(number, "instance", index / 2, NULL, &id))
		return NOT_FOUND;
	*instance = &instances[device->number][id % INSTANCES];
	return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(struct nvmlDevice_st *device, unsigned int *id)
{
	*id = (unsigned int)device->instance;
	return device->instance < 0 ? NOT_SUPPORTED : SUCCESS;
}

int nvmlGpmMigSampleGet(struct nvmlDevice_st *device, unsigned int instance,
			struct nvmlGpmSample_st *sample)
{
	unsigned int mig = 0;

	if (get_int(device, "mig", &mig) != SUCCESS || !mig || instance >= INSTANCES)
		return INVALID_ARGUMENT;
	return fill(&instances[device->number][instance], sample);
}

int nvmlGpmQueryDeviceSupport(struct nvmlDevice_st *device, struct nvml_gpm_support *support)
{
	if (support->version != 1)
		return INVALID_ARGUMENT;
	support->is_supported = 0;
	(void)get_int(device, "gpm", &support->is_supported);
	return SUCCESS;
}

int nvmlGpmSampleAlloc(struct nvmlGpmSample_st **sample)
{
	*sample = calloc(1, sizeof(**sample));
	return *sample ? SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlGpmSampleFree(struct nvmlGpmSample_st *sample)
{
	free(sample);
	return SUCCESS;
}

/* As the library: not of a card that is divided. */
int nvmlGpmSampleGet(struct nvmlDevice_st *device, struct nvmlGpmSample_st *sample)
{
	unsigned int mig = 0;

	return get_int(device, "mig", &mig) == SUCCESS && mig ? NOT_SUPPORTED
							      : fill(device, sample);
}

int nvmlGpmMetricsGet(struct nvml_gpm_request *request)
{
	if (request->version != 1 || !request->earlier->device ||
	    request->earlier->device != request->later->device)
		return INVALID_ARGUMENT;
	for (unsigned int i = 0; i < request->metrics; i++) {
		const unsigned int id = request->metric[i].id;
		const double value = id < GPM_METRICS ? request->later->value[id] : -1.0;

		request->metric[i].result = value < 0.0 ? NOT_SUPPORTED : SUCCESS;
		request->metric[i].value = value;
	}
	return SUCCESS;
}

int nvmlEventSetCreate(void **set)
{
	*set = cards;
	return SUCCESS;
}

int nvmlDeviceRegisterEvents(struct nvmlDevice_st *device, unsigned long long types, void *set)
{
	(void)device, (void)types, (void)set;
	return SUCCESS;
}

int nvmlEventSetWait_v2(void *set, struct nvml_event *event, unsigned int ms)
{
	unsigned long long number, late = 0;

	(void)set, (void)ms;
	if (find("xid", NULL, xids_reported, &number, &event->data))
		xids_reported++;
	else if (!is_late_reported && find("late-pid", NULL, 0, NULL, &late) &&
		 answers_ended("SIM_NVML", late) &&
		 find("late-xid", NULL, 0, &number, &event->data))
		is_late_reported = true;
	else
		return TIMEOUT;
	event->device = &cards[(number & UINT32_MAX) % CARDS];
	event->gpu_instance = number >> 32 ? (unsigned int)(number >> 32) - 1 : UINT32_MAX;
	event->type = EVENT_XID;
	return SUCCESS;
}

int nvmlEventSetFree(void *set)
{
	(void)set;
	return SUCCESS;
}
