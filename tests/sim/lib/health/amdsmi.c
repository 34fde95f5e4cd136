/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stand-in for libamd_smi.so. The file in SIM_AMDSMI has its answers (answers.h).
 *
 *   init RESULT 0          what amdsmi_init() returns
 *   release NUMBER 0       the release that it states, instead of that of its ABI
 *   partitions NUMBER 0    devices that each socket has, one without this line
 *   hang SECONDS 0         every call of amdsmi_get_gpu_metrics_info() takes so long
 *   crash 0 0              and this one never returns
 *   NUMBER NAME VALUE      a value of a GPU; "result": of all its calls. Without a line a value is
 *                          not supported.
 *   NUMBER pid PID         a process that has a queue on it; any number of lines
 *   late-pid NUMBER PID    when this process has ended, its card has it no longer
 *   NUMBER model NAME      its model, with "_" in place of blanks
 */
#include "tests/sim/lib/health/amdsmi.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/lib/health/answers.h"

#define FILE_VARIABLE "SIM_AMDSMI"

enum {
	SUCCESS = 0,
	INVAL = 1,
	NOT_SUPPORTED = 2,
	NOT_INIT = 32,
	DRIVER_NOT_LOADED = 34,
	INSUFFICIENT_SIZE = 41,
	INIT_GPUS = 2,
	CLOCK_GFX = 0,
	CLOCK_MEM = 4,
	BLOCK_XGMI = 128,
	CARDS = 96,
	PROCESSES = 512,
};

struct amdsmi_device {
	uint32_t number;
};

static struct amdsmi_device cards[CARDS];
static char sockets[CARDS]; /* their addresses are the handles */
static bool is_initialised;

_Static_assert(sizeof(struct amdsmi_version) == 24, "as the library's");
_Static_assert(sizeof(struct amdsmi_asic_info) == (SIM_AMDSMI < 25 ? 448 : 896),
	       "as the library's");
_Static_assert(sizeof(struct amdsmi_clk_info) == 32, "as the library's");
_Static_assert(sizeof(struct amdsmi_power_cap_info) == 64, "as the library's");
_Static_assert(sizeof(struct amdsmi_error_count) == 64, "as the library's");
_Static_assert(sizeof(struct amdsmi_process_info) == 32, "as the library's");
_Static_assert(sizeof(struct amdsmi_gpu_metrics) == (SIM_AMDSMI < 25   ? 424
						     : SIM_AMDSMI < 26 ? 2368
								       : 4544),
	       "as the library's");

static bool find(const char *first, const char *second, unsigned int skip,
		 unsigned long long *ret_second, unsigned long long *ret_value)
{
	return answers_find(FILE_VARIABLE, first, second, skip, ret_second, ret_value);
}

static int get(const struct amdsmi_device *device, const char *name, uint64_t *ret_value)
{
	char number[ANSWERS_WORD];
	unsigned long long value = 0;

	if (!is_initialised)
		return NOT_INIT;
	(void)snprintf(number, sizeof(number), "%u", device->number);
	if (find(number, "result", 0, NULL, &value))
		return (int)value;
	if (!find(number, name, 0, NULL, &value))
		return NOT_SUPPORTED;
	*ret_value = value;
	return SUCCESS;
}

/* Leaves it as it is where there is none. */
static bool get_16(const struct amdsmi_device *device, const char *name, uint16_t *ret_value)
{
	uint64_t value = 0;

	if (get(device, name, &value) != SUCCESS)
		return false;
	*ret_value = (uint16_t)value;
	return true;
}

static uint32_t count_cards(void)
{
	char number[ANSWERS_WORD];
	unsigned long long value;
	uint32_t count;

	for (count = 0; count < CARDS; count++) {
		(void)snprintf(number, sizeof(number), "%u", count);
		if (!find(number, NULL, 0, NULL, &value))
			break;
	}
	return count;
}

static uint32_t count_partitions(void)
{
	unsigned long long ignored, partitions = 1;

	(void)find("partitions", NULL, 0, &partitions, &ignored);
	return partitions ? (uint32_t)partitions : 1;
}

int amdsmi_init(uint64_t flags)
{
	unsigned long long ignored, result = SUCCESS;

	if (flags != INIT_GPUS)
		return INVAL;
	for (uint32_t i = 0; i < CARDS; i++)
		cards[i].number = i;
	(void)find("init", NULL, 0, &result, &ignored);
	is_initialised = result == SUCCESS;
	return (int)result;
}

int amdsmi_shut_down(void)
{
	is_initialised = false;
	return SUCCESS;
}

