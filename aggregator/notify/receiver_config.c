/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/receiver_config.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/notify/template.h"
#include "aggregator/notify/webhook.h"
#include "common/base/utf8.h"
#include "common/options/opt.h"
#include "common/options/yaml.h"
#include "common/system/clock.h"
#include "common/system/file.h"

enum {
	SECRET_MAX_BYTES = 8 << 10,
};

/* ---- the file as it is ----------------------------------------------------------------------- */

struct raw_route {
	char *severity, *class, *job, *namespace;
};

struct raw_receiver {
	char *name, *kind, *url, *url_file, *secret_file, *repeat, *rate;
	char *title, *text, *heartbeat, *heartbeat_name;
	char **urls;
	unsigned int urls_count;
	struct raw_route *routes;
	unsigned int routes_count;
};

struct raw_file {
	char *incident_url;
	struct raw_receiver *receivers;
	unsigned int receivers_count;
};

#define TEXT(type, key, member)                                                                    \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, 0,     \
			       CYAML_UNLIMITED)

static const cyaml_schema_field_t route_fields[] = {
	TEXT(struct raw_route, "severity", severity),
	TEXT(struct raw_route, "class", class),
	TEXT(struct raw_route, "job", job),
	TEXT(struct raw_route, "namespace", namespace),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t route_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_route, route_fields)};

static const cyaml_schema_value_t url_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED)};

static const cyaml_schema_field_t receiver_fields[] = {
	TEXT(struct raw_receiver, "name", name),
	TEXT(struct raw_receiver, "kind", kind),
	TEXT(struct raw_receiver, "url", url),
	TEXT(struct raw_receiver, "url-file", url_file),
	TEXT(struct raw_receiver, "secret-file", secret_file),
	TEXT(struct raw_receiver, "repeat", repeat),
	TEXT(struct raw_receiver, "rate", rate),
	TEXT(struct raw_receiver, "title", title),
	TEXT(struct raw_receiver, "text", text),
	TEXT(struct raw_receiver, "heartbeat", heartbeat),
	TEXT(struct raw_receiver, "heartbeat-name", heartbeat_name),
	CYAML_FIELD_SEQUENCE("urls", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_receiver,
			     urls, &url_schema, 0, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("routes", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct raw_receiver, routes, &route_schema, 0, CYAML_UNLIMITED),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t receiver_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_receiver, receiver_fields)};

static const cyaml_schema_field_t file_fields[] = {
	TEXT(struct raw_file, "incident-url", incident_url),
	CYAML_FIELD_SEQUENCE("receivers", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_file,
			     receivers, &receiver_schema, 0, CYAML_UNLIMITED),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t file_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_file, file_fields)};

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_receiver_name(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) &&
		    name[i] != '-')
			return false;
	return len && strcmp(name, "webhook") != 0 && strcmp(name, "kubernetes") != 0;
}

/* A prefix of links goes into the markup of all formats. */
static bool is_link(const char *url)
{
	return strcspn(url, " <>()[]|\"'`\\*") == strlen(url) && nt_http_url_is_valid(url);
}

static const struct nt_opt_form name_form = {
	is_receiver_name, "a name of a-z, 0-9 and '-', other than 'webhook' and 'kubernetes'"};
static const struct nt_opt_form url_form = {nt_http_url_is_valid, "an http or https URL"};
static const struct nt_opt_form link_form = {is_link, "an http or https URL without markup"};

#define AT(member) offsetof(struct nt_receiver_config, member)

enum {
	ROW_NAME,
	ROW_KIND,
	ROW_REPEAT,
	ROW_RATE,
	ROW_HEARTBEAT,
	ROW_HEARTBEAT_NAME,
	ROWS,
};

static const struct nt_opt rows[ROWS] = {
	[ROW_NAME] = {.name = "name",
		      .kind = NT_OPT_STRING,
		      .offset = AT(name),
		      .min = 1,
		      .max = NT_STORE_MAX_NAME - 1,
		      .form = &name_form},
	[ROW_KIND] = {.name = "kind",
		      .kind = NT_OPT_CHOICE,
		      .offset = AT(kind),
		      .choices = NT_RECEIVER_KIND_NAMES},
	[ROW_REPEAT] = {.name = "repeat",
			.kind = NT_OPT_DURATION,
			.offset = AT(repeat_ns),
			.min = NT_SECOND,
			.max = 7 * NT_DAY},
	[ROW_RATE] =
		{.name = "rate", .kind = NT_OPT_U32, .offset = AT(rate), .min = 1, .max = 6000},
	[ROW_HEARTBEAT] = {.name = "heartbeat",
			   .kind = NT_OPT_DURATION,
			   .offset = AT(heartbeat_ns),
			   .min = NT_SECOND,
			   .max = NT_DAY},
	[ROW_HEARTBEAT_NAME] = {.name = "heartbeat-name",
				.kind = NT_OPT_STRING,
				.offset = AT(heartbeat),
				.def = "neutracer",
				.min = 1,
				.max = 100},
};

