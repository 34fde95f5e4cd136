/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/amdsmi.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/amdsmi_abi.h"
#include "agent/gpu/kfd.h"
#include "agent/gpu/library_symbol.h"

enum {
	PROCESSES_A_READ = 256, /* of the node */
	MW_A_WATT = 1000,
	UW_A_MW = 1000,
	MJ_A_J = 1000,
	ENERGY_A_J = 1 << 16,
};

struct amdsmi_functions {
	int (*init)(uint64_t flags);
	int (*shut_down)(void);
	int (*release)(struct nt_amdsmi_version *version);
	int (*sockets)(uint32_t *count, nt_amdsmi_socket *socket);
	int (*devices)(nt_amdsmi_socket socket, uint32_t *count, nt_amdsmi_device *device);
	int (*bdf)(nt_amdsmi_device device, struct nt_amdsmi_bdf *bdf);
	/* From here on any may be missing: then its values are not known. */
	int (*error_string)(int status, const char **text);
	int (*asic)(nt_amdsmi_device device, struct nt_amdsmi_asic *asic);
	int (*metrics)(nt_amdsmi_device device, struct nt_amdsmi_metrics *metrics);
	int (*clock)(nt_amdsmi_device device, int type, struct nt_amdsmi_clock *clock);
	int (*power_cap)(nt_amdsmi_device device, uint32_t sensor,
			 struct nt_amdsmi_power_cap *power_cap);
	int (*memory_total)(nt_amdsmi_device device, int type, uint64_t *bytes);
	int (*memory_used)(nt_amdsmi_device device, int type, uint64_t *bytes);
	int (*errors)(nt_amdsmi_device device, struct nt_amdsmi_errors *errors);
	int (*block_errors)(nt_amdsmi_device device, uint64_t block,
			    struct nt_amdsmi_errors *errors);
	int (*replays)(nt_amdsmi_device device, uint64_t *replays);
	int (*processes)(struct nt_amdsmi_process *process, uint32_t *count);
	int (*process_gpus)(uint32_t pid, uint32_t *index, uint32_t *count);
};

static const struct nt_library_function table[] = {
	{offsetof(struct amdsmi_functions, init), "amdsmi_init", true},
	{offsetof(struct amdsmi_functions, shut_down), "amdsmi_shut_down", true},
	{offsetof(struct amdsmi_functions, release), "amdsmi_get_lib_version", true},
	{offsetof(struct amdsmi_functions, sockets), "amdsmi_get_socket_handles", true},
	{offsetof(struct amdsmi_functions, devices), "amdsmi_get_processor_handles", true},
	{offsetof(struct amdsmi_functions, bdf), "amdsmi_get_gpu_device_bdf", true},
	{offsetof(struct amdsmi_functions, error_string), "amdsmi_status_code_to_string", false},
	{offsetof(struct amdsmi_functions, asic), "amdsmi_get_gpu_asic_info", false},
	{offsetof(struct amdsmi_functions, metrics), "amdsmi_get_gpu_metrics_info", false},
	{offsetof(struct amdsmi_functions, clock), "amdsmi_get_clock_info", false},
	{offsetof(struct amdsmi_functions, power_cap), "amdsmi_get_power_cap_info", false},
	{offsetof(struct amdsmi_functions, memory_total), "amdsmi_get_gpu_memory_total", false},
	{offsetof(struct amdsmi_functions, memory_used), "amdsmi_get_gpu_memory_usage", false},
	{offsetof(struct amdsmi_functions, errors), "amdsmi_get_gpu_total_ecc_count", false},
	{offsetof(struct amdsmi_functions, block_errors), "amdsmi_get_gpu_ecc_count", false},
	{offsetof(struct amdsmi_functions, replays), "amdsmi_get_gpu_pci_replay_counter", false},
	{offsetof(struct amdsmi_functions, processes), "amdsmi_get_gpu_compute_process_info",
	 false},
	{offsetof(struct amdsmi_functions, process_gpus), "amdsmi_get_gpu_compute_process_gpus",
	 false},
};

