/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/input/sources.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/input/archive.h"
#include "common/bus/bus.h"
#include "proto/text.h"

enum {
	MAX_NAMED = 4, /* files in one note */
	NOTE_BYTES = 1024,
	LABEL_BYTES = 96, /* of a file in a note */
};

struct source_file {
	char *path, *label; /* label NULL: the path */
	enum nt_format format;
	bool damaged; /* nothing of it can be read */
	bool given; /* by the user, not found in a directory */
	int fd; /* unpacked; -1: none */
};

struct nt_sources {
	struct source_file *file;
	size_t files, cap;
	char **note;
	size_t notes;
	const char **chosen;
	char *root; /* of the given directory; while it is walked */
	uint64_t linked, deep; /* directories that were not entered */
	struct nt_archive_reader archive;
	const char *archive_path;
	struct nt_trace_error *error; /* of the current nt_sources_add() */
};

int nt_sources_new(struct nt_sources **ret_sources)
{
	struct nt_sources *sources = calloc(1, sizeof(*sources));

	if (!sources)
		return -ENOMEM;
	*ret_sources = sources;
	return 0;
}

void nt_sources_free(struct nt_sources *sources)
{
	if (!sources)
		return;
	for (size_t i = 0; i < sources->files; i++) {
		free(sources->file[i].path);
		free(sources->file[i].label);
		if (sources->file[i].fd >= 0)
			(void)close(sources->file[i].fd);
	}
	for (size_t i = 0; i < sources->notes; i++)
		free(sources->note[i]);
	free(sources->file);
	free(sources->note);
	free(sources->chosen);
	free(sources->root);
	free(sources);
}

int nt_sources_note(struct nt_sources *sources, const char *fmt, ...)
{
	char **list = reallocarray(sources->note, sources->notes + 1, sizeof(*list));
	char text[NOTE_BYTES], named[NOTE_BYTES], clean[NOTE_BYTES];
	va_list ap;

	if (!list)
		return -ENOMEM;
	sources->note = list;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	nt_sources_relabel(sources, text, named, sizeof(named));
	(void)nt_text_clean(named, strlen(named), clean, sizeof(clean) - 1);
	list[sources->notes] = strdup(clean);
	if (!list[sources->notes])
		return -ENOMEM;
	sources->notes++;
	return 0;
}

const char *const *nt_sources_notes(const struct nt_sources *sources, size_t *ret_notes)
{
	*ret_notes = sources->notes;
	return (const char *const *)sources->note;
}

static const char *label_of(const struct source_file *file)
{
	return file->label ? file->label : file->path;
}

static const struct source_file *find_path(const struct nt_sources *sources, const char *text)
{
	for (size_t i = 0; i < sources->files; i++)
		if (sources->file[i].fd >= 0 &&
		    strncmp(text, sources->file[i].path, strlen(sources->file[i].path)) == 0)
			return &sources->file[i];
	return NULL;
}

void nt_sources_relabel(const struct nt_sources *sources, const char *text, char *out, size_t size)
{
	size_t len = 0;

	while (*text && len + 1 < size) {
		const struct source_file *file = NULL;
		int n;

		if (*text == '/')
			file = find_path(sources, text);
		if (!file) {
			out[len++] = *text++;
			continue;
		}
		n = snprintf(out + len, size - len, "%s", label_of(file));
		len = n < (int)(size - len) ? len + (size_t)n : size - 1;
		text += strlen(file->path);
	}
	out[len] = '\0';
}

/* Takes over the strings and the fd. */
static int add_file(struct nt_sources *sources, const struct source_file *file)
{
	nt_autofree char *path = file->path;
	nt_autofree char *label = file->label;
	nt_autoclose int fd = file->fd;

	if (!path)
		return -ENOMEM;
	if (sources->files == NT_SOURCES_MAX_FILES)
		return nt_trace_refuse(sources->error, "more than %d files", NT_SOURCES_MAX_FILES);
	if (sources->files == sources->cap) {
		const size_t cap = sources->cap ? 2 * sources->cap : 64;
		struct source_file *list = reallocarray(sources->file, cap, sizeof(*list));

		if (!list)
			return -ENOMEM;
		sources->file = list;
		sources->cap = cap;
	}
	sources->file[sources->files] = *file;
	sources->file[sources->files++].fd = nt_take_fd(&fd);
	(void)nt_take(path);
	(void)nt_take(label);
	return 0;
}

