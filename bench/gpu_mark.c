/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the report of a GPU's kernels costs the process: CUPTI's buffers translated and handed over
 * at the mark, with and without an agent beside an empty probe on a nop of five bytes for each
 * kernel. Thread CPU time per record, medians of rounds in which all variants follow one another.
 *
 *	gpu_mark EMPTY_BPF_OBJECT [ROUNDS]
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/probes/probe.h"
#include "bench/mark_probes.h"
#include "plugin/cupti/report.h"

enum {
	RECORDS = 64 * 1024, /* of a round, half of them calls and half kernels */
	KERNEL_BYTES = 208,
	BUFFER_BYTES = 16 * 1024,
};

static uint8_t buffer[BUFFER_BYTES] __attribute__((aligned(8)));

/* Alternately a call of 40 bytes and a kernel of 208, as CUPTI's own function walks them. */
static int next_record(uint8_t *at, size_t size, void **record)
{
	uint8_t *next = at;

	if (*record) {
		next = *record;
		next += *(const uint32_t *)*record == NT_CUPTI_KIND_RUNTIME
				? sizeof(struct nt_cupti_call)
				: KERNEL_BYTES;
	}
	if (next + KERNEL_BYTES > at + size)
		return NT_CUPTI_MAX_LIMIT_REACHED;
	*record = next;
	return NT_CUPTI_SUCCESS;
}

static uint32_t fill(void)
{
	uint32_t records = 0;

	for (size_t at = 0; at + KERNEL_BYTES <= sizeof(buffer); records++) {
		if (records % 2 == 0) {
			const struct nt_cupti_call call = {.kind = NT_CUPTI_KIND_RUNTIME,
							   .cbid = NT_CUPTI_RUNTIME_LAUNCH,
							   .start = 1,
							   .end = 2,
							   .correlation = records};

			memcpy(buffer + at, &call, sizeof(call));
			at += sizeof(call);
		} else {
			const struct nt_cupti_kernel kernel = {
				.kind = NT_CUPTI_KIND_CONCURRENT_KERNEL,
				.start = 1,
				.end = 2,
				.correlation = records - 1,
				.name = "_ZN2at6native29vectorized_elementwise_kernelILi4E"};

			memcpy(buffer + at, &kernel, sizeof(kernel));
			at += KERNEL_BYTES;
		}
	}
	return records;
}

/* ns per record of whole buffers, translated and handed over. */
static double report(uint32_t in_buffer)
{
	const struct nt_cupti_calls calls = {.next_record = next_record};
	const double begin = mark_probes_cpu_ns();
	uint32_t records = 0;

	for (; records < RECORDS; records += in_buffer)
		nt_report_buffer(&calls, buffer, sizeof(buffer));
	return (mark_probes_cpu_ns() - begin) / records;
}

int main(int argc, char **argv)
{
	static double without[MARK_PROBES_ROUNDS], with[MARK_PROBES_ROUNDS];
	static double bare[MARK_PROBES_ROUNDS], unprobed[MARK_PROBES_ROUNDS];
	const uint32_t in_buffer = fill();
	struct mark_probes *probes;
	uint64_t rounds = 15;
	double ratio, empty;
	int r = mark_probes_open(argc, argv, &probes, &rounds);

	if (r < 0)
		return r == -EINVAL ? 2 : 1;
	for (uint64_t i = 0; i < rounds; i++) {
		without[i] = report(in_buffer);
		unprobed[i] = mark_probes_fire();
		if (mark_probes_attach(probes, NT_LIBRARY_GPU) < 0)
			return 1;
		with[i] = report(in_buffer);
		bare[i] = mark_probes_fire();
		mark_probes_detach(probes);
	}
	mark_probes_close(probes);
	empty = mark_probes_median(bare, rounds);
	printf("ns a record\n");
	printf("  mark, no probe                                %8.1f\n",
	       mark_probes_median(unprobed, rounds));
	printf("  mark, an empty probe                          %8.1f\n", empty);
	printf("  buffers of CUPTI translated, no probe         %8.1f  (without an agent CUPTI is off)\n",
	       mark_probes_median(without, rounds));
	ratio = mark_probes_median(with, rounds) / empty;
	printf("  the same with the agent                       %8.1f  of an empty probe %.3f, aim 1.25: %s\n",
	       mark_probes_median(with, rounds), ratio, ratio <= 1.25 ? "met" : "missed");
	return 0;
}
