/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Another profiler plugin in the process gets all events, as if NCCL had loaded it. */
#include "tests/unit/plugin/nccl/nccl_fake.h"
#include "tests/unit/plugin/nccl/next_plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/nccl/chained.h"

enum {
	NET_PLUGIN = 1 << 7,
};

static struct next_plugin_notes *next;
static char logged[512];
static int lines;

static void take_line(int level, unsigned long flags, const char *file, int line,
		      const char *format, ...)
{
	va_list args;

	(void)flags, (void)file, (void)line;
	assert_int_equal(level, NT_NCCL_LOG_WARN);
	va_start(args, format);
	(void)vsnprintf(logged, sizeof(logged), format, args);
	va_end(args);
	lines++;
}

/* Which plugin is the next one is decided once in a process. */
static void in_a_process(void (*test)(void), const char *name)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)setenv("NEUTRACER_NCCL_NEXT_PLUGIN", name, 1);
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void *begin(int version)
{
	void *library = dlopen(getenv("NEUTRACER_NCCL_NEXT_PLUGIN"), RTLD_NOW);

	next = library ? dlsym(library, "next_plugin_notes") : NULL;
	assert_non_null(next);
	next->wanted = NET_PLUGIN;
	next->event_bytes = 112;
	return add_comm(version);
}

static void both_get_all_events(void)
{
	void *context = begin(6), *call, *channel;
	union nt_nccl_state_args args;
	int started;

	assert_int_equal(next->inits, 1);
	assert_int_equal(next->id, 7);
	assert_int_equal(next->ranks, 2);
	assert_string_equal(next->name, "name");
	assert_int_equal(mask, NT_NCCL_GROUP_API | NET_PLUGIN);
	/* Its handles and contexts are its own, and so are the parents that it gets. */
	call = enqueue(6, context, 1);
	assert_ptr_equal(next->context, &next->inits);
	assert_ptr_equal(next->parent, &next->handle[1]);
	channel = begin_channel(6, context, call, 3, now_ns);
	assert_ptr_equal(next->parent, &next->handle[2]);
	assert_int_equal(
		((const struct nt_nccl_event *)(const void *)next->event)->kernel_channel.start,
		device(now_ns));
	args.stop = 5;
	assert_int_equal(table_of(6)->state(channel, NT_NCCL_KERNEL_CHANNEL_STOP, &args), 0);
	assert_ptr_equal(next->last, &next->handle[3]);
	assert_ptr_equal(next->args, &args);
	assert_int_equal(table_of(6)->stop(call), 0);
	assert_ptr_equal(next->last, &next->handle[2]);
	/* Children may come after that. */
	(void)begin_channel(6, context, call, 4, now_ns);
	assert_ptr_equal(next->parent, &next->handle[2]);
	/* Ours measures beside it. */
	ask(6, context);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL | NET_PLUGIN);
	call = enqueue(6, context, 1);
	end_channel(6, begin_channel(6, context, call, 0, now_ns), now_ns);
	assert_int_equal(records, 3);
	end_asking(6, context);
	assert_int_equal(mask, NT_NCCL_GROUP_API | NET_PLUGIN);
	/* It changes its mask when it likes. */
	*next->mask = NET_PLUGIN | NT_NCCL_COLLECTIVE;
	begin_call(6, context, 0);
	assert_int_equal(mask, NT_NCCL_GROUP_API | NET_PLUGIN | NT_NCCL_COLLECTIVE);
	/* What proxies send is many events: it gets them if it wants them, or parts of them. */
	started = next->starts;
	(void)start(6, context, (struct nt_nccl_event){.type = NT_NCCL_PROXY_OP});
	assert_int_equal(next->starts, started + 1);
	*next->mask = NT_NCCL_COLLECTIVE;
	(void)start(6, context, (struct nt_nccl_event){.type = NT_NCCL_PROXY_OP});
	(void)start(6, context, (struct nt_nccl_event){.type = NT_NCCL_PROXY_STEP});
	assert_int_equal(next->starts, started + 1);
	*next->mask = NT_NCCL_PROXY_STEP;
	(void)start(6, context, (struct nt_nccl_event){.type = NT_NCCL_PROXY_OP});
	assert_int_equal(next->starts, started + 2);
	/* What it returns is returned. */
	next->result = 3;
	assert_int_equal(table_of(6)->stop(call), 3);
	assert_int_equal(table_of(6)->state(call, 1, NULL), 3);
	assert_int_equal(table_of(6)->finalize(context), 3);
	assert_int_equal(next->finals, 1);
	assert_int_equal(table_of(6)->finalize(context), 0);
	assert_int_equal(next->finals, 1);
}

