/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/config.h"

#include <errno.h>
#include <stddef.h>

#include "agent/host/cgroup_filter.h"
#include "common/bus/bus_options.h"
#include "common/http/listener.h"
#include "common/system/clock.h"

#define OPT(field) offsetof(struct nt_agent_config, field)

/* Other errors are reported at the start of the agent. */
static bool is_cgroup(const char *dir)
{
	nt_auto(nt_cgroup_filter) struct nt_cgroup_filter *cgroup_filter = NULL;
	int r = nt_cgroup_filter_new(dir, &cgroup_filter);

	return r != -ENOENT && r != -ENOTDIR && r != -EINVAL;
}

static const struct nt_opt_form listen_form = {nt_listener_is_sound, "ADDRESS:PORT"};

static const struct nt_opt_form cgroup_form = {is_cgroup, "a directory of a mounted cgroup tree"};

static const struct nt_opt options[] = {
	{.name = "bus",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(bus),
	 .def = NT_BUS_DEFAULT,
	 .arg = "URL",
	 .help = "bus to write messages to: " NT_BUS_URL_HELP,
	 .form = &nt_bus_url_form},
	{.name = "node",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(node),
	 .min = 1,
	 .max = NT_AGENT_MAX_NODE,
	 .arg = "NAME",
	 .help = "name of this node (default: the host's name)"},
	{.name = "message-key-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(message_key_file),
	 .arg = "FILE",
	 .help = "key that signs the messages of this node, as printed by \"neutracer node-key\""},
	{.name = "enrol-url",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(enrol_url),
	 .arg = "URL",
	 .help = "aggregator that issues the key of this node; messages are held until then; not "
		 "needed with a key file",
	 .form = &nt_kube_url_form},
	{.name = "enrol-token-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(enrol_token_file),
	 .def = "/var/run/secrets/neutracer/token",
	 .arg = "FILE",
	 .help = "service-account token for enrolment, bound to this pod, for the audience of the "
		 "aggregator's --enrol-audience"},
	{.name = "enrol-ca-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(enrol_ca_file),
	 .arg = "FILE",
	 .help = "CA certificates (PEM) for enrolment (default: the public authorities)"},
	{.name = "cgroup",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(cgroup),
	 .arg = "DIR",
	 .help = "watch only the processes of this cgroup and its descendants",
	 .form = &cgroup_form},
	{.name = "window-min",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(window_min_ns),
	 .def = "500ms",
	 .min = 50 * NT_MILLISECOND,
	 .max = NT_MINUTE,
	 .help = "a window ends at the first step boundary after this time"},
	{.name = "min-call",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(min_call_ns),
	 .def = "1us",
	 .max = NT_SECOND,
	 .help = "synchronising calls shorter than this are only summed"},
	{.name = "gpu-window",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(gpu_window_ns),
	 .def = "3s",
	 .max = NT_MINUTE,
	 .help = "how long GPU time is measured at a time in ranks that load a library which "
		 "reports it; 0 for never"},
	{.name = "gpu-interval",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(gpu_interval_ns),
	 .def = "30s",
	 .max = NT_HOUR,
	 .help = "from one such measurement to the next; 0 for always"},
	{.name = "event-queries",
	 .kind = NT_OPT_U32,
	 .offset = OPT(query_max),
	 .def = "2000",
	 .max = 1000000,
	 .arg = "RATE",
	 .help = "queries of CUDA events a second up to which those of a rank are observed; "
		 "0 for never"},
	{.name = "level",
	 .kind = NT_OPT_U32,
	 .offset = OPT(level),
	 .def = "0",
	 .max = 3,
	 .arg = "LEVEL",
	 .help = "level of detail of all ranks of this node: from 1 on, records of their single "
		 "calls are sent, too"},
	{.name = "detail-rate",
	 .kind = NT_OPT_U32,
	 .offset = OPT(detail_rate),
	 .def = "4000",
	 .min = 32,
	 .max = 1000000,
	 .arg = "RATE",
	 .help = "records of single calls a second of one process at level 1 or above; more calls "
		 "are sampled"},
	{.name = "detail-owner-rate",
	 .kind = NT_OPT_U32,
	 .offset = OPT(detail_owner_rate),
	 .def = "16000",
	 .min = 32,
	 .max = 1000000,
	 .arg = "RATE",
	 .help = "the same of all processes of one pod, container or user"},
	{.name = "detail-node-rate",
	 .kind = NT_OPT_U32,
	 .offset = OPT(detail_node_rate),
	 .def = "16000",
	 .min = 32,
	 .max = 1000000,
	 .arg = "RATE",
	 .help = "the same of this node"},
	{.name = "gpu-peak",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(gpu_peak),
	 .def = "0",
	 .max = 1000000,
	 .arg = "TFLOPS",
	 .help = "peak of one GPU for 16-bit types, dense, in 10^12 operations a second: for models "
		 "that are not known; 0 uses what is known of the model"},
	{.name = "ring-bytes",
	 .kind = NT_OPT_SIZE,
	 .offset = OPT(ring_bytes),
	 .def = "4M",
	 .min = 64 << 10,
	 .max = 1 << 30,
	 .help = "size of the BPF ring buffer, a power of two"},
	{.name = "attach",
	 .kind = NT_OPT_CHOICE,
	 .offset = OPT(attach_mode),
	 .def = "auto",
	 .choices = "auto session multi perf",
	 .help = "how probes are attached; auto selects the best method of this kernel"},
	{.name = "attach-fuse",
	 .kind = NT_OPT_BOOL,
	 .offset = OPT(attach_fuse),
	 .help = "also attach to files of FUSE file systems; use only if their servers are "
		 "trusted"},
	{.name = "budget",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(budget),
	 .def = "1",
	 .max = 100,
	 .arg = "PERCENT",
	 .help = "maximum processor time of probes in a process, as a share of its own; 0 for no "
		 "limit"},
	{.name = "agent-budget",
	 .kind = NT_OPT_DOUBLE,
	 .offset = OPT(agent_budget),
	 .def = "2",
	 .max = 100,
	 .arg = "PERCENT",
	 .help = "maximum processor time of the agent for events, as a share of one core; 0 for "
		 "no limit"},
	{.name = "memory-max",
	 .kind = NT_OPT_SIZE,
	 .offset = OPT(memory_max),
	 .min = 16 << 20,
	 .help = "maximum private memory of the agent; above it, the largest processes of the "
		 "largest owner are dropped (default: 24M plus 512K per processor)"},
	{.name = "bus-bytes",
	 .kind = NT_OPT_SIZE,
	 .offset = OPT(bus_bytes),
	 .def = "256M",
	 .min = 1 << 20,
	 .help = "maximum disk space of one topic of the spool"},
	{.name = "bus-age",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(bus_age_ns),
	 .def = "1d",
	 .help = "age at which messages are removed from the spool, 0 for never"},
	NT_BUS_SECURITY_OPTIONS(struct nt_agent_config, bus_security),
	{.name = "shelter",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(disk_queue),
	 .def = "/var/lib/neutracer/shelter",
	 .arg = "DIR",
	 .help = "disk queue for messages while brokers are unreachable; unused with a spool; '' "
		 "for none"},
	{.name = "shelter-max-bytes",
	 .kind = NT_OPT_SIZE,
	 .offset = OPT(disk_queue_bytes),
	 .def = "256M",
	 .min = 1 << 20,
	 .help = "maximum size of the disk queue; the least important and oldest messages are "
		 "removed first"},
	{.name = "shelter-max-age",
	 .kind = NT_OPT_DURATION,
	 .offset = OPT(disk_queue_age_ns),
	 .def = "1h",
	 .help = "age at which messages are removed from the disk queue, 0 for never"},
	NT_KUBE_OPTIONS(struct nt_agent_config, kube),
	{.name = "pod-resources",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(pod_resources),
	 .def = "/var/lib/kubelet/pod-resources/kubelet.sock",
	 .arg = "FILE",
	 .help = "socket of the kubelet, which lists the GPUs of containers; '' for none"},
	{.name = "nvml",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(nvml),
	 .def = "auto",
	 .arg = "FILE",
	 .help = "library that reads the health of GPUs; auto for libnvidia-ml.so.1 where there is "
		 "an NVIDIA driver, none for none"},
	{.name = "amdsmi",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(amdsmi),
	 .def = "auto",
	 .arg = "FILE",
	 .help = "the same of AMD's GPUs, where the health of NVIDIA's is not read; auto for "
		 "libamd_smi.so where there is an AMD driver, none for none"},
	{.name = "nccl-ras",
	 .kind = NT_OPT_BOOL,
	 .offset = OPT(nccl_ras),
	 .help = "request the communicators of a job from NCCL's RAS subsystem if the job ran before "
		 "the agent and NCCL's release is not known"},
	{.name = "requests",
	 .kind = NT_OPT_BOOL,
	 .offset = OPT(requests),
	 .def = "true",
	 .help = "read requests for levels and stacks from the bus; the budgets hold in any case"},
	{.name = "system-events",
	 .kind = NT_OPT_BOOL,
	 .offset = OPT(system_events),
	 .def = "true",
	 .help = "observe what the kernel does for ranks, by tracepoints: who takes their CPU, what "
		 "they wait for, memory, block devices, TCP"},
	{.name = "metrics-file",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(metrics_file),
	 .arg = "FILE",
	 .help = "write the agent's metrics to this file, every second and at exit"},
	{.name = "listen",
	 .kind = NT_OPT_STRING,
	 .offset = OPT(listen),
	 .arg = "ADDRESS:PORT",
	 .help = "serve /healthz, /readyz and /metrics here, without authentication (default: off)",
	 .form = &listen_form},
};

static const enum nt_exit exits[] = {
	NT_EXIT_CONFIG, NT_EXIT_KERNEL, NT_EXIT_BUS, NT_EXIT_NETWORK, NT_EXIT_SYSTEM,
};

const struct nt_opt_program nt_agent_program = {
	.name = "neutracer-agent",
	.section = 8,
	.summary = "watch the training jobs of this node",
	.description =
		"Finds every process of the host that maps a communication or CUDA library, running "
		"already or started later, attaches probes to those libraries, and reports own "
		"work and waits per rank and window. Jobs need no change and "
		"no restart.\n\n"
		"Needs root, or the capabilities CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and "
		"CAP_DAC_READ_SEARCH on a kernel of 6.6 or later, and a kernel with type information "
		"(/sys/kernel/btf/vmlinux). SIGTERM stops it cleanly.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.config_path = "/etc/neutracer/agent.yaml",
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};
