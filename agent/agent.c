/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One loop, one thread. A tick of 100 ms reads the ring whether or not the kernel woke us, for at
 * low rates it does not; what lasts longer (who is inside which call, metrics) is done once a second.
 */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/attach.h"
#include "agent/attachment.h"
#include "agent/discover.h"
#include "agent/front.h"
#include "agent/interpreter.h"
#include "agent/locator.h"
#include "agent/meter.h"
#include "agent/nic.h"
#include "agent/node.h"
#include "agent/proc.h"
#include "agent/process.h"
#include "agent/publisher.h"
#include "agent/span.h"
#include "agent/tracker.h"
#include "agent/usage.h"
#include "common/buf.h"
#include "common/bus_shelter.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/trouble.h"

#define TICK_NS     (100 * NT_MILLISECOND)
#define BUS_WELL_NS (10 * NT_SECOND)
#define CONNECT_NS  (10 * NT_SECOND) /* a first connection may take so long */
#define BTF         "/sys/kernel/btf/vmlinux"
#define BOOT_ID     "/proc/sys/kernel/random/boot_id"
#define INFINIBAND  "/sys/class/infiniband"
#define SNMP        "/proc/net/snmp"

enum {
	BOOT_ID_BYTES = 64,
	TICKS_A_SECOND = 10,
	NODE_TICKS = 50, /* between two vectors of the node */
	NODE_JOBS = 64,
	EVENTS = 8, /* of one epoll_wait() */
};

struct nt_agent {
	const struct nt_agent_config *config;
	char node[NT_AGENT_MAX_NODE + 1];
	struct nt_bus *bus;
	struct nt_bus *shelter; /* the same, where it is one; or NULL */
	struct nt_publisher *publisher;
	struct nt_tracker *tracker;
	struct nt_attachment *attachment;
	struct nt_attach *attach;
	struct nt_interpreters *interpreters;
	struct nt_discover *discover;
	struct nt_metrics *metrics;
	struct nt_locator *locator;
	struct nt_front *front; /* or NULL: nobody is to ask */
	struct nt_node vector;
	struct nt_nic nic; /* read once a second */
	int epoll, timer, signals;
	uint64_t ticks, lost, attach_failures, looked_ns;
	bool ends;
	uint64_t bus_failed_ns; /* boot time of the last failure; 0: the bus is well */
	bool warned_metrics, is_sheltered;
	struct nt_trouble bus_trouble;
	bool told_bus; /* a line is to follow when it is over */
};

/* ---- what the parts ask of each other ------------------------------------------------------- */

static int attach_file(void *data, const struct nt_mapped_file *file, uint32_t subjects)
{
	struct nt_agent *agent = data;
	int r = nt_attach_file(agent->attach, file->path, file->dev, file->ino, file->library,
			       subjects);

	if (r > 0)
		nt_info("attached %d functions of '%s'", r, file->name);
	if (r < 0) {
		agent->attach_failures++;
		(void)nt_warn(r, "attach '%s' of process %u: its calls are not seen", file->name,
			      file->pid);
	}
	return r;
}

static void drop_file(void *data, dev_t dev, ino_t ino)
{
	struct nt_agent *agent = data;

	nt_attach_drop(agent->attach, dev, ino);
}

/* One process's interpreter, for as long as it is looked at. */
struct look {
	struct nt_agent *agent;
	uint32_t pid;
	struct nt_span *span;
};

static int attach_file_of(void *data, int fd)
{
	struct look *look = data;

	return nt_attach_span(look->agent->attach, fd, look->pid, NT_LIBRARY_PYTHON, &look->span);
}

static int attach_interpreter(void *data, uint32_t pid, uint64_t start_boot_ns,
			      struct nt_span **ret_span)
{
	struct look look = {.agent = data, .pid = pid};
	uint64_t start_ns;
	int r;

	r = nt_proc_start_ns(pid, &start_ns);
	if (r == 0 && start_ns != start_boot_ns)
		r = -ESRCH;
	r = r < 0 ? r : nt_interpreter_find(pid, attach_file_of, &look);
	if (r >= 0) {
		nt_debug("collections of garbage of process %u are timed", pid);
		*ret_span = look.span;
	} else if (r != -ENOENT && r != -ESRCH) {
		(void)nt_warn(r,
			      "attach the interpreter of process %u: its collections of garbage "
			      "are not seen",
			      pid);
	}
	return r;
}

