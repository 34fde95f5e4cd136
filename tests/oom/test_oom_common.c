/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/options/opt.h"
#include "common/system/metrics.h"
#include "tests/oom/oom.h"

struct config {
	char *bus, *token;
	struct nt_opt_args args;
};

static const struct nt_opt opts[] = {
	{"bus", NT_OPT_STRING, offsetof(struct config, bus), "spool:/tmp/x", 1, 0, "the bus"},
	{"token", NT_OPT_STRING, offsetof(struct config, token), NULL, 0, 0, "a secret"},
};

static const struct nt_opt_program program = {
	.name = "example",
	.summary = "serve as an example",
	.opts = opts,
	.opt_count = 2,
	.args = "[FILE]",
	.max_args = 1,
	.args_offset = offsetof(struct config, args),
};

static int load_options(void *path)
{
	const char *argv[] = {"example", "--config", path, "--bus=spool:/tmp/z", "file", NULL};
	struct config config = {0};
	struct nt_opt_error error = {0};
	int r = nt_opt_load(&program, 5, (char **)argv, &config, &error);

	if (r == -ENOMEM && error.exit != NT_EXIT_SYSTEM)
		r = -EPROTO;
	nt_opt_free(&program, &config);
	return r;
}

static void loading_options_survives_failed_allocations(void **state)
{
	char path[] = "/tmp/nt-oom-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "bus: a\ntoken: b\n", 16), 16);
	assert_int_equal(close(fd), 0);
	assert_true(nt_oom_sweep(load_options, path) >= 6);
	assert_int_equal(unlink(path), 0);
}

static const struct nt_metric table[] = {
	{"neutracer_jobs", NT_METRIC_GAUGE, "Jobs seen."},
};

static int write_metrics(void *data)
{
	nt_auto(nt_metrics) struct nt_metrics *metrics = NULL;
	nt_autobuf struct nt_buf out = {0};
	int r;

	(void)data;
	r = nt_metrics_new(table, 1, &metrics);
	if (r < 0)
		return r;
	for (int i = 0; i < 10; i++) {
		r = nt_metrics_write(metrics, NT_METRICS_PROMETHEUS, &out);
		if (r < 0)
			return r;
	}
	return 0;
}

static void metrics_survive_failed_allocations(void **state)
{
	(void)state;
	(void)nt_oom_sweep(write_metrics, NULL);
}

/* A sweep that cannot fail would prove nothing. */
static int swallow(void *data)
{
	void *volatile kept = malloc(1); /* volatile: or the compiler drops the pair */

	free(kept);
	*(int *)data += 1;
	return 0;
}

static void the_sweep_runs_each_allocation_twice_and_once_without_failure(void **state)
{
	int runs = 0;

	(void)state;
	assert_int_equal(nt_oom_sweep_lenient(swallow, &runs), 1);
	assert_int_equal(runs, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loading_options_survives_failed_allocations),
		cmocka_unit_test(metrics_survive_failed_allocations),
		cmocka_unit_test(the_sweep_runs_each_allocation_twice_and_once_without_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
