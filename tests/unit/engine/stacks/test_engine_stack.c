/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stacks from windows to incidents: whose they are, how many are kept, and what is shown of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/stacks/incident_stack.h"
#include "engine/stacks/rank_stack.h"
#include "proto/json.h"
#include "tests/unit/engine/window_feed.h"

enum {
	RANKS = 4,
	SLOW_RANK = 2,
	PEER_RANK = 1,
	WINDOW_MS = 520,
	SLOW_MS = 20000,
	STACK_MS = 40000,
};

static struct nt_rank_stacks stacks;
static struct nt_engine *engine;
static struct feed_agent agent;
static struct {
	struct nt_arena arena;
	struct nt_wire_incident incident;
	uint64_t version; /* of the first report with stacks */
	uint32_t with_stacks;
} last;

static struct nt_wire_stack_frame frames[] = {
	{"clock_nanosleep", "libc.so.6", 0, true},
	{"Loader.load_batch", "/app/data/loader.py", 42, false},
	{"train", "/app/train.py", 7, false},
};

static struct nt_wire_stack make_thread(uint64_t request, uint32_t tid)
{
	return (struct nt_wire_stack){
		.request = request,
		.tid = tid,
		.name = "python3",
		.state = "S",
		.wait = "hrtimer_nanosleep",
		.interpreter = "CPython 3.11",
		.python_reason = "",
		.native_reason = "",
		.is_main = true,
		.frame = frames,
		.frames = 3,
	};
}

/* ---- the table ------------------------------------------------------------------------------- */

static int empty_table(void **state)
{
	(void)state;
	nt_rank_stacks_release(&stacks);
	memset(&stacks, 0, sizeof(stacks));
	return 0;
}

static int take(const char *key, uint32_t pid, uint64_t at_ns, struct nt_wire_stack *thread,
		size_t threads)
{
	const struct nt_message message = {
		.key = key,
		.boot_ns = at_ns,
		.real_ns = at_ns,
		.body = NT_BODY_WINDOW,
		.window =
			{
				.rank = {.node = "n", .pid = pid, .start_boot_ns = 1},
				.stack = thread,
				.stacks = threads,
			},
	};

	return nt_rank_stacks_take(&stacks, &message);
}

static const struct nt_rank_stack *find(const char *key, uint32_t pid)
{
	const struct nt_rank_stack_id id = nt_rank_stack_id_of(key, "n", pid, 1);

	return nt_rank_stacks_find(&stacks, &id);
}

static int take_one(const char *key, uint32_t pid, uint64_t at_ns)
{
	struct nt_wire_stack thread = make_thread(1, pid);

	thread.boot_ns = at_ns;
	return take(key, pid, at_ns, &thread, 1);
}

static void the_newest_stack_of_a_process_is_kept(void **state)
{
	struct nt_wire_stack both[] = {make_thread(1, 5), make_thread(2, 6)};

	(void)state;
	assert_int_equal(take("job", 5, 10, NULL, 0), 0);
	assert_false(nt_rank_stacks_has(&stacks, "job"));
	both[0].boot_ns = 10;
	both[1].boot_ns = 20;
	assert_int_equal(take("job", 5, 30, both, 2), 1);
	assert_true(nt_rank_stacks_has(&stacks, "job"));
	assert_int_equal(find("job", 5)->real_ns, 20);
	assert_int_equal(find("job", 5)->threads, 1);
	assert_int_equal(find("job", 5)->thread[0].tid, 6);
	assert_int_equal(take_one("job", 5, 15), 0);
	assert_int_equal(find("job", 5)->real_ns, 20);
	assert_null(find("other", 5));
	assert_null(find("job", 6));
}

static void a_job_with_many_stacks_loses_its_own_oldest(void **state)
{
	(void)state;
	assert_int_equal(take_one("small", 1, 1), 1);
	for (uint32_t i = 0; i + 1 < NT_RANK_STACKS; i++)
		assert_int_equal(take_one("large", 100 + i, 10 + i), 1);
	assert_int_equal(stacks.evicted, 0);
	assert_int_equal(take_one("large", 9000, 9000), 1);
	assert_int_equal(take_one("third", 1, 9001), 1);
	assert_int_equal(stacks.evicted, 2);
	assert_non_null(find("small", 1));
	assert_non_null(find("third", 1));
	assert_null(find("large", 100));
	assert_null(find("large", 101));
	assert_non_null(find("large", 102));
	assert_non_null(find("large", 9000));
}

