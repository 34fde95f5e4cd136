/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/receivers.h"

#include <errno.h>

#include "common/system/log.h"

static const char webhook_name[] = "webhook", kube_name[] = "kubernetes";

static bool writes_kube_events(const struct nt_aggregator_config *config)
{
	return config->kube_events || config->kube_node_condition;
}

enum nt_exit nt_receivers_read(struct nt_receivers *receivers,
			       const struct nt_aggregator_config *config)
{
	const char *path = config->receivers_file;
	struct nt_opt_error error = {0};

	receivers->config = config;
	if (!path || !*path || nt_receiver_configs_read(path, &receivers->configs, &error) == 0)
		return NT_EXIT_OK;
	(void)nt_err(0, "%s", error.text);
	return error.exit;
}

size_t nt_receivers_list(const struct nt_receivers *receivers,
			 const char *ret_name[NT_STORE_MAX_RECEIVERS])
{
	const struct nt_receiver_configs *configs = receivers->configs;
	size_t count = 0;

	if (receivers->config->webhook_url_file)
		ret_name[count++] = webhook_name;
	if (writes_kube_events(receivers->config))
		ret_name[count++] = kube_name;
	for (size_t i = 0; configs && i < configs->count; i++)
		ret_name[count++] = configs->receiver[i].name;
	return count;
}

struct nt_store_flap_options nt_receivers_flap_control(const struct nt_aggregator_config *config)
{
	return (struct nt_store_flap_options){
		.changes = config->flap_changes,
		.window_ns = config->flap_window_ns,
		.quiet_ns = config->flap_quiet_ns,
		.exempt = kube_name,
	};
}

/* ---- starting -------------------------------------------------------------------------------- */

/* The URL is a secret: it is never logged. The caller frees both. */
static enum nt_exit read_webhook(const struct nt_aggregator_config *config, char **ret_url,
				 char **ret_secret)
{
	int r = nt_receiver_secret_read(config->webhook_url_file, ret_url);

	if (r < 0) {
		(void)nt_err(r, "read the webhook's address from '%s'", config->webhook_url_file);
		return NT_EXIT_CONFIG;
	}
	if (!config->webhook_secret_file)
		return NT_EXIT_OK;
	r = nt_receiver_secret_read(config->webhook_secret_file, ret_secret);
	if (r < 0) {
		(void)nt_err(r, "read the webhook's secret from '%s'", config->webhook_secret_file);
		return NT_EXIT_CONFIG;
	}
	return NT_EXIT_OK;
}

static enum nt_exit open_kube(struct nt_receivers *receivers)
{
	int r = nt_kube_new(&receivers->config->kube, &receivers->kube);

	if (r == -ENOENT)
		(void)nt_err(0,
			     "kube-events, kube-node-condition: there is no Kubernetes API server "
			     "here; name one with --kube-api");
	else if (r < 0)
		(void)nt_err(r, "use the Kubernetes API server");
	if (r == -ENOMEM)
		return NT_EXIT_SYSTEM;
	return r < 0 ? NT_EXIT_CONFIG : NT_EXIT_OK;
}

/* Returns the new number of receivers. */
static size_t add_receivers(const struct nt_receiver_configs *configs,
			    struct nt_notify_receiver *receiver, size_t count)
{
	for (size_t i = 0; configs && i < configs->count; i++) {
		const struct nt_receiver_config *config = &configs->receiver[i];

		receiver[count++] = (struct nt_notify_receiver){
			.name = config->name,
			.kind = config->kind,
			.url = config->url[0],
			.replica = (const char *const *)config->url + 1,
			.replicas = config->urls - 1,
			.secret = config->secret,
			.repeat_ns = config->repeat_ns,
			.rate = config->rate,
			.incident_url = configs->incident_url,
			.title = config->title,
			.text = config->text,
			.heartbeat_ns = config->heartbeat_ns,
			.heartbeat = config->heartbeat,
		};
	}
	return count;
}

enum nt_exit nt_receivers_start(struct nt_receivers *receivers, struct nt_store *store)
{
	const struct nt_aggregator_config *config = receivers->config;
	nt_autofree char *url = NULL, *secret = NULL;
	struct nt_notify_receiver receiver[NT_STORE_MAX_RECEIVERS];
	struct nt_notify_options options = {.store = store, .receiver = receiver};
	enum nt_exit code = NT_EXIT_OK;
	int r;

	if (config->webhook_url_file) {
		code = read_webhook(config, &url, &secret);
		receiver[options.receivers++] = (struct nt_notify_receiver){
			.name = webhook_name, .url = url, .secret = secret};
	}
	if (code == NT_EXIT_OK && writes_kube_events(config)) {
		code = open_kube(receivers);
		receiver[options.receivers++] = (struct nt_notify_receiver){
			.name = kube_name,
			.kube = receivers->kube,
			.conditions = config->kube_node_condition,
		};
	}
	options.receivers = add_receivers(receivers->configs, receiver, options.receivers);
	if (code != NT_EXIT_OK || !options.receivers)
		return code;
	r = nt_notify_start(&options, &receivers->notify);
	if (r < 0) {
		code = r == -EINVAL ? NT_EXIT_CONFIG : NT_EXIT_SYSTEM;
		(void)nt_err(r, "start the notifier%s%s%s",
			     config->webhook_url_file ? " for the webhook in '" : "",
			     config->webhook_url_file ? config->webhook_url_file : "",
			     config->webhook_url_file ? "'" : "");
		return code;
	}
	nt_store_on_queued(store, nt_notify_wake, receivers->notify);
	return NT_EXIT_OK;
}

void nt_receivers_stop(struct nt_receivers *receivers)
{
	nt_notify_stop(receivers->notify);
	nt_kube_free(receivers->kube);
	receivers->notify = NULL;
	receivers->kube = NULL;
}

void nt_receivers_release(struct nt_receivers *receivers)
{
	nt_receiver_configs_free(receivers->configs);
	receivers->configs = NULL;
}
