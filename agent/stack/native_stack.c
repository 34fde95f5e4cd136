/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/native_stack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/elf/elf.h"
#include "agent/host/mount.h"
#include "agent/host/proc.h"
#include "agent/host/root_path.h"
#include "agent/stack/call_frame.h"
#include "common/base/ascii.h"
#include "common/base/hash.h"

enum {
	NAME_BYTES = 64, /* of a file */
	HEAD_BYTES = 12, /* of the table of entries, before its rows */
	ROW_BYTES = 8,
	ROWS_MAX = 1 << 24,
	ROW_SEARCH_MAX = 32, /* reads of one search */
	SAVED_BYTES = 128, /* below the canonical frame address: all saved registers at once */
	ID_AT = 4,
	PAGE_SHIFT = 12,
};

/* The kinds of numbers in the table that linkers write: version 1, pcrel, udata4, datarel. */
static const uint8_t table_head[] = {1, 0x1b, 0x03, 0x3b};

struct nt_native_module {
	uint64_t start, end; /* of the mapping */
	uint64_t bias;
	uint64_t table; /* address of the table; 0: none */
	struct nt_elf *elf; /* owned; NULL: the file could not be read */
	int fd; /* of the file; -1: none */
	char name[NAME_BYTES];
};

/* What is known of an address of the process: each takes tens of reads, or a search for symbols. */
struct nt_native_place {
	uint64_t pc; /* 0: none */
	char name[NT_ELF_FUNCTION]; /* of the function; "": not looked for */
	bool has_frame;
	struct nt_call_frame frame;
};

/* One frame: the registers of which something is known. */
struct registers {
	uint64_t value[NT_CALL_FRAME_REGISTERS];
	uint32_t known; /* bits */
};

struct native_walk {
	uint64_t pc[NT_NATIVE_FRAMES];
	uint32_t module[NT_NATIVE_FRAMES];
	char name[NT_NATIVE_FRAMES][NT_ELF_FUNCTION];
	size_t frames;
};

void nt_native_process_release(struct nt_native_process *process)
{
	for (uint32_t i = 0; i < process->modules; i++) {
		nt_elf_close(process->module[i].elf);
		nt_closep(&process->module[i].fd);
	}
	free(process->module);
	free(process->place);
	*process = (struct nt_native_process){0};
}

/* ---- modules -------------------------------------------------------------------------------- */

struct module_search {
	const struct nt_stack_memory *memory;
	uint64_t pc;
	struct nt_native_module *module;
	bool is_found;
};

static void open_module(const struct nt_stack_memory *memory, const struct nt_mapping *mapping,
			struct nt_native_module *module)
{
	nt_autoclose int path_fd = -1;
	struct stat st;
	uint64_t table;

	path_fd = nt_root_path_open_mapping(memory->pid, mapping, &st);
	if (path_fd < 0 || (!memory->takes_fuse && nt_mount_is_fuse(memory->pid, path_fd, &st)))
		return;
	module->fd = nt_root_path_read(path_fd, st.st_dev, st.st_ino);
	if (module->fd < 0 || nt_elf_open_fd(module->fd, NULL, &module->elf) < 0)
		return;
	table = nt_elf_unwind_table(module->elf);
	if (nt_elf_load_bias(module->elf, mapping->start, mapping->offset, &module->bias) == 0 &&
	    table)
		module->table = table + module->bias;
}

static void see_module(void *data, const struct nt_mapping *mapping)
{
	struct module_search *search = data;
	const char *slash = strrchr(mapping->path, '/');

	if (search->is_found || search->pc < mapping->start || search->pc >= mapping->end)
		return;
	search->is_found = true;
	*search->module =
		(struct nt_native_module){.start = mapping->start, .end = mapping->end, .fd = -1};
	nt_ascii_copy_text(search->module->name, NAME_BYTES, slash ? slash + 1 : mapping->path);
	open_module(search->memory, mapping, search->module);
}

void nt_native_process_refresh(struct nt_native_process *process, uint64_t now_ns)
{
	if (now_ns - process->emptied_ns < NT_NATIVE_EMPTY_NS)
		return;
	memset(process->empty_page, 0, sizeof(process->empty_page));
	process->emptied_ns = now_ns;
}