static void detach_interpreter(void *data, struct nt_span *span)
{
	(void)data;
	nt_span_free(span);
}

static void on_ranked(void *data, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_agent *agent = data;

	nt_interpreters_add(agent->interpreters, pid, start_boot_ns);
}

static void on_event(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	struct nt_agent *agent = data;

	nt_tracker_event(agent->tracker, call, id);
}

static void read_events(struct nt_agent *agent)
{
	int r = nt_attach_poll(agent->attach, on_event, agent);

	if (r < 0 && r != -EINTR && r != -EAGAIN)
		(void)nt_warn(r, "read the events of the kernel");
}

static void on_mapped(void *data, const struct nt_mapped_file *file)
{
	struct nt_agent *agent = data;

	nt_tracker_mapped(agent->tracker, file);
	(void)nt_attachment_use(agent->attachment, file);
}

static void on_exited(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t boot_ns)
{
	struct nt_agent *agent = data;

	read_events(agent); /* its last calls come before its end */
	nt_tracker_exited(agent->tracker, pid, start_boot_ns, boot_ns);
	nt_attachment_end(agent->attachment, pid, start_boot_ns, nt_clock_boot_ns());
	nt_interpreters_end(agent->interpreters, pid, start_boot_ns);
	nt_attach_forget(agent->attach, pid);
}

static int describe(void *data, uint32_t pid, struct nt_process_facts *ret_facts)
{
	(void)data;
	return nt_process_describe(pid, ret_facts);
}

static int sample(void *data, uint32_t pid, uint32_t tid, struct nt_host **host,
		  struct nt_host_sample *ret_sample)
{
	const struct nt_agent *agent = data;
	int r;

	if (!*host) {
		r = nt_host_open(pid, tid, host);
		if (r < 0)
			return r;
	}
	r = nt_host_read(*host, ret_sample);
	if (r < 0)
		return r;
	ret_sample->nic_retransmits = agent->nic.retransmits;
	ret_sample->nic_errors = agent->nic.errors;
	ret_sample->nic_congestion = agent->nic.congestion;
	return 0;
}

static bool counters(void *data, uint32_t pid, struct nt_process_counters *ret_counters)
{
	const struct nt_agent *agent = data;

	return nt_attach_counters(agent->attach, pid, ret_counters);
}

static void locate(void *data, const struct nt_cgroup *cgroup, struct nt_home *home)
{
	const struct nt_agent *agent = data;

	nt_locator_find(agent->locator, cgroup, home);
}

static void on_window(void *data, const char *key, const struct nt_window *window,
		      uint64_t watermark_ns)
{
	struct nt_agent *agent = data;

	nt_publisher_window(agent->publisher, key, window, watermark_ns);
}

static void on_heartbeat(void *data, const char *key, uint32_t ranks, uint64_t watermark_ns)
{
	struct nt_agent *agent = data;

	nt_publisher_heartbeat(agent->publisher, key, ranks, watermark_ns);
}

static void on_inside(void *data, uint32_t pid, uint32_t tid, uint16_t row,
		      const struct nt_inside *inside)
{
	struct nt_agent *agent = data;

	nt_tracker_inside(agent->tracker, pid, tid, row, inside, agent->looked_ns);
}

/* ---- opening -------------------------------------------------------------------------------- */

