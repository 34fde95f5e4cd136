/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/gpm.h"
#include "agent/gpu/library_symbol.h"
#include "agent/gpu/mig.h"
#include "agent/gpu/nvml_abi.h"

enum {
	XIDS_A_READ = 64, /* more are taken by the next one */
	/* "Preemptive cleanup": a process was killed. It is no error of the GPU, and no cause. */
	XID_OF_A_KILL = 45,
	PROCESSES_A_READ = 256,
};

struct nvml_functions {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_string)(int result);
	int (*count)(unsigned int *count);
	int (*by_index)(unsigned int index, nt_nvml_device *device);
	int (*uuid)(nt_nvml_device device, char *uuid, unsigned int len);
	/* From here on any may be missing: then its values are not known. */
	int (*name)(nt_nvml_device device, char *name, unsigned int len);
	int (*clock)(nt_nvml_device device, int type, unsigned int *mhz);
	int (*most_clock)(nt_nvml_device device, int type, unsigned int *mhz);
	int (*temperature)(nt_nvml_device device, int sensor, unsigned int *celsius);
	int (*new_temperature)(nt_nvml_device device, struct nt_nvml_temperature *temperature);
	int (*power)(nt_nvml_device device, unsigned int *mw);
	int (*power_limit)(nt_nvml_device device, unsigned int *mw);
	int (*reasons)(nt_nvml_device device, unsigned long long *reasons);
	int (*old_reasons)(nt_nvml_device device, unsigned long long *reasons);
	int (*utilization)(nt_nvml_device device, struct nt_nvml_utilization *utilization);
	int (*memory)(nt_nvml_device device, struct nt_nvml_memory *memory);
	int (*violation)(nt_nvml_device device, int policy, struct nt_nvml_violation *violation);
	int (*energy)(nt_nvml_device device, unsigned long long *mj);
	int (*ecc)(nt_nvml_device device, int type, int counter, unsigned long long *errors);
	int (*remapped)(nt_nvml_device device, unsigned int *correctable,
			unsigned int *uncorrectable, unsigned int *pending, unsigned int *failed);
	int (*replays)(nt_nvml_device device, unsigned int *replays);
	int (*link_errors)(nt_nvml_device device, unsigned int link, int counter,
			   unsigned long long *errors);
	int (*processes)(nt_nvml_device device, unsigned int *count,
			 struct nt_nvml_process *process);
	int (*new_events)(nt_nvml_event_set *set);
	int (*register_events)(nt_nvml_device device, unsigned long long types,
			       nt_nvml_event_set set);
	int (*wait)(nt_nvml_event_set set, struct nt_nvml_event *event, unsigned int ms);
	int (*free_events)(nt_nvml_event_set set);
};

