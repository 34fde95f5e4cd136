/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages from anywhere: what decodes must encode, and decode again to the same bytes. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/base/utf8.h"
#include "proto/wire.h"
#include "tests/fuzz/lib/cost.h"

static void check_text(const char *text)
{
	size_t len = strnlen(text, NT_WIRE_MAX_TEXT + 1);

	assert(len <= NT_WIRE_MAX_TEXT && nt_utf8_is_valid(text, len));
	for (size_t i = 0; i < len; i++)
		assert((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

static void check_window(const struct nt_window *window)
{
	check_text(window->rank.node);
	check_text(window->rank.comm);
	check_text(window->host.state);
	assert(window->comms <= NT_WIRE_MAX_COMMS && window->samples <= NT_WIRE_MAX_SAMPLES);
	assert(window->step_samples <= NT_WIRE_MAX_STEPS);
	for (size_t i = 0; i < window->comms; i++) {
		const struct nt_comm_window *comm = &window->comm[i];

		check_text(comm->name);
		assert((unsigned int)comm->library < NT_LIBRARY_END);
		assert(comm->ops <= NT_WIRE_MAX_OPS && comm->recents <= NT_WIRE_MAX_RECENT);
		for (size_t j = 0; j < comm->ops; j++) {
			const struct nt_sketch_wire *sketch = &comm->op[j].duration;

			assert((unsigned int)comm->op[j].op < NT_OP_END);
			for (size_t k = 0; k < sketch->buckets; k++)
				assert(sketch->bucket[k] < NT_WIRE_MAX_BUCKETS);
		}
	}
}

static void check_detail(const struct nt_detail *detail)
{
	check_text(detail->rank.pod);
	assert(detail->records <= NT_WIRE_MAX_DETAILS);
	assert(detail->counts <= NT_WIRE_MAX_DETAIL_KINDS);
	for (size_t i = 0; i < detail->records; i++) {
		const struct nt_detail_call *record = &detail->record[i];

		check_text(record->call);
		assert((unsigned int)record->kind < NT_DETAIL_KIND_END);
		assert((unsigned int)record->op < NT_OP_END);
		assert(record->words <= NT_WIRE_MAX_DETAIL_WORDS);
		assert(record->probability - record->probability == 0); /* finite */
	}
}

/* A field that no version has sends a message the long way through protobuf-c: it means the same. */
static void check_long_way(const uint8_t *data, size_t size, const struct nt_buf *once)
{
	static const uint8_t unknown_field[] = {0xb8, 0x02, 0x00};
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_autobuf struct nt_buf with = {0}, again = {0};

	if (nt_buf_append(&with, data, size) < 0 ||
	    nt_buf_append(&with, unknown_field, sizeof(unknown_field)) < 0)
		return;
	assert(nt_message_decode(with.data, with.len, &message) == 0);
	assert(nt_message_encode(message, &again) == 0);
	assert(again.len == once->len && memcmp(again.data, once->data, again.len) == 0);
}

static int run(const uint8_t *data, size_t size)
{
	nt_auto(nt_message) struct nt_message *first = NULL, *second = NULL;
	nt_autobuf struct nt_buf once = {0}, twice = {0};
	int r = nt_message_decode(data, size, &first);

	if (r < 0) {
		assert(r == -EBADMSG && !first);
		return 0;
	}
	check_text(first->agent);
	check_text(first->key);
	(void)nt_message_real_ns(first, first->watermark_boot_ns);
	if (first->body == NT_BODY_WINDOW)
		check_window(&first->window);
	if (first->body == NT_BODY_DETAIL)
		check_detail(&first->detail);
	if (first->body == NT_BODY_NONE) {
		assert(nt_message_encode(first, &once) == -EINVAL);
		return 0;
	}
	assert(nt_message_encode(first, &once) == 0);
	assert(once.len <= size + 3); /* what it means is not longer than how it was said */
	assert(nt_message_decode(once.data, once.len, &second) == 0);
	assert(nt_message_encode(second, &twice) == 0);
	assert(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	check_long_way(data, size, &once);
	return 0;
}

FUZZ_TARGET(run, .peak = {64 << 10, 400}, .steps = {40000, 300})
