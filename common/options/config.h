/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The config file: one YAML mapping from the keys of an option table to scalars. It is applied
 * whole or not at all.
 */
#ifndef NT_COMMON_OPTIONS_CONFIG_H
#define NT_COMMON_OPTIONS_CONFIG_H

#include <stddef.h>

#include "common/base/cleanup.h"
#include "common/options/opt_table.h"

/*
 * Reads the file into ret_values[count], one for each row of opts: the text of its value, which the
 * caller frees, or NULL. -ENOENT and the like, -EFBIG, -EINVAL for anything but such a mapping
 * (unknown and repeated keys included); *ret_error then names file and reason.
 */
NT_MUST_CHECK int nt_config_read(const char *path, const struct nt_opt *opts, size_t count,
				 char **ret_values, struct nt_opt_error *ret_error);

#endif
