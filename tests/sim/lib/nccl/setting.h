/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers in the environment of the stand-in libnccl. */
#ifndef NT_SIM_NCCL_SETTING_H
#define NT_SIM_NCCL_SETTING_H

/* The digits that the text begins with; 0 for NULL. */
static inline unsigned long sim_setting_number(const char *text)
{
	unsigned long number = 0;

	for (; text && *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (unsigned long)(*text - '0');
	return number;
}

#endif
