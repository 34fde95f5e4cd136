/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The files that `neutracer analyze` was given: those of the given paths, of the directories below
 * them and of archives, and which of them are analysed.
 *
 * Names and contents are untrusted. Directories are entered MAX_DEPTH deep; links to directories
 * are not followed, links to files only within the given directory. A file of an archive has no
 * name on this machine: its path is "/proc/self/fd/N//NAME" (nt_input_place()).
 */
#ifndef NT_CLI_INPUT_SOURCES_H
#define NT_CLI_INPUT_SOURCES_H

#include <stddef.h>

#include "cli/input/format.h"
#include "cli/readers/trace.h"
#include "common/base/cleanup.h"

enum {
	NT_SOURCES_MAX_FILES = 65536,
	NT_SOURCES_MAX_DEPTH = 16,
};

struct nt_sources;

/* What to analyse: belongs to the sources. */
struct nt_sources_choice {
	enum nt_format format;
	const char *const *path;
	size_t paths;
};

NT_MUST_CHECK int nt_sources_new(struct nt_sources **ret_sources);
void nt_sources_free(struct nt_sources *sources);
NT_DEFINE_AUTO(nt_sources, nt_sources_free)

/* Adds a path that the user gave. -errno or -EBADMSG with *ret_error; -ENOMEM. */
NT_MUST_CHECK int nt_sources_add(struct nt_sources *sources, const char *path,
				 struct nt_trace_error *ret_error);

/*
 * Chooses the files of the format that most files have, or of `from`. All others are named in
 * notes. -EBADMSG with *ret_error if there are none, or as many of two formats.
 */
NT_MUST_CHECK int nt_sources_choose(struct nt_sources *sources, enum nt_format from,
				    struct nt_sources_choice *ret_choice,
				    struct nt_trace_error *ret_error);

/* Adds a note for the report. -ENOMEM. */
NT_MUST_CHECK int nt_sources_note(struct nt_sources *sources, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *const *nt_sources_notes(const struct nt_sources *sources, size_t *ret_notes);

/* Replaces the paths of unpacked files by the names of the archive and of the entry. */
void nt_sources_relabel(const struct nt_sources *sources, const char *text, char *out, size_t size);

#endif
