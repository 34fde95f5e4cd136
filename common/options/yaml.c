/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/options/yaml.h"

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

static bool is_of_command_line(const struct nt_opt *opts, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if ((opts[i].flags & NT_OPT_CLI_ONLY) && strcmp(opts[i].name, key) == 0)
			return true;
	return false;
}

static void describe(cyaml_err_t err, const struct complaint *complaint, const struct nt_opt *opts,
		     size_t count, char *text, size_t size)
{
	const char *key = strstr(complaint->what, ": "), *near;

	if (err == CYAML_ERR_INVALID_KEY && key) {
		/* libcyaml gives the line of the mapping here, not that of the key. */
		key += 2;
		near = nt_opt_nearest_key(opts, count, key);
		if (is_of_command_line(opts, count, key))
			(void)snprintf(text, size,
				       "'%s' is no key: --%s is an option of the command line only",
				       key, key);
		else
			(void)snprintf(text, size, "unknown key '%s'%s%s%s", key,
				       near ? ", did you mean '" : "", near ? near : "",
				       near ? "'?" : "");
	} else {
		(void)snprintf(text, size, "%s%s",
			       complaint->what[0] ? complaint->what : cyaml_strerror(err),
			       complaint->where);
	}
}

static const cyaml_config_t defaults = {
	.log_level = CYAML_LOG_WARNING,
	.mem_fn = cyaml_mem, /* realloc() and free() */
	.flags = CYAML_CFG_NO_ALIAS,
};

int nt_yaml_load(const char *path, const cyaml_schema_value_t *schema, const struct nt_opt *opts,
		 size_t count, void **ret_data, struct nt_opt_error *ret_error)
{
	struct complaint complaint = {0};
	cyaml_config_t config = defaults;
	nt_autobuf struct nt_buf text = {0};
	cyaml_data_t *data = NULL;
	char why[256];
	cyaml_err_t err;
	int r;

	config.log_fn = log_message;
	config.log_ctx = &complaint;
	r = nt_file_read(path, NT_YAML_MAX_BYTES, &text);
	if (r < 0)
		return refuse(ret_error, r, path, strerrordesc_np(-r));
	err = cyaml_load_data(text.data, text.len, &config, schema, &data, NULL);
	if (err != CYAML_OK || complaint.warned) {
		describe(err, &complaint, opts, count, why, sizeof(why));
		nt_yaml_free(schema, data);
		r = err == CYAML_ERR_OOM ? -ENOMEM : -EINVAL;
		return refuse(ret_error, r, path, why);
	}
	*ret_data = data; /* NULL: the file is empty */
	return 0;
}

void nt_yaml_free(const cyaml_schema_value_t *schema, void *data)
{
	if (data)
		(void)cyaml_free(&defaults, schema, data, 0);
}
