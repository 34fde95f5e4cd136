/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A YAML file as data of a schema. Unknown and repeated keys are refused, and so are aliases. */
#ifndef NT_COMMON_OPTIONS_YAML_H
#define NT_COMMON_OPTIONS_YAML_H

#include <cyaml/cyaml.h>
#include <stddef.h>

#include "common/base/cleanup.h"
#include "common/options/opt_table.h"

enum {
	NT_YAML_MAX_BYTES = 1 << 20,
};

/*
 * opts: names that are suggested where a key is unknown. *ret_data is NULL for an empty file; the
 * caller frees it. -ENOENT and the like, -EFBIG, -EINVAL; *ret_error then names file and reason.
 */
NT_MUST_CHECK int nt_yaml_load(const char *path, const cyaml_schema_value_t *schema,
			       const struct nt_opt *opts, size_t count, void **ret_data,
			       struct nt_opt_error *ret_error);
/* Accepts NULL. */
void nt_yaml_free(const cyaml_schema_value_t *schema, void *data);

#endif