static int open_probes(struct nt_agent *agent)
{
	struct nt_attach_options options = {
		.mode = (enum nt_attach_mode)agent->config->attach_mode,
		.ring_bytes = agent->config->ring_bytes,
		.min_call_ns = agent->config->min_call_ns,
		.max_processes = agent->config->max_processes,
		.max_threads = agent->config->max_threads,
	};
	int r;

	if (access(BTF, R_OK) < 0)
		return nt_err(-errno, "this kernel has no type information (BTF) at '%s'", BTF);
	r = nt_attach_new(&options, &agent->attach);
	if (r == -EPERM || r == -EACCES)
		return nt_err(r, "load the probes: run as root, or with CAP_BPF, CAP_PERFMON, "
				 "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
	if (r < 0)
		return nt_err(r, "load the probes");
	return 0;
}

static uint64_t hash_boot_id(void)
{
	nt_autobuf struct nt_buf buf = {0};

	if (nt_file_read(BOOT_ID, BOOT_ID_BYTES, &buf) < 0)
		return NT_HASH_SEED; /* then it says nothing, and loopback addresses may collide */
	return nt_hash_bytes(NT_HASH_SEED, buf.data, buf.len);
}

/* A spool is on this machine, and needs none. */
static int open_shelter(struct nt_agent *agent, struct nt_bus_options *options)
{
	const struct nt_shelter_options shelter = {
		.dir = agent->config->shelter,
		.limits = {.max_bytes = agent->config->shelter_bytes,
			   .max_age_ns = agent->config->shelter_age_ns},
	};
	int r;

	if (!shelter.dir || !*shelter.dir || strncmp(agent->config->bus, "spool:", 6) == 0)
		return 0;
	r = nt_shelter_open(&shelter, &agent->bus);
	if (r == -EWOULDBLOCK)
		return nt_err(r, "the shelter '%s' is used by another agent", shelter.dir);
	if (r < 0)
		return nt_err(r, "open the shelter '%s'", shelter.dir);
	agent->shelter = agent->bus;
	options->undelivered = nt_shelter_undelivered;
	options->data = agent->shelter;
	return 0;
}

static int open_bus(struct nt_agent *agent, uint64_t boot)
{
	struct nt_bus *bus = NULL;
	char client[sizeof(agent->node) + 32];
	struct nt_bus_error error = {0};
	struct nt_bus_options options = {
		.max_bytes = agent->config->bus_bytes,
		.max_age_ns = agent->config->bus_age_ns,
		.security = agent->config->bus_security,
		.client = client,
		.is_small = true,
		.flush_ns =
			NT_MILLISECOND, /* what brokers have not taken by then waits with the bus */
		.error = &error,
	};
	uint64_t start = nt_hash_u64(nt_hash_u64(boot, nt_clock_boot_ns()), (uint64_t)getpid());
	int r;

	(void)snprintf(client, sizeof(client), "neutracer-agent-%s", agent->node);
	r = open_shelter(agent, &options);
	if (r < 0)
		return r;
	r = nt_bus_open(agent->config->bus, &options, &bus);
	if (r < 0)
		return nt_err(r, "open the bus '%s' for writing%s%s", agent->config->bus,
			      *error.text ? ": " : "", error.text);
	if (agent->shelter)
		nt_shelter_attach(agent->shelter, bus);
	else
		agent->bus = bus;
	r = nt_publisher_new(agent->bus, agent->node, nt_hash_mix(start), &agent->publisher);
	return r < 0 ? nt_err(r, "start") : 0;
}

static int open_tracker(struct nt_agent *agent, uint64_t boot)
{
	struct nt_tracker_options options = {
		.node = agent->node,
		.boot = boot,
		.seed = nt_hash_u64(boot, nt_clock_boot_ns()),
		.window_min_ns = agent->config->window_min_ns,
		.source = {.memory = nt_memory_live(),
			   .describe = describe,
			   .sample = sample,
			   .counters = counters,
			   .locate = locate,
			   .data = agent},
		.sink = {.window = on_window,
			 .ranked = on_ranked,
			 .heartbeat = on_heartbeat,
			 .data = agent},
	};
	struct nt_attachment_hooks hooks = {
		.attach = attach_file,
		.drop = drop_file,
		.data = agent,
	};
	struct nt_interpreters_hooks interpreters = {
		.attach = attach_interpreter,
		.detach = detach_interpreter,
		.data = agent,
	};
	struct nt_discover_handler handler = {
		.mapped = on_mapped,
		.exited = on_exited,
		.data = agent,
	};
	int r;

	r = nt_tracker_new(&options, &agent->tracker);
	if (r == 0)
		r = nt_attachment_new(&hooks, &agent->attachment);
	if (r == 0)
		r = nt_interpreters_new(&interpreters, &agent->interpreters);
	if (r == 0)
		r = nt_meter_new(&agent->metrics);
	if (r < 0)
		return nt_err(r, "start");
	r = nt_discover_new(agent->config->cgroup, &handler, &agent->discover);
	if (r < 0 && agent->config->cgroup)
		return nt_err(r, "look for the processes of cgroup '%s'", agent->config->cgroup);
	return r < 0 ? nt_err(r, "look for processes") : 0;
}

static int open_front(struct nt_agent *agent)
{
	struct nt_httpd_error error;
	int r;

	if (!agent->config->listen)
		return 0;
	r = nt_front_start(agent->config->listen, agent->metrics, &agent->front, &error);
	if (r < 0)
		(void)nt_err(*error.text ? 0 : r, "%s", *error.text ? error.text : "start");
	return r;
}

static int watch(const struct nt_agent *agent, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(agent->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_loop(struct nt_agent *agent)
{
	const struct itimerspec tick = {
		.it_value = {.tv_nsec = TICK_NS},
		.it_interval = {.tv_nsec = TICK_NS},
	};
	sigset_t set;
	int fds[4];

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	agent->epoll = epoll_create1(EPOLL_CLOEXEC);
	agent->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	agent->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (agent->epoll < 0 || agent->signals < 0 || agent->timer < 0 ||
	    timerfd_settime(agent->timer, 0, &tick, NULL) < 0)
		return -errno;
	fds[0] = agent->signals;
	fds[1] = agent->timer;
	fds[2] = nt_attach_fd(agent->attach);
	fds[3] = nt_discover_fd(agent->discover);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		int r = watch(agent, fds[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int name_node(struct nt_agent *agent)
{
	if (agent->config->node) {
		(void)snprintf(agent->node, sizeof(agent->node), "%s", agent->config->node);
		return 0;
	}
	return gethostname(agent->node, sizeof(agent->node) - 1) < 0 ? -errno : 0;
}

int nt_agent_new(const struct nt_agent_config *config, struct nt_agent **ret_agent,
		 enum nt_exit *ret_exit)
{
	nt_auto(nt_agent) struct nt_agent *agent = calloc(1, sizeof(*agent));
	uint64_t boot = hash_boot_id();
	int r;

	*ret_exit = NT_EXIT_SYSTEM;
	if (!agent)
		return nt_err(-ENOMEM, "start");
	agent->config = config;
	agent->epoll = agent->timer = agent->signals = -1;
	r = name_node(agent);
	if (r < 0)
		return nt_err(r, "read the host's name");

	*ret_exit = NT_EXIT_KERNEL;
	r = open_probes(agent);
	if (r < 0)
		return r;
	*ret_exit = NT_EXIT_BUS;
	r = open_bus(agent, boot);
	if (r < 0)
		return r;
	*ret_exit = NT_EXIT_SYSTEM;
	r = nt_locator_new(
		&(struct nt_locator_options){&config->kube, agent->node, config->pod_resources},
		&agent->locator);
	if (r < 0)
		return r;
	r = open_tracker(agent, boot);
	if (r < 0) {
		*ret_exit = r == -ENOMEM ? NT_EXIT_SYSTEM : NT_EXIT_KERNEL;
		return r;
	}
	*ret_exit = NT_EXIT_NETWORK;
	r = open_front(agent);
	if (r < 0)
		return r;
	*ret_exit = NT_EXIT_SYSTEM;
	r = open_loop(agent);
	if (r < 0)
		return nt_err(r, "set up the event loop");
	*ret_agent = nt_take(agent);
	return 0;
}

void nt_agent_free(struct nt_agent *agent)
{
	if (!agent)
		return;
	/* Detach first: the job is then free of us, whatever the rest takes. */
	nt_discover_free(agent->discover);
	nt_interpreters_free(agent->interpreters);
	nt_attach_free(agent->attach);
	nt_attachment_free(agent->attachment);
	nt_tracker_free(agent->tracker);
	nt_locator_free(agent->locator);
	nt_publisher_free(agent->publisher);
	nt_bus_close(agent->bus);
	nt_front_stop(agent->front);
	nt_metrics_free(agent->metrics);
	nt_closep(&agent->epoll);
	nt_closep(&agent->timer);
	nt_closep(&agent->signals);
	free(agent);
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void take_losses(struct nt_agent *agent)
{
	struct nt_attach_stats stats;
	uint64_t lost;

	nt_attach_stats(agent->attach, &stats);
	lost = nt_meter_lost(&stats);
	if (lost > agent->lost) {
		nt_tracker_lost(agent->tracker, lost - agent->lost);
		agent->lost = lost;
	}
}

static void tell_metrics(struct nt_agent *agent)
{
	struct nt_meter_reading reading = {
		.attachments_over_cap = nt_attachment_over_cap(agent->attachment),
		.ports_over_cap = agent->nic.ports_over_cap,
		.attach_failures = agent->attach_failures,
		.cpu_ns = nt_usage_cpu_ns(),
		.resident_bytes = nt_usage_resident_bytes(),
	};
	int r;

	if (!agent->config->metrics_file && !agent->front)
		return;
	nt_attach_stats(agent->attach, &reading.attach);
	nt_interpreters_stats(agent->interpreters, &reading.interpreters);
	nt_discover_stats(agent->discover, &reading.discover);
	nt_tracker_stats(agent->tracker, &reading.tracker);
	nt_publisher_stats(agent->publisher, &reading.publisher);
	nt_locator_stats(agent->locator, &reading.locator);
	nt_bus_stats(agent->bus, &reading.bus);
	if (agent->shelter)
		nt_shelter_stats(agent->shelter, &reading.shelter);
	nt_meter_set(agent->metrics, &reading);
	if (!agent->config->metrics_file)
		return;
	r = nt_meter_write(agent->metrics, agent->config->metrics_file);
	if (r < 0 && !agent->warned_metrics) {
		agent->warned_metrics = true;
		(void)nt_warn(r, "write metrics to '%s'", agent->config->metrics_file);
	}
}

static void flush(struct nt_agent *agent)
{
	int r = nt_publisher_flush(agent->publisher);

	if (r < 0 && r != -ETIMEDOUT) {
		if (!agent->bus_failed_ns)
			(void)nt_warn(
				r, "write to the bus '%s': messages are lost until there is room",
				agent->config->bus);
		agent->bus_failed_ns = nt_clock_boot_ns();
	} else if (agent->bus_failed_ns &&
		   nt_clock_boot_ns() - agent->bus_failed_ns > BUS_WELL_NS) {
		/* A flush of nothing succeeds too: only a while without failure says something. */
		nt_info("the bus '%s' takes messages again", agent->config->bus);
		agent->bus_failed_ns = 0;
	}
}

static void look_at_shelter(struct nt_agent *agent)
{
	struct nt_shelter_stats stats;
	struct nt_bus_health health;

	if (!agent->shelter)
		return;
	nt_shelter_stats(agent->shelter, &stats);
	if (agent->is_sheltered == (stats.is_away != 0))
		return;
	agent->is_sheltered = stats.is_away != 0;
	nt_bus_health(agent->bus, &health);
	if (agent->is_sheltered)
		(void)nt_warn(0, "the bus '%s' is away: messages wait in '%s': %s",
			      agent->config->bus, agent->config->shelter,
			      health.text[0] ? health.text : "brokers acknowledge nothing");
	else
		nt_info("the bus '%s' is back: what waits follows", agent->config->bus);
}

/* What is wrong without the bus being away, above all: a topic that is not there, or too small. */
static void look_at_bus(struct nt_agent *agent)
{
	const uint64_t now_ns = nt_clock_mono_ns();
	const bool was_sheltered = agent->is_sheltered;
	struct nt_bus_health health;
	enum nt_trouble_news news;

	look_at_shelter(agent);
	nt_bus_health(agent->bus, &health);
	if (health.cause == NT_BUS_CONNECTING && now_ns - health.since_mono_ns < CONNECT_NS)
		return;
	news = nt_trouble_look(&agent->bus_trouble, health.cause, now_ns);
	if (agent->is_sheltered && !was_sheltered && health.cause != NT_BUS_WELL)
		return; /* it has just been said */
	if (news == NT_TROUBLE_BEGINS) {
		agent->told_bus = true;
		(void)nt_warn(0, "the bus '%s': %s: %s", agent->config->bus,
			      nt_bus_cause_name(health.cause), health.text);
	} else if (news == NT_TROUBLE_ENDS && agent->told_bus) {
		agent->told_bus = false;
		nt_info("the bus '%s' is well again", agent->config->bus);
	}
}

/* Events first, so that a process's calls are known before its end is. */
static void catch_up(struct nt_agent *agent)
{
	int r;

	read_events(agent);
	nt_tracker_discovering(agent->tracker);
	r = nt_discover_run(agent->discover);
	if (r < 0)
		(void)nt_warn(r, "look for processes");
	nt_tracker_discovered(agent->tracker, r == 0 && nt_discover_is_complete(agent->discover));
}

static void look_inside(struct nt_agent *agent)
{
	int r;

	agent->looked_ns = nt_clock_boot_ns();
	nt_tracker_look(agent->tracker);
	r = nt_attach_inside(agent->attach, on_inside, agent);
	if (r < 0)
		(void)nt_warn(r, "look who is inside a call");
	read_events(agent); /* those that have left since */
}

static void send_node(struct nt_agent *agent)
{
	const char *job[NODE_JOBS];
	struct nt_node_vector vector = {.node = agent->node, .job = job};

	nt_node_read(&agent->vector);
	nt_node_take_nic(&agent->vector, &agent->nic);
	vector.metric = agent->vector.metric;
	vector.metrics = agent->vector.metrics;
	vector.jobs = nt_tracker_jobs(agent->tracker, job, NODE_JOBS);
	nt_publisher_node(agent->publisher, &vector);
}

static void tick(struct nt_agent *agent)
{
	uint64_t boot_ns, real_ns;

	if (agent->ticks++ % TICKS_A_SECOND == 0) {
		look_inside(agent);
		nt_nic_read(INFINIBAND, SNMP, &agent->nic);
		nt_attachment_tick(agent->attachment, nt_clock_boot_ns());
		nt_interpreters_detach(agent->interpreters);
	}
	nt_interpreters_attach(agent->interpreters);
	nt_clock_pair(&boot_ns, &real_ns);
	nt_publisher_set_time(agent->publisher, boot_ns, real_ns);
	catch_up(agent);
	take_losses(agent);
	nt_tracker_tick(agent->tracker, boot_ns);
	if (agent->ticks % NODE_TICKS == 0)
		send_node(agent);
	flush(agent);
	if (agent->shelter)
		nt_shelter_turn(agent->shelter, nt_clock_mono_ns(), real_ns);
	if (agent->ticks % TICKS_A_SECOND == 0) {
		look_at_bus(agent);
		nt_locator_tick(agent->locator, nt_clock_mono_ns());
		tell_metrics(agent);
	}
	nt_front_turned(agent->front, nt_clock_mono_ns());
}

static void take_signal(struct nt_agent *agent)
{
	struct signalfd_siginfo info;

	while (read(agent->signals, &info, sizeof(info)) == sizeof(info))
		agent->ends = true;
}

static int wait_and_work(struct nt_agent *agent)
{
	struct epoll_event events[EVENTS];
	bool ticked = false, woken = false;
	uint64_t expired;
	int n;

	n = epoll_wait(agent->epoll, events, EVENTS, -1);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == agent->signals)
			take_signal(agent);
		else if (events[i].data.fd == agent->timer)
			ticked = read(agent->timer, &expired, sizeof(expired)) > 0;
		else
			woken = true;
	}
	if (ticked)
		tick(agent);
	else if (woken)
		catch_up(agent);
	return 0;
}

static void drain(struct nt_agent *agent)
{
	uint64_t boot_ns, real_ns;

	nt_clock_pair(&boot_ns, &real_ns);
	nt_publisher_set_time(agent->publisher, boot_ns, real_ns);
	catch_up(agent);
	take_losses(agent);
	nt_tracker_drain(agent->tracker, boot_ns);
	flush(agent);
	tell_metrics(agent);
}

int nt_agent_run(struct nt_agent *agent)
{
	uint64_t boot_ns, real_ns;
	int r = 0;

	nt_clock_pair(&boot_ns, &real_ns);
	nt_publisher_set_time(agent->publisher, boot_ns, real_ns);
	nt_info("watching node '%s' with probes by %s, messages go to '%s'", agent->node,
		nt_attach_mode_name(nt_attach_mode(agent->attach)), agent->config->bus);
	catch_up(agent); /* attaches to what runs already */
	while (!agent->ends && r == 0)
		r = wait_and_work(agent);
	drain(agent);
	nt_info("ended");
	return r < 0 ? nt_err(r, "wait for events") : 0;
}
