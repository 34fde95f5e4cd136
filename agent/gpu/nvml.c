/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As nvml.h has them. Tests compile this table against NVIDIA's header. */
typedef struct nvmlDevice_st *device_handle;
typedef struct nvmlEventSet_st *event_set;

enum {
	NVML_SUCCESS = 0,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_CLOCK_SM = 1,
	NVML_CLOCK_MEM = 2,
	NVML_TEMPERATURE_GPU = 0,
	NVML_ECC_CORRECTED = 0,
	NVML_ECC_UNCORRECTED = 1,
	NVML_ECC_VOLATILE = 0,
	NVML_POLICY_POWER = 0,
	NVML_POLICY_THERMAL = 1,
	NVML_EVENT_XID = 8,
	NVML_LINKS = 18,
	NVML_LINK_COUNTERS = 4, /* replays, recoveries, errors of flits and of data */
	XIDS_A_READ = 64, /* more are taken by the next one */
	PROCESSES_A_READ = 256,
};

struct nvml_utilization {
	unsigned int gpu, memory; /* percent */
};

struct nvml_memory {
	unsigned long long total, free, used; /* bytes */
};

struct nvml_violation {
	unsigned long long reference_us, violation_ns;
};

struct nvml_event {
	device_handle device;
	unsigned long long type, data; /* data: of an XID, its number */
	unsigned int gpu_instance, compute_instance;
};

_Static_assert(sizeof(struct nvml_event) == 32, "nvmlEventData_t");

struct nvml_process {
	unsigned int pid;
	unsigned long long memory; /* bytes */
	unsigned int gpu_instance, compute_instance;
};

_Static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_t");

struct functions {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_string)(int result);
	int (*count)(unsigned int *count);
	int (*by_index)(unsigned int index, device_handle *device);
	int (*uuid)(device_handle device, char *uuid, unsigned int len);
	/* From here on any may be missing: then its values are not known. */
	int (*clock)(device_handle device, int type, unsigned int *mhz);
	int (*most_clock)(device_handle device, int type, unsigned int *mhz);
	int (*temperature)(device_handle device, int sensor, unsigned int *celsius);
	int (*power)(device_handle device, unsigned int *mw);
	int (*power_limit)(device_handle device, unsigned int *mw);
	int (*reasons)(device_handle device, unsigned long long *reasons);
	int (*old_reasons)(device_handle device, unsigned long long *reasons);
	int (*utilization)(device_handle device, struct nvml_utilization *utilization);
	int (*memory)(device_handle device, struct nvml_memory *memory);
	int (*violation)(device_handle device, int policy, struct nvml_violation *violation);
	int (*energy)(device_handle device, unsigned long long *mj);
	int (*ecc)(device_handle device, int type, int counter, unsigned long long *errors);
	int (*remapped)(device_handle device, unsigned int *correctable,
			unsigned int *uncorrectable, unsigned int *pending, unsigned int *failed);
	int (*replays)(device_handle device, unsigned int *replays);
	int (*link_errors)(device_handle device, unsigned int link, int counter,
			   unsigned long long *errors);
	int (*processes)(device_handle device, unsigned int *count, struct nvml_process *process);
	int (*new_events)(event_set *set);
	int (*register_events)(device_handle device, unsigned long long types, event_set set);
	int (*wait)(event_set set, struct nvml_event *event, unsigned int ms);
	int (*free_events)(event_set set);
};

