/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Every row of the table, attached to a function of its name and called with known words, in every
 * mode that this kernel has: the event must hold exactly them.
 *
 * Perf links take 0.1 s each to detach on some kernels: there NT_LONG=1 tries all libraries, and
 * else three.
 */
#include <time.h>

#include "tests/bpf/harness.h"

static struct stub library[NT_LIBRARY_END];
static struct nt_process_counters expected; /* all that this process has counted */

enum {
	OUTPUT_BEFORE = 0xbef0,
	OUTPUT_AFTER = 0xaf7e,
	SECOND = 0x5ec0,
	LOCATION = 0x10ca,
	CODE_BYTES = 16384, /* of this file */
};

/* The arguments of one call, and what they point to. */
static uint64_t args[STUB_ARGS];
static uint64_t record[64];
static uint8_t target[1 << 12];
static uint8_t id[NT_ID_BYTES];
static uint64_t *output; /* written while inside: an output parameter */
static uint64_t second; /* a second one, of calls with a pitch */
static const uint64_t properties[] = {0, LOCATION, 0}; /* of physical memory */
static long pause_us; /* under a second */

static void inside(void)
{
	const struct timespec pause = {.tv_nsec = pause_us * 1000};

	if (output)
		*output = OUTPUT_AFTER;
	second = SECOND;
	if (pause_us)
		assert_int_equal(nanosleep(&pause, NULL), 0);
}

static uint32_t attached_rows(enum nt_library of)
{
	uint32_t rows = 0;

	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		rows += nt_probe_row(row)->library == of;
	return rows;
}

static void fill_args(uint16_t row, const struct nt_probe *p)
{
	size_t at = p->record ? (size_t)(p->record - 1) * 2 : 0;

	for (size_t i = 0; i < STUB_ARGS; i++)
		args[i] = 0x1000000000000000 + row * 0x10000ULL + i;
	for (size_t i = 0; i < sizeof(record) / sizeof(record[0]); i++)
		record[i] = 0x2000000000000000 + row * 0x10000ULL + i;
	for (size_t i = 0; i < sizeof(id); i++)
		id[i] = (uint8_t)(row + i);
	if (p->record)
		args[0] = (uintptr_t)record;
	output = NULL;
	if (p->deref > 0 || (p->deref == 0 && !p->record)) {
		*(p->record ? &record[at + (size_t)p->deref - 1] : &args[p->deref]) =
			(uintptr_t)target;
		output = (uint64_t *)(target + p->deref_off);
		*output = OUTPUT_BEFORE;
	}
	second = 0;
	if (p->memory == NT_MEMORY_ALLOC_PITCHED)
		args[1] = (uintptr_t)&second;
	if (p->memory == NT_MEMORY_CREATE)
		args[2] = (uintptr_t)properties;
	if (p->id_on_stack)
		memcpy(&args[6], id, sizeof(id));
	else if (p->id != NT_NO_WORD)
		args[p->id] = (uintptr_t)id;
}

static uint64_t expected_word(const struct nt_probe *p, size_t i)
{
	if (i >= p->words)
		return 0;
	if (p->memory == NT_MEMORY_ALLOC_PITCHED && i == 1)
		return SECOND;
	if (p->memory == NT_MEMORY_CREATE && i == 2)
		return LOCATION;
	if (p->record && i > 0)
		return record[(size_t)(p->record - 1) * 2 + i - 1];
	return args[i];
}

static uint64_t expected_deref(const struct nt_probe *p, bool returned)
{
	if (p->deref == NT_NO_WORD)
		return 0;
	if (p->record && p->deref == 0)
		return record[p->deref_off / 8];
	/* Seen before the function ran, but for output parameters. */
	if (!p->deref_at_return)
		return OUTPUT_BEFORE;
	return returned ? OUTPUT_AFTER : 0;
}

/* memory: the record of an allocation, which has the address of its caller: stub_call_at() here. */
static void check_event(const struct seen *seen, uint16_t row, const struct nt_probe *p,
			bool returned, bool memory, uint64_t before_ns, uint64_t after_ns)
{
	const struct nt_event_call *call = &seen->call;
	const uintptr_t here = (uintptr_t)check_event;

	assert_int_equal(call->h.row, row);
	assert_int_equal(call->h.pid, getpid());
	assert_int_equal(call->h.tid, gettid());
	assert_int_equal(call->h.flags,
			 (returned ? NT_CALL_RETURNED : 0) | (memory ? NT_CALL_MEMORY : 0));
	assert_in_range(call->h.entry_ns, before_ns, after_ns);
	if (returned)
		assert_in_range(call->ret_ns, call->h.entry_ns, after_ns);
	else
		assert_int_equal(call->ret_ns, 0);
	assert_int_equal(call->ret, returned ? row + STUB_RESULT : 0);
	assert_int_equal(call->deref, expected_deref(p, returned));
	if (memory)
		assert_in_range(call->launches, here - CODE_BYTES, here + CODE_BYTES);
	else
		assert_int_equal(call->launches,
				 expected.calls[NT_COUNTER_LAUNCH]
					 ? expected.calls[NT_COUNTER_LAUNCH]
					 : expected.calls[NT_COUNTER_DRIVER_LAUNCH]);
	for (size_t i = 0; i < NT_CALL_WORDS; i++)
		if (call->word[i] != expected_word(p, i))
			fail_msg("%s: word %zu is %llx, not %llx", p->symbol, i,
				 (unsigned long long)call->word[i],
				 (unsigned long long)expected_word(p, i));
	assert_int_equal(seen->has_id, p->id != NT_NO_WORD);
	if (seen->has_id)
		assert_memory_equal(seen->id, id, sizeof(id));
}

/*
 * One call, and every record of it. lasting: for longer than what is worth an event. False: it was
 * not to last, but the machine was busy with others meanwhile. Its event is right, and no answer.
 */
