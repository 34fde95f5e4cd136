/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpu_card.h"

#include <string.h>

_Static_assert(NT_GPU_CARD_END <= 32, "a bit of `known` for each value");

bool nt_gpu_cards_are_sound(const struct nt_gpu_cards *cards)
{
	if (cards->count > NT_GPU_CARDS)
		return false;
	for (uint32_t i = 0; i < cards->count; i++)
		if (!memchr(cards->card[i].id, '\0', sizeof(cards->card[i].id)) ||
		    !memchr(cards->card[i].model, '\0', sizeof(cards->card[i].model)) ||
		    cards->card[i].pids > NT_GPU_CARD_PIDS)
			return false;
	return true;
}

void nt_gpu_card_set(struct nt_gpu_card *card, enum nt_gpu_card_value value, uint64_t to)
{
	card->value[value] = to;
	card->known |= UINT32_C(1) << value;
}

bool nt_gpu_card_get(const struct nt_gpu_card *card, enum nt_gpu_card_value value,
		     uint64_t *ret_value)
{
	if (!(card->known & UINT32_C(1) << value))
		return false;
	*ret_value = card->value[value];
	return true;
}
