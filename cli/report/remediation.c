/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/report/remediation.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The first matching row. NULL matches everything. */
struct row {
	const char *class, *cause, *kind, *text;
};

static const struct row rows[] = {
	{"compute", NULL, "node",
	 "Look at what the GPUs of the node share: power cap, cooling, clocks (nvidia-smi -q -d "
	 "CLOCK,PERFORMANCE,TEMPERATURE), CPU frequency. If nothing explains it, drain the node and "
	 "restart from the last checkpoint without it."},
	{"compute", NULL, NULL,
	 "On that node compare the clocks, throttle reasons, temperature and ECC counts of its GPU "
	 "with its neighbours' (nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,ECC) and look for "
	 "Xid lines in the kernel log; where no GPU is in use, at the CPU's frequency. If it "
	 "stays slow, drain the node and restart from the last checkpoint without it."},
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
	 "The GPU waits for this rank's own thread. While it is slow, look at what that thread does "
	 "(py-spy dump --pid PID, perf top -p PID), and at the node's load and memory."},
	{"storage", NULL, NULL,
	 "Look at the latency of the storage that this rank uses on that node (iostat -x 1, "
	 "nfsiostat, the storage's own figures), and who else loads it."},
	{"network", NULL, "communicator",
	 "All ranks entered in time and the transfer itself is slow. Compare the error and discard "
	 "counters of the NICs of these ranks, and measure pairs of their nodes (nccl-tests with two "
	 "nodes at a time) to find the link."},
	{"network", NULL, NULL,
	 "Look at the counters of that link: errors, discards, pauses (ethtool -S, perfquery), at its "
	 "speed as negotiated, then at cable and switch port. Until it is repaired, keep the job off "
	 "it."},
	{"missing", NULL, NULL,
	 "Read the end of that process's log and the kernel log of its node (out of memory, Xid), "
	 "then restart the job from the last checkpoint; the ranks that wait for it will not go on."},
	{"hang", "slow host", NULL,
	 "It still works on something: look at what (py-spy dump --pid PID). If it is a checkpoint or "
	 "a compilation, wait; if not, it is stuck."},
	{"hang", "network", NULL,
	 "All ranks are inside the call and it does not end: look at the links between their nodes "
	 "and at the NCCL log (NCCL_DEBUG=WARN), then restart."},
	{"hang", NULL, NULL,
	 "Take the stack of the rank that did not enter before you kill it (py-spy dump --pid PID, "
	 "gdb -p PID -batch -ex 'thread apply all bt'): it shows what it waits for. Then restart."},
	{"mismatch", NULL, NULL,
	 "A fault of the program, not of a card: the two sides came to different calls. Compare the "
	 "code path of a rank of each side, above all conditions that depend on rank or data."},
	{"unknown", "two populations", NULL,
	 "Half of the ranks are slower than the rest; no history shows which half is right. Compare "
	 "model, clocks and driver of a node of each half, or with an earlier run."},
	{"node", NULL, NULL,
	 "Look at the metrics of that node that are named as evidence, against those of another."},
	{"imbalance", NULL, NULL,
	 "No card is to blame. Give the longer role less work: move layers to another stage, or even "
	 "out the lengths of sequences."},
	{"job-wide", "host: garbage collection", NULL,
	 "No card is to blame. Collect garbage at fixed steps: gc.freeze() after the start, "
	 "gc.disable(), and gc.collect() every so many steps."},
	{"job-wide", NULL, NULL,
	 "No card is to blame: all ranks changed together. Look at what they share since then: "
	 "storage, input data, batch size, code, the power cap of the cluster."},
	{"unknown", NULL, NULL,
	 "The evidence fits no rule. Begin with what it names, and compare that rank or node with a "
	 "neighbour."},
};

static bool fits(const char *wanted, const char *is)
{
	return !wanted || strcmp(wanted, is) == 0;
}

const char *nt_remediation_find(const struct nt_wire_incident *incident)
{
	const char *kind = incident->culprits ? incident->culprit[0].kind : "";

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (fits(rows[i].class, incident->class) && fits(rows[i].cause, incident->cause) &&
		    fits(rows[i].kind, kind))
			return rows[i].text;
	return "";
}
