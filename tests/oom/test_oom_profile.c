/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profile from the agent's window over the desk to its forms, with every allocation failing once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/profile/window_profile.h"
#include "aggregator/group/profile_desk.h"
#include "cli/profile/flame.h"
#include "proto/json.h"
#include "tests/oom/oom.h"

static const struct nt_profile_wish wish = {.seconds = 1, .hz = 49};

static int use_window(void *data)
{
	nt_auto(nt_window_profile) struct nt_window_profile *window = NULL, *state = NULL;
	int r = nt_window_profile_new(data, 1, &wish, &window);

	return r ?: nt_window_profile_state(1, &wish, true, "", &state);
}

static void a_window_survives_any_failed_allocation(void **state)
{
	static struct nt_profile profile;
	static struct nt_stack stack;

	(void)state;
	nt_profile_init(&profile);
	nt_stack_init(&stack);
	stack.threads = 1;
	stack.thread[0].state = 'R';
	assert_true(nt_stack_add(&stack, "f", "/a.py", 1, false));
	nt_profile_add(&profile, &stack, NT_PROFILE_ALL);
	assert_int_equal(nt_oom_sweep(use_window, &profile), 2);
}

static int use_desk(void *data)
{
	static uint32_t number[] = {0};
	static struct nt_wire_stack_frame frame[] = {{.function = "f", .file = "/a.py"}};
	static struct nt_wire_profile_stack stack[] = {{"main", true, 40, number, 1, 0}};
	static struct nt_message message = {.key = "key", .body = NT_BODY_WINDOW};
	const struct nt_level_entry request = {.target.name = "key", .id = 7};
	struct nt_wire_profile profile = {.request = 7,
					  .reason = "",
					  .interpreter = "",
					  .stack = stack,
					  .stacks = 1,
					  .frame = frame,
					  .frames = 1};
	nt_auto(nt_profile_desk) struct nt_profile_desk *desk = NULL;
	nt_autoprofile struct nt_profile_view view = {0};
	int r = nt_profile_desk_new(&desk);

	(void)data;
	if (r < 0)
		return r;
	message.window.profile = &profile;
	message.window.profiles = 1;
	nt_profile_desk_add(desk, &request);
	r = nt_profile_desk_take(desk, &message);
	return r ?: nt_profile_desk_get(desk, 7, 1, &view);
}

static void the_desk_survives_any_failed_allocation(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(use_desk, NULL) > 2);
}

static int use_forms(void *data)
{
	nt_autoflame struct nt_flame flame = {0};
	nt_autobuf struct nt_buf folded = {0}, pprof = {0}, page = {0};
	int r = nt_flame_read(data, "train", &flame);

	r = r ?: nt_flame_folded(&flame, &folded);
	r = r ?: nt_flame_pprof(&flame, &pprof);
	return r ?: nt_flame_html(&flame, &page);
}

static void the_forms_survive_any_failed_allocation(void **state)
{
	static const char text[] =
		"{\"hz\":49,\"taken\":3,\"missed\":1,\"frames\":[{\"function\":\"f\","
		"\"file\":\"/a.py\",\"native\":false}],\"stacks\":[{\"thread\":\"main\","
		"\"state\":\"on-cpu\",\"count\":3,\"frames\":[0]}]}";
	nt_autojson json_t *profile = NULL;

	(void)state;
	assert_int_equal(nt_json_load(text, strlen(text), &profile), 0);
	assert_true(nt_oom_sweep(use_forms, profile) > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_survives_any_failed_allocation),
		cmocka_unit_test(the_desk_survives_any_failed_allocation),
		cmocka_unit_test(the_forms_survive_any_failed_allocation),
	};

	return cmocka_run_group_tests_name("oom/profile", tests, NULL, NULL);
}