static bool check_row(struct harness *h, uint16_t row, bool lasting)
{
	const struct nt_probe *p = nt_probe_row(row);
	struct stub *stub = &library[p->library];
	uint64_t before_ns, after_ns;
	size_t events = 0;

	fill_args(row, p);
	if (p->counter >= 0) {
		expected.calls[p->counter]++;
		if (p->bytes != NT_NO_WORD)
			expected.bytes[p->counter] += args[p->bytes];
	}
	pause_us = lasting ? 4000 : 0;
	*stub->hook = inside;
	before_ns = nt_clock_boot_ns();
	assert_int_equal(stub_call(stub, p->symbol, args), row + STUB_RESULT);
	after_ns = nt_clock_boot_ns();
	*stub->hook = NULL;

	harness_poll(h);
	if (p->memory != NT_MEMORY_NONE) {
		assert_true(h->events > 0);
		check_event(&h->event[0], row, p, true, true, before_ns, after_ns);
		if (!p->long_only) {
			assert_int_equal(h->events, 1);
			return true;
		}
		/* Its other record, as of any call that waits, follows. */
		memmove(&h->event[0], &h->event[1], --h->events * sizeof(h->event[0]));
	}
	if (!p->words && p->counter >= 0 && !p->returns) {
		assert_int_equal(h->events, 0);
		return true;
	}
	if (p->long_only && !lasting) {
		if (h->events == 1 && after_ns - before_ns >= h->min_call_ns) {
			check_event(&h->event[0], row, p, true, false, before_ns, after_ns);
			return false;
		}
		assert_int_equal(h->events, 0);
		expected.calls[NT_COUNTER_SYNC]++;
		return true;
	}
	if (p->id != NT_NO_WORD) {
		assert_int_equal(h->events, 2);
		check_event(&h->event[events++], row, p, false, false, before_ns, after_ns);
	}
	if (h->events != events + 1)
		fail_msg("%s made %zu events", p->symbol, h->events);
	check_event(&h->event[events], row, p, p->returns, false, before_ns, after_ns);
	return true;
}

static void check_counters(const struct harness *h)
{
	struct nt_process_counters counters;

	assert_true(nt_attach_counters(h->attach, (uint32_t)getpid(), &counters));
	for (int i = 0; i < NT_COUNTER_END; i++) {
		assert_int_equal(counters.calls[i], expected.calls[i]);
		if (i != NT_COUNTER_SYNC) /* whose bytes are a time */
			assert_int_equal(counters.bytes[i], expected.bytes[i]);
	}
}

static void check_library(struct harness *h, enum nt_library of)
{
	assert_int_equal(harness_attach(h, &library[of], of, UINT32_MAX), attached_rows(of));
	assert_int_equal(harness_attach(h, &library[of], of, UINT32_MAX), 0);
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *p = nt_probe_row(row);

		if (p->library != of)
			continue;
		while (!check_row(h, row, false))
			print_message("# %s was kept waiting: again\n", p->symbol);
		if (p->long_only)
			(void)check_row(h, row, true);
	}
}

static void every_row_records_its_words(void **state)
{
	enum nt_attach_mode mode = *(enum nt_attach_mode *)*state;
	struct nt_attach_options options = harness_options(mode);
	struct nt_attach_stats stats;
	struct harness h;

	if (!harness_has_mode(mode)) {
		print_message("skip: mode: this kernel has no %s mode\n",
			      nt_attach_mode_name(mode));
		skip();
	}
	expected = (struct nt_process_counters){0};
	harness_init(&h, &options);
	for (enum nt_library of = NT_LIBRARY_NCCL; of < NT_LIBRARY_END; of++) {
		if (mode == NT_ATTACH_PERF && !getenv("NT_LONG") && of != NT_LIBRARY_NCCL &&
		    of != NT_LIBRARY_GLOO && of != NT_LIBRARY_CUDA)
			continue;
		check_library(&h, of);
	}
	if (expected.calls[NT_COUNTER_LAUNCH] || expected.calls[NT_COUNTER_DRIVER_LAUNCH])
		check_counters(&h);
	stats = harness_stats(&h);
	assert_int_equal(stats.failed, 0);
	assert_int_equal(stats.refused_slow, 0);
	assert_int_equal(stats.dropped[NT_EVENT_CALL], 0);
	assert_int_equal(stats.dropped[NT_EVENT_INIT], 0);
	assert_int_equal(stats.untracked, 0);
	assert_int_equal(stats.missed, 0);
	harness_release(&h);
}

static int load_libraries(void **state)
{
	(void)state;
	for (enum nt_library of = NT_LIBRARY_NCCL; of < NT_LIBRARY_END; of++) {
		if (nt_probe_library_of(stub_file[of]) != of || !stub_open(&library[of], of)) {
			print_error("cannot make %s\n", stub_file[of]);
			return -1;
		}
	}
	return 0;
}

int main(void)
{
	static enum nt_attach_mode session = NT_ATTACH_SESSION, multi = NT_ATTACH_MULTI,
				   perf = NT_ATTACH_PERF;
	const struct CMUnitTest tests[] = {
		{"every_row_records_its_words_in_session_mode", every_row_records_its_words, NULL,
		 NULL, &session},
		{"every_row_records_its_words_in_multi_mode", every_row_records_its_words, NULL,
		 NULL, &multi},
		{"every_row_records_its_words_in_perf_mode", every_row_records_its_words, NULL,
		 NULL, &perf},
	};
	int r;

	if (!stub_begin() || load_libraries(NULL) < 0)
		return 1;
	if (stub_only())
		return 0;
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	r = cmocka_run_group_tests(tests, NULL, NULL);
	stub_clean();
	return r;
}
