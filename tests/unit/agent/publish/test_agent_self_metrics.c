/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publish/self_metrics.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/config.h"
#include "agent/publish/metrics_file.h"
#include "common/base/buf.h"
#include "common/system/clock.h"
#include "common/system/file.h"
#include "tests/unit/scratch.h"

static void a_reading_is_shown_and_written_whole(void **state)
{
	nt_auto(nt_metrics) struct nt_metrics *metrics = NULL;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_self_metrics_reading reading = {
		.tracker = {.windows = 17, .comms_over_cap = 3},
		.attach = {.dropped = {[NT_EVENT_CALL] = 5}},
		.cpu_ns = 1500000000,
	};
	char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(path, sizeof(path), "%s/metrics", dir);
	assert_int_equal(nt_self_metrics_new(&metrics), 0);
	nt_self_metrics_set(metrics, &reading);
	assert_int_equal(nt_metrics_file_write(metrics, path), 0);
	assert_int_equal(nt_metrics_file_write(metrics, path), 0); /* in place of the first */
	assert_int_equal(nt_file_read(path, 1 << 20, &buf), 0);
	assert_int_equal(nt_buf_append(&buf, "", 1), 0);
	assert_non_null(strstr((char *)buf.data, "neutracer_agent_windows_total 17\n"));
	assert_non_null(strstr((char *)buf.data,
			       "neutracer_agent_events_dropped_total{type=\"call\"} 5\n"));
	assert_non_null(strstr((char *)buf.data,
			       "neutracer_agent_over_cap_total{what=\"communicators\"} 3\n"));
	assert_non_null(strstr((char *)buf.data, "neutracer_agent_cpu_seconds_total 1.5"));
	scratch_remove(dir);
}

static void a_place_that_cannot_be_written_is_an_error(void **state)
{
	nt_auto(nt_metrics) struct nt_metrics *metrics = NULL;

	(void)state;
	assert_int_equal(nt_self_metrics_new(&metrics), 0);
	assert_int_equal(nt_metrics_file_write(metrics, "/no/such/dir/metrics"), -ENOENT);
}

static void every_event_that_never_arrived_is_lost(void **state)
{
	struct nt_attach_stats stats = {
		.dropped = {[NT_EVENT_CALL] = 5, [NT_EVENT_INIT] = 2},
		.untracked = 1,
	};

	(void)state;
	assert_int_equal(nt_self_metrics_lost(&stats), 8);
}

static void the_settings_have_sound_defaults(void **state)
{
	struct nt_agent_config config = {0};
	char name[] = "neutracer-agent", *argv[] = {name, NULL};
	struct nt_opt_error error;

	(void)state;
	assert_int_equal(nt_opt_load(&nt_agent_program, 1, argv, &config, &error), 0);
	assert_int_equal(config.window_min_ns, 500 * NT_MILLISECOND);
	assert_string_equal(config.bus, "spool:/var/lib/neutracer/spool");
	assert_null(config.node);
	assert_int_equal(config.attach_mode, NT_ATTACH_AUTO);
	nt_opt_free(&nt_agent_program, &config);
}

static void the_words_of_attach_are_its_modes(void **state)
{
	static const char *const words[] = {"session", "multi", "perf"};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct nt_agent_config config = {0};
		char name[] = "neutracer-agent", option[] = "--attach", value[16];
		char *argv[] = {name, option, value, NULL};
		struct nt_opt_error error;

		(void)snprintf(value, sizeof(value), "%s", words[i]);
		assert_int_equal(nt_opt_load(&nt_agent_program, 3, argv, &config, &error), 0);
		assert_string_equal(nt_attach_mode_name((enum nt_attach_mode)config.attach_mode),
				    words[i]);
		nt_opt_free(&nt_agent_program, &config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reading_is_shown_and_written_whole),
		cmocka_unit_test(a_place_that_cannot_be_written_is_an_error),
		cmocka_unit_test(every_event_that_never_arrived_is_lost),
		cmocka_unit_test(the_settings_have_sound_defaults),
		cmocka_unit_test(the_words_of_attach_are_its_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