/* How long limits held a card's clock down, since the library was opened. */
struct limits {
	uint64_t read_ns; /* the last reading; 0: none */
	struct nt_amdsmi_residency last;
	uint64_t thermal_ns, power_ns;
};

struct nt_amdsmi {
	void *library;
	bool initialised;
	bool states_processes;
	struct amdsmi_functions fn;
	nt_amdsmi_device device[NT_GPU_CARDS];
	char id[NT_GPU_CARDS][NT_GPU_CARD_ID];
	char model[NT_GPU_CARDS][NT_GPU_CARD_MODEL];
	uint32_t count, over_cap;
	struct limits limits[NT_GPU_CARDS];
};

/* ---- opening -------------------------------------------------------------------------------- */

static int fail(const struct nt_amdsmi *amdsmi, int status, const char *what,
		char error[NT_LIBRARY_ERROR])
{
	const char *text = NULL;

	if (amdsmi->fn.error_string && amdsmi->fn.error_string(status, &text) != NT_AMDSMI_SUCCESS)
		text = NULL;
	nt_library_error_say(error, what, text);
	return status == NT_AMDSMI_DRIVER_NOT_LOADED ? -ENODEV : -EIO;
}

static int initialise(struct nt_amdsmi *amdsmi, char error[NT_LIBRARY_ERROR])
{
	struct nt_amdsmi_version version = {0};
	char text[NT_LIBRARY_ERROR];
	int r = amdsmi->fn.init(NT_AMDSMI_INIT_GPUS);

	if (r != NT_AMDSMI_SUCCESS)
		return fail(amdsmi, r, "initialise", error);
	amdsmi->initialised = true;
	r = amdsmi->fn.release(&version);
	if (r != NT_AMDSMI_SUCCESS)
		return fail(amdsmi, r, "get the release", error);
	if (version.release >= NT_AMDSMI_FIRST && version.release <= NT_AMDSMI_LAST)
		return 0;
	(void)snprintf(text, sizeof(text), "%u is none of %d to %d", version.release,
		       NT_AMDSMI_FIRST, NT_AMDSMI_LAST);
	nt_library_error_say(error, "the library's release", text);
	return -EPROTO;
}

/* As the kernel and Kubernetes write it. Partitions of a card may have the same one. */
static void name_card(const struct nt_amdsmi *amdsmi, nt_amdsmi_device device, uint32_t number,
		      char id[NT_GPU_CARD_ID])
{
	struct nt_amdsmi_bdf bdf = {0};
	size_t len;

	if (amdsmi->fn.bdf(device, &bdf) != NT_AMDSMI_SUCCESS) {
		(void)snprintf(id, NT_GPU_CARD_ID, "GPU %u", number);
		return;
	}
	(void)snprintf(id, NT_GPU_CARD_ID, "%04llx:%02x:%02x.%x",
		       (unsigned long long)(bdf.number >> 16),
		       (unsigned int)(bdf.number >> 8 & 0xff),
		       (unsigned int)(bdf.number >> 3 & 0x1f), (unsigned int)(bdf.number & 7));
	len = strlen(id);
	for (uint32_t i = 0; i < number; i++)
		if (strcmp(amdsmi->id[i], id) == 0)
			(void)snprintf(id + len, NT_GPU_CARD_ID - len, " partition %u", number);
}

static void add_card(struct nt_amdsmi *amdsmi, nt_amdsmi_device device)
{
	const uint32_t at = amdsmi->count;
	struct nt_amdsmi_asic asic = {0};

	if (at == NT_GPU_CARDS) {
		amdsmi->over_cap++;
		return;
	}
	amdsmi->device[at] = device;
	name_card(amdsmi, device, at, amdsmi->id[at]);
	if (amdsmi->fn.asic && amdsmi->fn.asic(device, &asic) == NT_AMDSMI_SUCCESS)
		(void)snprintf(amdsmi->model[at], NT_GPU_CARD_MODEL, "%.*s", NT_GPU_CARD_MODEL - 1,
			       (const char *)&asic);
	amdsmi->count++;
}

