/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the parts of the agent in order, and closes them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/agent_impl.h"
#include "common/base/buf.h"
#include "common/base/hash.h"
#include "common/bus/bus_disk_queue.h"
#include "common/system/clock.h"
#include "common/system/file.h"
#include "common/system/log.h"

#define TICK_NS (100 * NT_MILLISECOND)
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

enum {
	BOOT_ID_BYTES = 64,
};

static uint64_t hash_boot_id(void)
{
	nt_autobuf struct nt_buf buf = {0};

	if (nt_file_read(BOOT_ID, BOOT_ID_BYTES, &buf) < 0)
		return NT_HASH_SEED; /* then it has no effect, and loopback addresses may collide */
	return nt_hash_bytes(NT_HASH_SEED, buf.data, buf.len);
}

/*
 * Two agents of one node would report each rank twice. A disk queue has a lock of its own; in a
 * spool, which agents of several nodes may share, there is one per node. The spool exists.
 */
static int lock_spool(struct nt_agent *agent)
{
	const char *dir = nt_bus_spool_dir(agent->config->bus);
	char path[PATH_MAX];
	int n;

	if (!dir)
		return 0;
	n = snprintf(path, sizeof(path), "%s/agent-%016llx.lock", dir,
		     (unsigned long long)nt_hash_text(NT_HASH_SEED, agent->node));
	if (n < 0 || (size_t)n >= sizeof(path))
		return nt_err(-ENAMETOOLONG, "lock the spool '%s'", dir);
	agent->spool_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (agent->spool_lock < 0)
		return nt_err(-errno, "lock the spool '%s'", dir);
	if (flock(agent->spool_lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return nt_err(-errno, "lock the spool '%s'", dir);
	(void)nt_err(
		0,
		"an agent of node '%s' already writes to the spool '%s': stop it, or give this "
		"one another --node or --bus",
		agent->node, dir);
	return -EWOULDBLOCK;
}

/* A spool is local, and needs none. */
static int open_disk_queue(struct nt_agent *agent, struct nt_bus_options *options)
{
	const struct nt_disk_queue_options disk_queue = {
		.dir = agent->config->disk_queue,
		.limits = {.max_bytes = agent->config->disk_queue_bytes,
			   .max_age_ns = agent->config->disk_queue_age_ns},
	};
	int r;

	if (!disk_queue.dir || !*disk_queue.dir || nt_bus_spool_dir(agent->config->bus))
		return 0;
	r = nt_disk_queue_open(&disk_queue, &agent->bus);
	if (r == -EWOULDBLOCK)
		return nt_err(r, "the disk queue '%s' is in use by another agent", disk_queue.dir);
	if (r < 0)
		return nt_err(r, "open the disk queue '%s'", disk_queue.dir);
	agent->disk_queue = agent->bus;
	options->undelivered = nt_disk_queue_undelivered;
	options->data = agent->disk_queue;
	return 0;
}

static int open_enrolment(struct nt_agent *agent)
{
	const struct nt_enrolment_options options = {
		.url = agent->config->enrol_url,
		.token_file = agent->config->enrol_token_file,
		.ca_file = agent->config->enrol_ca_file,
		.node = agent->node,
	};
	int r;

	if (!options.url || !*options.url)
		return 0;
	r = nt_enrolment_start(&options, &agent->enrolment);
	if (r < 0)
		return nt_err(r, "request to '%s' for the key of node '%s'", options.url,
			      agent->node);
	nt_publisher_await_key(agent->publisher);
	return 0;
}

static int open_signer(struct nt_agent *agent)
{
	struct nt_node_key_error error = {0};
	const char *path = agent->config->message_key_file;
	struct nt_node_key key;
	int r;

	if (!path || !*path)
		return open_enrolment(agent);
	r = nt_node_key_read(path, agent->node, &key, &error);
	if (r < 0) {
		(void)nt_err(*error.text ? 0 : r, "read the message key '%s'%s%s", path,
			     *error.text ? ": " : "", error.text);
		return r;
	}
	r = nt_signer_new(&key, &agent->signer);
	if (r < 0)
		return nt_err(r, "start");
	nt_publisher_sign(agent->publisher, agent->signer);
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
			NT_MILLISECOND, /* messages not accepted by then remain queued in the bus */
		.error = &error,
	};
	uint64_t start = nt_hash_u64(nt_hash_u64(boot, nt_clock_boot_ns()), (uint64_t)getpid());
	int r;

	(void)snprintf(client, sizeof(client), "neutracer-agent-%s", agent->node);
	r = open_disk_queue(agent, &options);
	if (r < 0)
		return r;
	r = nt_bus_open(agent->config->bus, &options, &bus);
	if (r < 0)
		return nt_err(r, "open the bus '%s' for writing%s%s", agent->config->bus,
			      *error.text ? ": " : "", error.text);
	r = lock_spool(agent);
	if (r < 0) {
		nt_bus_close(bus);
		return r;
	}
	if (agent->disk_queue)
		nt_disk_queue_attach(agent->disk_queue, bus);
	else
		agent->bus = bus;
	r = nt_publisher_new(agent->bus, agent->node, nt_hash_mix(start), &agent->publisher);
	return r < 0 ? nt_err(r, "start") : 0;
}

static int open_health_server(struct nt_agent *agent)
{
	struct nt_httpd_error error;
	int r;

	if (!agent->config->listen)
		return 0;
	r = nt_health_server_start(agent->config->listen, agent->metrics, &agent->health_server,
				   &error);
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
	int fds[6];

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
	fds[4] = nt_linker_fd(agent->linker);
	fds[5] = nt_attach_links_fd(agent->attach);
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

/*
 * The library of a vendor by its option. The driver's device is what all its users open. Where it is
 * missing, most nodes of most clusters, no worker is started to find that out.
 */
static bool is_read(const char *option, enum nt_gpu_vendor vendor, const char **ret_library)
{
	*ret_library = NULL;
	if (!option || !*option || strcmp(option, "none") == 0)
		return false;
	if (strcmp(option, "auto") == 0)
		return access(nt_gpu_libraries[vendor].device, F_OK) == 0;
	*ret_library = option;
	return true;
}

static int open_gpu_health(struct nt_agent *agent)
{
	const char *option[NT_GPU_VENDORS] = {
		[NT_GPU_NVIDIA] = agent->config->nvml, [NT_GPU_AMD] = agent->config->amdsmi};
	const char *library;

	for (enum nt_gpu_vendor vendor = 0; vendor < NT_GPU_VENDORS; vendor++)
		if (is_read(option[vendor], vendor, &library))
			return nt_gpu_health_new(&agent->workers, vendor, library,
						 &agent->gpu_health);
	return 0;
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
	agent->epoll = agent->timer = agent->signals = agent->spool_lock = -1;
	r = name_node(agent);
	if (r < 0)
		return nt_err(r, "read the host's name");

	nt_agent_open_node(agent);
	r = nt_agent_open_workers(agent);
	if (r < 0)
		return r;
	r = open_gpu_health(agent);
	if (r == 0)
		r = nt_agent_open_ras(agent);
	if (r < 0)
		return nt_err(r, "start");
	*ret_exit = NT_EXIT_KERNEL;
	r = nt_agent_open_probes(agent);
	if (r < 0)
		return r;
	*ret_exit = NT_EXIT_BUS;
	r = open_bus(agent, boot);
	if (r < 0)
		return r;
	*ret_exit = NT_EXIT_CONFIG;
	r = open_signer(agent);
	if (r < 0)
		return r;
	*ret_exit = NT_EXIT_SYSTEM;
	r = nt_placement_lookup_new(&(struct nt_placement_lookup_options){&config->kube,
									  agent->node,
									  config->pod_resources},
				    &agent->placement_lookup);
	if (r < 0)
		return r;
	r = nt_agent_open_tracker(agent, boot);
	if (r < 0) {
		*ret_exit = r == -ENOMEM ? NT_EXIT_SYSTEM : NT_EXIT_KERNEL;
		return r;
	}
	*ret_exit = NT_EXIT_SYSTEM;
	r = nt_agent_open_level(agent);
	if (r < 0)
		return nt_err(r, "start");
	*ret_exit = NT_EXIT_NETWORK;
	r = open_health_server(agent);
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
	/* Detach first, so that the job is unaffected by a slow shutdown. */
	nt_discover_free(agent->discover);
	nt_probed_ranks_free(agent->interpreters);
	nt_probed_ranks_free(agent->gpu_ranks);
	nt_probed_ranks_free(agent->nccl_ranks);
	nt_probed_ranks_free(agent->send_ranks);
	nt_probed_ranks_free(agent->query_ranks);
	nt_rdma_free(agent->rdma);
	nt_own_links_free(agent->own_links);
	nt_linker_free(agent->linker);
	nt_attach_free(agent->attach);
	nt_governor_free(agent->governor);
	nt_detail_set_free(agent->detail_set);
	nt_attachment_free(agent->attachment);
	nt_tracker_free(agent->tracker);
	nt_agent_close_level(agent);
	nt_process_reader_free(agent->process_reader);
	nt_gpu_health_free(agent->gpu_health);
	nt_ras_free(agent->ras);
	nt_system_free(agent->system);
	nt_workers_end(&agent->workers);
	nt_quarantine_free(agent->quarantine);
	nt_placement_lookup_free(agent->placement_lookup);
	nt_enrolment_stop(agent->enrolment);
	nt_publisher_free(agent->publisher);
	nt_signer_free(agent->signer);
	nt_bus_close(agent->bus);
	nt_health_server_stop(agent->health_server);
	nt_metrics_free(agent->metrics);
	nt_closep(&agent->epoll);
	nt_closep(&agent->timer);
	nt_closep(&agent->signals);
	nt_closep(&agent->spool_lock);
	free(agent);
}