static char *join(const char *dir, const char *name)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static const char *base_of(const char *path)
{
	const char *base = strrchr(path, '/');

	return base ? base + 1 : path;
}

/* ---- archives ------------------------------------------------------------------------------- */

static bool wants_entry(void *data, const char *name)
{
	(void)data;
	/* "._x": what macOS adds to archives. */
	return *base_of(name) != '.' && nt_format_is_known(name);
}

static int take_entry(void *data, const struct nt_archive_entry *entry)
{
	struct nt_sources *sources = data;
	struct source_file file = {.fd = entry->fd};

	if (*base_of(entry->name) == '.')
		return 0;
	file.label = join(sources->archive_path, entry->name);
	if (asprintf(&file.path, "/proc/self/fd/%d//%s", entry->fd, base_of(entry->name)) < 0)
		file.path = NULL;
	if (!file.label || !file.path) {
		free(file.label);
		free(file.path);
		if (file.fd >= 0)
			(void)close(file.fd);
		return -ENOMEM;
	}
	if (file.fd >= 0)
		file.format = nt_format_find(file.path, entry->name, &file.damaged);
	return add_file(sources, &file);
}

/* Each unpacked file stays open. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int add_archive(struct nt_sources *sources, const char *path)
{
	char why[NT_ARCHIVE_ERROR_BYTES] = "";
	const size_t before = sources->files;
	int r;

	raise_limit();
	sources->archive.wants = wants_entry;
	sources->archive.take = take_entry;
	sources->archive.data = sources;
	sources->archive_path = path;
	r = nt_archive_read(&sources->archive, path, why);
	if (r == 0 || r == -ENOMEM || *sources->error->text)
		return r;
	return nt_sources_note(sources,
			       "%s: %s: %zu of its files were unpacked, the rest is missing", path,
			       *why ? why : strerrordesc_np(-r), sources->files - before);
}

/* ---- directories ---------------------------------------------------------------------------- */

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static bool is_recording(const char *path)
{
	nt_autofree char *topic = join(path, nt_topic_name(NT_TOPIC_WINDOW));
	struct stat st;

	return topic && stat(topic, &st) == 0 && S_ISDIR(st.st_mode);
}

static int add_regular(struct nt_sources *sources, const char *path, bool given)
{
	struct source_file file = {.fd = -1, .given = given};
	struct stat st;

	/* The beginning of a pipe can be read only once. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode)) {
		file.path = strdup(path);
		return add_file(sources, &file);
	}
	if (nt_format_is_archive(path))
		return add_archive(sources, path);
	/* Of others in a directory not even the beginning is read. */
	if (given || nt_format_is_known(path))
		file.format = nt_format_find(path, path, &file.damaged);
	file.path = strdup(path);
	return add_file(sources, &file);
}

/* A link may name a file of the given directory only. */
static bool stays_inside(const struct nt_sources *sources, const char *path)
{
	nt_autofree char *real = realpath(path, NULL);
	const size_t len = sources->root ? strlen(sources->root) : 0;

	return real && len && strncmp(real, sources->root, len) == 0 &&
	       (real[len] == '/' || sources->root[len - 1] == '/');
}

static int walk(struct nt_sources *sources, const char *path, int depth);

static int add_member(struct nt_sources *sources, const char *path, int depth)
{
	struct stat st, target;

	if (lstat(path, &st) < 0)
		return 0; /* removed meanwhile */
	if (S_ISLNK(st.st_mode)) {
		const bool known = stat(path, &target) == 0;

		sources->linked += known && S_ISDIR(target.st_mode);
		if (!known || !S_ISREG(target.st_mode) || !stays_inside(sources, path))
			return 0;
		st = target;
	}
	if (S_ISDIR(st.st_mode)) {
		if (depth < NT_SOURCES_MAX_DEPTH)
			return walk(sources, path, depth + 1);
		sources->deep++;
		return 0;
	}
	return S_ISREG(st.st_mode) ? add_regular(sources, path, false) : 0;
}