static void threads_frames_and_texts_are_capped(void **state)
{
	static char name[NT_WIRE_MAX_TEXT];
	static struct nt_wire_stack_frame many[NT_RANK_STACK_FRAMES + 2];
	struct nt_wire_stack thread[NT_RANK_STACK_THREADS + 1];
	const struct nt_wire_stack *kept;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	memcpy(name + sizeof(name) - 6, "/y.py", 5);
	for (size_t i = 0; i < NT_RANK_STACK_FRAMES + 2; i++)
		many[i] = (struct nt_wire_stack_frame){name, name, 1, false};
	for (size_t i = 0; i <= NT_RANK_STACK_THREADS; i++) {
		thread[i] = make_thread(1, 5);
		thread[i].frame = many;
		thread[i].frames = NT_RANK_STACK_FRAMES + 2;
		thread[i].left_out = 3;
	}
	assert_int_equal(take("job", 5, 10, thread, NT_RANK_STACK_THREADS + 1), 1);
	assert_int_equal(find("job", 5)->threads, NT_RANK_STACK_THREADS);
	kept = &find("job", 5)->thread[0];
	assert_int_equal(kept->frames, NT_RANK_STACK_FRAMES);
	assert_int_equal(kept->left_out, 5);
	assert_true(strlen(kept->frame[0].function) <= NT_RANK_STACK_FUNCTION);
	assert_int_equal(strlen(kept->frame[0].file), NT_RANK_STACK_FILE);
	assert_string_equal(kept->frame[0].file + NT_RANK_STACK_FILE - 5, "/y.py");
}

/* ---- incidents ------------------------------------------------------------------------------- */

static void note_incident(void *data, const struct nt_wire_incident *incident)
{
	(void)data;
	if (strcmp(incident->state, "pending") == 0)
		return;
	nt_arena_release(&last.arena);
	last.arena = (struct nt_arena){0};
	assert_int_equal(nt_incident_copy(incident, &last.arena, &last.incident), 0);
	if (incident->stacks && !last.with_stacks++)
		last.version = incident->version;
}

static int set_up(void **state)
{
	const struct nt_engine_options options = nt_engine_options_default();
	const struct nt_engine_handler handler = {.incident = note_incident};

	(void)state;
	memset(&last, 0, sizeof(last));
	agent = feed_agent("n0", "job");
	return nt_engine_new(&options, &handler, &engine);
}

static int tear_down(void **state)
{
	(void)state;
	nt_engine_free(engine);
	nt_arena_release(&last.arena);
	return 0;
}

static void push(uint64_t n, uint32_t rank, bool has_stack)
{
	const bool is_slow = rank == SLOW_RANK && n * WINDOW_MS >= SLOW_MS;
	const struct feed_window window = {
		.rank = rank,
		.size = RANKS,
		.from_ms = n * WINDOW_MS + rank,
		.to_ms = (n + 1) * WINDOW_MS + rank,
		.steps = 10,
		.own_ms = is_slow ? 45 : 30 + 0.1 * (double)(n % 7),
		.step_ms = 52,
		.comm = 0xabc,
		.last = 10 * (n + 1),
	};
	struct nt_message *message = feed_window(&agent, &window), *with;
	struct nt_wire_stack thread = make_thread(9, 500 + rank);

	if (has_stack) {
		thread.boot_ns = message->window.end_boot_ns;
		message->window.stack = &thread;
		message->window.stacks = 1;
		with = feed_copy(message);
		message->window.stacks = 0;
		nt_message_free(message);
		message = with;
	}
	assert_int_equal(nt_engine_push(engine, message, false), 0);
}

