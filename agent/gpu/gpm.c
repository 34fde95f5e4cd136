/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpm.h"

#include <math.h>

#include "agent/gpu/library_symbol.h"

#define PERCENT (NT_GPU_CARD_WHOLE / 100.0)
#define MIB     1048576.0
#define FASTEST 1e15 /* bytes a second: more is no rate */

static const struct {
	unsigned int id;
	enum nt_gpu_card_value value;
	double unit, most;
} table[] = {
	{NT_NVML_GPM_SM_ACTIVE, NT_GPU_CARD_SM_ACTIVE, PERCENT, NT_GPU_CARD_WHOLE},
	{NT_NVML_GPM_SM_OCCUPANCY, NT_GPU_CARD_SM_OCCUPANCY, PERCENT, NT_GPU_CARD_WHOLE},
	{NT_NVML_GPM_TENSOR, NT_GPU_CARD_TENSOR_ACTIVE, PERCENT, NT_GPU_CARD_WHOLE},
	{NT_NVML_GPM_DRAM, NT_GPU_CARD_DRAM_ACTIVE, PERCENT, NT_GPU_CARD_WHOLE},
	{NT_NVML_GPM_PCIE_SENT, NT_GPU_CARD_PCIE_SENT, MIB, FASTEST},
	{NT_NVML_GPM_PCIE_RECEIVED, NT_GPU_CARD_PCIE_RECEIVED, MIB, FASTEST},
	{NT_NVML_GPM_NVLINK_SENT, NT_GPU_CARD_NVLINK_SENT, MIB, FASTEST},
	{NT_NVML_GPM_NVLINK_RECEIVED, NT_GPU_CARD_NVLINK_RECEIVED, MIB, FASTEST},
};

enum {
	TABLE = sizeof(table) / sizeof(table[0]),
};

_Static_assert((int)TABLE <= (int)NT_NVML_GPM_METRICS, "one request");

void nt_gpm_open(struct nt_gpm *gpm, void *library)
{
	gpm->is_there = nt_library_symbol(library, "nvmlGpmQueryDeviceSupport", &gpm->support) &&
			nt_library_symbol(library, "nvmlGpmSampleAlloc", &gpm->allocate) &&
			nt_library_symbol(library, "nvmlGpmSampleFree", &gpm->release) &&
			nt_library_symbol(library, "nvmlGpmSampleGet", &gpm->sample) &&
			nt_library_symbol(library, "nvmlGpmMetricsGet", &gpm->metrics);
	(void)nt_library_symbol(library, "nvmlGpmMigSampleGet", &gpm->instance_sample);
}

static void forget(struct nt_gpm *gpm, struct nt_gpm_card *card)
{
	if (card->later) {
		(void)gpm->release(card->earlier);
		(void)gpm->release(card->later);
	}
	*card = (struct nt_gpm_card){0};
}

void nt_gpm_begin(struct nt_gpm *gpm)
{
	for (uint32_t i = 0; i < NT_GPU_CARDS; i++)
		if (gpm->card[i].reading && gpm->card[i].reading < gpm->readings)
			forget(gpm, &gpm->card[i]);
	gpm->readings++;
}

/* A card that was not known before, if it is supported. */
static void prepare(struct nt_gpm *gpm, nt_nvml_device device, struct nt_gpm_card *card)
{
	struct nt_nvml_gpm_support support = {.version = NT_NVML_GPM_VERSION};

	if (gpm->support(device, &support) != NT_NVML_SUCCESS || !support.is_supported ||
	    gpm->allocate(&card->earlier) != NT_NVML_SUCCESS)
		return;
	if (gpm->allocate(&card->later) == NT_NVML_SUCCESS)
		return;
	(void)gpm->release(card->earlier);
	card->earlier = card->later = NULL;
}

/* NULL: there is no room. */
static struct nt_gpm_card *find(struct nt_gpm *gpm, nt_nvml_device device, const char *id)
{
	struct nt_gpm_card *free = NULL;

	for (uint32_t i = 0; i < NT_GPU_CARDS; i++) {
		if (!gpm->card[i].reading)
			free = free ? free : &gpm->card[i];
		else if (strcmp(gpm->card[i].id, id) == 0)
			return &gpm->card[i];
	}
	if (free) {
		memcpy(free->id, id, sizeof(free->id));
		prepare(gpm, device, free);
	}
	return free;
}

static bool take_sample(const struct nt_gpm *gpm, nt_nvml_device device, uint32_t instance,
			nt_nvml_gpm_sample sample)
{
	if (instance == NT_GPM_WHOLE)
		return gpm->sample(device, sample) == NT_NVML_SUCCESS;
	return gpm->instance_sample &&
	       gpm->instance_sample(device, instance, sample) == NT_NVML_SUCCESS;
}

static void set(const struct nt_nvml_gpm_metric *metric, size_t row, struct nt_gpu_card *card)
{
	const double value = metric->value * table[row].unit;

	/* Rounding may exceed the whole a little; what is no number, or negative, is no value. */
	if (metric->result != NT_NVML_SUCCESS || !isfinite(value) || value < 0.0)
		return;
	card->value[table[row].value] =
		(uint64_t)(value < table[row].most ? value : table[row].most);
	card->known |= UINT32_C(1) << table[row].value;
}

void nt_gpm_read(struct nt_gpm *gpm, nt_nvml_device device, uint32_t instance,
		 struct nt_gpu_card *card)
{
	static struct nt_nvml_gpm_request request; /* large; a worker has one thread */
	struct nt_gpm_card *mine = gpm->is_there ? find(gpm, device, card->id) : NULL;
	nt_nvml_gpm_sample earlier;
	bool had_earlier;

	if (!mine)
		return;
	mine->reading = gpm->readings;
	if (!mine->later)
		return;
	earlier = mine->earlier;
	had_earlier = mine->has_earlier;
	mine->has_earlier = take_sample(gpm, device, instance, mine->later);
	if (!mine->has_earlier)
		return;
	mine->earlier = mine->later;
	mine->later = earlier;
	if (!had_earlier)
		return;
	request = (struct nt_nvml_gpm_request){.version = NT_NVML_GPM_VERSION,
					       .metrics = TABLE,
					       .earlier = earlier,
					       .later = mine->earlier};
	for (size_t i = 0; i < TABLE; i++)
		request.metric[i].id = table[i].id;
	if (gpm->metrics(&request) != NT_NVML_SUCCESS)
		return;
	for (size_t i = 0; i < TABLE; i++)
		set(&request.metric[i], i, card);
}

void nt_gpm_close(struct nt_gpm *gpm)
{
	for (uint32_t i = 0; i < NT_GPU_CARDS; i++)
		forget(gpm, &gpm->card[i]);
}