/* Only for suggestions where a key is unknown. */
static const struct nt_opt keys[] = {
	{.name = "receivers"},      {.name = "incident-url"}, {.name = "name"},
	{.name = "kind"},           {.name = "url"},          {.name = "url-file"},
	{.name = "urls"},           {.name = "secret-file"},  {.name = "repeat"},
	{.name = "rate"},           {.name = "routes"},       {.name = "severity"},
	{.name = "class"},          {.name = "job"},          {.name = "namespace"},
	{.name = "title"},          {.name = "text"},         {.name = "heartbeat"},
	{.name = "heartbeat-name"},
};

static const struct nt_opt severity_row = {
	.name = "severity",
	.kind = NT_OPT_CHOICE,
	.offset = offsetof(struct nt_route, severity),
	.choices = "info warning critical",
};

static const struct nt_opt url_row = {.kind = NT_OPT_STRING, .max = 2048, .form = &url_form};
static const struct nt_opt secret_url_row = {
	.kind = NT_OPT_STRING, .max = 2048, .form = &url_form, .flags = NT_OPT_SECRET};
static const struct nt_opt link_row = {.kind = NT_OPT_STRING, .max = 900, .form = &link_form};
static const struct nt_opt pattern_row = {.kind = NT_OPT_STRING, .min = 1, .max = 1024};

/* ---- reading --------------------------------------------------------------------------------- */

struct receiver_reading {
	const char *path;
	char who[128]; /* "receiver 'ops'", or its number while it has no name */
	struct nt_opt_error *error;
};

__attribute__((format(printf, 3, 4))) static int complain(struct receiver_reading *reading, int r,
							  const char *fmt, ...)
{
	char what[384];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	reading->error->exit = r == -ENOMEM ? NT_EXIT_SYSTEM : NT_EXIT_CONFIG;
	(void)snprintf(reading->error->text, sizeof(reading->error->text), "%.100s: %.80s%s%.300s",
		       reading->path, reading->who, *reading->who ? ": " : "", what);
	return r;
}

static int set(struct receiver_reading *reading, const struct nt_opt *row, const char *key,
	       void *to, const char *value)
{
	char source[256];

	if (!value)
		return 0;
	(void)snprintf(source, sizeof(source), "%.100s: %.100s%s%s", reading->path, reading->who,
		       *reading->who ? ": " : "", key);
	return nt_opt_set(row, to, source, value, strlen(value), reading->error);
}

int nt_receiver_secret_read(const char *path, char **ret_text)
{
	nt_autobuf struct nt_buf text = {0};
	char *line;
	size_t len;
	int r;

	r = nt_file_read(path, SECRET_MAX_BYTES, &text);
	if (r == 0)
		r = nt_buf_append(&text, "", 1);
	if (r < 0)
		return r;
	len = strcspn((const char *)text.data, "\r\n");
	line = len ? strndup((const char *)text.data, len) : NULL;
	OPENSSL_cleanse(text.data, text.cap);
	if (!line)
		return len ? -ENOMEM : -EINVAL;
	*ret_text = line;
	return 0;
}

static int read_secret_file(struct receiver_reading *reading, const char *key, const char *path,
			    char **ret_text)
{
	int r = nt_receiver_secret_read(path, ret_text);

	if (r == -EINVAL)
		return complain(reading, r, "%s: '%.100s' is empty", key, path);
	if (r < 0)
		return complain(reading, r, "%s: cannot read '%.100s': %s", key, path,
				strerrordesc_np(-r));
	return 0;
}

static int add_url(struct receiver_reading *reading, struct nt_receiver_config *config,
		   const struct nt_opt *row, const char *key, const char *value)
{
	int r;

	if (config->urls == NT_RECEIVER_CONFIG_URLS)
		return complain(reading, -EINVAL, "urls: at most %d", NT_RECEIVER_CONFIG_URLS);
	r = set(reading, row, key, &config->url[config->urls], value);
	config->urls += r == 0;
	return r;
}