static const struct {
	size_t at;
	const char *name;
	bool needed;
} table[] = {
	{offsetof(struct functions, init), "nvmlInit_v2", true},
	{offsetof(struct functions, shutdown), "nvmlShutdown", true},
	{offsetof(struct functions, error_string), "nvmlErrorString", true},
	{offsetof(struct functions, count), "nvmlDeviceGetCount_v2", true},
	{offsetof(struct functions, by_index), "nvmlDeviceGetHandleByIndex_v2", true},
	{offsetof(struct functions, uuid), "nvmlDeviceGetUUID", true},
	{offsetof(struct functions, clock), "nvmlDeviceGetClockInfo", false},
	{offsetof(struct functions, most_clock), "nvmlDeviceGetMaxClockInfo", false},
	{offsetof(struct functions, temperature), "nvmlDeviceGetTemperature", false},
	{offsetof(struct functions, power), "nvmlDeviceGetPowerUsage", false},
	{offsetof(struct functions, power_limit), "nvmlDeviceGetEnforcedPowerLimit", false},
	{offsetof(struct functions, reasons), "nvmlDeviceGetCurrentClocksEventReasons", false},
	{offsetof(struct functions, old_reasons), "nvmlDeviceGetCurrentClocksThrottleReasons",
	 false},
	{offsetof(struct functions, utilization), "nvmlDeviceGetUtilizationRates", false},
	{offsetof(struct functions, memory), "nvmlDeviceGetMemoryInfo", false},
	{offsetof(struct functions, violation), "nvmlDeviceGetViolationStatus", false},
	{offsetof(struct functions, energy), "nvmlDeviceGetTotalEnergyConsumption", false},
	{offsetof(struct functions, ecc), "nvmlDeviceGetTotalEccErrors", false},
	{offsetof(struct functions, remapped), "nvmlDeviceGetRemappedRows", false},
	{offsetof(struct functions, replays), "nvmlDeviceGetPcieReplayCounter", false},
	{offsetof(struct functions, link_errors), "nvmlDeviceGetNvLinkErrorCounter", false},
	{offsetof(struct functions, processes), "nvmlDeviceGetComputeRunningProcesses_v3", false},
	{offsetof(struct functions, new_events), "nvmlEventSetCreate", false},
	{offsetof(struct functions, register_events), "nvmlDeviceRegisterEvents", false},
	{offsetof(struct functions, wait), "nvmlEventSetWait_v2", false},
	{offsetof(struct functions, free_events), "nvmlEventSetFree", false},
};

struct nt_nvml {
	void *library;
	bool initialised;
	struct functions fn;
	event_set events; /* NULL: there are none */
	device_handle device[NT_GPU_CARDS];
	char id[NT_GPU_CARDS][NT_GPU_CARD_ID];
	uint32_t count, over_cap;
	uint64_t xids[NT_GPU_CARDS], last_xid[NT_GPU_CARDS];
};

/* ---- opening -------------------------------------------------------------------------------- */

static void say(char error[NT_NVML_ERROR], const char *what, const char *why)
{
	(void)snprintf(error, NT_NVML_ERROR, "%s: %s", what, why ? why : "unknown error");
}

static int find_functions(struct nt_nvml *nvml, char error[NT_NVML_ERROR])
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		void *symbol = dlsym(nvml->library, table[i].name);

		if (!symbol && table[i].needed) {
			say(error, table[i].name, "the library has no such function");
			return -EPROTO;
		}
		/* Not a cast: ISO C has none from an object's to a function's address. */
		memcpy((char *)&nvml->fn + table[i].at, &symbol, sizeof(symbol));
	}
	return 0;
}

static int fail(const struct nt_nvml *nvml, int result, const char *what, char error[NT_NVML_ERROR])
{
	say(error, what, nvml->fn.error_string(result));
	return result == NVML_DRIVER_NOT_LOADED ? -ENODEV : -EIO;
}

/* XIDs are reported as events, for which a process must register. */
static void register_events(struct nt_nvml *nvml)
{
	const struct functions *fn = &nvml->fn;

	if (!fn->new_events || !fn->register_events || !fn->wait || !fn->free_events ||
	    fn->new_events(&nvml->events) != NVML_SUCCESS) {
		nvml->events = NULL;
		return;
	}
	for (uint32_t i = 0; i < nvml->count; i++)
		(void)fn->register_events(nvml->device[i], NVML_EVENT_XID, nvml->events);
}

