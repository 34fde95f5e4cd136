/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers and times out of text: what is accepted must survive being written and read again. */
#include <assert.h>
#include <string.h>

#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "tests/fuzz/lib/cost.h"

static int run(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char written[NT_PARSE_TEXT], time[NT_CLOCK_TEXT];
	uint64_t value = 0, again = 0;
	double real = 0;

	if (nt_parse_size(text, size, 0, UINT64_MAX, &value) == 0) {
		(void)nt_format_size(value, written);
		assert(nt_parse_size(written, strlen(written), value, value, &again) == 0);
	}
	if (nt_parse_duration(text, size, 0, UINT64_MAX, &value) == 0) {
		(void)nt_format_duration(value, written);
		assert(nt_parse_duration(written, strlen(written), value, value, &again) == 0);
	}
	if (nt_clock_parse(text, size, &value) == 0) {
		(void)nt_clock_format(value, 9, time);
		assert(nt_clock_parse(time, strlen(time), &again) == 0 && again == value);
	}
	if (nt_parse_double(text, size, -1, 1, &real) == 0)
		assert(real >= -1 && real <= 1);
	if (nt_parse_hex(text, size, 0xffff, &value) == 0)
		assert(value <= 0xffff);
	return 0;
}

FUZZ_TARGET(run, .peak = {4096, 0}, .steps = {2000, 60})
