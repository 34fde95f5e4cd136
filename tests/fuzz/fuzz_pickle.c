/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A pickle of any bytes is plain data, which can be written as JSON, or is refused with a reason. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "cli/readers/pickle.h"
#include "tests/fuzz/lib/cost.h"

static int run(const uint8_t *data, size_t size)
{
	struct nt_trace_error error = {0};
	json_t *root = NULL;
	int r;

	(void)nt_pickle_is(data, size);
	r = nt_pickle_read("pickle", data, size, &root, &error);
	assert((r == 0) == (root != NULL));
	assert((r == 0) == (error.text[0] == '\0'));
	/* A ring would not end here, nor what doubles itself. */
	if (r == 0 && size < 64)
		free(json_dumps(root, JSON_ENCODE_ANY));
	json_decref(root);
	return 0;
}

FUZZ_TARGET(run, .peak = {64 << 10, 400}, .steps = {20000, 200})
