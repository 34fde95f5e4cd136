/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * neutracer-aggregator: configure, open, serve, stop. The main thread waits for signals and
 * maintains the store; the deciding thread, the notifier and HTTP have their own threads.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/config.h"
#include "aggregator/dead_man.h"
#include "aggregator/receivers.h"
#include "aggregator/run_user.h"
#include "aggregator/service.h"
#include "aggregator/store/store.h"
#include "common/bus/node_key.h"
#include "common/system/clock.h"
#include "common/system/fault_notice.h"
#include "common/system/log.h"

enum {
	HEAP_BLOCK_BYTES = 16 << 20, /* larger ones are mapped separately */
	HEAP_SPARE_BYTES = 64 << 20, /* free memory at the end of the heap that is kept */
};

#define TEND_NS  (5 * NT_SECOND)
#define STUCK_NS (30 * NT_SECOND) /* the loop turns many times a second */
#define JOIN_NS  (10 * NT_SECOND) /* limit for connecting and for the first assignment */

/* Open objects in order of opening; closed in reverse order. */
struct running {
	const struct nt_aggregator_config *config;
	struct nt_board *board;
	struct nt_event_desk *event_desk;
	struct nt_series_desk *series_desk;
	struct nt_store *store;
	struct nt_receivers receivers;
	struct nt_job_timelines *timelines;
	struct nt_service *service;
	struct nt_dead_man *dead_man; /* NULL: it is off */
	bool silence_left_out; /* logged: silent jobs over its cap */
	struct nt_api *api;
	struct nt_sink sink;
	struct nt_state_store states;
	struct nt_node_secrets *secrets;
	struct nt_enrol *enrol;
	struct nt_signing_policy signatures;
	struct nt_api_check check[2];
	struct nt_fault_notice bus_fault_notice, store_fault_notice, token_fault_notice;
	pthread_t decider;
	atomic_bool decided; /* the deciding thread ended on its own */
	int result; /* of the deciding thread */
};

static void close_running(struct running *running)
{
	nt_api_stop(running->api);
	nt_enrol_stop(running->enrol);
	nt_receivers_stop(&running->receivers);
	nt_dead_man_free(running->dead_man);
	nt_service_free(running->service);
	nt_job_timelines_free(running->timelines);
	nt_node_secrets_free(running->secrets);
	nt_store_close(running->store);
	nt_receivers_release(&running->receivers);
	nt_series_desk_free(running->series_desk);
	nt_event_desk_free(running->event_desk);
	nt_board_free(running->board);
}

/* ---- checks of /healthz and /readyz ---------------------------------------------------------- */

static int check_loop(void *data, char text[160])
{
	struct running *running = data;
	const uint64_t turned_ns = nt_service_turned_ns(running->service);

	if (turned_ns && nt_clock_mono_ns() - turned_ns > STUCK_NS) {
		(void)snprintf(text, 160, "the detection loop is stuck");
		return -ETIMEDOUT;
	}
	return 0;
}