static int read_url_file(struct receiver_reading *reading, struct nt_receiver_config *config,
			 const char *path)
{
	nt_autofree char *text = NULL;
	int r = read_secret_file(reading, "url-file", path, &text);

	if (r == 0)
		r = add_url(reading, config, &secret_url_row, "url-file", text);
	if (text)
		OPENSSL_cleanse(text, strlen(text));
	return r;
}

/* One of url, urls and url-file; none where the service is always at one place. */
static int read_urls(struct receiver_reading *reading, const struct raw_receiver *raw,
		     struct nt_receiver_config *config)
{
	const struct nt_receiver_format *format = nt_receiver_format_of(config->kind);
	int given = (raw->url != NULL) + (raw->url_file != NULL) + (raw->urls_count > 0);
	int r = 0;

	if (given > 1)
		return complain(reading, -EINVAL, "only one of url, urls and url-file is allowed");
	if (!given && !format->url)
		return complain(reading, -EINVAL, "%s is not given",
				format->is_url_secret ? "url-file" : "url or url-file");
	if (format->is_url_secret && !raw->url_file)
		return complain(
			reading, -EINVAL,
			"the URL of kind %s is a secret: put it into a file and give url-file",
			format->name);
	if (raw->urls_count > 1 && config->kind != NT_RECEIVER_ALERTMANAGER)
		return complain(reading, -EINVAL, "urls: several are for kind alertmanager only");
	if (raw->url_file)
		return read_url_file(reading, config, raw->url_file);
	if (raw->url)
		return add_url(reading, config, &url_row, "url", raw->url);
	for (unsigned int i = 0; r == 0 && i < raw->urls_count; i++)
		r = add_url(reading, config, &url_row, "urls", raw->urls[i]);
	return raw->urls_count ? r : add_url(reading, config, &url_row, "url", format->url);
}

/* A header and a signature have room for so much. */
static int check_secret(struct receiver_reading *reading, const struct nt_receiver_config *config)
{
	struct nt_webhook_key key;

	if (strlen(config->secret) > NT_WEBHOOK_MAX_SECRET)
		return complain(reading, -EINVAL, "secret-file: the secret has over %d bytes",
				NT_WEBHOOK_MAX_SECRET);
	for (const char *c = config->secret; *c; c++)
		if (!isprint((unsigned char)*c))
			return complain(reading, -EINVAL,
					"secret-file: the secret is not printable ASCII");
	if (config->kind == NT_RECEIVER_WEBHOOK && nt_webhook_key_read(config->secret, &key) < 0)
		return complain(reading, -EINVAL,
				"secret-file: after 'whsec_' the secret is not base64");
	return 0;
}

static int read_secret(struct receiver_reading *reading, const struct raw_receiver *raw,
		       struct nt_receiver_config *config)
{
	const struct nt_receiver_format *format = nt_receiver_format_of(config->kind);
	int r;

	if (!raw->secret_file && format->secret == NT_RECEIVER_SECRET_REQUIRED)
		return complain(reading, -EINVAL, "secret-file is not given: kind %s needs its key",
				format->name);
	if (raw->secret_file && format->secret == NT_RECEIVER_SECRET_NONE)
		return complain(reading, -EINVAL, "secret-file: kind %s has no secret",
				format->name);
	if (!raw->secret_file) {
		config->secret = strdup("");
		return config->secret ? 0 : complain(reading, -ENOMEM, "out of memory");
	}
	r = read_secret_file(reading, "secret-file", raw->secret_file, &config->secret);
	return r == 0 ? check_secret(reading, config) : r;
}

static int read_route(struct receiver_reading *reading, const struct raw_route *raw,
		      struct nt_route *route)
{
	int r;

	route->severity = NT_NOTICE_WARNING;
	r = set(reading, &severity_row, "routes: severity", route, raw->severity);
	if (r == 0)
		r = set(reading, &pattern_row, "routes: class", &route->class, raw->class);
	if (r == 0)
		r = set(reading, &pattern_row, "routes: job", &route->job, raw->job);
	if (r == 0)
		r = set(reading, &pattern_row, "routes: namespace", &route->namespace,
			raw->namespace);
	return r;
}

static int read_routes(struct receiver_reading *reading, const struct raw_receiver *raw,
		       struct nt_receiver_config *config)
{
	int r = 0;

