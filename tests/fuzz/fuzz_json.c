/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON both ways: any bytes are read or refused; an incident out of any bytes of the wire becomes a
 * document that is read again, whatever its texts and numbers are.
 */
#include "proto/json.h"

#include <assert.h>
#include <string.h>

#include "tests/fuzz/lib/cost.h"

static void write_and_read(json_t *object)
{
	nt_autojson json_t *own = object, *again = NULL;
	nt_autobuf struct nt_buf text = {0};

	assert(own);
	assert(nt_json_dump(own, false, &text) == 0);
	assert(nt_json_load(text.data, text.len, &again) == 0);
}

static int run(const uint8_t *data, size_t size)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_autojson json_t *json = NULL;

	if (nt_json_load(data, size, &json) == 0)
		write_and_read(json_incref(json));
	if (nt_message_decode(data, size, &message) < 0 || message->body != NT_BODY_INCIDENT)
		return 0;
	write_and_read(nt_json_incident(&message->incident));
	for (size_t i = 0; i < message->incident.culprits && i < 4; i++)
		write_and_read(
			nt_json_slow_rank(&message->incident, &message->incident.culprit[i]));
	return 0;
}

FUZZ_TARGET(run, .peak = {64 << 10, 128}, .steps = {20000, 100})
