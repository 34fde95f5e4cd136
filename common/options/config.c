/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The schema is built from the option table: a mapping of optional strings, which the table then
 * parses like those of every other source. libcyaml rejects unknown and repeated keys.
 */
#include "common/options/config.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/system/file.h"

/* libcyaml's first message with its line: it reports errors by log lines only. */
struct complaint {
	char what[160];
	char where[64];
	bool warned, traced;
};

__attribute__((format(printf, 3, 0))) static void log_message(cyaml_log_t level, void *context,
							      const char *fmt, va_list args)
{
	struct complaint *complaint = context;
	const char *text;
	char line[200];

	if (level < CYAML_LOG_WARNING)
		return;
	(void)vsnprintf(line, sizeof(line), fmt, args);
	line[strcspn(line, "\n")] = '\0';
	text = strstr(line, "Load: ");
	text = text ? text + strlen("Load: ") : line;
	complaint->warned |= level == CYAML_LOG_WARNING;

	if (strcmp(text, "Backtrace:") == 0)
		complaint->traced = true;
	else if (!complaint->traced && !complaint->what[0])
		(void)snprintf(complaint->what, sizeof(complaint->what), "%.150s", text);
	else if (!complaint->where[0] && strstr(text, "(line: "))
		(void)snprintf(complaint->where, sizeof(complaint->where), " %.60s",
			       strstr(text, "(line: "));
}

static int refuse(struct nt_opt_error *error, int r, const char *path, const char *why)
{
	error->exit = r == -ENOMEM ? NT_EXIT_SYSTEM : NT_EXIT_CONFIG;
	(void)snprintf(error->text, sizeof(error->text), "config file '%.200s': %s", path, why);
	return r;
}

static void describe(cyaml_err_t err, const struct complaint *complaint, const struct nt_opt *opts,
		     size_t count, char *text, size_t size)
{
	const char *key = strstr(complaint->what, ": "), *near;

	if (err == CYAML_ERR_INVALID_KEY && key) {
		/* libcyaml gives the line of the mapping here, not that of the key. */
		key += 2;
		near = nt_opt_nearest(opts, count, key);
		(void)snprintf(text, size, "unknown key '%s'%s%s%s", key,
			       near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
	} else {
		(void)snprintf(text, size, "%s%s",
			       complaint->what[0] ? complaint->what : cyaml_strerror(err),
			       complaint->where);
	}
}

int nt_config_read(const char *path, const struct nt_opt *opts, size_t count, char **ret_values,
		   struct nt_opt_error *ret_error)
{
	nt_autofree cyaml_schema_field_t *fields = calloc(count + 1, sizeof(*fields));
	struct complaint complaint = {0};
	cyaml_schema_value_t top = {
		.type = CYAML_MAPPING,
		.flags = CYAML_FLAG_POINTER,
		.data_size = (uint32_t)(count * sizeof(char *)),
		.mapping.fields = fields,
	};
	const cyaml_config_t config = {
		.log_fn = log_message,
		.log_ctx = &complaint,
		.log_level = CYAML_LOG_WARNING,
		.mem_fn = cyaml_mem, /* realloc() and free() */
		.flags = CYAML_CFG_NO_ALIAS,
	};
	nt_autobuf struct nt_buf text = {0};
	char why[256];
	char **values = NULL;
	size_t rows = 0;
	cyaml_err_t err;
	int r;

	if (!fields)
		return refuse(ret_error, -ENOMEM, path, "out of memory");
	r = nt_file_read(path, NT_CONFIG_MAX_BYTES, &text);
	if (r < 0)
		return refuse(ret_error, r, path, strerrordesc_np(-r));

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

	err = cyaml_load_data(text.data, text.len, &config, &top, (cyaml_data_t **)&values, NULL);
	if (err != CYAML_OK || complaint.warned) {
		describe(err, &complaint, opts, count, why, sizeof(why));
		if (values)
			(void)cyaml_free(&config, &top, values, 0);
		r = err == CYAML_ERR_OOM ? -ENOMEM : -EINVAL;
		return refuse(ret_error, r, path, why);
	}
	for (size_t i = 0; i < count; i++)
		ret_values[i] = values ? values[i] : NULL; /* no values: the file is empty */
	free(values);
	return 0;
}