static int check_bus(void *data, char text[160])
{
	struct running *running = data;
	struct nt_bus_health health;

	nt_service_bus_health(running->service, &health);
	if (health.cause != NT_BUS_WELL) {
		(void)snprintf(text, 160, "%s: %.140s", nt_bus_cause_name(health.cause),
			       health.text);
		return -EHOSTUNREACH;
	}
	if (nt_service_caught_up(running->service))
		return 0;
	(void)snprintf(text, 160, "still reading earlier messages of the bus");
	return -EAGAIN;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A spool is local to one machine; any other bus is shared among its readers. */
static bool is_shared(const struct nt_aggregator_config *config)
{
	return !nt_bus_spool_dir(config->bus);
}

/* A spool that agents have not made is most likely a wrong path; the default one may come later. */
static enum nt_exit check_spool(struct running *running)
{
	const struct nt_aggregator_config *config = running->config;
	const char *dir = nt_bus_spool_dir(config->bus);

	if (!dir || strcmp(config->bus, NT_BUS_DEFAULT) == 0 || access(dir, F_OK) == 0 ||
	    errno != ENOENT)
		return NT_EXIT_OK;
	(void)nt_err(0,
		     "bus: the spool '%s' does not exist; an agent creates it: check the path, or "
		     "start the agent first",
		     dir);
	return NT_EXIT_BUS;
}

static enum nt_exit read_receivers(struct running *running)
{
	return nt_receivers_read(&running->receivers, running->config);
}

static enum nt_exit open_store(struct running *running)
{
	const struct nt_aggregator_config *config = running->config;
	const char *receiver[NT_STORE_MAX_RECEIVERS];
	struct nt_store_options options = {
		.path = config->store,
		.max_bytes = config->store_bytes,
		.receiver = receiver,
		.receivers = nt_receivers_list(&running->receivers, receiver),
		.shared = is_shared(config),
		.accepts = nt_receiver_configs_accept,
		.accepts_data = running->receivers.configs,
		.flap = nt_receivers_flap_control(config),
	};
	struct nt_store_error error = {0};

	if (nt_store_open(&options, &running->store, &error) < 0) {
		(void)nt_err(0, "%s", error.text);
		return NT_EXIT_STORE;
	}
	nt_store_on_stored(running->store, nt_event_desk_stored, running->event_desk);
	running->sink = nt_store_sink(running->store);
	running->states = nt_store_states(running->store);
	return NT_EXIT_OK;
}

static enum nt_exit start_receivers(struct running *running)
{
	return nt_receivers_start(&running->receivers, running->store);
}

static double known(double price)
{
	return price > 0 ? price : -1;
}

static enum nt_exit open_signatures(struct running *running)
{
	const struct nt_aggregator_config *config = running->config;
	struct nt_node_key_error error = {0};
	int r;

	if (config->signatures == NT_SIGNING_OFF && !config->enrol_account)
		return NT_EXIT_OK;
	if (!config->node_secret_file || !*config->node_secret_file) {
		(void)nt_err(0, "signatures, enrol-account: no secret is set; set "
				"--node-secret-file");
		return NT_EXIT_CONFIG;
	}
	r = nt_node_secrets_read(config->node_secret_file, &running->secrets, &error);
	if (r < 0) {
		(void)nt_err(*error.text ? 0 : r, "read the node secrets '%s'%s%s",
			     config->node_secret_file, *error.text ? ": " : "", error.text);
		return r == -ENOMEM ? NT_EXIT_SYSTEM : NT_EXIT_CONFIG;
	}
	running->signatures = (struct nt_signing_policy){
		.mode = config->signatures,
		.secrets = running->secrets,
	};
	return NT_EXIT_OK;
}

static enum nt_exit open_enrol(struct running *running)
{
	const struct nt_aggregator_config *config = running->config;
	const struct nt_enrol_options options = {
		.kube = &config->kube,
		.secrets = running->secrets,
		.account = config->enrol_account,
		.audience = config->enrol_audience,
	};
	int r;

	if (!config->enrol_account)
		return NT_EXIT_OK;
	r = nt_enrol_start(&options, &running->enrol);
	if (r == -ENOENT)
		(void)nt_err(0, "enrol-account: there is no Kubernetes API server here; name one "
				"with --kube-api");
	else if (r < 0)
		(void)nt_err(r, "start the enrolment of nodes");
	if (r == -ENOMEM || r == -EAGAIN)
		return NT_EXIT_SYSTEM;
	return r < 0 ? NT_EXIT_CONFIG : NT_EXIT_OK;
}

static enum nt_exit open_service(struct running *running)
{
	const struct nt_aggregator_config *config = running->config;
	struct nt_service_options options = {
		.bus_url = config->bus,
		.bus_security = &config->bus_security,
		.engine = nt_engine_options_default(),
		.sink = &running->sink,
		.states = &running->states,
		.shared = is_shared(config),
		.member = config->member,
		.address = config->advertise,
		.rewind_ns = config->rewind_ns,
		.save_every_ns = config->save_every_ns,
		.signatures = &running->signatures,
		.fleet = nt_fleet_options_default(),
		.auto_level = config->auto_level,
		.auto_level_ns = config->auto_level_ns,
		.event_desk = running->event_desk,
		.series_desk = running->series_desk,
	};
	int r = nt_job_timelines_new(NULL, &running->timelines);

	if (r < 0)
		return NT_EXIT_SYSTEM;
	options.engine.timelines = running->timelines;
	options.engine.cell_min_ns = config->frame_min_ns;
	options.engine.rules.resolve_min_ns = config->resolve_after_ns;
	options.engine.rules.size_floor = config->size_floor;
	options.engine.rules.critical_slowdown = config->critical_slowdown;
	options.engine.rules.false_alarms_a_day = config->false_alarms_a_day;
	options.engine.prices = (struct nt_prices){
		.gpu_hour = known(config->gpu_hour_price),
		.gpu_watts = known(config->gpu_watts),
		.co2_kg_per_kwh = known(config->co2_kg_per_kwh),
		.currency = config->currency,
	};
	options.engine.limits.jobs = config->max_jobs;
	options.engine.limits.ranks = config->max_ranks;
	options.engine.limits.nodes = config->max_nodes;
	options.fleet.method = (enum nt_anomaly_method)config->node_method;
	options.fleet.false_alarms = config->node_false_alarms;
	options.fleet.max_nodes = config->max_nodes;
	r = nt_service_new(&options, running->board, &running->service);
	if (r < 0) {
		(void)nt_err(r, "open bus '%s'", config->bus);
		return NT_EXIT_BUS;
	}
	return NT_EXIT_OK;
}

static int rebaseline(void *data, const char *job_id)
{
	return nt_service_rebaseline(data, job_id);
}

static size_t silent_over_cap(void *data)
{
	return nt_dead_man_left_out(data);
}

static enum nt_exit open_api(struct running *running)
{
	const struct nt_aggregator_config *config = running->config;
	nt_autofree char *audit_file = NULL;
	struct nt_api_options options = {
		.listen = config->listen,
		.token_file = config->token_file,
		.tls_cert_file = config->tls_cert_file,
		.tls_key_file = config->tls_key_file,
		.tls_client_ca_file = config->tls_client_ca_file,
		.tls_client_optional = config->tls_client_auth == NT_TLS_CLIENT_OPTIONAL,
		.metrics_open = config->metrics_open,
		.board = running->board,
		.store = running->store,
		.notify = running->receivers.notify,
		.enrol = running->enrol,
		.silent_over_cap = running->config->silence_alert_ns ? silent_over_cap : NULL,
		.silent_data = running->dead_man,
		.level_desk = nt_service_level_desk(running->service),
		.profile_desk = nt_service_profile_desk(running->service),
		.node_desk = nt_service_node_desk(running->service),
		.event_desk = running->event_desk,
		.series_desk = running->series_desk,
		.address = config->advertise,
		.check = running->check,
		.checks = sizeof(running->check) / sizeof(running->check[0]),
		.rebaseline = rebaseline,
		.data = running->service,
	};
	struct nt_api_error error;

	if (asprintf(&audit_file, "%s.audit", config->store) < 0) {
		audit_file = NULL;
		return NT_EXIT_SYSTEM;
	}
	options.audit_file = *config->store ? audit_file : NULL;
	running->check[0] = (struct nt_api_check){
		.name = "loop",
		.vital = true,
		.check = check_loop,
		.data = running,
	};
	running->check[1] = (struct nt_api_check){
		.name = "bus",
		.check = check_bus,
		.data = running,
	};
	if (nt_api_start(&options, &running->api, &error) < 0) {
		(void)nt_err(0, "%s", error.text);
		return NT_EXIT_NETWORK;
	}
	nt_info("reading %s, answering on port %u, token in %s", config->bus,
		(unsigned int)nt_api_port(running->api), config->token_file);
	return NT_EXIT_OK;
}

static int put_own(void *data, const struct nt_wire_incident *incident)
{
	return nt_store_put_own(data, incident);
}

static enum nt_exit open_dead_man(struct running *running)
{
	struct nt_dead_man_options options = {
		.after_ns = running->config->silence_alert_ns,
		.put = put_own,
		.data = running->store,
	};
	struct nt_message *open[NT_DEAD_MAN_TARGETS];
	int count;

	/* Switched off, it ends what it raised before. */
	if (!options.after_ns)
		options.after_ns = UINT64_MAX;
	if (nt_dead_man_new(&options, &running->dead_man) < 0)
		return NT_EXIT_SYSTEM;
	count = nt_store_list_own(running->store, NT_DEAD_MAN_TARGETS, open);
	if (count < 0)
		(void)nt_warn(count, "read the open alerts about silence");
	for (int i = 0; i < count; i++) {
		nt_dead_man_adopt(running->dead_man, &open[i]->incident);
		nt_message_free(open[i]);
	}
	return NT_EXIT_OK;
}

static enum nt_exit open_all(struct running *running)
{
	static enum nt_exit (*const open_part[])(struct running *) = {
		check_spool, read_receivers, open_store,    start_receivers, open_signatures,
		open_enrol,  open_service,   open_dead_man, open_api,
	};

	if (nt_board_new(&running->board) < 0 ||
	    nt_event_desk_new(running->board, &running->event_desk) < 0 ||
	    nt_series_desk_new(0, &running->series_desk) < 0)
		return NT_EXIT_SYSTEM;
	for (size_t i = 0; i < sizeof(open_part) / sizeof(open_part[0]); i++) {
		enum nt_exit code = open_part[i](running);

		if (code != NT_EXIT_OK)
			return code;
	}
	return NT_EXIT_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static void *decide(void *data)
{
	struct running *running = data;

	running->result = nt_service_run(running->service);
	atomic_store(&running->decided, true);
	return NULL;
}

static void look_at_bus(struct running *running, uint64_t now_ns)
{
	struct nt_bus_health health;

	nt_service_bus_health(running->service, &health);
	if (health.cause == NT_BUS_CONNECTING && now_ns - health.since_mono_ns < JOIN_NS)
		return;
	switch (nt_fault_notice_look(&running->bus_fault_notice, health.cause, now_ns)) {
	case NT_FAULT_NOTICE_BEGINS:
		(void)nt_warn(0, "the bus '%s': %s: %s", running->config->bus,
			      nt_bus_cause_name(health.cause), health.text);
		break;
	case NT_FAULT_NOTICE_ENDS:
		nt_info("the bus '%s' recovered", running->config->bus);
		break;
	case NT_FAULT_NOTICE_NONE:
		break;
	}
}

static void look_at_store(struct running *running, uint64_t now_ns)
{
	struct nt_store_stats stats;

	nt_store_stats(running->store, &stats);
	switch (nt_fault_notice_look(&running->store_fault_notice, !stats.healthy, now_ns)) {
	case NT_FAULT_NOTICE_BEGINS:
		(void)nt_warn(0, "the store '%s': %s: incidents are held in memory",
			      running->config->store, stats.problem);
		break;
	case NT_FAULT_NOTICE_ENDS:
		nt_info("the store '%s' recovered", running->config->store);
		break;
	case NT_FAULT_NOTICE_NONE:
		break;
	}
}

/* Warns: a token removed from a file that is now invalid is still accepted. */
static void look_at_tokens(struct running *running, uint64_t now_ns)
{
	struct nt_token_error error;
	const bool is_old = nt_api_tokens_are_old(running->api, &error);

	switch (nt_fault_notice_look(&running->token_fault_notice, is_old, now_ns)) {
	case NT_FAULT_NOTICE_BEGINS:
		(void)nt_warn(0,
			      "the token file '%s' is missing or not valid: %s; its earlier "
			      "tokens remain valid",
			      running->config->token_file, error.text);
		break;
	case NT_FAULT_NOTICE_ENDS:
		nt_info("the token file '%s' is valid again: its tokens are in use",
			running->config->token_file);
		break;
	case NT_FAULT_NOTICE_NONE:
		break;
	}
}

/* Heartbeats stop where the detection loop does. */
static void keep_heartbeats(struct running *running, uint64_t now_ns)
{
	char text[160];

	if (running->receivers.notify && check_loop(running, text) == 0)
		nt_notify_keep_alive(running->receivers.notify, now_ns + STUCK_NS);
}

static void look_at_silence(struct running *running, uint64_t now_ns)
{
	const struct nt_snapshot *snapshot;
	struct nt_bus_health health;
	char problem[160];

	if (!running->dead_man)
		return;
	nt_service_bus_health(running->service, &health);
	(void)snprintf(problem, sizeof(problem), "%s: %.120s", nt_bus_cause_name(health.cause),
		       health.text);
	snapshot = nt_snapshot_acquire(running->board);
	nt_dead_man_look(running->dead_man,
			 &(struct nt_dead_man_view){
				 .bus_problem = health.cause == NT_BUS_WELL ? NULL : problem,
				 .is_behind = !nt_service_caught_up(running->service),
				 .snapshot = snapshot,
			 },
			 now_ns, nt_clock_real_ns());
	nt_snapshot_release(snapshot);
	if (running->config->silence_alert_ns && nt_dead_man_left_out(running->dead_man) &&
	    !running->silence_left_out)
		(void)nt_warn(0,
			      "%zu silent jobs have no alert: at most %d are looked at; this is "
			      "logged once",
			      nt_dead_man_left_out(running->dead_man), NT_DEAD_MAN_TARGETS);
	running->silence_left_out |= nt_dead_man_left_out(running->dead_man) > 0;
}

/* Runs until a stop signal or the failure of the deciding thread. */
static void tend(struct running *running, const sigset_t *signals)
{
	const struct timespec second = {.tv_sec = 1};
	uint64_t tended_ns = 0;

	while (!atomic_load(&running->decided)) {
		if (sigtimedwait(signals, NULL, &second) > 0)
			return;
		look_at_bus(running, nt_clock_mono_ns());
		look_at_store(running, nt_clock_mono_ns());
		look_at_tokens(running, nt_clock_mono_ns());
		keep_heartbeats(running, nt_clock_mono_ns());
		if (nt_clock_mono_ns() - tended_ns < TEND_NS)
			continue;
		tended_ns = nt_clock_mono_ns();
		nt_store_tick(running->store, nt_clock_real_ns());
		look_at_silence(running, nt_clock_mono_ns());
	}
}

static enum nt_exit serve(struct running *running, const sigset_t *signals)
{
	int r;

	r = pthread_create(&running->decider, NULL, decide, running);
	if (r) {
		(void)nt_err(-r, "start the detection thread");
		return NT_EXIT_SYSTEM;
	}
	tend(running, signals);
	nt_service_stop(running->service);
	(void)pthread_join(running->decider, NULL);
	if (running->result < 0) {
		(void)nt_err(running->result, "read bus '%s'", running->config->bus);
		return running->result == -ENOMEM ? NT_EXIT_SYSTEM : NT_EXIT_BUS;
	}
	return NT_EXIT_OK;
}

/* Blocks the signals in all threads; the main thread receives them. */
static int take_signals(sigset_t *ret_signals)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	(void)sigemptyset(ret_signals);
	(void)sigaddset(ret_signals, SIGTERM);
	(void)sigaddset(ret_signals, SIGINT);
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		return -errno;
	return -pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
}

static enum nt_exit run(const struct nt_aggregator_config *config)
{
	struct running running = {.config = config};
	enum nt_exit code;
	sigset_t signals;
	int r;

	code = nt_run_user_become(config->user);
	if (code != NT_EXIT_OK)
		return code;
	r = take_signals(&signals);
	if (r < 0) {
		(void)nt_err(r, "block signals");
		return NT_EXIT_SYSTEM;
	}
	code = open_all(&running);
	if (code == NT_EXIT_OK)
		code = serve(&running, &signals);
	close_running(&running);
	return code;
}

/*
 * Frames and windows of large jobs allocate and free megabytes twice a second. Memory returned to
 * the kernel would have to be faulted in again each time.
 */
static void keep_heap(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, HEAP_SPARE_BYTES);
}

int main(int argc, char **argv)
{
	struct nt_aggregator_config config = {0};
	struct nt_opt_error error;
	enum nt_exit code;
	int r;

	keep_heap();
	r = nt_aggregator_config_load(argc, argv, &config, &error);
	if (r < 0)
		(void)nt_err(0, "%s", error.text);
	code = r < 0 ? error.exit : r > 0 ? NT_EXIT_OK : run(&config);
	nt_opt_free(&nt_aggregator_program, &config);
	return (int)code;
}
