/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Queries of events that this program makes, of a stand-in for the CUDA runtime. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bpf/harness.h"

enum {
	QUERIES_MAX = 1 << 16,
	NOT_READY = 600,
	ILLEGAL_ADDRESS = 700,
	REST_NS = 1000000, /* bpf/event_query.bpf.h */
};

static const char source[] = "int answer;\n"
			     "__attribute__((noinline)) int cudaEventQuery(void *event) {\n"
			     "  volatile int kept = answer; return kept; }\n";

static struct stub stub;

struct queries {
	struct harness h;
	struct nt_rank_probe *probe;
	struct nt_event_query *query;
	size_t count;
};

static void keep(void *data, const struct nt_event_query *query)
{
	struct queries *q = data;

	if (query->h.pid == (uint32_t)getpid() && q->count < QUERIES_MAX)
		q->query[q->count++] = *query;
}

static void ask(uint64_t event, int answer)
{
	int (*query)(uint64_t) = (int (*)(uint64_t))dlsym(stub.handle, "cudaEventQuery");

	*(int *)dlsym(stub.handle, "answer") = answer;
	assert_int_equal(query(event), answer);
}

static void rest(void)
{
	const struct timespec pause = {.tv_nsec = 2 * REST_NS};

	(void)nanosleep(&pause, NULL);
}

static void start(struct queries *q, enum nt_attach_mode mode)
{
	struct nt_attach_options options = harness_options(mode);
	nt_autoclose int fd = open(stub.path, O_RDONLY | O_CLOEXEC);
	struct nt_rank_probe_sites sites;

	*q = (struct queries){.query = calloc(QUERIES_MAX, sizeof(*q->query))};
	assert_non_null(q->query);
	options.event_query = keep;
	options.data = q;
	harness_init(&q->h, &options);
	assert_int_equal(nt_rank_probe_find(fd, NT_LIBRARY_EVENT, &sites), 0);
	assert_int_equal(nt_rank_probe_new_at(nt_attach_loader(q->h.attach), fd, (uint32_t)getpid(),
					      &sites, &q->probe),
			 0);
}

static void stop(struct queries *q)
{
	nt_rank_probe_free(q->probe);
	harness_release(&q->h);
	free(q->query);
}

static void check(const struct queries *q, size_t at, uint64_t event, bool is_complete)
{
	assert_true(at < q->count);
	assert_int_equal(q->query[at].event, event);
	assert_int_equal(q->query[at].h.flags, is_complete ? NT_QUERY_COMPLETE : 0);
	assert_int_equal(q->query[at].h.tid, gettid());
}

static const enum nt_attach_mode modes[] = {NT_ATTACH_SESSION, NT_ATTACH_MULTI, NT_ATTACH_PERF};

static void an_event_is_reported_pending_and_then_complete(void **state)
{
	(void)state;
	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		struct queries q;
		uint64_t before;

		if (!harness_has_mode(modes[m]))
			continue;
		start(&q, modes[m]);
		ask(0x7f0000001000, NOT_READY);
		rest();
		before = nt_clock_boot_ns();
		ask(0x7f0000001000, NOT_READY);
		ask(0x7f0000001000, 0);
		rest();
		ask(0x7f0000002000, ILLEGAL_ADDRESS); /* it says nothing */
		ask(0, 0);
		harness_poll(&q.h);
		assert_int_equal(q.count, 3);
		check(&q, 0, 0x7f0000001000, false);
		check(&q, 1, 0x7f0000001000, false);
		check(&q, 2, 0x7f0000001000, true);
		assert_int_equal(q.query[2].queries, 3);
		assert_in_range(q.query[1].h.entry_ns, before, q.query[2].h.entry_ns);
		assert_in_range(q.query[2].h.entry_ns, before, nt_clock_boot_ns());
		stop(&q);
		/* Detached: nothing is reported. */
		ask(0x7f0000001000, 0);
	}
}