static int walk(struct nt_sources *sources, const char *path, int depth)
{
	__attribute__((cleanup(close_dir))) DIR *dir = NULL;
	const struct dirent *entry;

	if (is_recording(path)) {
		const struct source_file file = {
			.path = strdup(path), .format = NT_FORMAT_RECORDING, .fd = -1};

		return add_file(sources, &file);
	}
	dir = opendir(path);
	if (!dir)
		return depth ? nt_sources_note(sources, "%s: %s: left out", path,
					       strerrordesc_np(errno))
			     : -errno;
	while ((entry = readdir(dir))) {
		nt_autofree char *member = NULL;
		int r;

		if (*entry->d_name == '.')
			continue;
		member = join(path, entry->d_name);
		if (!member)
			return -ENOMEM;
		r = add_member(sources, member, depth);
		if (r < 0)
			return r;
	}
	return 0;
}

int nt_sources_add(struct nt_sources *sources, const char *path, struct nt_trace_error *ret_error)
{
	struct stat st;
	int r = 0;

	sources->error = ret_error;
	if (stat(path, &st) < 0 || access(path, R_OK) < 0) {
		r = -errno;
	} else if (S_ISDIR(st.st_mode)) {
		free(sources->root);
		sources->root = realpath(path, NULL);
		r = walk(sources, path, 0);
	} else {
		r = add_regular(sources, path, true);
	}
	if (r < 0 && r != -ENOMEM && !*ret_error->text)
		(void)nt_trace_refuse(ret_error, "%s: %s", path, strerrordesc_np(-r));
	return r;
}

/* ---- which of them --------------------------------------------------------------------------- */

static int by_label(const void *a, const void *b)
{
	return strcmp(label_of(a), label_of(b));
}

/* What a user has named as of this format, whatever it looks like. */
static bool is_of(const struct source_file *file, enum nt_format format, bool forced)
{
	if (file->format == format)
		return true;
	if (file->fd < 0 && file->label)
		return false;
	if (forced && (file->given || nt_format_may_be(format, label_of(file))))
		return file->format != NT_FORMAT_RECORDING;
	/* It would have been one of them. */
	return file->damaged && nt_format_may_be(format, label_of(file));
}