static const struct nt_library_function table[] = {
	{offsetof(struct nvml_functions, init), "nvmlInit_v2", true},
	{offsetof(struct nvml_functions, shutdown), "nvmlShutdown", true},
	{offsetof(struct nvml_functions, error_string), "nvmlErrorString", true},
	{offsetof(struct nvml_functions, count), "nvmlDeviceGetCount_v2", true},
	{offsetof(struct nvml_functions, by_index), "nvmlDeviceGetHandleByIndex_v2", true},
	{offsetof(struct nvml_functions, uuid), "nvmlDeviceGetUUID", true},
	{offsetof(struct nvml_functions, name), "nvmlDeviceGetName", false},
	{offsetof(struct nvml_functions, clock), "nvmlDeviceGetClockInfo", false},
	{offsetof(struct nvml_functions, most_clock), "nvmlDeviceGetMaxClockInfo", false},
	{offsetof(struct nvml_functions, temperature), "nvmlDeviceGetTemperature", false},
	{offsetof(struct nvml_functions, new_temperature), "nvmlDeviceGetTemperatureV", false},
	{offsetof(struct nvml_functions, power), "nvmlDeviceGetPowerUsage", false},
	{offsetof(struct nvml_functions, power_limit), "nvmlDeviceGetEnforcedPowerLimit", false},
	{offsetof(struct nvml_functions, reasons), "nvmlDeviceGetCurrentClocksEventReasons", false},
	{offsetof(struct nvml_functions, old_reasons), "nvmlDeviceGetCurrentClocksThrottleReasons",
	 false},
	{offsetof(struct nvml_functions, utilization), "nvmlDeviceGetUtilizationRates", false},
	{offsetof(struct nvml_functions, memory), "nvmlDeviceGetMemoryInfo", false},
	{offsetof(struct nvml_functions, violation), "nvmlDeviceGetViolationStatus", false},
	{offsetof(struct nvml_functions, energy), "nvmlDeviceGetTotalEnergyConsumption", false},
	{offsetof(struct nvml_functions, ecc), "nvmlDeviceGetTotalEccErrors", false},
	{offsetof(struct nvml_functions, remapped), "nvmlDeviceGetRemappedRows", false},
	{offsetof(struct nvml_functions, replays), "nvmlDeviceGetPcieReplayCounter", false},
	{offsetof(struct nvml_functions, link_errors), "nvmlDeviceGetNvLinkErrorCounter", false},
	{offsetof(struct nvml_functions, processes), "nvmlDeviceGetComputeRunningProcesses_v3",
	 false},
	{offsetof(struct nvml_functions, new_events), "nvmlEventSetCreate", false},
	{offsetof(struct nvml_functions, register_events), "nvmlDeviceRegisterEvents", false},
	{offsetof(struct nvml_functions, wait), "nvmlEventSetWait_v2", false},
	{offsetof(struct nvml_functions, free_events), "nvmlEventSetFree", false},
};

struct nt_nvml {
	void *library;
	bool initialised;
	struct nvml_functions fn;
	struct nt_gpm gpm;
	struct nt_mig mig;
	nt_nvml_event_set events; /* NULL: there are none */
	nt_nvml_device device[NT_GPU_CARDS];
	char id[NT_GPU_CARDS][NT_GPU_CARD_ID];
	char model[NT_GPU_CARDS][NT_GPU_CARD_MODEL];
	uint32_t count, over_cap;
	struct xids {
		uint64_t count, last;
	} xids[NT_GPU_CARDS], of_instance[NT_GPU_CARDS][NT_MIG_INSTANCES]; /* by its id */
};

/* ---- opening -------------------------------------------------------------------------------- */

static int find_functions(struct nt_nvml *nvml, char error[NT_LIBRARY_ERROR])
{
	const char *missing = nt_library_functions(nvml->library, table,
						   sizeof(table) / sizeof(table[0]), &nvml->fn);

	if (missing) {
		nt_library_error_say(error, missing, "the library has no such function");
		return -EPROTO;
	}
	nt_gpm_open(&nvml->gpm, nvml->library);
	nt_mig_open(&nvml->mig, nvml->library);
	return 0;
}

static int fail(const struct nt_nvml *nvml, int result, const char *what,
		char error[NT_LIBRARY_ERROR])
{
	nt_library_error_say(error, what, nvml->fn.error_string(result));
	return result == NT_NVML_DRIVER_NOT_LOADED ? -ENODEV : -EIO;
}

/* XIDs are reported as events, for which a process must register. */
static void register_events(struct nt_nvml *nvml)
{
	const struct nvml_functions *fn = &nvml->fn;

	if (!fn->new_events || !fn->register_events || !fn->wait || !fn->free_events ||
	    fn->new_events(&nvml->events) != NT_NVML_SUCCESS) {
		nvml->events = NULL;
		return;
	}
	for (uint32_t i = 0; i < nvml->count; i++)
		(void)fn->register_events(nvml->device[i], NT_NVML_EVENT_XID, nvml->events);
}

