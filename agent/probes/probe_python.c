/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows of CPython's garbage collector. It holds the interpreter's lock: no other thread of the
 * process runs Python meanwhile. Builds with --with-dtrace (Debian, Fedora) have marks at its begin
 * and end. For others the collecting function is probed, which is static and so only in .symtab.
 * The first row that a file defines is used, since these functions call each other.
 */
#include "agent/probes/probe_impl.h"

#define COLLECTOR                                                                                  \
	.library = (enum nt_library)NT_LIBRARY_PYTHON, .subject = NT_SUBJECT_GC,                   \
	.role = NT_ROLE_COLLECTION, .op = NT_OP_UNKNOWN, .returns = true, .timed = true,           \
	.counter = NT_COUNTER_GC, NT_NO_COMM, NT_NO_STREAM, NT_NO_DATA, NT_NO_MAKE, NT_NO_DEVICE,  \
	NT_NO_DEREF, .beside = "Py_Initialize"

static const struct nt_probe rows[] = {
	{COLLECTOR, .symbol = "gc__start", .provider = "python", .mark = "gc__start",
	 .mark_end = "gc__done"},
	{COLLECTOR, .symbol = "gc_collect_main"}, /* 3.10 to 3.13, and free-threaded builds */
	{COLLECTOR, .symbol = "_PyGC_Collect"}, /* 3.14; in 3.13 it calls the former */
	{COLLECTOR, .symbol = "collect"}, /* to 3.9 */
};

const struct nt_probe_piece nt_probe_python = NT_PIECE(rows);
