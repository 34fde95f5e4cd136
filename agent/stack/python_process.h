/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds the CPython interpreter of a process: its file among the mappings, its state by the symbol
 * _PyRuntime, and its version. Opens files by paths of the process: for workers only.
 */
#ifndef NT_AGENT_STACK_PYTHON_PROCESS_H
#define NT_AGENT_STACK_PYTHON_PROCESS_H

#include "agent/stack/python_stack.h"
#include "agent/stack/stack.h"
#include "common/base/cleanup.h"

/* NT_STACK_WHOLE: found; else why not. */
enum nt_stack_reason nt_python_find(struct nt_stack_memory *memory,
				    struct nt_python_runtime *ret_runtime);

/* The version in a file's name, as in "libpython3.9.so.1.0": 0x0309; 0: none. */
uint16_t nt_python_version_of(const char *name);

#endif
