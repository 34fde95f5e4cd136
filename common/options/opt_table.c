/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/options/opt_table.h"

#include "common/base/nearest.h"

const char *nt_opt_nearest_key(const struct nt_opt *opts, size_t count, const char *name)
{
	struct nt_nearest nearest = {.name = name};

	for (size_t i = 0; i < count; i++)
		if (!(opts[i].flags & NT_OPT_CLI_ONLY))
			nt_nearest_try(&nearest, opts[i].name);
	return nearest.best;
}
