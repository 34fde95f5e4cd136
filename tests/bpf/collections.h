/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collections of garbage, timed in processes that are watched, in each attach mode. */
#ifndef NT_TESTS_BPF_COLLECTIONS_H
#define NT_TESTS_BPF_COLLECTIONS_H

#include "agent/discover/probed_ranks.h"
#include "agent/host/proc.h"
#include "tests/bpf/harness.h"

enum {
	COLLECTIONS = 7,
	THREADS = 500,
	NOP = 0x90,
	BREAKPOINT = 0xcc,
	PAUSE_MS = 3,
	LINE_BYTES = 128,
	START = 7, /* of a process, as it is reported */
};

static struct harness shared;
static struct nt_rank_probe *rank_probe; /* the last one that the thread made */
static int rank_probe_result;

static inline void take_rank_probe(void *data, int library, uint32_t pid, uint64_t start_ns,
				   int result, struct nt_rank_probe *probe)
{
	(void)data;
	assert_int_equal(library, NT_LIBRARY_PYTHON);
	assert_int_equal(pid, getpid());
	assert_int_equal(start_ns, START);
	rank_probe = probe;
	rank_probe_result = result;
}

static inline int begin(void **state)
{
	enum nt_attach_mode mode = *(enum nt_attach_mode *)*state;
	struct nt_attach_options options = harness_options(mode);

	options.has_thread = true;
	options.rank_probe_made = take_rank_probe;
	shared.mode = mode;
	if (harness_has_mode(mode))
		harness_init(&shared, &options);
	*state = &shared;
	return 0;
}

static inline struct harness *of_mode(void **state)
{
	struct harness *h = *state;

	if (!h->attach) {
		print_message("skip: mode: this kernel has no %s mode\n",
			      nt_attach_mode_name(h->mode));
		skip();
	}
	return h;
}

static inline int end(void **state)
{
	(void)state;
	if (shared.attach)
		harness_release(&shared);
	return 0;
}

static inline struct nt_process_counters counters_of(const struct harness *h, pid_t pid)
{
	struct nt_process_counters counters = {0};

	(void)nt_attach_counters(h->attach, (uint32_t)pid, &counters);
	return counters;
}

static enum nt_attach_mode every_mode[] = {NT_ATTACH_SESSION, NT_ATTACH_MULTI, NT_ATTACH_PERF};

#define TEST(name)                                                                                 \
	{#name "_in_session_mode", name, begin, end, &every_mode[0]},                              \
		{#name "_in_multi_mode", name, begin, end, &every_mode[1]},                        \
	{                                                                                          \
#name "_in_perf_mode", name, begin, end, &every_mode[2]                            \
	}

#endif
