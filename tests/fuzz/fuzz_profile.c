/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profile from a worker that was compromised: it is refused, or becomes a message of bounded size. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/profile/profile.h"
#include "agent/profile/window_profile.h"
#include "tests/fuzz/lib/cost.h"

enum {
	REPEATED = 4096, /* bytes behind the head are repeated so far into each array */
};

static void fill(void *to, size_t size, const uint8_t *data, size_t len)
{
	memset(to, 0, size);
	for (size_t i = 0; len && i < REPEATED && i < size; i++)
		((uint8_t *)to)[i] = data[i % len];
}

static int run(const uint8_t *data, size_t size)
{
	static const struct nt_profile_wish wish = {.seconds = 60, .hz = 99};
	static struct nt_profile profile;
	static struct nt_message message;
	nt_auto(nt_window_profile) struct nt_window_profile *window = NULL;
	nt_autobuf struct nt_buf buf = {0};
	const size_t head = offsetof(struct nt_profile, stack);

	if (size < head)
		return 0;
	memcpy(&profile, data, head);
	fill(profile.stack, sizeof(profile.stack), data + head, size - head);
	fill(profile.frame, sizeof(profile.frame), data + head, size - head);
	fill(profile.number, sizeof(profile.number), data + head, size - head);
	fill(profile.text, sizeof(profile.text), data + head, size - head);
	if (nt_profile_check(&profile, &wish) < 0 ||
	    nt_window_profile_new(&profile, 1, &wish, &window) < 0)
		return 0;
	message = (struct nt_message){.agent = "a", .key = "k", .body = NT_BODY_WINDOW};
	message.window.profile = &window->wire;
	message.window.profiles = 1;
	assert(nt_message_encode(&message, &buf) == 0);
	assert(buf.len <= NT_WINDOW_PROFILE_BYTES + 1024);
	return 0;
}

FUZZ_TARGET(run, .peak = {4 << 20, 64}, .total = {8 << 20, 64}, .steps = {4000000, 400},
	    .cpu_ns = {400000000, 1000})