static int find_cards(struct nt_nvml *nvml, char error[NT_NVML_ERROR])
{
	unsigned int count = 0;
	int r = nvml->fn.count(&count);

	if (r != NVML_SUCCESS)
		return fail(nvml, r, "count GPUs", error);
	if (!count) {
		say(error, "count GPUs", "there is none");
		return -ENODEV;
	}
	for (unsigned int i = 0; i < count; i++) {
		device_handle device = NULL;

		if (nvml->count == NT_GPU_CARDS) {
			nvml->over_cap = count - i;
			break;
		}
		if (nvml->fn.by_index(i, &device) != NVML_SUCCESS)
			continue;
		nvml->device[nvml->count] = device;
		if (nvml->fn.uuid(device, nvml->id[nvml->count], NT_GPU_CARD_ID) != NVML_SUCCESS)
			(void)snprintf(nvml->id[nvml->count], NT_GPU_CARD_ID, "GPU %u", i);
		nvml->id[nvml->count++][NT_GPU_CARD_ID - 1] = '\0';
	}
	return 0;
}

int nt_nvml_open(const char *path, char error[NT_NVML_ERROR], struct nt_nvml **ret_nvml)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = calloc(1, sizeof(*nvml));
	int r;

	*error = '\0';
	if (!nvml)
		return -ENOMEM;
	nvml->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		say(error, "load", dlerror());
		return -ENOENT;
	}
	r = find_functions(nvml, error);
	if (r < 0)
		return r;
	r = nvml->fn.init();
	if (r != NVML_SUCCESS)
		return fail(nvml, r, "initialise", error);
	nvml->initialised = true;
	r = find_cards(nvml, error);
	if (r < 0)
		return r;
	register_events(nvml);
	*ret_nvml = nt_take(nvml);
	return 0;
}

void nt_nvml_close(struct nt_nvml *nvml)
{
	if (!nvml)
		return;
	if (nvml->events)
		(void)nvml->fn.free_events(nvml->events);
	if (nvml->initialised)
		(void)nvml->fn.shutdown();
	if (nvml->library)
		(void)dlclose(nvml->library);
	free(nvml);
}

/* ---- reading -------------------------------------------------------------------------------- */

static void set(struct nt_gpu_card *card, enum nt_gpu_card_value at, uint64_t value)
{
	card->value[at] = value;
	card->known |= UINT32_C(1) << at;
}

