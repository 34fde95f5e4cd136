/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/profile/profile.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/ascii.h"
#include "common/base/hash.h"

enum {
	SLOTS = 4096, /* of each index: twice the caps */
};

_Static_assert(sizeof(struct nt_profile_stack) == 32, "passed between processes");
_Static_assert(SLOTS >= 2 * NT_PROFILE_STACKS && SLOTS >= 2 * NT_PROFILE_FRAMES, "never full");

/* Open addressing: number + 1 of what has the hash; 0: none. */
static struct {
	uint16_t frame[SLOTS], stack[SLOTS];
} profile_index;

void nt_profile_init(struct nt_profile *profile)
{
	memset(profile, 0, sizeof(*profile));
	memset(&profile_index, 0, sizeof(profile_index));
	profile->text_bytes = 1;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static bool is_frame(const struct nt_profile *profile, const struct nt_stack_frame *frame,
		     const char *function, const char *file, uint32_t is_native)
{
	return frame->is_native == is_native &&
	       strcmp(profile->text + frame->function, function) == 0 &&
	       strcmp(profile->text + frame->file, file) == 0;
}

/* 0: no room, unless the text is empty. */
static uint32_t add_text(struct nt_profile *profile, const char *text)
{
	const size_t len = strlen(text);
	const uint32_t begin = profile->text_bytes;

	if (!len || len >= sizeof(profile->text) - begin)
		return 0;
	memcpy(profile->text + begin, text, len + 1);
	profile->text_bytes += (uint32_t)len + 1;
	return begin;
}

/* A file has many functions: looks for it in the frames that were added last. */
static uint32_t file_text(struct nt_profile *profile, const char *file)
{
	const uint32_t most = 64;

	for (uint32_t i = profile->frames; i > 0 && profile->frames - i < most; i--)
		if (strcmp(profile->text + profile->frame[i - 1].file, file) == 0)
			return profile->frame[i - 1].file;
	return add_text(profile, file);
}

/* Its number; -1: no room. */
static int find_frame(struct nt_profile *profile, const char *function, const char *file,
		      uint32_t is_native)
{
	const uint64_t hash =
		nt_hash_mix(nt_hash_text(nt_hash_text(NT_HASH_SEED + is_native, function), file));
	uint32_t slot = (uint32_t)(hash % SLOTS);
	struct nt_stack_frame frame = {.is_native = is_native};

	for (; profile_index.frame[slot]; slot = (slot + 1) % SLOTS)
		if (is_frame(profile, &profile->frame[profile_index.frame[slot] - 1], function,
			     file, is_native))
			return profile_index.frame[slot] - 1;
	if (profile->frames == NT_PROFILE_FRAMES)
		return -1;
	frame.function = add_text(profile, function);
	frame.file = file_text(profile, file);
	if ((*function && !frame.function) || (*file && !frame.file))
		return -1;
	profile->frame[profile->frames++] = frame;
	profile_index.frame[slot] = (uint16_t)profile->frames;
	return (int)profile->frames - 1;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* One sample of a thread, with the numbers of its frames. */
struct thread_sample {
	struct nt_profile_stack stack;
	uint16_t number[NT_PROFILE_DEPTH + NT_PROFILE_MARKS];
};

static bool is_stack(const struct nt_profile *profile, const struct nt_profile_stack *stack,
		     const struct thread_sample *sample)
{
	return stack->frames == sample->stack.frames && stack->on_cpu == sample->stack.on_cpu &&
	       strcmp(stack->thread, sample->stack.thread) == 0 &&
	       memcmp(profile->number + stack->first, sample->number,
		      stack->frames * sizeof(sample->number[0])) == 0;
}

static bool count_sample(struct nt_profile *profile, struct thread_sample *sample)
{
	struct nt_profile_stack *stack = &sample->stack;
	const uint64_t hash = nt_hash_mix(
		nt_hash_bytes(nt_hash_text(NT_HASH_SEED + stack->on_cpu, stack->thread),
			      sample->number, stack->frames * sizeof(sample->number[0])));
	uint32_t slot = (uint32_t)(hash % SLOTS);

	for (; profile_index.stack[slot]; slot = (slot + 1) % SLOTS) {
		struct nt_profile_stack *other = &profile->stack[profile_index.stack[slot] - 1];

		if (!is_stack(profile, other, sample))
			continue;
		other->count++;
		return true;
	}
	if (profile->stacks == NT_PROFILE_STACKS ||
	    stack->frames > NT_PROFILE_NUMBERS - profile->numbers)
		return false;
	stack->first = profile->numbers;
	stack->count = 1;
	memcpy(profile->number + profile->numbers, sample->number,
	       stack->frames * sizeof(sample->number[0]));
	profile->numbers += stack->frames;
	profile->stack[profile->stacks++] = *stack;
	profile_index.stack[slot] = (uint16_t)profile->stacks;
	return true;
}

/* False: no room. */
static bool add_sample_frame(struct nt_profile *profile, struct thread_sample *sample,
			     const char *function, const char *file, uint32_t is_native)
{
	const int number = find_frame(profile, function, file, is_native);

	if (number >= 0)
		sample->number[sample->stack.frames++] = (uint16_t)number;
	return number >= 0;
}

static bool add_sample_frames(struct nt_profile *profile, const struct nt_stack *stack,
			      const struct nt_stack_thread *thread, struct thread_sample *sample)
{
	const uint32_t most = thread->frames < NT_PROFILE_DEPTH ? thread->frames : NT_PROFILE_DEPTH;

	if (thread->is_torn && !add_sample_frame(profile, sample, NT_PROFILE_TORN, "", true))
		return false;
	for (uint32_t i = 0; i < most; i++) {
		const struct nt_stack_frame *frame = &stack->frame[thread->first + i];

		if (!add_sample_frame(profile, sample, nt_stack_text_at(stack, frame->function),
				      nt_stack_text_at(stack, frame->file), frame->is_native))
			return false;
	}
	sample->stack.left_out += thread->frames - most;
	return !sample->stack.left_out ||
	       add_sample_frame(profile, sample, NT_PROFILE_OUTER, "", true);
}

/* Whether it runs is not known of the holder of the GIL if that has no thread's id. */
static bool is_on_cpu(const struct nt_stack_thread *thread)
{
	return thread->state == 'R' || (thread->state == '?' && thread->holds_gil);
}

static bool add_thread_sample(struct nt_profile *profile, const struct nt_stack *stack,
			      const struct nt_stack_thread *thread)
{
	struct thread_sample sample = {
		.stack = {.on_cpu = is_on_cpu(thread), .left_out = thread->left_out}};

	memcpy(sample.stack.thread, thread->name, sizeof(sample.stack.thread));
	sample.stack.thread[NT_STACK_NAME - 1] = '\0';
	if (!add_sample_frames(profile, stack, thread, &sample) || !count_sample(profile, &sample))
		return false;
	profile->torn += thread->is_torn;
	profile->empty += !thread->frames;
	return true;
}

static bool is_of_kind(const struct nt_stack_thread *thread, enum nt_profile_kind kind)
{
	if (kind == NT_PROFILE_ALL)
		return true;
	return is_on_cpu(thread) == (kind == NT_PROFILE_ON_CPU);
}

void nt_profile_add(struct nt_profile *profile, const struct nt_stack *stack,
		    enum nt_profile_kind kind)
{
	profile->taken++;
	profile->python_version = stack->python_version;
	for (uint32_t i = 0; i < stack->threads; i++) {
		const struct nt_stack_thread *thread = &stack->thread[i];

		if (thread->native == NT_STACK_ENDED)
			continue;
		/* What is torn is counted, and no reason for the whole profile. */
		if (thread->is_main && thread->python != NT_STACK_CHANGED)
			profile->reason = thread->python;
		if (is_of_kind(thread, kind) && !add_thread_sample(profile, stack, thread))
			profile->left_out++;
	}
}

/* ---- answers of workers ---------------------------------------------------------------------- */

static bool stack_is_sound(const struct nt_profile *profile, struct nt_profile_stack *stack)
{
	stack->thread[NT_STACK_NAME - 1] = '\0';
	nt_ascii_copy_text(stack->thread, sizeof(stack->thread), stack->thread);
	return stack->on_cpu <= 1 && stack->frames <= NT_PROFILE_DEPTH + NT_PROFILE_MARKS &&
	       stack->first <= profile->numbers && stack->frames <= profile->numbers - stack->first;
}

/* What metrics add up. */
static bool counts_are_sound(const struct nt_profile *profile, const struct nt_profile_wish *wish)
{
	const uint64_t times = (uint64_t)wish->seconds * wish->hz, most = times * NT_STACK_THREADS;

	return profile->taken <= times && profile->missed <= times && profile->torn <= most &&
	       profile->empty <= most && profile->left_out <= most;
}

int nt_profile_check(struct nt_profile *profile, const struct nt_profile_wish *wish)
{
	if (!counts_are_sound(profile, wish))
		return -EBADMSG;
	if (profile->stacks > NT_PROFILE_STACKS || profile->frames > NT_PROFILE_FRAMES ||
	    profile->numbers > NT_PROFILE_NUMBERS || !profile->text_bytes ||
	    profile->text_bytes > NT_PROFILE_TEXT_BYTES || profile->reason >= NT_STACK_REASON_END)
		return -EBADMSG;
	profile->text[0] = profile->text[profile->text_bytes - 1] = '\0';
	for (uint32_t i = 0; i < profile->text_bytes; i++)
		if (profile->text[i] && (profile->text[i] < ' ' || profile->text[i] > '~'))
			profile->text[i] = '?';
	for (uint32_t i = 0; i < profile->frames; i++)
		if (profile->frame[i].function >= profile->text_bytes ||
		    profile->frame[i].file >= profile->text_bytes ||
		    profile->frame[i].is_native > 1)
			return -EBADMSG;
	for (uint32_t i = 0; i < profile->numbers; i++)
		if (profile->number[i] >= profile->frames)
			return -EBADMSG;
	for (uint32_t i = 0; i < profile->stacks; i++)
		if (!stack_is_sound(profile, &profile->stack[i]))
			return -EBADMSG;
	return 0;
}
