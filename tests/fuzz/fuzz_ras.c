/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a process sends in place of NCCL's RAS: its status, in pieces of a size that the first byte names, and
 * its environment and status file. What is accepted is possible, and the same for any size.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "agent/ras/ras.h"
#include "agent/ras/ras_target.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/unit/piece_source.h"

enum {
	PID = 42,
};

static int read_status(const uint8_t *data, size_t size, size_t piece,
		       struct nt_ras_answer *ret_answer)
{
	struct piece_source source = {.text = (const char *)data, .len = size, .piece = piece};

	return nt_ras_answer_read(piece_source_read, &source, PID, ret_answer);
}

static void check(const struct nt_ras_answer *answer)
{
	assert(nt_ras_is_sound(answer));
	assert(answer->comms <= answer->ranks && answer->dead <= answer->missing);
	assert(answer->initialising <= answer->ranks);
	for (uint32_t i = 0; i < answer->comms; i++) {
		struct nt_ras_comm wanted = answer->comm[i];

		if (i + 1 == answer->comms || answer->comm[i + 1].hash != wanted.hash)
			continue;
		assert(answer->comm[i + 1].rank >= wanted.rank);
	}
}

static int run(const uint8_t *data, size_t size)
{
	static struct nt_ras_answer answer, again;
	struct nt_ras_target target;
	int r;

	if (!size)
		return 0;
	r = read_status(data + 1, size - 1, data[0] + 1, &answer);
	assert(read_status(data + 1, size - 1, 4096, &again) == r);
	if (r == 0) {
		check(&answer);
		assert(memcmp(&answer, &again, sizeof(answer)) == 0);
	}
	nt_ras_target_environ((const char *)data, size, &target);
	assert(!target.port || target.port >= NT_RAS_PORT_LEAST);
	(void)nt_ras_target_pid((const char *)data, size);
	return 0;
}

FUZZ_TARGET(run, .peak = {250000, 60}, .steps = {30000, 100})