static void read_gauges(const struct functions *fn, device_handle device, struct nt_gpu_card *card)
{
	struct nvml_utilization used = {0};
	struct nvml_memory memory = {0};
	unsigned long long reasons = 0;
	unsigned int value = 0;

	if (fn->clock && fn->clock(device, NVML_CLOCK_SM, &value) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_CLOCK, value);
	if (fn->most_clock && fn->most_clock(device, NVML_CLOCK_SM, &value) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_CLOCK_MOST, value);
	if (fn->clock && fn->clock(device, NVML_CLOCK_MEM, &value) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_MEMORY_CLOCK, value);
	if (fn->temperature &&
	    fn->temperature(device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_TEMPERATURE, value);
	if (fn->power && fn->power(device, &value) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_POWER, value);
	if (fn->power_limit && fn->power_limit(device, &value) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_POWER_LIMIT, value);
	if ((fn->reasons && fn->reasons(device, &reasons) == NVML_SUCCESS) ||
	    (fn->old_reasons && fn->old_reasons(device, &reasons) == NVML_SUCCESS))
		set(card, NT_GPU_CARD_REASONS, reasons);
	if (fn->utilization && fn->utilization(device, &used) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_USED, used.gpu);
	if (fn->memory && fn->memory(device, &memory) == NVML_SUCCESS) {
		set(card, NT_GPU_CARD_MEMORY_USED, memory.used);
		set(card, NT_GPU_CARD_MEMORY_TOTAL, memory.total);
	}
}

static void read_links(const struct functions *fn, device_handle device, struct nt_gpu_card *card)
{
	uint64_t sum = 0;
	bool any = false;

	for (unsigned int link = 0; fn->link_errors && link < NVML_LINKS; link++) {
		for (int counter = 0; counter < NVML_LINK_COUNTERS; counter++) {
			unsigned long long errors = 0;

			if (fn->link_errors(device, link, counter, &errors) != NVML_SUCCESS)
				continue;
			sum += errors;
			any = true;
		}
	}
	if (any)
		set(card, NT_GPU_CARD_NVLINK_ERRORS, sum);
}

static void read_counters(const struct functions *fn, device_handle device,
			  struct nt_gpu_card *card)
{
	unsigned int correctable = 0, uncorrectable = 0, pending = 0, failed = 0, replays = 0;
	struct nvml_violation violation = {0};
	unsigned long long value = 0;

	if (fn->violation && fn->violation(device, NVML_POLICY_POWER, &violation) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_POWER_CAPPED, violation.violation_ns);
	if (fn->violation && fn->violation(device, NVML_POLICY_THERMAL, &violation) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_THERMAL, violation.violation_ns);
	if (fn->energy && fn->energy(device, &value) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_ENERGY, value);
	if (fn->ecc &&
	    fn->ecc(device, NVML_ECC_CORRECTED, NVML_ECC_VOLATILE, &value) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_CORRECTED, value);
	if (fn->ecc &&
	    fn->ecc(device, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &value) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_UNCORRECTED, value);
	if (fn->remapped &&
	    fn->remapped(device, &correctable, &uncorrectable, &pending, &failed) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_REMAPPED, (uint64_t)correctable + uncorrectable);
	if (fn->replays && fn->replays(device, &replays) == NVML_SUCCESS)
		set(card, NT_GPU_CARD_PCIE_REPLAYS, replays);
	read_links(fn, device, card);
}

/* Where the library has too many, it states their number only. */
static void read_processes(const struct functions *fn, device_handle device,
			   struct nt_gpu_card *card)
{
	struct nvml_process process[PROCESSES_A_READ];
	unsigned int count = PROCESSES_A_READ;
	const int r = fn->processes ? fn->processes(device, &count, process) : NVML_SUCCESS;

	if (!fn->processes || (r != NVML_SUCCESS && r != NVML_INSUFFICIENT_SIZE))
		return;
	for (unsigned int i = 0; r == NVML_SUCCESS && i < count && i < NT_GPU_CARD_PIDS; i++)
		card->pid[card->pids++] = process[i].pid;
	card->pids_over_cap = count > card->pids ? count - card->pids : 0;
}

static void take_events(struct nt_nvml *nvml)
{
	for (int n = 0; nvml->events && n < XIDS_A_READ; n++) {
		struct nvml_event event = {0};

		if (nvml->fn.wait(nvml->events, &event, 0) != NVML_SUCCESS)
			return;
		for (uint32_t i = 0; i < nvml->count; i++) {
			if (nvml->device[i] != event.device || !(event.type & NVML_EVENT_XID))
				continue;
			nvml->xids[i]++;
			nvml->last_xid[i] = event.data;
		}
	}
}

static bool is_lost(const struct functions *fn, device_handle device)
{
	unsigned int value = 0;
	const int r = fn->temperature ? fn->temperature(device, NVML_TEMPERATURE_GPU, &value)
				      : NVML_SUCCESS;

	return r == NVML_GPU_IS_LOST || r == NVML_RESET_REQUIRED;
}

void nt_nvml_read(struct nt_nvml *nvml, struct nt_gpu_cards *ret_cards)
{
	*ret_cards = (struct nt_gpu_cards){.count = nvml->count, .over_cap = nvml->over_cap};
	take_events(nvml);
	for (uint32_t i = 0; i < nvml->count; i++) {
		struct nt_gpu_card *card = &ret_cards->card[i];

		memcpy(card->id, nvml->id[i], sizeof(card->id));
		if (nvml->events) {
			set(card, NT_GPU_CARD_XIDS, nvml->xids[i]);
			if (nvml->xids[i])
				set(card, NT_GPU_CARD_LAST_XID, nvml->last_xid[i]);
		}
		if (is_lost(&nvml->fn, nvml->device[i])) {
			ret_cards->lost++;
			continue;
		}
		read_gauges(&nvml->fn, nvml->device[i], card);
		read_counters(&nvml->fn, nvml->device[i], card);
		read_processes(&nvml->fn, nvml->device[i], card);
	}
}
