/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A table of metrics of any bytes is read and scored, or is refused with a reason. */
#include "cli/anomaly/node_report.h"
#include "cli/anomaly/node_series.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/trace.h"

static int run(const uint8_t *data, size_t size)
{
	const struct nt_node_series_options options = {
		.false_alarms = 1.0, .row_interval_s = 60.0, .learn_rows = 100};
	nt_auto(nt_fleet_series) struct nt_fleet_series *fleet = NULL;
	nt_autobuf struct nt_buf text = {0}, json = {0};
	struct nt_trace_error error = {0};
	char path[64];
	const char *paths[] = {path};
	nt_autoclose int fd = fuzz_file(data, size, "", path);
	int r = nt_fleet_series_run(&options, paths, 1, &fleet, &error);

	assert(fd >= 0);
	assert((r == 0) == (fleet != NULL));
	assert((r == 0) == (error.text[0] == '\0'));
	if (r < 0)
		return 0;
	assert(nt_node_report_text(fleet, &text) == 0);
	assert(nt_node_report_json(fleet, &json) == 0);
	return 0;
}

FUZZ_TARGET(run, .peak = {8 << 20, 1024}, .total = {32 << 20, 4096}, .steps = {2000000, 4000})