static void feed(uint64_t from_ms, uint64_t to_ms, bool peer_too)
{
	for (uint64_t n = from_ms / WINDOW_MS; (n + 1) * WINDOW_MS <= to_ms; n++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			push(n, rank,
			     n == STACK_MS / WINDOW_MS &&
				     (rank == SLOW_RANK || (peer_too && rank == PEER_RANK)));
}

static void an_incident_has_the_stacks_of_culprit_and_peer(void **state)
{
	uint64_t before;

	(void)state;
	feed(0, STACK_MS - WINDOW_MS, true);
	assert_string_equal(last.incident.state, "firing");
	assert_int_equal(last.incident.stacks, 0);
	assert_null(strstr(last.incident.summary, "innermost"));
	before = last.incident.version;
	feed(STACK_MS / WINDOW_MS * WINDOW_MS, STACK_MS + 10 * WINDOW_MS, true);
	/* Readers skip a version that they have: it is a new one, and comes soon. */
	assert_true(last.with_stacks > 0);
	assert_true(last.version > before);
	assert_int_equal(last.incident.stacks, 2);
	assert_true(last.incident.stack[0].is_culprit);
	assert_int_equal(last.incident.stack[0].rank, SLOW_RANK);
	assert_int_equal(last.incident.stack[0].stack.tid, 500 + SLOW_RANK);
	assert_int_equal(last.incident.stack[0].stack.frames, 3);
	assert_false(last.incident.stack[1].is_culprit);
	assert_int_equal(last.incident.stack[1].rank, PEER_RANK);
	assert_non_null(strstr(last.incident.summary,
			       "; innermost Python frame: Loader.load_batch (loader.py:42)"));
}

static void a_stack_of_a_healthy_rank_alone_is_not_attached(void **state)
{
	(void)state;
	feed(0, STACK_MS - WINDOW_MS, false);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		push(STACK_MS / WINDOW_MS - 1, rank, rank == PEER_RANK);
	for (uint64_t n = STACK_MS / WINDOW_MS; n < STACK_MS / WINDOW_MS + 10; n++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			push(n, rank, false);
	assert_int_equal(last.incident.stacks, 0);
}

/* They survive later reports, and a restart, as the state holds the whole incident. */
static void stacks_stay_and_are_saved(void **state)
{
	nt_autobuf struct nt_buf saved = {0};
	const struct nt_job_view *view;
	struct nt_job *job;

	(void)state;
	feed(0, STACK_MS + 10 * WINDOW_MS, true);
	assert_int_equal(last.incident.stacks, 2);
	job = nt_jobs_keys(nt_engine_jobs(engine))->job;
	assert_int_equal(nt_engine_save_job(job, &saved), 0);
	/* Another engine, of another process. */
	nt_engine_free(engine);
	assert_int_equal(nt_engine_new(&(struct nt_engine_options){.rules = nt_rules_default()},
				       NULL, &engine),
			 0);
	agent = feed_agent("n0", "job");
	feed(0, 10 * WINDOW_MS, false);
	job = nt_jobs_keys(nt_engine_jobs(engine))->job;
	assert_int_equal(nt_engine_load_job(engine, job, saved.data, saved.len), 0);
	view = nt_engine_view(job);
	assert_int_equal(view->opens, 1);
	assert_int_equal(view->open[0].incident.stacks, 2);
	assert_string_equal(view->open[0].incident.stack[0].stack.frame[1].function,
			    "Loader.load_batch");
}

static void json_has_every_member(void **state)
{
	nt_autojson json_t *json = NULL;
	const json_t *one, *frame;

	(void)state;
	feed(0, STACK_MS + 10 * WINDOW_MS, true);
	json = nt_json_incident(&last.incident);
	assert_int_equal(json_array_size(json_object_get(json, "stacks")), 2);
	one = json_array_get(json_object_get(json, "stacks"), 0);
	assert_int_equal(json_object_size(one), 15);
	assert_int_equal(json_integer_value(json_object_get(one, "rank")), SLOW_RANK);
	assert_true(json_is_true(json_object_get(one, "culprit")));
	assert_string_equal(nt_json_get_text(one, "interpreter", ""), "CPython 3.11");
	assert_string_equal(nt_json_get_text(one, "wait", ""), "hrtimer_nanosleep");
	assert_true(json_is_null(json_object_get(one, "python_reason")));
	frame = json_array_get(json_object_get(one, "frames"), 1);
	assert_string_equal(nt_json_get_text(frame, "function", ""), "Loader.load_batch");
	assert_string_equal(nt_json_get_text(frame, "file", ""), "/app/data/loader.py");
	assert_int_equal(json_integer_value(json_object_get(frame, "line")), 42);
	assert_true(json_is_false(json_object_get(frame, "native")));
	frame = json_array_get(json_object_get(one, "frames"), 0);
	assert_true(json_is_null(json_object_get(frame, "line")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_newest_stack_of_a_process_is_kept, empty_table,
						empty_table),
		cmocka_unit_test_setup_teardown(a_job_with_many_stacks_loses_its_own_oldest,
						empty_table, empty_table),
		cmocka_unit_test_setup_teardown(threads_frames_and_texts_are_capped, empty_table,
						empty_table),
		cmocka_unit_test_setup_teardown(an_incident_has_the_stacks_of_culprit_and_peer,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_stack_of_a_healthy_rank_alone_is_not_attached,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(stacks_stay_and_are_saved, set_up, tear_down),
		cmocka_unit_test_setup_teardown(json_has_every_member, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