/* A socket is a card, or all partitions of one. */
static void find_devices(struct nt_amdsmi *amdsmi, nt_amdsmi_socket socket)
{
	nt_amdsmi_device device[NT_GPU_CARDS] = {0};
	uint32_t count = 0, read;

	if (amdsmi->fn.devices(socket, &count, NULL) != NT_AMDSMI_SUCCESS || !count)
		return;
	read = count < NT_GPU_CARDS ? count : NT_GPU_CARDS;
	amdsmi->over_cap += count - read;
	count = read;
	if (amdsmi->fn.devices(socket, &count, device) != NT_AMDSMI_SUCCESS)
		return;
	for (uint32_t i = 0; i < count && i < read; i++)
		add_card(amdsmi, device[i]);
}

static int find_cards(struct nt_amdsmi *amdsmi, char error[NT_LIBRARY_ERROR])
{
	nt_amdsmi_socket socket[NT_GPU_CARDS] = {0};
	uint32_t count = 0, read;
	int r = amdsmi->fn.sockets(&count, NULL);

	read = count < NT_GPU_CARDS ? count : NT_GPU_CARDS;
	amdsmi->over_cap = count - read;
	count = read;
	if (r == NT_AMDSMI_SUCCESS && read)
		r = amdsmi->fn.sockets(&count, socket);
	if (r != NT_AMDSMI_SUCCESS)
		return fail(amdsmi, r, "count GPUs", error);
	for (uint32_t i = 0; i < count && i < read; i++)
		find_devices(amdsmi, socket[i]);
	if (amdsmi->count)
		return 0;
	nt_library_error_say(error, "count GPUs", "there is none");
	return -ENODEV;
}

/* ROCm's own directory need not be one of the loader's. Why: what an error is about begins it. */
static void *load_any(char error[NT_LIBRARY_ERROR])
{
	static const char *const directory[] = {"", "/opt/rocm/lib/"};
	char name[64];

	for (unsigned int release = NT_AMDSMI_LAST; release >= NT_AMDSMI_FIRST; release--) {
		for (size_t i = 0; i < sizeof(directory) / sizeof(directory[0]); i++) {
			void *library;
			const char *why;

			(void)snprintf(name, sizeof(name), "%slibamd_smi.so.%u", directory[i],
				       release);
			library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
			if (library)
				return library;
			/* The first one, or that a library is there and another one that it needs is not. */
			why = dlerror();
			if (!*error || (why && strncmp(why, name, strlen(name)) != 0))
				nt_library_error_say(error, "load", why);
		}
	}
	return NULL;
}

int nt_amdsmi_open(const char *path, char error[NT_LIBRARY_ERROR], struct nt_amdsmi **ret_amdsmi)
{
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = calloc(1, sizeof(*amdsmi));
	const char *missing;
	int r;

	*error = '\0';
	if (!amdsmi)
		return -ENOMEM;
	amdsmi->library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : load_any(error);
	if (!amdsmi->library) {
		if (path)
			nt_library_error_say(error, "load", dlerror());
		return -ENOENT;
	}
	*error = '\0';
	missing = nt_library_functions(amdsmi->library, table, sizeof(table) / sizeof(table[0]),
				       &amdsmi->fn);
	if (missing) {
		nt_library_error_say(error, missing, "the library has no such function");
		return -EPROTO;
	}
	r = initialise(amdsmi, error);
	if (r == 0)
		r = find_cards(amdsmi, error);
	if (r < 0)
		return r;
	amdsmi->states_processes =
		amdsmi->fn.processes && amdsmi->fn.process_gpus && !nt_kfd_hides_gpus(NT_KFD_NODES);
	*ret_amdsmi = nt_take(amdsmi);
	return 0;
}