static bool is_empty(const struct source_file *file)
{
	struct stat st;

	return file->fd < 0 && stat(file->path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

/* What to do with files that are of no known format as they are; NULL: nothing is known. */
static const char *find_remedy(const struct nt_sources *sources)
{
	const char *topic =
		sources->root ? strstr(sources->root, nt_topic_name(NT_TOPIC_WINDOW)) : NULL;

	if (topic && topic > sources->root && topic[-1] == '/')
		return "these are parts of a recording: name the directory above "
		       "neutracer.window.v1";
	for (size_t i = 0; i < sources->files; i++) {
		const char *name = label_of(&sources->file[i]);

		if (nt_format_is_nsys_report(name))
			return "export reports of Nsight Systems first, with nsys export --type "
			       "sqlite FILE";
		if (nt_format_may_be(NT_FORMAT_METRICS, name))
			return "a table lacks the columns of operation times; tables of a node's "
			       "metrics require --from metrics-csv";
	}
	return NULL;
}

static int refuse_unknown(const struct nt_sources *sources, struct nt_trace_error *error)
{
	const char *remedy = find_remedy(sources);
	char known[NT_TRACE_ERROR_BYTES] = "";
	size_t len = 0;

	if (sources->files == 1 && sources->file[0].given && is_empty(&sources->file[0]))
		return nt_trace_refuse(error, "the file is empty");
	if (remedy)
		return nt_trace_refuse(error, "no file of a known format: %s", remedy);
	for (enum nt_format format = NT_FORMAT_RECORDING; format < NT_FORMAT_END; format++) {
		const int n = snprintf(known + len, sizeof(known) - len, "%s%s (%s)",
				       format > NT_FORMAT_RECORDING ? ", " : "",
				       nt_format_name(format), nt_format_files(format));

		len += n < (int)(sizeof(known) - len) ? (size_t)n : 0;
	}
	return nt_trace_refuse(error, "no file of a known format; known are %s", known);
}

/* The format of most files. A directory that is a recording counts as one. */
static int find_format(const struct nt_sources *sources, enum nt_format *ret_format,
		       struct nt_trace_error *error)
{
	size_t count[NT_FORMAT_END] = {0};
	enum nt_format best = NT_FORMAT_UNKNOWN;

	for (size_t i = 0; i < sources->files; i++)
		count[sources->file[i].format]++;
	count[NT_FORMAT_UNKNOWN] = 0;
	for (enum nt_format format = NT_FORMAT_RECORDING; format < NT_FORMAT_END; format++)
		if (count[format] > count[best])
			best = format;
	for (enum nt_format format = NT_FORMAT_RECORDING; format < NT_FORMAT_END; format++)
		if (best && format != best && count[format] == count[best])
			return nt_trace_refuse(error,
					       "%zu %s and %zu %s: name the files of one of them, "
					       "or its format with --from",
					       count[best], nt_format_name(best), count[format],
					       nt_format_name(format));
	/* A damaged file is judged by its name: its reader says what is wrong with it. */
	for (size_t i = 0; i < sources->files && !best; i++)
		for (enum nt_format format = NT_FORMAT_KINETO; format < NT_FORMAT_END && !best;
		     format++)
			if (sources->file[i].damaged && !is_empty(&sources->file[i]) &&
			    nt_format_may_be(format, sources->file[i].path))
				best = format;
	*ret_format = best;
	if (!best && sources->notes)
		return nt_trace_refuse(error, "%s", sources->note[0]);
	return best ? 0 : refuse_unknown(sources, error);
}

/* Names the files of an array that were not chosen. */
static int note_strays(struct nt_sources *sources, enum nt_format format, bool forced)
{
	char names[NOTE_BYTES] = "";
	size_t strays = 0, len = 0;
	int r = 0;

	for (size_t i = 0; i < sources->files; i++) {
		const struct source_file *file = &sources->file[i];
		const char *path = label_of(file);
		char label[LABEL_BYTES + 1];

		if (is_of(file, format, forced))
			continue;
		if (strays++ >= MAX_NAMED)
			continue;
		/* The end of a long one says more. */
		if (strlen(path) > LABEL_BYTES)
			path += strlen(path) - LABEL_BYTES;
		(void)nt_text_clean(path, strlen(path), label, LABEL_BYTES);
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "",
					label);
	}
	if (strays)
		r = nt_sources_note(sources,
				    "%zu file%s left out, not of the format of the rest: %s%s",
				    strays, strays == 1 ? " was" : "s were", names,
				    strays > MAX_NAMED ? " and others" : "");
	if (r == 0 && sources->linked)
		r = nt_sources_note(sources, "links to directories (%" PRIu64 ") were not followed",
				    sources->linked);
	if (r == 0 && sources->deep)
		r = nt_sources_note(sources,
				    "directories (%" PRIu64
				    ") that lie more than %d deep were not entered",
				    sources->deep, NT_SOURCES_MAX_DEPTH);
	return r;
}

int nt_sources_choose(struct nt_sources *sources, enum nt_format from,
		      struct nt_sources_choice *ret_choice, struct nt_trace_error *ret_error)
{
	struct nt_sources_choice choice = {.format = from};
	int r;

	if (sources->files)
		qsort(sources->file, sources->files, sizeof(*sources->file), by_label);
	if (!from) {
		r = find_format(sources, &choice.format, ret_error);
		if (r < 0)
			return r;
	}
	free(sources->chosen);
	sources->chosen = calloc(sources->files + 1, sizeof(*sources->chosen));
	if (!sources->chosen)
		return -ENOMEM;
	for (size_t i = 0; i < sources->files; i++)
		if (is_of(&sources->file[i], choice.format, from))
			sources->chosen[choice.paths++] = sources->file[i].path;
	if (!choice.paths)
		return nt_trace_refuse(ret_error, "no %s in it: %s", nt_format_name(choice.format),
				       nt_format_files(choice.format));
	r = note_strays(sources, choice.format, from);
	if (r < 0)
		return r;
	choice.path = sources->chosen;
	*ret_choice = choice;
	return 0;
}