static int find_cards(struct nt_nvml *nvml, char error[NT_LIBRARY_ERROR])
{
	unsigned int count = 0;
	int r = nvml->fn.count(&count);

	if (r != NT_NVML_SUCCESS)
		return fail(nvml, r, "count GPUs", error);
	if (!count) {
		nt_library_error_say(error, "count GPUs", "there is none");
		return -ENODEV;
	}
	for (unsigned int i = 0; i < count; i++) {
		nt_nvml_device device = NULL;

		if (nvml->count == NT_GPU_CARDS) {
			nvml->over_cap = count - i;
			break;
		}
		if (nvml->fn.by_index(i, &device) != NT_NVML_SUCCESS)
			continue;
		nvml->device[nvml->count] = device;
		if (nvml->fn.uuid(device, nvml->id[nvml->count], NT_GPU_CARD_ID) != NT_NVML_SUCCESS)
			(void)snprintf(nvml->id[nvml->count], NT_GPU_CARD_ID, "GPU %u", i);
		if (nvml->fn.name && nvml->fn.name(device, nvml->model[nvml->count],
						   NT_GPU_CARD_MODEL) != NT_NVML_SUCCESS)
			*nvml->model[nvml->count] = '\0';
		nvml->model[nvml->count][NT_GPU_CARD_MODEL - 1] = '\0';
		nvml->id[nvml->count++][NT_GPU_CARD_ID - 1] = '\0';
	}
	return 0;
}

int nt_nvml_open(const char *path, char error[NT_LIBRARY_ERROR], struct nt_nvml **ret_nvml)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = calloc(1, sizeof(*nvml));
	int r;

	*error = '\0';
	if (!nvml)
		return -ENOMEM;
	nvml->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		nt_library_error_say(error, "load", dlerror());
		return -ENOENT;
	}
	r = find_functions(nvml, error);
	if (r < 0)
		return r;
	r = nvml->fn.init();
	if (r != NT_NVML_SUCCESS)
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
	nt_gpm_close(&nvml->gpm);
	if (nvml->initialised)
		(void)nvml->fn.shutdown();
	if (nvml->library)
		(void)dlclose(nvml->library);
	free(nvml);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The first function is deprecated from 12.8 on, and may be missing one day. */
static int get_temperature(const struct nvml_functions *fn, nt_nvml_device device,
			   unsigned int *celsius)
{
	struct nt_nvml_temperature temperature = {.version = NT_NVML_TEMPERATURE_VERSION,
						  .sensor = NT_NVML_TEMPERATURE_GPU};
	int r = NT_NVML_NOT_SUPPORTED;

	if (fn->temperature)
		r = fn->temperature(device, NT_NVML_TEMPERATURE_GPU, celsius);
	if (r == NT_NVML_SUCCESS || !fn->new_temperature)
		return r;
	r = fn->new_temperature(device, &temperature);
	*celsius = temperature.celsius > 0 ? (unsigned int)temperature.celsius : 0;
	return r;
}

static void read_gauges(const struct nvml_functions *fn, nt_nvml_device device,
			struct nt_gpu_card *card)
{
	struct nt_nvml_utilization used = {0};
	struct nt_nvml_memory memory = {0};
	unsigned long long reasons = 0;
	unsigned int value = 0;

	if (fn->clock && fn->clock(device, NT_NVML_CLOCK_SM, &value) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_CLOCK, value);
	if (fn->most_clock && fn->most_clock(device, NT_NVML_CLOCK_SM, &value) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_CLOCK_MOST, value);
	if (fn->clock && fn->clock(device, NT_NVML_CLOCK_MEM, &value) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_MEMORY_CLOCK, value);
	if (get_temperature(fn, device, &value) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_TEMPERATURE, value);
	if (fn->power && fn->power(device, &value) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_POWER, value);
	if (fn->power_limit && fn->power_limit(device, &value) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_POWER_LIMIT, value);
	if ((fn->reasons && fn->reasons(device, &reasons) == NT_NVML_SUCCESS) ||
	    (fn->old_reasons && fn->old_reasons(device, &reasons) == NT_NVML_SUCCESS))
		nt_gpu_card_set(card, NT_GPU_CARD_REASONS, reasons);
	if (fn->utilization && fn->utilization(device, &used) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_USED, used.gpu);
	if (fn->memory && fn->memory(device, &memory) == NT_NVML_SUCCESS) {
		nt_gpu_card_set(card, NT_GPU_CARD_MEMORY_USED, memory.used);
		nt_gpu_card_set(card, NT_GPU_CARD_MEMORY_TOTAL, memory.total);
	}
}

static void read_links(const struct nvml_functions *fn, nt_nvml_device device,
		       struct nt_gpu_card *card)
{
	uint64_t sum = 0;
	bool any = false;

