/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/report/remediation.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The first matching row. NULL matches everything. */
struct remedy_row {
	const char *class, *cause, *kind, *text;
};

static const struct remedy_row rows[] = {
	{"compute", NULL, "node",
	 "Look at what the GPUs of the node share: power cap, cooling, clocks (nvidia-smi -q -d "
	 "CLOCK,PERFORMANCE,TEMPERATURE), CPU frequency. If nothing explains it, drain the node and "
	 "restart from the last checkpoint without it."},
	{"compute", NULL, "stage",
	 "Look at what changed for this role alone at that time: its layers, data or sequence "
	 "lengths, then what its GPUs share: a rack, a power cap, cooling, the clocks (nvidia-smi -q "
	 "-d CLOCK,PERFORMANCE,TEMPERATURE)."},
	{"compute", "gpu temperature", NULL,
	 "The GPU is too hot and runs at a lower clock: look at the cooling of that node (fans, "
	 "airflow, coolant) and at its neighbours' temperatures (nvidia-smi -q -d "
	 "TEMPERATURE,PERFORMANCE). Until it is cooler, drain the node and restart without it."},
	{"compute", "gpu power cap", NULL,
	 "The GPU runs at a lower clock to stay within its power limit, its peers do not: compare "
	 "the limits (nvidia-smi -q -d POWER), and whether the node's own management caps it."},
	{"compute", "gpu hardware slowdown", NULL,
	 "The hardware itself holds the clock down: a power supply, a power brake, or a temperature "
	 "in an emergency (nvidia-smi -q -d PERFORMANCE). Drain the node and have it checked."},
	{"compute", "gpu memory errors", NULL,
	 "The GPU's memory has uncorrected errors: look at its remapped rows and Xid lines "
	 "(nvidia-smi -q -d ECC,ROW_REMAPPER), reset it between jobs, and replace it if they return."},
	{"compute", NULL, NULL,
	 "On that node compare the clocks, throttle reasons, temperature and ECC counts of its GPU "
	 "with its neighbours' (nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,ECC) and look for "
	 "Xid lines in the kernel log; where no GPU is in use, at the CPU's frequency. If it "
	 "stays slow, drain the node and restart from the last checkpoint without it."},
	{"host", "cpu quota", NULL,
	 "The CPU limit of its control group stops the process for a part of each period: raise the CPU "
	 "limit of its pod, or remove it (cpu.max, cpu.stat)."},
	{"host", "memory pressure", NULL,
	 "The process reclaims memory itself and reads pages again: raise the memory limit of its pod, or "
	 "find what fills the memory of that node (memory.stat, vmstat 1)."},
	{"host", "cpu contention", NULL,
	 "See what else runs on that node's processors (top, pidstat) and whether the process may "
	 "use too few of them (taskset -cp PID, the CPU limit of its pod)."},
	{"host", "data loading", NULL,
	 "Look at what the rank reads from: the file system's latency on that node, and the number "
	 "and prefetch of its data loader's workers."},
	{"host", "checkpoint", NULL,
	 "Expected while a checkpoint is written. If it costs too much, write it asynchronously or "
	 "spread it over the ranks."},
	{"host", "page faults", NULL,
	 "Look at the memory of that node: free memory, swap (vmstat 1), and the memory limit of the "
	 "pod."},
	{"host", "garbage collection", NULL,
	 "Collect garbage on all ranks at the same steps instead: gc.freeze() after the start, "
	 "gc.disable(), and gc.collect() every so many steps."},
	{"host", NULL, NULL,
	 "The other ranks wait for this rank's thread. While it is slow, look at what that thread does "
	 "(py-spy dump --pid PID, perf top -p PID), and at the node's load and memory."},
	{"storage", "network file system", NULL,
	 "Look at the server and the network of that file system (nfsiostat, mountstats), and who else "
	 "loads it from that node."},
	{"storage", "block device", NULL,
	 "Look at the latency of that node's disk (iostat -x 1), its errors (smartctl -a), its limits of "
	 "the control group (io.max), and who else loads it."},
	{"storage", NULL, NULL,
	 "Look at the latency of the storage that this rank uses on that node (iostat -x 1, "
	 "nfsiostat, the storage's own figures), and who else loads it."},
	{"network", "tcp loss", NULL,
	 "TCP sends packets again: look for drops between these ranks (nstat -az TcpRetransSegs, ethtool -S, "
	 "ip -s link), for a full queue of a switch, and for a wrong MTU."},
	{"network", NULL, "communicator",
	 "All ranks entered in time and the transfer itself is slow. Compare the error and discard "
	 "counters of the NICs of these ranks, and measure pairs of their nodes (nccl-tests with two "
	 "nodes at a time) to find the link."},
	{"network", NULL, NULL,
	 "Look at the counters of that link: errors, discards, pauses (ethtool -S, perfquery), at its "
	 "speed as negotiated, then at cable and switch port. Until it is repaired, keep the job off "
	 "it."},
	{"missing", "gpu error", NULL,
	 "Look up that number in NVIDIA's list of XID errors, and its line in the kernel log of the "
	 "node. Drain the node, reset the GPU or replace it, and restart the job from the last "
	 "checkpoint without it."},
	{"missing", NULL, NULL,
	 "Read the end of that process's log and the kernel log of its node (out of memory, Xid), "
	 "then restart the job from the last checkpoint; the ranks that wait for it will not continue."},
	{"hang", "slow host", NULL,
	 "It is still working: look at its stack (py-spy dump --pid PID). If it is a checkpoint or "
	 "a compilation, wait; if not, it is stuck."},
	{"hang", "device or link", NULL,
	 "Others have completed the call: look at the GPUs of the ranks named (Xid lines in the kernel "
	 "log, nvidia-smi -q), then at their NICs, and restart without the faulty part."},
	{"hang", "no dump", NULL,
	 "Their processes may have ended, or could not write: read the ends of their logs and the kernel "
	 "logs of their nodes (out of memory, Xid). If their dumps exist, run this again with all."},
	{"hang", "network", NULL,
	 "All ranks are inside the call and it does not end: look at the links between their nodes "
	 "and at the NCCL log (NCCL_DEBUG=WARN), then restart."},
	{"hang", NULL, "communicator",
	 "All its ranks have enqueued the call, and none has completed it. Which device did not begin "
	 "is not recorded (TORCH_NCCL_ENABLE_TIMING=1): look for Xid lines in the kernel logs of their "
	 "nodes and at the NCCL log (NCCL_DEBUG=WARN), then at the links between them."},
	{"hang", NULL, "",
	 "No rank is named: of each rank that is not seen in a call, and of one that waits, take the "
	 "stack before you kill it (py-spy dump --pid PID), then restart."},
	{"hang", NULL, NULL,
	 "Take the stack of the rank that did not enter before you kill it (py-spy dump --pid PID, "
	 "gdb -p PID -batch -ex 'thread apply all bt'): it shows what it waits for. Then restart."},
	{"mismatch", NULL, NULL,
	 "A fault of the program, not of a device: the two sides made different calls. Compare the "
	 "code path of a rank of each side, above all conditions that depend on rank or data."},
	{"job-wide", "no verdict: no rank, link or host explains it", NULL,
	 "Compare with what changed for the whole job at that time: data, checkpoints, other jobs on "
	 "its storage and network."},
	{"unknown", "two populations", NULL,
	 "Half of the ranks are slower than the rest; no history shows which half is right. Compare "
	 "model, clocks and driver of a node of each half, or with an earlier run."},
	{"node", NULL, NULL,
	 "Look at the metrics of that node that are named as evidence, against those of another."},
	{"imbalance", NULL, NULL,
	 "No rank is at fault. Give the longer role less work: move layers to another stage, or even "
	 "out the lengths of sequences."},
	{"job-wide", "host: garbage collection", NULL,
	 "No rank is at fault. Collect garbage at fixed steps: gc.freeze() after the start, "
	 "gc.disable(), and gc.collect() every so many steps."},
	{"job-wide", NULL, NULL,
	 "No rank is at fault: all ranks changed together. Look at what they share since then: "
	 "storage, input data, batch size, code, the power cap of the cluster."},
	{"unknown", NULL, NULL,
	 "The evidence fits no rule. Begin with what it names, and compare that rank or node with a "
	 "neighbour."},
};

static bool fits(const char *wanted, const char *is)
{
	return !wanted || strcmp(wanted, is) == 0;
}

/* Whether the job goes on as before once it has ended. */
static bool leaves_nothing(const struct nt_wire_incident *incident)
{
	return strcmp(incident->state, "resolved") == 0 &&
	       (fits("compute", incident->class) || fits("host", incident->class) ||
		fits("storage", incident->class) || fits("network", incident->class));
}

const char *nt_remediation_find(const struct nt_wire_incident *incident)
{
	const char *kind = incident->culprits ? incident->culprit[0].kind : "";

	if (leaves_nothing(incident))
		return "It has ended, and no action is needed now. For its cause, look at the logs "
		       "and metrics of that node and of its neighbours at that time.";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (fits(rows[i].class, incident->class) && fits(rows[i].cause, incident->cause) &&
		    fits(rows[i].kind, kind))
			return rows[i].text;
	return "";
}
