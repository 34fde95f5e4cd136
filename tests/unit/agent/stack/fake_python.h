/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory of a process with a CPython 3.11 that a test makes: one region, and a hook for reads. */
#ifndef NT_TESTS_UNIT_AGENT_STACK_FAKE_PYTHON_H
#define NT_TESTS_UNIT_AGENT_STACK_FAKE_PYTHON_H

#include <errno.h>
#include <string.h>

#include "agent/stack/python_stack.h"

enum {
	FAKE_BASE = 0x10000,
	FAKE_BYTES = 1 << 18,
	FAKE_RUNTIME = FAKE_BASE,
	FAKE_INTERPRETER = FAKE_BASE + 0x1000,
	FAKE_THREAD = FAKE_BASE + 0x2000,
	FAKE_CFRAME = FAKE_BASE + 0x2800,
	FAKE_CODE_TYPE = FAKE_BASE + 0x2f00,
	FAKE_CODE = FAKE_BASE + 0x3000,
	FAKE_FUNCTION = FAKE_BASE + 0x3400,
	FAKE_FILE = FAKE_BASE + 0x3800,
	FAKE_LINES = FAKE_BASE + 0x3c00,
	FAKE_FRAMES = FAKE_BASE + 0x4000,
	FAKE_FRAME_BYTES = 128,
};

static struct {
	uint8_t bytes[FAKE_BYTES];
	void (*before)(uint64_t address); /* each read; may change the memory */
	uint32_t reads;
} fake;

static inline int fake_read(void *data, uint32_t pid, uint64_t address, void *buf, size_t size)
{
	(void)data, (void)pid;
	fake.reads++;
	if (fake.before)
		fake.before(address);
	if (address < FAKE_BASE || address - FAKE_BASE > FAKE_BYTES ||
	    size > FAKE_BYTES - (address - FAKE_BASE))
		return -EFAULT;
	memcpy(buf, fake.bytes + (address - FAKE_BASE), size);
	return 0;
}

static inline void fake_set(uint64_t address, uint64_t value, size_t size)
{
	memcpy(fake.bytes + (address - FAKE_BASE), &value, size);
}

static inline void fake_text(uint64_t address, const char *text)
{
	fake_set(address + 16, strlen(text), 8);
	fake_set(address + 32, 1 << 2 | 1 << 5 | 1 << 6, 4);
	memcpy(fake.bytes + (address - FAKE_BASE) + 48, text, strlen(text) + 1);
}

static inline uint64_t fake_frame(uint32_t i)
{
	return FAKE_FRAMES + (uint64_t)i * FAKE_FRAME_BYTES;
}

/* `frames` frames of the function f in /app/f.py, all in line 7; frame 0 is the innermost. */
static inline void fake_python(uint32_t frames)
{
	static const uint8_t lines[] = {0x80 | 11 << 3 | 7, 0, 0};

	memset(&fake, 0, sizeof(fake));
	fake_set(FAKE_RUNTIME + 40, FAKE_INTERPRETER, 8);
	fake_set(FAKE_RUNTIME + 368, FAKE_THREAD, 8);
	fake_set(FAKE_RUNTIME + 376, 1, 4);
	fake_set(FAKE_INTERPRETER + 16, FAKE_THREAD, 8);
	fake_set(FAKE_THREAD + 56, FAKE_CFRAME, 8);
	fake_set(FAKE_THREAD + 160, 42, 8);
	fake_set(FAKE_CFRAME + 8, frames ? fake_frame(0) : 0, 8);
	for (uint32_t i = 0; i < frames; i++) {
		fake_set(fake_frame(i) + 32, FAKE_CODE, 8);
		fake_set(fake_frame(i) + 48, i + 1 < frames ? fake_frame(i + 1) : 0, 8);
		fake_set(fake_frame(i) + 56, FAKE_CODE + 184, 8);
	}
	fake_set(FAKE_CODE + 8, FAKE_CODE_TYPE, 8);
	fake_set(FAKE_CODE + 72, 6, 4);
	fake_set(FAKE_CODE + 112, FAKE_FILE, 8);
	fake_set(FAKE_CODE + 128, FAKE_FUNCTION, 8);
	fake_set(FAKE_CODE + 136, FAKE_LINES, 8);
	fake_text(FAKE_FUNCTION, "f");
	fake_text(FAKE_FILE, "/app/f.py");
	fake_set(FAKE_LINES + 16, sizeof(lines), 8);
	memcpy(fake.bytes + (FAKE_LINES - FAKE_BASE) + 32, lines, sizeof(lines));
}

static inline struct nt_stack_memory fake_memory(void)
{
	return (struct nt_stack_memory){.memory = {.read = fake_read}, .pid = 1};
}

#endif