	for (unsigned int link = 0; fn->link_errors && link < NT_NVML_LINKS; link++) {
		for (int counter = 0; counter < NT_NVML_LINK_COUNTERS; counter++) {
			unsigned long long errors = 0;

			if (fn->link_errors(device, link, counter, &errors) != NT_NVML_SUCCESS)
				continue;
			sum += errors;
			any = true;
		}
	}
	if (any)
		nt_gpu_card_set(card, NT_GPU_CARD_NVLINK_ERRORS, sum);
}

static void read_counters(const struct nvml_functions *fn, nt_nvml_device device,
			  struct nt_gpu_card *card)
{
	unsigned int correctable = 0, uncorrectable = 0, pending = 0, failed = 0, replays = 0;
	struct nt_nvml_violation violation = {0};
	unsigned long long value = 0;

	if (fn->violation &&
	    fn->violation(device, NT_NVML_POLICY_POWER, &violation) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_POWER_CAPPED, violation.violation_ns);
	if (fn->violation &&
	    fn->violation(device, NT_NVML_POLICY_THERMAL, &violation) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_THERMAL, violation.violation_ns);
	if (fn->energy && fn->energy(device, &value) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_ENERGY, value);
	if (fn->ecc &&
	    fn->ecc(device, NT_NVML_ECC_CORRECTED, NT_NVML_ECC_VOLATILE, &value) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_CORRECTED, value);
	if (fn->ecc && fn->ecc(device, NT_NVML_ECC_UNCORRECTED, NT_NVML_ECC_VOLATILE, &value) ==
			       NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_UNCORRECTED, value);
	if (fn->remapped && fn->remapped(device, &correctable, &uncorrectable, &pending, &failed) ==
				    NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_REMAPPED, (uint64_t)correctable + uncorrectable);
	if (fn->replays && fn->replays(device, &replays) == NT_NVML_SUCCESS)
		nt_gpu_card_set(card, NT_GPU_CARD_PCIE_REPLAYS, replays);
	read_links(fn, device, card);
}

/* Where the library has too many, it states their number only. */
static void read_processes(const struct nvml_functions *fn, nt_nvml_device device,
			   struct nt_gpu_card *card)
{
	struct nt_nvml_process process[PROCESSES_A_READ];
	unsigned int count = PROCESSES_A_READ;
	const int r = fn->processes ? fn->processes(device, &count, process) : NT_NVML_SUCCESS;

	if (!fn->processes || (r != NT_NVML_SUCCESS && r != NT_NVML_INSUFFICIENT_SIZE))
		return;
	for (unsigned int i = 0; r == NT_NVML_SUCCESS && i < count && i < NT_GPU_CARD_PIDS; i++)
		card->pid[card->pids++] = process[i].pid;
	card->pids_over_cap = count > card->pids ? count - card->pids : 0;
}

static void note_xid(struct xids *xids, uint64_t xid)
{
	xids->count++;
	xids->last = xid;
}

/* An error that is not of one MIG instance is of all of them. */
static void take_event(struct nt_nvml *nvml, uint32_t at, const struct nt_nvml_event *event)
{
	struct xids *of_instance = nvml->of_instance[at];

	note_xid(&nvml->xids[at], event->data);
	if (event->gpu_instance < NT_MIG_INSTANCES) {
		note_xid(&of_instance[event->gpu_instance], event->data);
		return;
	}
	for (uint32_t i = 0; i < NT_MIG_INSTANCES; i++)
		note_xid(&of_instance[i], event->data);
}

static void take_events(struct nt_nvml *nvml)
{
	for (int n = 0; nvml->events && n < XIDS_A_READ; n++) {
		struct nt_nvml_event event = {0};

		if (nvml->fn.wait(nvml->events, &event, 0) != NT_NVML_SUCCESS)
			return;
		if (!(event.type & NT_NVML_EVENT_XID) || event.data == XID_OF_A_KILL)
			continue;
		for (uint32_t i = 0; i < nvml->count; i++)
			if (nvml->device[i] == event.device)
				take_event(nvml, i, &event);
	}
}