/* Code that was generated, such as by a JIT compiler: all mappings would be read each time. */
static bool is_in_empty_page(const struct nt_native_process *process, uint64_t pc)
{
	for (size_t i = 0; i < NT_NATIVE_EMPTY_PAGES; i++)
		if (process->empty_page[i] && process->empty_page[i] == pc >> PAGE_SHIFT)
			return true;
	return false;
}

/* NULL: no file is mapped there, or too many files. */
static struct nt_native_module *find_module(struct nt_native_process *process, uint64_t pc)
{
	struct module_search search = {.memory = &process->memory, .pc = pc};

	for (uint32_t i = 0; i < process->modules; i++)
		if (pc >= process->module[i].start && pc < process->module[i].end)
			return &process->module[i];
	if (!process->module)
		process->module = calloc(NT_NATIVE_MODULES, sizeof(*process->module));
	if (!process->module || process->modules == NT_NATIVE_MODULES)
		return NULL;
	if (is_in_empty_page(process, pc))
		return NULL;
	search.module = &process->module[process->modules];
	(void)!nt_proc_mappings(process->memory.pid, see_module, &search);
	if (!search.is_found) {
		process->empty_page[process->empty_pages++ % NT_NATIVE_EMPTY_PAGES] =
			pc >> PAGE_SHIFT;
		return NULL;
	}
	return &process->module[process->modules++];
}

/* ---- call-frame information ------------------------------------------------------------------- */

static int read_row(struct nt_stack_memory *memory, uint64_t table, uint64_t row,
		    int32_t ret_row[2])
{
	return nt_stack_memory_read(memory, table + HEAD_BYTES + row * ROW_BYTES, ret_row,
				    ROW_BYTES);
}

