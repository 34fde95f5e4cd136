/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The schema is built from the option table: a mapping of optional strings, which the table then
 * parses like those of every other source.
 */
#include "common/options/config.h"

#include <errno.h>
#include <stdio.h>

#include "common/options/yaml.h"

int nt_config_read(const char *path, const struct nt_opt *opts, size_t count, char **ret_values,
		   struct nt_opt_error *ret_error)
{
	nt_autofree cyaml_schema_field_t *fields = calloc(count + 1, sizeof(*fields));
	cyaml_schema_value_t top = {
		.type = CYAML_MAPPING,
		.flags = CYAML_FLAG_POINTER,
		.data_size = (uint32_t)(count * sizeof(char *)),
		.mapping.fields = fields,
	};
	char **values;
	size_t rows = 0;
	void *data;
	int r;

	if (!fields) {
		ret_error->exit = NT_EXIT_SYSTEM;
		(void)snprintf(ret_error->text, sizeof(ret_error->text), "out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		if (opts[i].flags & NT_OPT_CLI_ONLY)
			continue;
		fields[rows++] = (cyaml_schema_field_t){
			.key = opts[i].name,
			.data_offset = (uint32_t)(i * sizeof(char *)),
			.value = {.type = CYAML_STRING,
				  .flags = CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
				  .data_size = sizeof(char),
				  .string = {.min = 0, .max = CYAML_UNLIMITED}},
		};
	}
	r = nt_yaml_load(path, &top, opts, count, &data, ret_error);
	if (r < 0)
		return r;
	values = data;
	for (size_t i = 0; i < count; i++)
		ret_values[i] = values ? values[i] : NULL; /* no values: the file is empty */
	free(values);
	return 0;
}