	if (raw->routes_count > NT_RECEIVER_CONFIG_ROUTES)
		return complain(reading, -EINVAL, "routes: at most %d, here are %u",
				NT_RECEIVER_CONFIG_ROUTES, raw->routes_count);
	if (!raw->routes_count)
		return 0;
	config->route = calloc(raw->routes_count, sizeof(*config->route));
	if (!config->route)
		return complain(reading, -ENOMEM, "out of memory");
	config->routes = raw->routes_count;
	for (unsigned int i = 0; r == 0 && i < raw->routes_count; i++)
		r = read_route(reading, &raw->routes[i], &config->route[i]);
	return r;
}

/* Alertmanager lets an alert expire that is not repeated. */
static int read_times(struct receiver_reading *reading, const struct raw_receiver *raw,
		      struct nt_receiver_config *config)
{
	const struct nt_receiver_format *format = nt_receiver_format_of(config->kind);
	bool is_alertmanager = config->kind == NT_RECEIVER_ALERTMANAGER;
	int r;

	if (raw->repeat && !format->is_chat && !is_alertmanager)
		return complain(reading, -EINVAL, "repeat: kind %s keeps incidents by itself",
				format->name);
	config->rate = format->rate;
	config->repeat_ns = is_alertmanager ? NT_MINUTE : 0;
	r = set(reading, &rows[ROW_REPEAT], "repeat", config, raw->repeat);
	if (r == 0 && format->is_chat && config->repeat_ns && config->repeat_ns < NT_MINUTE)
		return complain(reading, -EINVAL, "repeat: '%.30s' is less than 1m", raw->repeat);
	return r == 0 ? set(reading, &rows[ROW_RATE], "rate", config, raw->rate) : r;
}

/* Not an option: a text may have several lines. */
static int check_template(struct receiver_reading *reading, const char *key, const char *value,
			  size_t max, const char *controls)
{
	char word[NT_TEMPLATE_WORD];
	size_t len = strlen(value);

	if (!len || len > max)
		return complain(reading, -EINVAL, "%s: has %zu bytes, allowed are 1 to %zu", key,
				len, max);
	for (const char *c = value; *c; c++)
		if (iscntrl((unsigned char)*c) && !strchr(controls, *c))
			return complain(reading, -EINVAL, "%s: has a control character", key);
	if (!nt_utf8_is_valid(value, len))
		return complain(reading, -EINVAL, "%s: is not UTF-8", key);
	if (nt_template_check(value, word) == 0)
		return 0;
	if (!*word)
		return complain(reading, -EINVAL,
				"%s: a brace has no other one; write {{ or }} for a brace", key);
	return complain(reading, -EINVAL, "%s: there is no %s; allowed are %s", key, word,
			nt_template_names);
}

static int read_template(struct receiver_reading *reading, const char *key, const char *value,
			 size_t max, const char *controls, char **ret_template)
{
	int r = value ? check_template(reading, key, value, max, controls) : 0;

	if (r < 0 || !value)
		return r;
	*ret_template = strdup(value);
	return *ret_template ? 0 : complain(reading, -ENOMEM, "out of memory");
}

static int read_templates(struct receiver_reading *reading, const struct raw_receiver *raw,
			  struct nt_receiver_config *config)
{
	int r;

	if ((raw->title || raw->text) && config->kind == NT_RECEIVER_WEBHOOK)
		return complain(reading, -EINVAL,
				"title, text: kind webhook sends the incident itself");
	r = read_template(reading, "title", raw->title, NT_TEMPLATE_TITLE, "", &config->title);
	return r == 0 ? read_template(reading, "text", raw->text, NT_TEMPLATE_TEXT, "\n",
				      &config->text)
		      : r;
}

static int read_heartbeat(struct receiver_reading *reading, const struct raw_receiver *raw,
			  struct nt_receiver_config *config)
{
	const struct nt_receiver_format *format = nt_receiver_format_of(config->kind);
	const char *name = raw->heartbeat_name;
	int r;

	if (raw->heartbeat && !format->notices_silence)
		return complain(reading, -EINVAL,
				"heartbeat: kind %s has none; webhook, alertmanager and opsgenie "
				"have",
				format->name);
	if (name && config->kind != NT_RECEIVER_OPSGENIE)
		return complain(reading, -EINVAL, "heartbeat-name: is for kind opsgenie only");
	r = set(reading, &rows[ROW_HEARTBEAT], "heartbeat", config, raw->heartbeat);
	if (r < 0)
		return r;
	return set(reading, &rows[ROW_HEARTBEAT_NAME], "heartbeat-name", config,
		   name ? name : rows[ROW_HEARTBEAT_NAME].def);
}