/* A collective, send or receive has its group as well, behind what the interface had before. */
static void a_second_parent_is_its_own_too(void)
{
	static const struct {
		uint64_t type;
		size_t at;
	} cases[] = {{NT_NCCL_COLLECTIVE, 104}, {NT_NCCL_P2P, 64}, {NT_NCCL_GROUP, 104}};
	union {
		struct nt_nccl_event event;
		unsigned char bytes[NT_NCCL_DESCRIPTION_BYTES];
	} description;
	void *context = begin(6), *group, *handle, *found;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)memset(&description, 0, sizeof(description));
		group = start(6, context, (struct nt_nccl_event){.type = NT_NCCL_GROUP});
		description.event.type = cases[i].type;
		(void)memcpy(&description.bytes[cases[i].at], &group, sizeof(group));
		assert_int_equal(table_of(6)->start(context, &handle, &description), 0);
		(void)memcpy(&found, &next->event[cases[i].at], sizeof(found));
		assert_ptr_equal(found,
				 cases[i].type == NT_NCCL_GROUP
					 ? group
					 : &next->handle[(next->starts - 1) % NEXT_PLUGIN_HANDLES]);
	}
}

static void what_it_declines_has_no_children_for_it(void)
{
	void *context = begin(5), *call;

	next->declines = 1;
	assert_null(enqueue(5, context, 1)); /* as nobody asks */
	ask(5, context);
	call = enqueue(5, context, 1);
	assert_non_null(call);
	(void)begin_channel(5, context, call, 0, now_ns);
	assert_null(next->parent);
	assert_int_equal(table_of(5)->stop(call), 0);
	assert_int_equal(next->stops, 0);
}

static void a_handle_that_is_too_old_is_not_forwarded(void)
{
	void *context = begin(6), *first, *second;

	first = enqueue(6, context, 1);
	second = enqueue(6, context, 1);
	for (int i = 0; i < NT_CHAINED_EVENTS / 2 - 1; i++)
		(void)enqueue(6, context, 1);
	assert_int_equal(table_of(6)->stop(first), 0);
	assert_int_equal(next->stops, 0);
	assert_int_equal(table_of(6)->stop(second), 0);
	assert_int_equal(next->stops, 1);
}

static void one_that_fails_gets_no_events(void)
{
	void *context;

	(void)setenv("NEXT_PLUGIN_FAILS", "1", 1);
	context = begin(6);
	assert_int_equal(next->inits, 1);
	begin_call(6, context, 0);
	ask(6, context);
	end_channel(6, begin_channel(6, context, enqueue(6, context, 1), 0, now_ns), now_ns);
	assert_int_equal(records, 3);
	table_of(6)->finalize(context);
	assert_int_equal(next->starts + next->stops + next->states + next->finals, 0);
}

static void expect_line(int version, const char *text)
{
	void *context = NULL;

	for (int i = 0; i < 2; i++) {
		const int r = version == 4 ? ncclProfiler_v4.init_4(&context, &mask, NULL, 7, 1, 2,
								    0, take_line)
					   : ncclProfiler_v6.init_5(&context, 7, &mask, NULL, 1, 2,
								    0, take_line);

		assert_int_equal(r, 0);
		assert_non_null(context);
	}
	assert_int_equal(lines, 1);
	assert_non_null(strstr(logged, text));
	ask(version, context);
	end_channel(version,
		    begin_channel(version, context, enqueue(version, context, 1), 0, now_ns),
		    now_ns);
	assert_int_equal(records, 3);
}

static void without_the_version_it_is_a_line(void)
{
	expect_line(4, "it has no ncclProfiler_v4: no events are forwarded");
}

static void without_a_library_it_is_a_line(void)
{
	expect_line(6, "NEUTRACER_NCCL_NEXT_PLUGIN=absent: it cannot be loaded: no events are "
		       "forwarded");
}

static void the_other_plugin_is_as_if_nccl_had_loaded_it(void **state)
{
	(void)state;
	in_a_process(both_get_all_events, NEXT_PLUGIN);
	in_a_process(a_second_parent_is_its_own_too, NEXT_PLUGIN);
	in_a_process(what_it_declines_has_no_children_for_it, NEXT_PLUGIN);
	in_a_process(a_handle_that_is_too_old_is_not_forwarded, NEXT_PLUGIN);
	in_a_process(one_that_fails_gets_no_events, NEXT_PLUGIN);
	in_a_process(without_the_version_it_is_a_line, NEXT_PLUGIN);
	in_a_process(without_a_library_it_is_a_line, "absent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_other_plugin_is_as_if_nccl_had_loaded_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