/* An event that was pending since is complete anew. */
/* Once more after a rest: the event may have been recorded anew. A slow machine rests meanwhile. */
static void of_one_event_each_completion_is_reported_once(void **state)
{
	uint64_t since_ns;
	struct queries q;
	size_t reported;

	(void)state;
	start(&q, NT_ATTACH_AUTO);
	since_ns = nt_clock_boot_ns();
	ask(0x1000, 0);
	ask(0x1000, 0);
	reported = nt_clock_boot_ns() - since_ns < REST_NS ? 1 : 2;
	harness_poll(&q.h);
	assert_in_range(q.count, 1, reported);
	reported = q.count;
	check(&q, 0, 0x1000, true);
	ask(0x1000, NOT_READY);
	ask(0x1000, 0);
	harness_poll(&q.h);
	assert_int_equal(q.count, reported + 2);
	check(&q, reported, 0x1000, false);
	check(&q, reported + 1, 0x1000, true);
	stop(&q);
}

/* At most one event in a rest of each kind, however often the program asks. */
static void a_loop_of_queries_makes_few_events(void **state)
{
	struct queries q;
	uint64_t since, rests;

	(void)state;
	start(&q, NT_ATTACH_AUTO);
	for (int complete = 0; complete < 2; complete++) {
		const size_t before = q.count;

		since = nt_clock_boot_ns();
		for (int i = 0; i < 20000; i++)
			ask(0x1000, complete ? 0 : NOT_READY);
		rests = (nt_clock_boot_ns() - since) / REST_NS;
		harness_poll(&q.h);
		assert_in_range(q.count - before, 1, rests + 2);
	}
	assert_in_range(q.query[q.count - 1].queries, 20001, 40000);
	assert_int_equal(harness_stats(&q.h).dropped[NT_EVENT_QUERY], 0);
	stop(&q);
}

/* Handles are the program's own: more than there are slots, each is reported complete. */
static void handles_of_one_slot_replace_each_other(void **state)
{
	struct queries q;

	(void)state;
	start(&q, NT_ATTACH_AUTO);
	for (uint64_t event = 1; event <= 1000; event++)
		ask(event * 64, 0);
	ask(UINT64_MAX, 0);
	harness_poll(&q.h);
	assert_int_equal(q.count, 1001);
	for (uint64_t event = 1; event <= 1000; event++)
		check(&q, event - 1, event * 64, true);
	stop(&q);
}

static void *ask_many(void *data)
{
	const uint64_t first = *(const uint64_t *)data;

	for (uint64_t i = 0; i < 10000; i++)
		ask(first + i % 200 * 64, 0);
	return NULL;
}

static void threads_that_ask_at_once_are_counted(void **state)
{
	static const uint64_t first[] = {1 << 20, 2 << 20, 3 << 20, 4 << 20};
	pthread_t thread[4];
	struct queries q;

	(void)state;
	start(&q, NT_ATTACH_AUTO);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask_many, (void *)&first[i]), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	rest();
	/* So that the ring has room for the last one. */
	harness_poll(&q.h);
	q.count = 0;
	ask(0x1000, 0);
	harness_poll(&q.h);
	assert_int_equal(q.count, 1);
	/* Few are lost: those that find the storage of the process in use by another thread. */
	assert_in_range(q.query[0].queries, 40001 - 40, 40001);
	stop(&q);
}

static bool make_stub(void)
{
	char path[2 * PATH_MAX];

	/* Where they are kept, another source is another file. */
	(void)snprintf(path, sizeof(path), "%s/%016llx-event-query.so", stub_dir,
		       (unsigned long long)nt_hash_text(NT_HASH_SEED, source));
	if (access(path, R_OK) < 0 && !stub_compile(path, "c", source, NULL))
		return false;
	return stub_load(&stub, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_reported_pending_and_then_complete),
		cmocka_unit_test(of_one_event_each_completion_is_reported_once),
		cmocka_unit_test(a_loop_of_queries_makes_few_events),
		cmocka_unit_test(handles_of_one_slot_replace_each_other),
		cmocka_unit_test(threads_that_ask_at_once_are_counted),
	};

	int r;

	if (!stub_begin() || !make_stub())
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
