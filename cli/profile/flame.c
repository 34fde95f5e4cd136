/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/profile/flame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"
#include "proto/json.h"

void nt_flame_release(struct nt_flame *flame)
{
	for (size_t i = 0; i < flame->stacks; i++)
		free(flame->stack[i].frame);
	free(flame->stack);
	free(flame->frame);
	*flame = (struct nt_flame){0};
}

/* Negative, broken or absent ones are 0. */
static uint64_t whole(const json_t *object, const char *name)
{
	const double number = nt_json_get_number(object, name, 0);

	return number > 0 && number < 1e15 ? (uint64_t)number : 0;
}

static int read_frames(const json_t *array, struct nt_flame *flame)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(array) || json_array_size(array) > NT_FLAME_FRAMES)
		return -EPROTO;
	flame->frame = calloc(json_array_size(array) + 1, sizeof(*flame->frame));
	if (!flame->frame)
		return -ENOMEM;
	json_array_foreach(array, i, item)
	{
		flame->frame[i] = (struct nt_flame_frame){
			.function = nt_json_get_text(item, "function", ""),
			.file = nt_json_get_text(item, "file", ""),
			.native = json_is_true(json_object_get(item, "native")),
		};
	}
	flame->frames = json_array_size(array);
	return 0;
}

static int read_numbers(const json_t *array, const struct nt_flame *flame,
			struct nt_flame_stack *stack)
{
	const size_t count = json_array_size(array);

	if (!json_is_array(array) || count > NT_FLAME_DEPTH)
		return -EPROTO;
	stack->frame = calloc(count + 1, sizeof(*stack->frame));
	if (!stack->frame)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(array, count - 1 - i);
		const json_int_t number = json_integer_value(item);

		if (!json_is_integer(item) || number < 0 || (size_t)number >= flame->frames)
			return -EPROTO;
		stack->frame[i] = (uint32_t)number;
	}
	stack->frames = count;
	return 0;
}

static int read_flame_stack(const json_t *item, struct nt_flame *flame)
{
	struct nt_flame_stack *stack = &flame->stack[flame->stacks++];

	stack->thread = nt_json_get_text(item, "thread", "");
	stack->on_cpu = strcmp(nt_json_get_text(item, "state", ""), "on-cpu") == 0;
	stack->count = whole(item, "count");
	flame->samples += stack->count;
	return read_numbers(json_object_get(item, "frames"), flame, stack);
}

static int by_path(const void *a, const void *b)
{
	const struct nt_flame_stack *one = a, *other = b;
	const size_t most = one->frames < other->frames ? one->frames : other->frames;
	const int order = strcmp(one->thread, other->thread);

	if (order)
		return order;
	if (one->on_cpu != other->on_cpu)
		return one->on_cpu ? -1 : 1;
	for (size_t i = 0; i < most; i++)
		if (one->frame[i] != other->frame[i])
			return one->frame[i] < other->frame[i] ? -1 : 1;
	return one->frames < other->frames ? -1 : one->frames > other->frames;
}

static int read_all(const json_t *profile, struct nt_flame *flame)
{
	const json_t *stacks = json_object_get(profile, "stacks"), *item;
	int r = read_frames(json_object_get(profile, "frames"), flame);
	size_t i;

	if (r < 0)
		return r;
	if (!json_is_array(stacks) || json_array_size(stacks) > NT_FLAME_FRAMES)
		return -EPROTO;
	flame->stack = calloc(json_array_size(stacks) + 1, sizeof(*flame->stack));
	if (!flame->stack)
		return -ENOMEM;
	json_array_foreach(stacks, i, item)
	{
		r = read_flame_stack(item, flame);
		if (r < 0)
			return r;
	}
	qsort(flame->stack, flame->stacks, sizeof(*flame->stack), by_path);
	return 0;
}

int nt_flame_read(const json_t *profile, const char *job, struct nt_flame *ret_flame)
{
	const char *begin = nt_json_get_text(profile, "begin", "");
	struct nt_flame flame = {
		.job = job,
		.interpreter = nt_json_get_text(profile, "interpreter", ""),
		.reason = nt_json_get_text(profile, "reason", ""),
		.rank = (uint32_t)whole(profile, "rank"),
		.hz = (uint32_t)whole(profile, "hz"),
		.duration_s = nt_json_get_number(profile, "duration_s", 0),
		.taken = whole(profile, "taken"),
		.missed = whole(profile, "missed"),
		.lost = whole(profile, "lost"),
		.torn = whole(profile, "torn"),
		.empty = whole(profile, "empty"),
		.cpu_s = nt_json_get_number(profile, "cpu_s", 0),
	};
	int r = read_all(profile, &flame);

	if (r == 0 && !flame.hz)
		r = -EPROTO;
	if (r < 0) {
		nt_flame_release(&flame);
		return r;
	}
	if (nt_clock_parse(begin, strlen(begin), &flame.begin_real_ns) < 0)
		flame.begin_real_ns = 0;
	*ret_flame = flame;
	return 0;
}

/* ---- for people ------------------------------------------------------------------------------ */

/* 0: not known. */
static double rate_of(const struct nt_flame *flame)
{
	return flame->duration_s > 0 ? (double)flame->taken / flame->duration_s : 0;
}

static int describe_rate(const struct nt_flame *flame, struct nt_buf *buf)
{
	const uint64_t times = flame->taken + flame->missed;

	if (!flame->missed)
		return 0;
	return nt_buf_printf(buf,
			     "; the rate fell to %.1f Hz, as %" PRIu64 " of %" PRIu64
			     " times were missed: one takes %.2f ms of processor time",
			     rate_of(flame), flame->missed, times,
			     flame->taken ? 1e3 * flame->cpu_s / (double)flame->taken : 0);
}

int nt_flame_describe(const struct nt_flame *flame, struct nt_buf *buf)
{
	int r = nt_buf_printf(buf,
			      "%" PRIu64 " samples of threads in %.1f s at %" PRIu32 " Hz: %" PRIu64
			      " torn, %" PRIu64 " without a frame, %" PRIu64 " left out",
			      flame->samples, flame->duration_s, flame->hz, flame->torn,
			      flame->empty, flame->lost);

	if (r == 0)
		r = describe_rate(flame, buf);
	if (r == 0 && *flame->reason)
		r = nt_buf_printf(buf, "; %s", flame->reason);
	return r;
}
