/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/config.h"

#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>

#include "aggregator/api/enrol.h"
#include "aggregator/notify/kube_action.h"
#include "aggregator/notify/kube_ledger.h"
#include "common/bus/bus_options.h"
#include "common/http/listener.h"
#include "common/options/defaults.h"
#include "common/system/clock.h"
#include "control/level_target.h"
#include "detect/model/frame.h"

#define OPT(field) offsetof(struct nt_aggregator_config, field)

static const struct nt_opt_form listen_form = {nt_listener_is_sound, "ADDRESS:PORT"};

/* Other errors are reported when the process switches to that user. */
static bool is_user(const char *name)
{
	errno = 0;
	return !*name || getpwnam(name) ||
	       !(errno == 0 || errno == ENOENT || errno == ESRCH || errno == EBADF ||
		 errno == EPERM);
}

static const struct nt_opt_form user_form = {is_user, "a user of this machine"};

static const struct nt_opt_form account_form = {nt_enrol_account_is_sound, "NAMESPACE/NAME"};

static const struct nt_opt options[] = {
	{.name = "bus",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(bus),
	 .def = NT_BUS_DEFAULT,
	 .arg = "URL",
	 .help = "bus to read messages from: " NT_BUS_URL_HELP,
	 .form = &nt_bus_url_form},
	NT_BUS_SECURITY_OPTIONS(struct nt_aggregator_config, bus_security),
	{.name = "member",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(member),
	 .arg = "NAME",
	 .help = "member name among the aggregators of a Kafka bus; if it is the same after a "
		 "restart, the jobs stay assigned to it"},
	{.name = "advertise",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(advertise),
	 .arg = "URL",
	 .help = "URL at which clients and other aggregators reach this REST interface"},
	{.name = "listen",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(listen),
	 .def = NT_DEFAULT_LISTEN,
	 .arg = "ADDRESS:PORT",
	 .help = "address of the REST interface; port 0 for any free port",
	 .form = &listen_form},
	{.name = "token-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(token_file),
	 .def = NT_DEFAULT_TOKEN_FILE,
	 .arg = "FILE",
	 .help = "tokens of the REST interface; created with a new token if missing"},
	{.name = "tls-cert-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(tls_cert_file),
	 .arg = "FILE",
	 .help = "certificate chain (PEM); enables TLS for the REST interface"},
	{.name = "tls-key-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(tls_key_file),
	 .arg = "FILE",
	 .help = "private key (PEM) of the certificate"},
	{.name = "tls-client-ca-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(tls_client_ca_file),
	 .arg = "FILE",
	 .help = "authorities (PEM) that sign the certificates of clients; where a token is needed, "
		 "a certificate is needed too"},
	{.name = "tls-client-auth",
	 .kind = NT_OPT_CHOICE,
	 .offset = OPT(tls_client_auth),
	 .def = "required",
	 .choices = "required optional",
	 .help = "certificates of clients; optional: only a wrong one is refused"},
	{.name = "metrics-open",
	 .kind = NT_OPT_BOOL,
	 .offset = OPT(metrics_open),
	 .help = "serve /metrics without a token, but for series of all ranks of a job"},
	{.name = "store",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(store),
	 .def = NT_DEFAULT_STORE,
	 .arg = "FILE",
	 .help = "database of incidents, detection state and messages to be sent"},
	{.name = "store-bytes",
	 .kind = NT_OPT_SIZE,
	 .offset = OPT(store_bytes),
	 .def = "256M",
	 .min = 1 << 20,
	 .help = "maximum size of the store; the oldest incidents are removed first"},
	{.name = "webhook-url-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(webhook_url_file),
	 .arg = "FILE",
	 .help = "file with the URL of the webhook for incidents"},
	{.name = "webhook-secret-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(webhook_secret_file),
	 .arg = "FILE",
	 .help = "file with the secret that signs webhook messages"},
	{.name = "receivers-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(receivers_file),
	 .arg = "FILE",
	 .help = "YAML file of further receivers of incidents: Alertmanager, chats, pagers"},
	{.name = "flap-changes",
	 .kind = NT_OPT_U32,
	 .offset = OPT(flap_changes),
	 .def = "6",
	 .max = 1000,
	 .help = "beginnings and ends of incidents of one job, culprit and class, after which "
		 "further messages are held until it is quiet; 0: never"},
	{.name = "flap-window",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(flap_window_ns),
	 .def = "1h",
	 .min = NT_SECOND,
	 .max = 7 * NT_DAY,
	 .help = "time in which they are counted"},
	{.name = "flap-quiet",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(flap_quiet_ns),
	 .def = "30m",
	 .min = NT_SECOND,
	 .max = 7 * NT_DAY,
	 .help = "time without a beginning or end after which such messages are sent again"},
	{.name = "silence-alert",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(silence_alert_ns),
	 .def = "5m",
	 .max = NT_DAY,
	 .help = "alert when the bus is down, or no agent of a job or of the cluster sends data, "
		 "for this time; 0: never"},
	{.name = "kube-events",
	 .kind = NT_OPT_BOOL,
	 .offset = OPT(kube_events),
	 .help = "create Kubernetes Events on the pods and nodes that an incident names"},
	{.name = "kube-node-condition",
	 .kind = NT_OPT_BOOL,
	 .offset = OPT(kube_node_condition),
	 .help = "also set the condition NeuTracerDegraded of those nodes; nothing else of them "
		 "is changed"},
	{.name = "kube-action",
	 .kind = NT_OPT_CHOICE,
	 .offset = OPT(kube_action),
	 .def = "none",
	 .choices = NT_KUBE_ACTION_CHOICES,
	 .help = "what is done to a node that many incidents accuse, and undone when it is quiet; "
		 "taint: " NT_KUBE_TAINT ":NoSchedule; undo: remove what was done"},
	{.name = "kube-action-after",
	 .kind = NT_OPT_U32,
	 .offset = OPT(kube_action_after),
	 .def = "3",
	 .min = 1,
	 .max = NT_KUBE_LEDGER_ENTRIES,
	 .help = "number of such incidents"},
	{.name = "kube-action-window",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(kube_action_window_ns),
	 .def = "1d",
	 .min = NT_MINUTE,
	 .max = 30 * NT_DAY,
	 .help = "time in which they are counted"},
	{.name = "kube-action-quiet",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(kube_action_quiet_ns),
	 .def = "6h",
	 .min = NT_MINUTE,
	 .max = 30 * NT_DAY,
	 .help = "time without such an incident after which the action is undone"},
	{.name = "kube-action-limit",
	 .kind = NT_OPT_U32,
	 .offset = OPT(kube_action_limit),
	 .def = "1",
	 .min = 1,
	 .max = 100,
	 .help = "maximum number of such nodes in the cluster, and of actions in an hour"},
	NT_KUBE_OPTIONS(struct nt_aggregator_config, kube),
	{.name = "node-secret-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(node_secret_file),
	 .arg = "FILE",
	 .help = "secrets from which node keys are derived, the same for all aggregators: one per "
		 "line, 64 hex digits or more; the first one derives keys, all verify them"},
	{.name = "signatures",
	 .kind = NT_OPT_CHOICE,
	 .offset = OPT(signatures),
	 .def = "off",
	 .choices = "off accept require",
	 .help = "signatures of messages; off: not verified; accept: wrong ones are refused; "
		 "require: missing ones are refused too"},
	{.name = "enrol-account",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(enrol_account),
	 .arg = "NAMESPACE/NAME",
	 .help = "service account of the agents; an agent with a token of it, reviewed by the "
		 "Kubernetes API server, gets the key of its node",
	 .form = &account_form},
	{.name = "enrol-audience",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(enrol_audience),
	 .def = "neutracer",
	 .min = 1,
	 .max = 255,
	 .arg = "NAME",
	 .help = "audience required of those tokens"},
	{.name = "user",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(user),
	 .arg = "NAME",
	 .help = "switch to this user before opening anything (default: keep the current user)",
	 .form = &user_form},
	{.name = "resolve-after",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(resolve_after_ns),
	 .def = "60s",
	 .min = NT_SECOND,
	 .max = NT_DAY,
	 .help = "an incident is resolved after this time without cost, on average"},
	{.name = "frame-min",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(frame_min_ns),
	 .def = "500ms",
	 .min = 100 * NT_MILLISECOND,
	 .max = NT_MINUTE,
	 .help = "minimum length of a frame, the unit of evaluation"},
	{.name = "rewind",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(rewind_ns),
	 .def = "5m",
	 .help = "without stored state: age of the first messages to read, 0 for all messages"},
	{.name = "save-every",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(save_every_ns),
	 .def = "30s",
	 .min = NT_SECOND,
	 .max = NT_HOUR,
	 .help = "interval between saves of the detection state"},
	{.name = "size-floor",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(size_floor),
	 .def = "0.03",
	 .max = 1,
	 .help = "minimum cost of a finding, as a share of the step"},
	{.name = "critical-slowdown",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(critical_slowdown),
	 .def = "1.2",
	 .min = 1,
	 .max = 1000,
	 .help = "slowdown of the job from which an incident is critical"},
	{.name = "false-alarms-a-day",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(false_alarms_a_day),
	 .def = "0.0333",
	 .max = 1000,
	 .help = "accepted number of false alarms per job and day"},
	{.name = "node-method",
	 .kind = NT_OPT_CHOICE,
	 .offset = OPT(node_method),
	 .def = "chart",
	 .choices = "chart compressed-sensing both",
	 .help = "how the metrics of nodes are scored; both: compressed sensing only on nodes that "
		 "the chart suspects"},
	{.name = "node-false-alarms",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(node_false_alarms),
	 .def = "0.2",
	 .max = 1000,
	 .help = "accepted number of false alarms of scores per node and day"},
	{.name = "auto-level",
	 .kind = NT_OPT_U32,
	 .offset = OPT(auto_level),
	 .def = "1",
	 .max = NT_LEVEL_MAX,
	 .help = "level of detail for the ranks of a new incident and one peer; 0 for none"},
	{.name = "auto-level-time",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(auto_level_ns),
	 .def = "1m",
	 .min = NT_SECOND,
	 .max = NT_HOUR,
	 .help = "how long that level lasts"},
	{.name = "gpu-hour-price",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(gpu_hour_price),
	 .def = "0",
	 .arg = "MONEY",
	 .help = "price of a GPU hour; 0 for unknown"},
	{.name = "currency",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(currency),
	 .def = "USD",
	 .arg = "CODE",
	 .help = "currency of the price"},
	{.name = "gpu-watts",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(gpu_watts),
	 .def = "0",
	 .arg = "WATTS",
	 .help = "average power of a GPU; 0 for unknown"},
	{.name = "co2-per-kwh",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(co2_kg_per_kwh),
	 .def = "0",
	 .arg = "KG",
	 .help = "carbon dioxide per kilowatt hour; 0 for unknown"},
	{.name = "max-jobs",
	 .kind = NT_OPT_U32,
	 .offset = OPT(max_jobs),
	 .def = "4096",
	 .min = 1,
	 .max = 65536,
	 .help = "maximum number of jobs at a time"},
	{.name = "max-ranks",
	 .kind = NT_OPT_U32,
	 .offset = OPT(max_ranks),
	 .def = "131072",
	 .min = 2,
	 .max = NT_FRAME_MAX_RANKS,
	 .help = "maximum number of ranks of one job key"},
	{.name = "max-nodes",
	 .kind = NT_OPT_U32,
	 .offset = OPT(max_nodes),
	 .def = "20000",
	 .min = 1,
	 .max = 65536,
	 .help = "maximum number of nodes at a time"},
};

