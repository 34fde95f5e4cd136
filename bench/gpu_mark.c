/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the report of a GPU's kernels costs the process: CUPTI's buffers translated and handed over
 * at the mark, with and without an agent beside an empty probe on a nop of five bytes for each
 * kernel. Thread CPU time per record, medians of rounds in which all variants follow one another.
 *
 *	gpu_mark EMPTY_BPF_OBJECT [ROUNDS]
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/elf/elf.h"
#include "agent/probes/attach.h"
#include "agent/probes/link.h"
#include "agent/probes/rank_probe.h"
#include "common/base/cleanup.h"
#include "common/base/parse_number.h"
#include "plugin/cupti/report.h"
#include "plugin/mark.h"

enum {
	RECORDS = 64 * 1024, /* of a round, half of them calls and half kernels */
	MOST_ROUNDS = 101,
	KERNEL_BYTES = 208,
	BUFFER_BYTES = 16 * 1024,
	DRAIN_MS = 2,
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

static double cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ns per record of whole buffers, translated and handed over. */
static double report(uint32_t in_buffer)
{
	const struct nt_cupti_calls calls = {.next_record = next_record};
	const double begin = cpu_ns();
	uint32_t records = 0;

	for (; records < RECORDS; records += in_buffer)
		nt_report_buffer(&calls, buffer, sizeof(buffer));
	return (cpu_ns() - begin) / records;
}

/* A mark of its own for the empty probe: the same nop. */
static __attribute__((noinline)) void fire_empty(void)
{
	NT_MARK(bench_empty, 0, 0, 0);
}

NT_MARK_SEMAPHORE(bench_empty);

static double fire(void)
{
	const double begin = cpu_ns();

	for (int i = 0; i < RECORDS; i++)
		fire_empty();
	return (cpu_ns() - begin) / RECORDS;
}

/* ---- what is attached ------------------------------------------------------------------------ */

static atomic_bool ends;

static void ignore(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	(void)data, (void)call, (void)id;
}

static void *drain(void *data)
{
	const struct timespec pause = {.tv_nsec = DRAIN_MS * 1000000L};

	while (!atomic_load(&ends) && nt_attach_poll(data, ignore, NULL) >= 0)
		(void)nanosleep(&pause, NULL);
	return NULL;
}

static int attach_empty(struct bpf_object *object, struct nt_link **ret_link)
{
	nt_autoclose int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_mark mark;
	int r = nt_elf_open_fd(fd, NULL, &elf);

	if (r == 0 && nt_elf_find_marks(elf, "neutracer", "bench_empty", &mark, 1) != 1)
		r = -ENOENT;
	return r < 0 ? r
		     : nt_link_new(bpf_object__find_program_by_name(object, "empty"),
				   NT_LINK_MULTI_ENTRY, "/proc/self/exe", (uint32_t)getpid(),
				   &(struct nt_probe_site){.offset = mark.offset}, 1, ret_link);
}

static int attach_ours(const struct nt_attach *attach, struct nt_rank_probe **ret_probe)
{
	nt_autoclose int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct nt_rank_probe_sites sites;
	int r = nt_rank_probe_find(fd, NT_LIBRARY_GPU, &sites);

	return r < 0 ? r
		     : nt_rank_probe_new_at(nt_attach_loader(attach), fd, (uint32_t)getpid(),
					    &sites, ret_probe);
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *of, size_t n)
{
	qsort(of, n, sizeof(*of), ascending);
	return of[n / 2];
}

int main(int argc, char **argv)
{
	static double without[MOST_ROUNDS], with[MOST_ROUNDS], bare[MOST_ROUNDS];
	static double unprobed[MOST_ROUNDS];
	struct nt_attach_options options = {.ring_bytes = 4 << 20};
	struct bpf_program *program;
	struct bpf_object *object;
	struct nt_attach *attach;
	pthread_t reader;
	uint64_t rounds = 15;
	uint32_t in_buffer;
	double ratio;

	if (argc < 2 ||
	    (argc > 2 && nt_parse_u64(argv[2], strlen(argv[2]), 1, MOST_ROUNDS, &rounds) < 0)) {
		fprintf(stderr, "usage: gpu_mark EMPTY_BPF_OBJECT [ROUNDS]\n");
		return 2;
	}
	in_buffer = fill();
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || nt_attach_new(&options, &attach) < 0)
		return 1;
	bpf_object__for_each_program(program, object)
	{
		(void)bpf_program__set_autoload(program,
						strcmp(bpf_program__name(program), "empty") == 0);
		(void)bpf_program__set_expected_attach_type(program,
							    (enum bpf_attach_type)NT_UPROBE_MULTI);
	}
	if (bpf_object__load(object) < 0 || pthread_create(&reader, NULL, drain, attach) != 0)
		return 1;
	for (uint64_t i = 0; i < rounds; i++) {
		struct nt_rank_probe *probe;
		struct nt_link *link;

		without[i] = report(in_buffer);
		unprobed[i] = fire();
		if (attach_ours(attach, &probe) < 0 || attach_empty(object, &link) < 0) {
			fprintf(stderr, "cannot attach\n");
			return 1;
		}
		with[i] = report(in_buffer);
		bare[i] = fire();
		nt_rank_probe_free(probe);
		nt_link_free(link);
	}
	atomic_store(&ends, true);
	(void)pthread_join(reader, NULL);
	nt_attach_free(attach);
	bpf_object__close(object);
	printf("ns a record\n");
	printf("  mark, no probe                                %8.1f\n", median(unprobed, rounds));
	printf("  mark, an empty probe                          %8.1f\n", median(bare, rounds));
	printf("  buffers of CUPTI translated, no probe         %8.1f  (without an agent CUPTI is off)\n",
	       median(without, rounds));
	ratio = median(with, rounds) / median(bare, rounds);
	printf("  the same with the agent                       %8.1f  of an empty probe %.3f, aim 1.25: %s\n",
	       median(with, rounds), ratio, ratio <= 1.25 ? "met" : "missed");
	return 0;
}
