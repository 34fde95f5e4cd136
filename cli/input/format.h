/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The formats of files that `neutracer analyze` reads, and how a file's format is recognised. */
#ifndef NT_CLI_INPUT_FORMAT_H
#define NT_CLI_INPUT_FORMAT_H

#include <stdbool.h>

/* The order is that of the values of --from. */
enum nt_format {
	NT_FORMAT_UNKNOWN, /* --from auto */
	NT_FORMAT_RECORDING, /* a directory of the spool bus */
	NT_FORMAT_KINETO,
	NT_FORMAT_STRAGGLER,
	NT_FORMAT_SYSTRACE,
	NT_FORMAT_FLIGHT,
	NT_FORMAT_NSYS,
	NT_FORMAT_TIMELINE, /* of many ranks */
	NT_FORMAT_METRICS, /* of a node; never found by content, only by --from */
	NT_FORMAT_END,
};

/* In the plural: "PyTorch profiler traces". */
const char *nt_format_name(enum nt_format format);

/* The names of its files, for messages: "*.json". */
const char *nt_format_files(enum nt_format format);

/* Whether a file of that name can be of the format. `name` may be a path. */
bool nt_format_may_be(enum nt_format format, const char *name);

/* Whether the name is that of any format. */
bool nt_format_is_known(const char *name);

/* A report of Nsight Systems that was not exported. */
bool nt_format_is_nsys_report(const char *name);

/* An archive that can be unpacked, by its name. */
bool nt_format_is_archive(const char *name);

/*
 * The format of the file that opens as `path` and is called `name`, by its content.
 * *ret_damaged: it is empty, or its compression is damaged from the start.
 */
enum nt_format nt_format_find(const char *path, const char *name, bool *ret_damaged);

#endif