static const enum nt_exit exits[] = {
	NT_EXIT_CONFIG, NT_EXIT_BUS, NT_EXIT_STORE, NT_EXIT_NETWORK, NT_EXIT_SYSTEM,
};

const struct nt_opt_program nt_aggregator_program = {
	.name = "neutracer-aggregator",
	.section = 8,
	.summary = "find the slow ranks of training jobs",
	.description =
		"Reads the messages of all agents from the bus, evaluates every job frame by "
		"frame, stores incidents, serves them over REST and notifies webhooks, Alertmanager, "
		"chats and pagers.\n\n"
		"It needs no privileges: the bus must be readable, the store's directory writable. "
		"On a single machine it runs without configuration.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.config_path = "/etc/neutracer/aggregator.yaml",
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

int nt_aggregator_config_load(int argc, char **argv, struct nt_aggregator_config *config,
			      struct nt_opt_error *ret_error)
{
	const int r = nt_opt_load(&nt_aggregator_program, argc, argv, config, ret_error);
	const char *needed, *given;

	if (r != 0)
		return r;
	if (config->tls_cert_file && !config->tls_key_file) {
		given = "--tls-cert-file";
		needed = "--tls-key-file, the private key of the certificate";
	} else if (config->tls_key_file && !config->tls_cert_file) {
		given = "--tls-key-file";
		needed = "--tls-cert-file, the certificate of the key";
	} else if (config->tls_client_ca_file && !config->tls_cert_file) {
		given = "--tls-client-ca-file";
		needed = "--tls-cert-file and --tls-key-file";
	} else {
		return 0;
	}
	ret_error->exit = NT_EXIT_CONFIG;
	(void)snprintf(ret_error->text, sizeof(ret_error->text), "%s requires %s", given, needed);
	return -EINVAL;
}