int amdsmi_get_lib_version(struct amdsmi_version *version)
{
	unsigned long long ignored, release = SIM_AMDSMI;

	if (!is_initialised)
		return NOT_INIT;
	(void)find("release", NULL, 0, &release, &ignored);
	*version = (struct amdsmi_version){.minor = 1, .build = "stand-in"};
#if SIM_AMDSMI < 26
	version->year = (uint32_t)release;
#else
	version->major = (uint32_t)release;
#endif
	return SUCCESS;
}

int amdsmi_status_code_to_string(int status, const char **text)
{
	*text = status == DRIVER_NOT_LOADED ? "Driver not loaded" : "Unknown error";
	return SUCCESS;
}

/* As the library: `count` is the room, and becomes the number. */
static int list(uint32_t first, uint32_t number, uint32_t *count, void **handle, char *base,
		size_t size)
{
	const uint32_t room = *count;

	if (!is_initialised)
		return NOT_INIT;
	*count = handle && room < number ? room : number;
	for (uint32_t i = 0; handle && i < *count; i++)
		handle[i] = base + (first + i) * size;
	return SUCCESS;
}

int amdsmi_get_socket_handles(uint32_t *count, void **socket)
{
	const uint32_t partitions = count_partitions();

	return list(0, (count_cards() + partitions - 1) / partitions, count, socket, sockets, 1);
}

int amdsmi_get_processor_handles(void *socket, uint32_t *count, struct amdsmi_device **device)
{
	const uint32_t partitions = count_partitions(), all = count_cards();
	const uint32_t first = (uint32_t)((char *)socket - sockets) * partitions;
	const uint32_t left = first < all ? all - first : 0;

	return list(first, left < partitions ? left : partitions, count, (void **)device,
		    (char *)cards, sizeof(cards[0]));
}

int amdsmi_get_gpu_device_bdf(const struct amdsmi_device *device, uint64_t *bdf)
{
	const uint32_t socket = device->number / count_partitions();

	if (!is_initialised)
		return NOT_INIT;
	*bdf = (uint64_t)(socket / 8) << 16 | (5 + socket % 8) << 8 | 1 << 3;
	return SUCCESS;
}

int amdsmi_get_gpu_asic_info(const struct amdsmi_device *device, struct amdsmi_asic_info *asic)
{
	char number[ANSWERS_WORD], text[ANSWERS_LINE];

	(void)snprintf(number, sizeof(number), "%u", device->number);
	memset(asic, 'x', sizeof(*asic));
	if (!answers_text(FILE_VARIABLE, number, "model", text))
		return NOT_SUPPORTED;
	if (strcmp(text, "unterminated") != 0)
		(void)snprintf(asic->market_name, sizeof(asic->market_name), "%s", text);
	return SUCCESS;
}

int amdsmi_get_gpu_metrics_info(const struct amdsmi_device *device,
				struct amdsmi_gpu_metrics *metrics)
{
	unsigned long long ignored, seconds;
	uint64_t value;
	int r;

	if (find("hang", NULL, 0, &seconds, &ignored))
		(void)sleep((unsigned int)seconds);
	if (find("crash", NULL, 0, NULL, &ignored))
		(void)raise(SIGKILL);
	r = get(device, "result", &value);
	if (r != NOT_SUPPORTED)
		return r;
	memset(metrics, 0xff, sizeof(*metrics));
	(void)get_16(device, "edge", &metrics->temperature_edge);
	(void)get_16(device, "hotspot", &metrics->temperature_hotspot);
	(void)get_16(device, "gfx", &metrics->average_gfx_activity);
	(void)get_16(device, "mean-power", &metrics->average_socket_power);
	(void)get_16(device, "power", &metrics->current_socket_power);
	(void)get(device, "energy", &metrics->energy_accumulator);
	(void)get(device, "throttle", &metrics->indep_throttle_status);
	(void)get(device, "metric-replays", &metrics->pcie_replay_count_acc);
#if SIM_AMDSMI >= 25
	(void)get(device, "cycles", &metrics->accumulation_counter);
	(void)get(device, "prochot", &metrics->prochot_residency_acc);
	(void)get(device, "limit-power", &metrics->ppt_residency_acc);
	(void)get(device, "limit-socket", &metrics->socket_thm_residency_acc);
	(void)get(device, "limit-regulator", &metrics->vr_thm_residency_acc);
	(void)get(device, "limit-memory", &metrics->hbm_thm_residency_acc);
#endif
	return SUCCESS;
}

int amdsmi_get_clock_info(const struct amdsmi_device *device, int type,
			  struct amdsmi_clk_info *clock)
{
	const bool is_gfx = type == CLOCK_GFX;
	uint64_t value = 0;
	int r;