static void set_xids(const struct nt_nvml *nvml, const struct xids *xids, struct nt_gpu_card *card)
{
	if (!nvml->events)
		return;
	nt_gpu_card_set(card, NT_GPU_CARD_XIDS, xids->count);
	if (xids->count)
		nt_gpu_card_set(card, NT_GPU_CARD_LAST_XID, xids->last);
	else
		card->known &= ~(UINT32_C(1) << NT_GPU_CARD_LAST_XID);
}

static bool is_lost(const struct nvml_functions *fn, nt_nvml_device device)
{
	unsigned int value = 0;
	const int r = get_temperature(fn, device, &value);

	return r == NT_NVML_GPU_IS_LOST || r == NT_NVML_RESET_REQUIRED;
}

/* Health is the card's; processes, memory and what computes are the instance's. */
static void read_instance(struct nt_nvml *nvml, uint32_t at, const struct nt_mig_instance *instance,
			  const struct nt_gpu_card *whole, struct nt_gpu_card *card)
{
	const struct nvml_functions *fn = &nvml->fn;
	struct nt_nvml_memory memory = {0};

	*card = *whole;
	card->is_instance = 1;
	card->pids = card->pids_over_cap = 0;
	memset(card->id, 0, sizeof(card->id));
	memset(card->model, 0, sizeof(card->model)); /* it has a part of that model's peak */
	if (fn->uuid(instance->device, card->id, sizeof(card->id)) != NT_NVML_SUCCESS)
		(void)snprintf(card->id, sizeof(card->id), "MIG %u of %.32s", instance->id,
			       nvml->id[at]);
	card->id[sizeof(card->id) - 1] = '\0';
	card->known &= ~(UINT32_C(1) << NT_GPU_CARD_MEMORY_USED |
			 UINT32_C(1) << NT_GPU_CARD_MEMORY_TOTAL | UINT32_C(1) << NT_GPU_CARD_USED);
	if (fn->memory && fn->memory(instance->device, &memory) == NT_NVML_SUCCESS) {
		nt_gpu_card_set(card, NT_GPU_CARD_MEMORY_USED, memory.used);
		nt_gpu_card_set(card, NT_GPU_CARD_MEMORY_TOTAL, memory.total);
	}
	set_xids(nvml,
		 instance->id < NT_MIG_INSTANCES ? &nvml->of_instance[at][instance->id]
						 : &nvml->xids[at],
		 card);
	read_processes(fn, instance->device, card);
	nt_gpm_read(&nvml->gpm, nvml->device[at], instance->id, card);
}

static void read_card(struct nt_nvml *nvml, uint32_t at, struct nt_gpu_cards *cards)
{
	struct nt_mig_instance instance[NT_MIG_INSTANCES];
	struct nt_gpu_card *card = &cards->card[at];
	nt_nvml_device device = nvml->device[at];
	uint32_t instances;

	memcpy(card->id, nvml->id[at], sizeof(card->id));
	memcpy(card->model, nvml->model[at], sizeof(card->model));
	set_xids(nvml, &nvml->xids[at], card);
	if (is_lost(&nvml->fn, device)) {
		cards->lost++;
		return;
	}
	read_gauges(&nvml->fn, device, card);
	read_counters(&nvml->fn, device, card);
	if (!nt_mig_list(&nvml->mig, device, instance, &instances)) {
		read_processes(&nvml->fn, device, card);
		nt_gpm_read(&nvml->gpm, device, NT_GPM_WHOLE, card);
		return;
	}
	for (uint32_t i = 0; i < instances; i++) {
		if (cards->count == NT_GPU_CARDS)
			cards->over_cap++;
		else
			read_instance(nvml, at, &instance[i], card, &cards->card[cards->count++]);
	}
}

void nt_nvml_read(struct nt_nvml *nvml, struct nt_gpu_cards *ret_cards)
{
	*ret_cards = (struct nt_gpu_cards){.count = nvml->count, .over_cap = nvml->over_cap};
	take_events(nvml);
	nt_gpm_begin(&nvml->gpm);
	for (uint32_t i = 0; i < nvml->count; i++)
		read_card(nvml, i, ret_cards);
}
