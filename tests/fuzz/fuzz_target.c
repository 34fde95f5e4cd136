/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The target of an HTTP request: what is accepted is text, within its caps, and inside its buffer. */
#include "common/http/target.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/utf8.h"
#include "tests/fuzz/lib/cost.h"

static void check(const struct nt_target *target, const char *piece)
{
	assert(piece >= target->text && piece < target->text + sizeof(target->text));
	assert(nt_utf8_is_valid(piece, strlen(piece)));
	for (; *piece; piece++)
		assert((unsigned char)*piece >= 0x20 && *piece != 0x7f);
}

static int run(const uint8_t *data, size_t size)
{
	static struct nt_target target;

	if (nt_target_parse((const char *)data, size, &target) < 0)
		return 0;
	assert(target.segments <= NT_TARGET_MAX_SEGMENTS && target.queries <= NT_TARGET_MAX_QUERY);
	for (size_t i = 0; i < target.segments; i++)
		check(&target, target.segment[i]);
	for (size_t i = 0; i < target.queries; i++) {
		check(&target, target.query[i].name);
		check(&target, target.query[i].value);
		assert(nt_target_query(&target, target.query[i].name) == target.query[i].value);
	}
	return 0;
}

FUZZ_TARGET(run, .peak = {4096, 0}, .steps = {20000, 100})