/* The address of the entry that may cover pc: rows are sorted by the begin of functions. */
static int find_entry(struct nt_stack_memory *memory, uint64_t table, uint64_t pc,
		      uint64_t *ret_entry)
{
	struct {
		uint8_t kinds[4];
		uint32_t entries_at, rows;
	} head;
	uint64_t low = 0, high;
	int32_t row[2];
	int r = nt_stack_memory_read(memory, table, &head, sizeof(head));

	if (r < 0)
		return r;
	if (memcmp(head.kinds, table_head, sizeof(table_head)) != 0 || head.rows > ROWS_MAX)
		return -EBADMSG;
	high = head.rows;
	for (int i = 0; i < ROW_SEARCH_MAX && low < high; i++) {
		const uint64_t middle = low + (high - low) / 2;

		r = read_row(memory, table, middle, row);
		if (r < 0)
			return r;
		if (table + (uint64_t)(int64_t)row[0] <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return -ENOENT;
	r = read_row(memory, table, low - 1, row);
	if (r == 0)
		*ret_entry = table + (uint64_t)(int64_t)row[1];
	return r;
}

/* Reads one entry with its length. Returns the bytes. */
static ssize_t read_entry(struct nt_stack_memory *memory, uint64_t address, uint8_t *bytes)
{
	uint32_t len;
	int r = nt_stack_memory_read(memory, address, &len, sizeof(len));

	if (r < 0)
		return r;
	if (len < sizeof(len) || len > NT_CALL_FRAME_BYTES - sizeof(len))
		return -EBADMSG;
	r = nt_stack_memory_read(memory, address, bytes, len + sizeof(len));
	return r < 0 ? r : (ssize_t)(len + sizeof(len));
}

static int find_frame(struct nt_stack_memory *memory, uint64_t table, uint64_t pc,
		      struct nt_call_frame *ret_frame)
{
	static uint8_t function[NT_CALL_FRAME_BYTES], common[NT_CALL_FRAME_BYTES];
	struct nt_call_frame_entry entry = {.common = common, .function = function};
	ssize_t function_len, common_len;
	uint32_t back;
	int r = find_entry(memory, table, pc, &entry.function_address);

	if (r < 0)
		return r;
	function_len = read_entry(memory, entry.function_address, function);
	if (function_len < 0)
		return (int)function_len;
	memcpy(&back, function + ID_AT, sizeof(back));
	common_len = read_entry(memory, entry.function_address + ID_AT - back, common);
	if (common_len < 0)
		return (int)common_len;
	entry.function_len = (size_t)function_len;
	entry.common_len = (size_t)common_len;
	return nt_call_frame_find(&entry, pc, ret_frame);
}

/* ---- what is kept ----------------------------------------------------------------------------- */

/* Its place, which is empty at first; another address may lose it. NULL: none is kept. */
static struct nt_native_place *place_of(struct nt_native_process *process, uint64_t pc)
{
	struct nt_native_place *place;

	if (!process->keeps_places || !pc)
		return NULL;
	if (!process->place)
		process->place = calloc(NT_NATIVE_PLACES, sizeof(*process->place));
	if (!process->place)
		return NULL;
	place = &process->place[nt_hash_mix(pc) % NT_NATIVE_PLACES];
	if (place->pc != pc)
		*place = (struct nt_native_place){.pc = pc};
	return place;
}

static int find_kept_frame(struct nt_native_process *process, uint64_t table, uint64_t pc,
			   struct nt_call_frame *ret_frame)
{
	struct nt_native_place *place = place_of(process, pc);
	int r;

	if (place && place->has_frame) {
		*ret_frame = place->frame;
		return 0;
	}
	r = find_frame(&process->memory, table, pc, ret_frame);
	if (r == 0 && place) {
		place->frame = *ret_frame;
		place->has_frame = true;
	}
	return r;
}

/* ---- the walk --------------------------------------------------------------------------------- */

static bool knows(const struct registers *registers, uint32_t reg)
{
	return reg < NT_CALL_FRAME_REGISTERS && registers->known >> reg & 1;
}

/* Saved registers lie closely below the canonical frame address: mostly one read. */
static int read_saved(struct nt_stack_memory *memory, uint64_t cfa, const uint8_t *near,
		      bool has_near, int64_t offset, uint64_t *ret_value)
{
	if (has_near && offset >= -SAVED_BYTES && offset <= -8) {
		memcpy(ret_value, near + SAVED_BYTES + offset, sizeof(*ret_value));
		return 0;
	}
	return nt_stack_memory_u64(memory, cfa + (uint64_t)offset, ret_value);
}

/* The caller's registers. False: they do not follow. */
static bool step(struct nt_stack_memory *memory, const struct nt_call_frame *frame,
		 struct registers *registers)
{
	struct registers caller = *registers;
	uint8_t near[SAVED_BYTES];
	bool has_near;
	uint64_t cfa;

	if (!knows(registers, frame->cfa_register))
		return false;
	cfa = registers->value[frame->cfa_register] + (uint64_t)frame->cfa_offset;
	/* The stack grows downwards: a caller's frame lies above. */
	if (cfa <= registers->value[NT_CALL_FRAME_RSP])
		return false;
	has_near = nt_stack_memory_read(memory, cfa - SAVED_BYTES, near, sizeof(near)) == 0;
	for (uint32_t i = 0; i < NT_CALL_FRAME_REGISTERS; i++) {
		const struct nt_call_frame_rule *rule = &frame->rule[i];
		const uint32_t bit = 1U << i;

		if (rule->kind == NT_CALL_FRAME_SAME)
			continue;
		caller.known &= ~bit;
		if (rule->kind == NT_CALL_FRAME_IS_OFFSET) {
			caller.value[i] = cfa + (uint64_t)rule->offset;
			caller.known |= bit;
		} else if (rule->kind == NT_CALL_FRAME_AT_OFFSET &&
			   read_saved(memory, cfa, near, has_near, rule->offset,
				      &caller.value[i]) == 0) {
			caller.known |= bit;
		}
	}
	caller.value[NT_CALL_FRAME_RSP] = cfa;
	caller.known |= 1U << NT_CALL_FRAME_RSP;
	*registers = caller;
	return true;
}

/* True if the frame has no caller: its return address is stated to be undefined. */
static bool is_outermost(const struct nt_call_frame *frame)
{
	return frame->rule[NT_CALL_FRAME_RETURN].kind == NT_CALL_FRAME_UNKNOWN;
}

static enum nt_stack_reason walk_native(struct nt_native_process *process,
					const struct nt_thread_wait *wait, struct native_walk *walk)
{
	struct registers registers = {.known =
					      1U << NT_CALL_FRAME_RSP | 1U << NT_CALL_FRAME_RETURN};

	registers.value[NT_CALL_FRAME_RSP] = wait->sp;
	registers.value[NT_CALL_FRAME_RETURN] = wait->pc;
	while (walk->frames < NT_NATIVE_FRAMES) {
		/* A return address may be that of the next function, after a call without return. */
		const uint64_t back = walk->frames ? 1 : 0;
		const uint64_t pc = registers.value[NT_CALL_FRAME_RETURN] - back;
		struct nt_native_module *module;
		struct nt_call_frame frame;
		int r;

		if (!knows(&registers, NT_CALL_FRAME_RETURN))
			return NT_STACK_NO_UNWIND_INFO;
		module = find_module(process, pc);
		if (!module)
			return NT_STACK_NO_UNWIND_INFO;
		walk->pc[walk->frames] = pc;
		walk->module[walk->frames++] = (uint32_t)(module - process->module);
		r = module->table ? find_kept_frame(process, module->table, pc, &frame) : -ENOENT;
		if (r < 0)
			return r == -EDQUOT ? NT_STACK_BUDGET : NT_STACK_NO_UNWIND_INFO;
		if (is_outermost(&frame))
			return NT_STACK_WHOLE;
		if (!step(&process->memory, &frame, &registers))
			return NT_STACK_NO_UNWIND_INFO;
	}
	return NT_STACK_WHOLE; /* the cap counts as left out */
}

/* ---- names ----------------------------------------------------------------------------------- */

static void name_kept(struct nt_native_process *process, struct native_walk *walk)
{
	for (size_t i = 0; i < walk->frames; i++) {
		const struct nt_native_place *place = place_of(process, walk->pc[i]);

		if (place)
			memcpy(walk->name[i], place->name, sizeof(walk->name[i]));
	}
}

static void name_module(struct nt_native_process *process, uint32_t number,
			struct native_walk *walk)
{
	const struct nt_native_module *module = &process->module[number];
	char name[NT_NATIVE_FRAMES][NT_ELF_FUNCTION];
	uint64_t address[NT_NATIVE_FRAMES];
	size_t index[NT_NATIVE_FRAMES], n = 0;
	struct nt_native_place *place;

	for (size_t i = 0; i < walk->frames; i++) {
		if (walk->module[i] != number || walk->name[i][0])
			continue;
		index[n] = i;
		address[n++] = walk->pc[i] - module->bias;
	}
	if (!n || !module->elf || nt_elf_name_functions(module->elf, address, n, name) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		memcpy(walk->name[index[i]], name[i], sizeof(name[i]));
		/* Without a symbol the address in the file still identifies the place. */
		if (!name[i][0])
			(void)snprintf(walk->name[index[i]], sizeof(name[i]), "+0x%" PRIx64,
				       address[i]);
		place = place_of(process, walk->pc[index[i]]);
		if (place)
			memcpy(place->name, walk->name[index[i]], sizeof(place->name));
	}
}

/* The functions that run Python's bytecode. */
static bool is_interpreter(const char *name)
{
	static const char *const prefixes[] = {"_PyEval_EvalFrame", "_TAIL_CALL_"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static enum nt_stack_reason add_frames(const struct nt_native_process *process,
				       const struct native_walk *walk, bool with_python,
				       enum nt_stack_reason reason, struct nt_stack *stack)
{
	for (size_t i = 0; i < walk->frames; i++) {
		/* What calls the interpreter is the interpreter's own, or shown as Python's. */
		if (with_python && is_interpreter(walk->name[i]))
			return NT_STACK_WHOLE;
		if (!nt_stack_add(stack, walk->name[i], process->module[walk->module[i]].name, 0,
				  true)) {
			stack->thread[stack->threads - 1].left_out++;
			return NT_STACK_NO_ROOM;
		}
	}
	if (walk->frames == NT_NATIVE_FRAMES)
		stack->thread[stack->threads - 1].left_out++;
	return reason;
}

enum nt_stack_reason nt_native_frames(struct nt_native_process *process,
				      const struct nt_thread_wait *wait, bool with_python,
				      struct nt_stack *stack)
{
	static struct native_walk walk; /* of a worker, which has one thread */
	enum nt_stack_reason reason;

#if !defined(__x86_64__)
	return NT_STACK_WRONG_MACHINE;
#endif
	if (!wait->is_blocked)
		return wait->state == 'R' ? NT_STACK_ON_CPU : NT_STACK_REFUSED;
	memset(&walk, 0, sizeof(walk));
	reason = walk_native(process, wait, &walk);
	name_kept(process, &walk);
	for (uint32_t i = 0; i < process->modules; i++)
		name_module(process, i, &walk);
	return add_frames(process, &walk, with_python, reason, stack);
}