void nt_amdsmi_close(struct nt_amdsmi *amdsmi)
{
	if (!amdsmi)
		return;
	if (amdsmi->initialised)
		(void)amdsmi->fn.shut_down();
	if (amdsmi->library)
		(void)dlclose(amdsmi->library);
	free(amdsmi);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Counters of the firmware have 32 bits, in some releases of the library as well. */
static bool is_known(uint64_t counter)
{
	return counter != UINT64_MAX && counter != UINT32_MAX;
}

/* The part of the time since the last reading, in millionths; 0 where it is not known. */
static uint64_t share(uint64_t before, uint64_t now, uint64_t cycles)
{
	uint64_t held;

	if (!is_known(before) || !is_known(now) || now < before)
		return 0;
	held = now - before < cycles ? now - before : cycles;
	return (uint64_t)((double)held / (double)cycles * NT_GPU_CARD_WHOLE);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Adds what held since the last reading, and returns the reasons that held for most of that time.
 * Counters that became smaller began again: nothing is added then.
 */
static uint64_t add_limits(struct limits *limits, const struct nt_amdsmi_residency *now,
			   uint64_t now_ns)
{
	const struct nt_amdsmi_residency *last = &limits->last;
	uint64_t thermal = 0, power = 0, reasons = 0;

	if (limits->read_ns && now->cycles == last->cycles)
		return 0; /* the same table again: the next one counts for this time, too */
	if (limits->read_ns && now_ns > limits->read_ns && is_known(last->cycles) &&
	    now->cycles > last->cycles) {
		const uint64_t cycles = now->cycles - last->cycles;
		const uint64_t gap_ns = now_ns - limits->read_ns;

		thermal = larger(share(last->prochot, now->prochot, cycles),
				 share(last->socket, now->socket, cycles));
		thermal = larger(thermal, share(last->regulator, now->regulator, cycles));
		thermal = larger(thermal, share(last->memory, now->memory, cycles));
		power = share(last->power, now->power, cycles);
		limits->thermal_ns += thermal * (gap_ns / NT_GPU_CARD_WHOLE);
		limits->power_ns += power * (gap_ns / NT_GPU_CARD_WHOLE);
	}
	limits->last = *now;
	limits->read_ns = now_ns;
	if (thermal >= NT_GPU_CARD_WHOLE / 2)
		reasons |= NT_GPU_REASON_THERMAL;
	if (power >= NT_GPU_CARD_WHOLE / 2)
		reasons |= NT_GPU_REASON_POWER_CAP;
	return reasons;
}

static uint64_t translate(uint64_t throttle)
{
	return (throttle & NT_AMDSMI_THROTTLE_THERMAL ? NT_GPU_REASON_THERMAL : 0) |
	       (throttle & NT_AMDSMI_THROTTLE_POWER ? NT_GPU_REASON_POWER_CAP : 0) |
	       (throttle & NT_AMDSMI_THROTTLE_OTHER ? NT_GPU_REASON_HARDWARE : 0);
}

static void read_reasons(struct limits *limits, const struct nt_amdsmi_metrics *metrics,
			 uint64_t now_ns, struct nt_gpu_card *card)
{
	const bool has_throttle = metrics->throttle != UINT64_MAX;
	const bool has_cycles = is_known(metrics->residency.cycles);
	uint64_t reasons = 0;

	if (has_cycles) {
		reasons = add_limits(limits, &metrics->residency, now_ns);
		nt_gpu_card_set(card, NT_GPU_CARD_THERMAL, limits->thermal_ns);
		nt_gpu_card_set(card, NT_GPU_CARD_POWER_CAPPED, limits->power_ns);
	}
	if (has_throttle)
		reasons |= translate(metrics->throttle);
	if (metrics->gfx_percent == 0)
		reasons |= NT_GPU_REASON_IDLE;
	if (has_throttle || has_cycles)
		nt_gpu_card_set(card, NT_GPU_CARD_REASONS, reasons);
}

static void set_16(struct nt_gpu_card *card, enum nt_gpu_card_value at, uint16_t value,
		   uint64_t unit)
{
	if (value != UINT16_MAX)
		nt_gpu_card_set(card, at, value * unit);
}

static void read_metrics(const struct amdsmi_functions *fn, nt_amdsmi_device device,
			 struct limits *limits, uint64_t now_ns, struct nt_gpu_card *card)
{
	struct nt_amdsmi_metrics metrics;

	memset(&metrics, 0xff, sizeof(metrics)); /* older releases write less */
	if (!fn->metrics || fn->metrics(device, &metrics) != NT_AMDSMI_SUCCESS)
		return;
	set_16(card, NT_GPU_CARD_TEMPERATURE, metrics.edge_celsius, 1);
	set_16(card, NT_GPU_CARD_TEMPERATURE, metrics.hotspot_celsius, 1);
	set_16(card, NT_GPU_CARD_POWER, metrics.mean_watts, MW_A_WATT);
	set_16(card, NT_GPU_CARD_POWER, metrics.watts, MW_A_WATT);
	set_16(card, NT_GPU_CARD_USED, metrics.gfx_percent, 1);
	if (is_known(metrics.energy))
		nt_gpu_card_set(card, NT_GPU_CARD_ENERGY, metrics.energy / ENERGY_A_J * MJ_A_J);
	if (is_known(metrics.pcie_replays))
		nt_gpu_card_set(card, NT_GPU_CARD_PCIE_REPLAYS, metrics.pcie_replays);
	read_reasons(limits, &metrics, now_ns, card);
}

/* All bits are set, of 16 or 32, where a clock is not known. */
static void read_clock(const struct amdsmi_functions *fn, nt_amdsmi_device device, int type,
		       enum nt_gpu_card_value at, struct nt_gpu_card *card)
{
	struct nt_amdsmi_clock clock = {.mhz = UINT32_MAX, .most_mhz = UINT32_MAX};

	if (!fn->clock || fn->clock(device, type, &clock) != NT_AMDSMI_SUCCESS)
		return;
	if (clock.mhz < UINT16_MAX)
		nt_gpu_card_set(card, at, clock.mhz);
	if (at == NT_GPU_CARD_CLOCK && clock.most_mhz && clock.most_mhz < UINT16_MAX)
		nt_gpu_card_set(card, NT_GPU_CARD_CLOCK_MOST, clock.most_mhz);
}

static void read_gauges(const struct amdsmi_functions *fn, nt_amdsmi_device device,
			struct nt_gpu_card *card)
{
	struct nt_amdsmi_power_cap power_cap = {0};
	uint64_t total = 0, used = 0;

	read_clock(fn, device, NT_AMDSMI_CLOCK_GFX, NT_GPU_CARD_CLOCK, card);
	read_clock(fn, device, NT_AMDSMI_CLOCK_MEM, NT_GPU_CARD_MEMORY_CLOCK, card);
	if (fn->power_cap && fn->power_cap(device, 0, &power_cap) == NT_AMDSMI_SUCCESS &&
	    power_cap.cap_uw && is_known(power_cap.cap_uw))
		nt_gpu_card_set(card, NT_GPU_CARD_POWER_LIMIT, power_cap.cap_uw / UW_A_MW);
	if (fn->memory_total && fn->memory_used &&
	    fn->memory_total(device, NT_AMDSMI_MEMORY_VRAM, &total) == NT_AMDSMI_SUCCESS &&
	    fn->memory_used(device, NT_AMDSMI_MEMORY_VRAM, &used) == NT_AMDSMI_SUCCESS) {
		nt_gpu_card_set(card, NT_GPU_CARD_MEMORY_TOTAL, total);
		nt_gpu_card_set(card, NT_GPU_CARD_MEMORY_USED, used);
	}
}

static void read_counters(const struct amdsmi_functions *fn, nt_amdsmi_device device,
			  struct nt_gpu_card *card)
{
	struct nt_amdsmi_errors errors = {0}, of_links = {0};
	uint64_t replays = 0, ignored;

	if (fn->errors && fn->errors(device, &errors) == NT_AMDSMI_SUCCESS &&
	    is_known(errors.corrected) && is_known(errors.uncorrected)) {
		nt_gpu_card_set(card, NT_GPU_CARD_CORRECTED, errors.corrected);
		nt_gpu_card_set(card, NT_GPU_CARD_UNCORRECTED, errors.uncorrected);
	}
	if (fn->block_errors &&
	    fn->block_errors(device, NT_AMDSMI_BLOCK_XGMI, &of_links) == NT_AMDSMI_SUCCESS &&
	    is_known(of_links.corrected) && is_known(of_links.uncorrected))
		nt_gpu_card_set(card, NT_GPU_CARD_NVLINK_ERRORS,
				of_links.corrected + of_links.uncorrected);
	if (!nt_gpu_card_get(card, NT_GPU_CARD_PCIE_REPLAYS, &ignored) && fn->replays &&
	    fn->replays(device, &replays) == NT_AMDSMI_SUCCESS && is_known(replays))
		nt_gpu_card_set(card, NT_GPU_CARD_PCIE_REPLAYS, replays);
}

static void read_card(struct nt_amdsmi *amdsmi, uint32_t at, uint64_t now_ns,
		      struct nt_gpu_cards *cards)
{
	struct nt_gpu_card *card = &cards->card[at];

	memcpy(card->id, amdsmi->id[at], sizeof(card->id));
	memcpy(card->model, amdsmi->model[at], sizeof(card->model));
	read_metrics(&amdsmi->fn, amdsmi->device[at], &amdsmi->limits[at], now_ns, card);
	read_gauges(&amdsmi->fn, amdsmi->device[at], card);
	read_counters(&amdsmi->fn, amdsmi->device[at], card);
	/* There is no status for it: a card that is gone answers nothing. */
	cards->lost += !card->known;
}

/* The library numbers GPUs in the order of its sockets and their devices. */
static void read_process(const struct amdsmi_functions *fn, uint32_t pid,
			 struct nt_gpu_cards *cards)
{
	uint32_t index[NT_GPU_CARDS] = {0}, count = NT_GPU_CARDS;
	const int r = fn->process_gpus(pid, index, &count);

	if (r != NT_AMDSMI_SUCCESS && r != NT_AMDSMI_INSUFFICIENT_SIZE)
		return;
	for (uint32_t i = 0; i < count && i < NT_GPU_CARDS; i++) {
		struct nt_gpu_card *card = index[i] < cards->count ? &cards->card[index[i]] : NULL;

		if (card && card->pids < NT_GPU_CARD_PIDS)
			card->pid[card->pids++] = pid;
		else if (card)
			card->pids_over_cap++;
	}
}

/* Those that have a queue on a card. It is not known on which card those over the cap compute. */
static void read_processes(const struct nt_amdsmi *amdsmi, struct nt_gpu_cards *cards)
{
	struct nt_amdsmi_process process[PROCESSES_A_READ] = {0};
	uint32_t total = 0, count = PROCESSES_A_READ;
	int r;

	if (!amdsmi->states_processes || amdsmi->fn.processes(NULL, &total) != NT_AMDSMI_SUCCESS ||
	    !total)
		return;
	r = amdsmi->fn.processes(process, &count);
	if (r != NT_AMDSMI_SUCCESS && r != NT_AMDSMI_INSUFFICIENT_SIZE)
		return;
	for (uint32_t i = 0; i < count && i < PROCESSES_A_READ; i++)
		if (process[i].pid)
			read_process(&amdsmi->fn, process[i].pid, cards);
	if (total > PROCESSES_A_READ)
		cards->card[0].pids_over_cap += total - PROCESSES_A_READ;
}

void nt_amdsmi_read(struct nt_amdsmi *amdsmi, uint64_t now_ns, struct nt_gpu_cards *ret_cards)
{
	*ret_cards = (struct nt_gpu_cards){.count = amdsmi->count, .over_cap = amdsmi->over_cap};
	for (uint32_t i = 0; i < amdsmi->count; i++)
		read_card(amdsmi, i, now_ns, ret_cards);
	read_processes(amdsmi, ret_cards);
}
