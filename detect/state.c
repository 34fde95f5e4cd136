/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state as bytes. */
#include "detect/detect.h"

#include <errno.h>

int nt_detect_save(const struct nt_detect *detect, uint8_t **ret_data, size_t *ret_size)
{
	(void)detect;
	(void)ret_data;
	(void)ret_size;
	return -ENOTSUP;
}

int nt_detect_load(const struct nt_rules *rules, const uint8_t *data, size_t size,
		   struct nt_detect **ret_detect)
{
	(void)rules;
	(void)data;
	(void)size;
	(void)ret_detect;
	return -EBADMSG;
}

