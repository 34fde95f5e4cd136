/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The series of jobs and ranks survive any failed allocation. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aggregator/api/job_metrics.h"
#include "tests/api/snapshot_scene.h"
#include "tests/oom/oom.h"

static int write_all(void *data)
{
	const struct nt_snapshot *snapshot = data;
	nt_autobuf struct nt_buf out = {0};
	int r = nt_job_metrics_write(snapshot, NULL, NT_METRICS_OPENMETRICS, &out);

	return r < 0 ? r
		     : nt_job_metrics_write_ranks(snapshot, "llm-70b", NT_METRICS_PROMETHEUS, &out);
}

static void series_survive_failed_allocations(void **state)
{
	struct nt_snapshot *snapshot = nt_test_snapshot();

	(void)state;
	assert_true(nt_oom_sweep(write_all, snapshot) >= 3);
	nt_snapshot_release(snapshot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(series_survive_failed_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
