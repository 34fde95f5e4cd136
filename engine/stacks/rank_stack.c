/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/stacks/rank_stack.h"

#include <errno.h>
#include <string.h>

#include "common/base/hash.h"
#include "proto/text.h"

enum {
	SHORT_TEXT = 64,
};

void nt_rank_stacks_release(struct nt_rank_stacks *stacks)
{
	for (size_t i = 0; i < NT_RANK_STACKS; i++)
		nt_arena_release(&stacks->entry[i].arena);
}

struct nt_rank_stack_id nt_rank_stack_id_of(const char *key, const char *node, uint32_t pid,
					    uint64_t start_boot_ns)
{
	const uint64_t process = nt_hash_u64(nt_hash_text(NT_HASH_SEED, node), pid);

	return (struct nt_rank_stack_id){
		.key = nt_hash_text(NT_HASH_SEED, key),
		.process = nt_hash_u64(process, start_boot_ns),
	};
}

static bool is_same(const struct nt_rank_stack_id *a, const struct nt_rank_stack_id *b)
{
	return a->key == b->key && a->process == b->process;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* NULL: out of memory. */
static const char *copy_short(struct nt_arena *arena, const char *text, size_t most)
{
	const size_t len = strlen(text);
	char *copy = nt_arena_alloc(arena, (len < most ? len : most) + 1);

	if (copy)
		(void)nt_text_clean(text, len, copy, most);
	return copy;
}

/* The end of a path says more than its begin. */
static const char *copy_file(struct nt_arena *arena, const char *file)
{
	const size_t len = strlen(file);

	return copy_short(arena, len > NT_RANK_STACK_FILE ? file + len - NT_RANK_STACK_FILE : file,
			  NT_RANK_STACK_FILE);
}

static int copy_frames(const struct nt_wire_stack *stack, struct nt_arena *arena,
		       struct nt_wire_stack *copy)
{
	copy->frames = stack->frames < NT_RANK_STACK_FRAMES ? stack->frames : NT_RANK_STACK_FRAMES;
	copy->left_out += (uint32_t)(stack->frames - copy->frames);
	copy->frame = nt_arena_alloc(arena, (copy->frames + 1) * sizeof(*copy->frame));
	if (!copy->frame)
		return -ENOMEM;
	for (size_t i = 0; i < copy->frames; i++) {
		struct nt_wire_stack_frame *frame = &copy->frame[i];

		*frame = stack->frame[i];
		frame->function =
			copy_short(arena, stack->frame[i].function, NT_RANK_STACK_FUNCTION);
		frame->file = copy_file(arena, stack->frame[i].file);
		if (!frame->function || !frame->file)
			return -ENOMEM;
	}
	return 0;
}

int nt_rank_stack_copy(const struct nt_wire_stack *stack, struct nt_arena *arena,
		       struct nt_wire_stack *ret_copy)
{
	struct nt_wire_stack copy = *stack;

	copy.name = copy_short(arena, stack->name, SHORT_TEXT);
	copy.state = copy_short(arena, stack->state, SHORT_TEXT);
	copy.wait = copy_short(arena, stack->wait, SHORT_TEXT);
	copy.interpreter = copy_short(arena, stack->interpreter, SHORT_TEXT);
	copy.python_reason = copy_short(arena, stack->python_reason, SHORT_TEXT);
	copy.native_reason = copy_short(arena, stack->native_reason, SHORT_TEXT);
	if (!copy.name || !copy.state || !copy.wait || !copy.interpreter || !copy.python_reason ||
	    !copy.native_reason || copy_frames(stack, arena, &copy) < 0)
		return -ENOMEM;
	*ret_copy = copy;
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct nt_rank_stack *nt_rank_stacks_find(const struct nt_rank_stacks *stacks,
						const struct nt_rank_stack_id *id)
{
	for (size_t i = 0; i < NT_RANK_STACKS; i++)
		if (stacks->entry[i].real_ns && is_same(&stacks->entry[i].id, id))
			return &stacks->entry[i];
	return NULL;
}

static size_t count_of(const struct nt_rank_stacks *stacks, uint64_t key)
{
	size_t n = 0;

	for (size_t i = 0; i < NT_RANK_STACKS; i++)
		n += stacks->entry[i].real_ns && stacks->entry[i].id.key == key;
	return n;
}

bool nt_rank_stacks_has(const struct nt_rank_stacks *stacks, const char *key)
{
	return count_of(stacks, nt_hash_text(NT_HASH_SEED, key)) > 0;
}

/* The oldest entry of the key with the most. */
static struct nt_rank_stack *find_victim(struct nt_rank_stacks *stacks)
{
	struct nt_rank_stack *victim = &stacks->entry[0];
	size_t most = 0;

	for (size_t i = 0; i < NT_RANK_STACKS; i++) {
		struct nt_rank_stack *entry = &stacks->entry[i];
		const size_t n = count_of(stacks, entry->id.key);

		if (n < most || (n == most && entry->real_ns >= victim->real_ns))
			continue;
		most = n;
		victim = entry;
	}
	return victim;
}

static struct nt_rank_stack *find_room(struct nt_rank_stacks *stacks,
				       const struct nt_rank_stack_id *id)
{
	struct nt_rank_stack *room = NULL;

	for (size_t i = 0; i < NT_RANK_STACKS; i++) {
		if (stacks->entry[i].real_ns && is_same(&stacks->entry[i].id, id))
			return &stacks->entry[i];
		if (!stacks->entry[i].real_ns && !room)
			room = &stacks->entry[i];
	}
	if (room)
		return room;
	stacks->evicted++;
	return find_victim(stacks);
}

/* All threads of one reading; a window may hold several readings, of which the last is taken. */
static void find_newest(const struct nt_window *window, const struct nt_wire_stack **ret_stack,
			size_t *ret_threads)
{
	size_t first = 0;

	for (size_t i = 1; i < window->stacks; i++)
		if (window->stack[i].request != window->stack[i - 1].request)
			first = i;
	*ret_stack = &window->stack[first];
	*ret_threads = window->stacks - first;
}

int nt_rank_stacks_take(struct nt_rank_stacks *stacks, const struct nt_message *message)
{
	const struct nt_window *window = &message->window;
	const struct nt_rank_stack_id id = nt_rank_stack_id_of(
		message->key, window->rank.node, window->rank.pid, window->rank.start_boot_ns);
	struct nt_rank_stack entry = {.id = id};
	const struct nt_wire_stack *stack;
	struct nt_rank_stack *room;
	int r = 0;

	if (!window->stacks)
		return 0;
	find_newest(window, &stack, &entry.threads);
	entry.real_ns = nt_message_real_ns(message, stack->boot_ns) ?: 1;
	room = find_room(stacks, &id);
	if (room->real_ns && is_same(&room->id, &id) && room->real_ns > entry.real_ns)
		return 0;
	if (entry.threads > NT_RANK_STACK_THREADS)
		entry.threads = NT_RANK_STACK_THREADS;
	entry.thread = nt_arena_alloc(&entry.arena, entry.threads * sizeof(*entry.thread));
	for (size_t i = 0; entry.thread && i < entry.threads && r == 0; i++)
		r = nt_rank_stack_copy(&stack[i], &entry.arena, &entry.thread[i]);
	if (r < 0 || !entry.thread) {
		nt_arena_release(&entry.arena);
		return -ENOMEM;
	}
	nt_arena_release(&room->arena);
	*room = entry;
	stacks->taken++;
	return 1;
}