	if (!is_gfx && type != CLOCK_MEM)
		return NOT_SUPPORTED;
	r = get(device, is_gfx ? "clock" : "memory-clock", &value);
	if (r != SUCCESS)
		return r;
	memset(clock, 0xff, sizeof(*clock));
	clock->clk = (uint32_t)value;
	if (is_gfx && get(device, "most-clock", &value) == SUCCESS)
		clock->max_clk = (uint32_t)value;
	return SUCCESS;
}

int amdsmi_get_power_cap_info(const struct amdsmi_device *device, uint32_t sensor,
			      struct amdsmi_power_cap_info *info)
{
	*info = (struct amdsmi_power_cap_info){0};
	return sensor ? NOT_SUPPORTED : get(device, "power-cap", &info->power_cap);
}

int amdsmi_get_gpu_memory_total(const struct amdsmi_device *device, int type, uint64_t *bytes)
{
	return type ? NOT_SUPPORTED : get(device, "memory-total", bytes);
}

int amdsmi_get_gpu_memory_usage(const struct amdsmi_device *device, int type, uint64_t *bytes)
{
	return type ? NOT_SUPPORTED : get(device, "memory-used", bytes);
}

static int count_errors(const struct amdsmi_device *device, const char *corrected,
			const char *uncorrected, struct amdsmi_error_count *errors)
{
	int r;

	*errors = (struct amdsmi_error_count){0};
	r = get(device, corrected, &errors->correctable_count);
	return r == SUCCESS ? get(device, uncorrected, &errors->uncorrectable_count) : r;
}

int amdsmi_get_gpu_total_ecc_count(const struct amdsmi_device *device,
				   struct amdsmi_error_count *errors)
{
	return count_errors(device, "corrected", "uncorrected", errors);
}

int amdsmi_get_gpu_ecc_count(const struct amdsmi_device *device, uint64_t block,
			     struct amdsmi_error_count *errors)
{
	return block == BLOCK_XGMI
		       ? count_errors(device, "link-corrected", "link-uncorrected", errors)
		       : NOT_SUPPORTED;
}

int amdsmi_get_gpu_pci_replay_counter(const struct amdsmi_device *device, uint64_t *replays)
{
	return get(device, "replays", replays);
}

/* Whether the process computes on the card. */
static bool has(uint32_t card, uint32_t pid)
{
	char number[ANSWERS_WORD];
	unsigned long long found = 0;
	bool has_it = false;

	(void)snprintf(number, sizeof(number), "%u", card);
	for (unsigned int at = 0; !has_it && find(number, "pid", at, NULL, &found); at++)
		has_it = found == pid;
	return has_it && !answers_ended(FILE_VARIABLE, pid);
}

static bool is_among(const uint32_t *pid, uint32_t count, uint32_t wanted)
{
	for (uint32_t i = 0; i < count; i++)
		if (pid[i] == wanted)
			return true;
	return false;
}

/* Those of the node, each once. */
static uint32_t list_pids(uint32_t pid[PROCESSES])
{
	const uint32_t all = count_cards();
	uint32_t count = 0;

	for (uint32_t card = 0; card < all; card++) {
		char number[ANSWERS_WORD];
		unsigned long long found = 0;

		(void)snprintf(number, sizeof(number), "%u", card);
		for (unsigned int at = 0;
		     count < PROCESSES && find(number, "pid", at, NULL, &found); at++)
			if (!is_among(pid, count, (uint32_t)found) &&
			    !answers_ended(FILE_VARIABLE, found))
				pid[count++] = (uint32_t)found;
	}
	return count;
}

int amdsmi_get_gpu_compute_process_info(struct amdsmi_process_info *process, uint32_t *count)
{
	uint32_t pid[PROCESSES];
	const uint32_t room = *count, found = list_pids(pid);

	if (!is_initialised)
		return NOT_INIT;
	for (uint32_t i = 0; process && i < found && i < room; i++)
		process[i] = (struct amdsmi_process_info){.process_id = pid[i]};
	if (process && room < found)
		return INSUFFICIENT_SIZE;
	*count = found;
	return SUCCESS;
}

int amdsmi_get_gpu_compute_process_gpus(uint32_t pid, uint32_t *index, uint32_t *count)
{
	const uint32_t room = *count, all = count_cards();
	uint32_t found = 0;

	for (uint32_t card = 0; card < all; card++) {
		if (!has(card, pid))
			continue;
		if (found < room)
			index[found] = card;
		found++;
	}
	if (found > room)
		return INSUFFICIENT_SIZE;
	*count = found;
	return SUCCESS;
}