static int check_unique(struct receiver_reading *reading, const struct nt_receiver_configs *configs,
			const char *name)
{
	for (size_t i = 0; i < configs->count; i++)
		if (!strcmp(configs->receiver[i].name, name))
			return complain(reading, -EINVAL, "name: there are two of this name");
	return 0;
}

static int read_receiver(struct receiver_reading *reading, const struct raw_receiver *raw,
			 struct nt_receiver_configs *configs)
{
	struct nt_receiver_config *config = &configs->receiver[configs->count];
	int r;

	(void)snprintf(reading->who, sizeof(reading->who), "receiver %zu", configs->count + 1);
	if (!raw->name)
		return complain(reading, -EINVAL, "name is not given");
	r = set(reading, &rows[ROW_NAME], "name", config, raw->name);
	if (r < 0)
		return r;
	(void)snprintf(reading->who, sizeof(reading->who), "receiver '%.63s'", config->name);
	r = check_unique(reading, configs, config->name);
	configs->count++;
	if (r < 0)
		return r;
	if (!raw->kind)
		return complain(reading, -EINVAL, "kind is not given: one of %s",
				NT_RECEIVER_KIND_NAMES);
	r = set(reading, &rows[ROW_KIND], "kind", config, raw->kind);
	if (r == 0)
		r = read_urls(reading, raw, config);
	if (r == 0)
		r = read_secret(reading, raw, config);
	if (r == 0)
		r = read_routes(reading, raw, config);
	if (r == 0)
		r = read_templates(reading, raw, config);
	if (r == 0)
		r = read_heartbeat(reading, raw, config);
	return r == 0 ? read_times(reading, raw, config) : r;
}

static int read_file(struct receiver_reading *reading, const struct raw_file *raw,
		     struct nt_receiver_configs *configs)
{
	int r = set(reading, &link_row, "incident-url", &configs->incident_url, raw->incident_url);

	if (r == 0 && raw->receivers_count > NT_RECEIVER_CONFIG_MAX)
		return complain(reading, -EINVAL, "receivers: at most %d, here are %u",
				NT_RECEIVER_CONFIG_MAX, raw->receivers_count);
	for (unsigned int i = 0; r == 0 && i < raw->receivers_count; i++)
		r = read_receiver(reading, &raw->receivers[i], configs);
	return r;
}

int nt_receiver_configs_read(const char *path, struct nt_receiver_configs **ret_configs,
			     struct nt_opt_error *ret_error)
{
	struct receiver_reading reading = {.path = path, .error = ret_error};
	nt_auto(nt_receiver_configs) struct nt_receiver_configs *configs =
		calloc(1, sizeof(*configs));
	void *raw = NULL;
	int r;

	if (!configs)
		return complain(&reading, -ENOMEM, "out of memory");
	r = nt_yaml_load(path, &file_schema, keys, sizeof(keys) / sizeof(keys[0]), &raw, ret_error);
	if (r == 0 && raw)
		r = read_file(&reading, raw, configs);
	nt_yaml_free(&file_schema, raw);
	if (r < 0)
		return r;
	*ret_configs = nt_take(configs);
	return 0;
}

static void release_config(struct nt_receiver_config *config)
{
	for (size_t i = 0; i < config->urls; i++) {
		OPENSSL_cleanse(config->url[i], strlen(config->url[i]));
		free(config->url[i]);
	}
	if (config->secret)
		OPENSSL_cleanse(config->secret, strlen(config->secret));
	free(config->secret);
	for (size_t i = 0; i < config->routes; i++) {
		free(config->route[i].class);
		free(config->route[i].job);
		free(config->route[i].namespace);
	}
	free(config->route);
	free(config->title);
	free(config->text);
	free(config->heartbeat);
	free(config->name);
}

void nt_receiver_configs_free(struct nt_receiver_configs *configs)
{
	if (!configs)
		return;
	for (size_t i = 0; i < NT_RECEIVER_CONFIG_MAX; i++)
		release_config(&configs->receiver[i]);
	free(configs->incident_url);
	free(configs);
}

bool nt_receiver_configs_accept(void *configs, const char *receiver,
				const struct nt_wire_incident *incident)
{
	const struct nt_receiver_configs *all = configs;

	for (size_t i = 0; all && i < all->count; i++)
		if (!strcmp(all->receiver[i].name, receiver))
			return nt_route_takes(all->receiver[i].route, all->receiver[i].routes,
					      incident);
	return nt_route_takes(NULL, 0, incident);
}
