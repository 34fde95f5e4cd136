/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/api/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/clock.h"
#include "common/system/file.h"
#include "proto/json.h"
#include "proto/text.h"

enum {
	MAX_LINES = 2 * (NT_AUDIT_MAX_CHANGES + NT_AUDIT_MAX_REFUSED), /* of the file */
	/* Writing it anew is costly, and is not tried with each entry while it fails. */
	RETRY_LINES = 256,
	MAX_FAILED_LINES = 2 * MAX_LINES, /* then entries are in memory only, and counted */
	MAX_FILE_BYTES = MAX_FAILED_LINES * NT_AUDIT_LINE_BYTES,
	FIRST_REFUSED_STATUS = 400,
};

/* The newest entries of a kind, as a ring. */
struct audit_ring {
	struct nt_audit_entry *entry;
	size_t max, count;
	size_t next; /* where the next entry goes */
};

struct nt_audit {
	char *path; /* NULL: in memory only */
	pthread_mutex_t lock; /* protects everything below */
	int fd;
	size_t lines; /* of the file */
	size_t rewrite_at; /* lines at which it is written anew */
	size_t skipped; /* entries since that has failed for too long */
	bool is_wanted; /* it is to be written anew, or is now */
	bool has_failed; /* the last try */
	bool is_ending;
	bool has_writer;
	pthread_t writer;
	pthread_cond_t changed; /* is_wanted or is_ending */
	bool is_torn; /* the file may end in a part of a line */
	uint64_t last_number;
	uint64_t
		rewritten_to; /* entries up to this number were in memory when the file was replaced */
	struct audit_ring changes, refused;
	struct nt_audit_stats stats;
};

/* ---- the rings ------------------------------------------------------------------------------- */

/* Sessions are begun with any token: they must not displace changes. */
static bool is_change(const struct nt_audit_entry *entry)
{
	return entry->status < FIRST_REFUSED_STATUS && strcmp(entry->path, NT_AUDIT_SESSION) != 0;
}

static struct audit_ring *ring_of(struct nt_audit *audit, const struct nt_audit_entry *entry)
{
	return is_change(entry) ? &audit->changes : &audit->refused;
}

static void keep(struct nt_audit *audit, const struct nt_audit_entry *entry)
{
	struct audit_ring *ring = ring_of(audit, entry);

	if (ring->count == ring->max)
		audit->stats.dropped++;
	else
		ring->count++;
	ring->entry[ring->next] = *entry;
	ring->next = (ring->next + 1) % ring->max;
}

/* The n-th newest entry of the ring; NULL beyond the oldest. */
static const struct nt_audit_entry *newest(const struct audit_ring *ring, size_t n)
{
	return n < ring->count ? &ring->entry[(ring->next + ring->max - 1 - n) % ring->max] : NULL;
}

/* Of both rings, the newest entry from the given places on, which are moved. NULL: none is left. */
static const struct nt_audit_entry *take_newest(const struct nt_audit *audit, size_t *change,
						size_t *refused)
{
	const struct nt_audit_entry *one = newest(&audit->changes, *change);
	const struct nt_audit_entry *other = newest(&audit->refused, *refused);

	if (one && (!other || one->number > other->number)) {
		(*change)++;
		return one;
	}
	if (other)
		(*refused)++;
	return other;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void load_lines(struct nt_audit *audit, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		struct nt_audit_entry entry;

		audit->lines++;
		audit->is_torn = !newline;
		/* Numbers rise, or lists would have no order. */
		if (nt_audit_line_parse(text, (size_t)(line_end - text), &entry) &&
		    entry.number > audit->last_number) {
			audit->last_number = entry.number;
			keep(audit, &entry);
		} else {
			audit->stats.unreadable++;
		}
		text = line_end + 1;
	}
}

static int write_all(int fd, const void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int open_file(const char *path, int more)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | more, 0600);

	return fd < 0 ? -errno : fd;
}

/* All entries, the oldest first, copied: they change while they are written. NULL: no memory. */
static struct nt_audit_entry *copy_entries(const struct nt_audit *audit, size_t *ret_count)
{
	size_t count = audit->changes.count + audit->refused.count, change = 0, refused = 0;
	struct nt_audit_entry *entry = calloc(count + 1, sizeof(*entry));

	if (!entry)
		return NULL;
	for (size_t i = count; i-- > 0;)
		entry[i] = *take_newest(audit, &change, &refused);
	*ret_count = count;
	return entry;
}

/* Under the lock: those that came after the number `after`, which the old file has and the new one needs. */
static int append_newer(const struct nt_audit *audit, uint64_t after, struct nt_buf *buf,
			size_t *ret_count)
{
	nt_autofree struct nt_audit_entry *entry = NULL;
	size_t count;
	int r = 0;

	*ret_count = 0;
	if (audit->last_number == after)
		return 0;
	entry = copy_entries(audit, &count);
	if (!entry)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (entry[i].number <= after)
			continue;
		r = nt_audit_line_append(&entry[i], buf);
		(*ret_count)++;
	}
	return r;
}

/* Under the lock: what came meanwhile is added, and the new file takes the place of the old one. */
static int replace_file(struct nt_audit *audit, const char *new_path, int *fd, uint64_t after,
			size_t lines)
{
	nt_autobuf struct nt_buf text = {0};
	size_t newer;
	int r = append_newer(audit, after, &text, &newer);

	if (r == 0)
		r = write_all(*fd, text.data, text.len);
	if (r == 0 && rename(new_path, audit->path))
		r = -errno;
	if (r < 0)
		return r;
	if (audit->fd >= 0)
		(void)close(audit->fd);
	audit->fd = nt_take_fd(fd);
	audit->lines = lines + newer;
	audit->rewrite_at = MAX_LINES;
	audit->rewritten_to = audit->last_number;
	audit->is_torn = false;
	return 0;
}

/*
 * Replaces the file by what is in memory. It is unchanged on failure. The lock is held, but not
 * while the disk is written: lines are added to the old file meanwhile.
 */
static int rewrite(struct nt_audit *audit)
{
	nt_autofree struct nt_audit_entry *entry = NULL;
	nt_autobuf struct nt_buf text = {0};
	nt_autofree char *new_path = NULL;
	const uint64_t after = audit->last_number;
	nt_autoclose int fd = -1;
	size_t count;
	int r = 0;

	entry = copy_entries(audit, &count);
	if (!entry)
		return -ENOMEM;
	if (asprintf(&new_path, "%s.new", audit->path) < 0) {
		new_path = NULL;
		return -ENOMEM;
	}
	pthread_mutex_unlock(&audit->lock);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = nt_audit_line_append(&entry[i], &text);
	(void)unlink(new_path); /* of a run that was killed */
	fd = r == 0 ? open_file(new_path, O_EXCL) : r;
	r = fd < 0 ? fd : write_all(fd, text.data, text.len);
	if (r == 0 && fdatasync(fd))
		r = -errno;
	pthread_mutex_lock(&audit->lock);
	if (r == 0)
		r = replace_file(audit, new_path, &fd, after, count);
	if (r < 0)
		(void)unlink(new_path);
	return r;
}

static void *run_writer(void *data)
{
	struct nt_audit *audit = data;

	pthread_mutex_lock(&audit->lock);
	while (audit->is_wanted || !audit->is_ending) {
		if (!audit->is_wanted) {
			pthread_cond_wait(&audit->changed, &audit->lock);
			continue;
		}
		audit->has_failed = rewrite(audit) < 0;
		if (audit->has_failed)
			audit->rewrite_at = audit->lines + RETRY_LINES;
		audit->is_wanted = false;
		pthread_cond_broadcast(&audit->changed);
	}
	pthread_mutex_unlock(&audit->lock);
	return NULL;
}

static void want_rewrite(struct nt_audit *audit)
{
	audit->is_wanted = true;
	pthread_cond_broadcast(&audit->changed);
}

static int append(struct nt_audit *audit, const struct nt_audit_entry *entry)
{
	nt_autobuf struct nt_buf line = {0};
	int r;

	if (audit->lines >= audit->rewrite_at)
		want_rewrite(audit);
	/* The file would become too large to be read again: rather slow than lost. */
	while (audit->lines >= MAX_FAILED_LINES && audit->is_wanted && !audit->has_failed)
		pthread_cond_wait(&audit->changed, &audit->lock);
	if (entry->number <= audit->rewritten_to)
		return 0; /* it was written with the others */
	if (audit->lines >= MAX_FAILED_LINES) {
		if (++audit->skipped % RETRY_LINES == 0)
			want_rewrite(audit);
		return -ENOSPC;
	}
	r = audit->is_torn ? nt_buf_append(&line, "\n", 1) : 0;
	if (r == 0)
		r = nt_audit_line_append(entry, &line);
	if (r < 0)
		return r;
	r = write_all(audit->fd, line.data, line.len);
	audit->is_torn = r < 0;
	audit->lines += 1 + (r < 0);
	return r;
}

/* A file that is too large is not ours: it is moved away. What is no file is left alone. */
static int read_file(struct nt_audit *audit)
{
	nt_autobuf struct nt_buf text = {0};
	nt_autofree char *old_path = NULL;
	struct stat status;
	int r;

	if (lstat(audit->path, &status))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
	r = nt_file_read(audit->path, MAX_FILE_BYTES, &text);
	if (r == -EFBIG) {
		if (asprintf(&old_path, "%s.old", audit->path) < 0) {
			old_path = NULL;
			return -ENOMEM;
		}
		audit->stats.unreadable++;
		return rename(audit->path, old_path) ? -errno : 0;
	}
	if (r == 0)
		load_lines(audit, (const char *)text.data, text.len);
	return r;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int init_ring(struct audit_ring *ring, size_t max)
{
	ring->max = max;
	ring->entry = calloc(max, sizeof(*ring->entry));
	return ring->entry ? 0 : -ENOMEM;
}

/* Signals are for the main thread. */
static int start_writer(struct nt_audit *audit)
{
	sigset_t all, before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	r = -pthread_create(&audit->writer, NULL, run_writer, audit);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	audit->has_writer = r == 0;
	return r;
}

int nt_audit_open(const char *path, struct nt_audit **ret_audit)
{
	nt_auto(nt_audit) struct nt_audit *audit = calloc(1, sizeof(*audit));
	int r;

	if (!audit)
		return -ENOMEM;
	pthread_mutex_init(&audit->lock, NULL);
	pthread_cond_init(&audit->changed, NULL);
	audit->fd = -1;
	audit->rewrite_at = MAX_LINES;
	if (init_ring(&audit->changes, NT_AUDIT_MAX_CHANGES) < 0 ||
	    init_ring(&audit->refused, NT_AUDIT_MAX_REFUSED) < 0)
		return -ENOMEM;
	if (path) {
		audit->path = strdup(path);
		if (!audit->path)
			return -ENOMEM;
		r = read_file(audit);
		if (r < 0)
			return r;
		r = open_file(path, 0);
		if (r < 0)
			return r;
		audit->fd = r;
		audit->stats.dropped = 0; /* those were counted before the restart */
		r = start_writer(audit);
		if (r < 0)
			return r;
	}
	*ret_audit = nt_take(audit);
	return 0;
}

void nt_audit_close(struct nt_audit *audit)
{
	if (!audit)
		return;
	if (audit->has_writer) {
		pthread_mutex_lock(&audit->lock);
		audit->is_ending = true;
		pthread_cond_broadcast(&audit->changed);
		pthread_mutex_unlock(&audit->lock);
		(void)pthread_join(audit->writer, NULL);
	}
	if (audit->fd >= 0)
		(void)close(audit->fd);
	pthread_cond_destroy(&audit->changed);
	pthread_mutex_destroy(&audit->lock);
	free(audit->changes.entry);
	free(audit->refused.entry);
	free(audit->path);
	free(audit);
}

/* ---- adding ---------------------------------------------------------------------------------- */

void nt_audit_add(struct nt_audit *audit, const struct nt_httpd_write *write, uint64_t real_ns)
{
	struct nt_audit_entry entry = {
		.real_ns = real_ns,
		.status = write->status,
		.by_cookie = write->identity->by_cookie,
	};

	(void)snprintf(entry.token, sizeof(entry.token), "%s", write->identity->name);
	(void)snprintf(entry.certificate, sizeof(entry.certificate), "%s", write->certificate);
	(void)snprintf(entry.address, sizeof(entry.address), "%s", write->address);
	(void)snprintf(entry.method, sizeof(entry.method), "%s", write->method);
	(void)snprintf(entry.path, sizeof(entry.path), "%s", write->path);
	(void)snprintf(entry.request_id, sizeof(entry.request_id), "%s", write->request_id);
	(void)nt_text_clean(write->body, write->body_len, entry.body, NT_AUDIT_BODY_BYTES);

	pthread_mutex_lock(&audit->lock);
	entry.number = ++audit->last_number;
	if (entry.status >= FIRST_REFUSED_STATUS)
		audit->stats.refused++;
	else
		audit->stats.changes++;
	keep(audit, &entry);
	if (audit->path && append(audit, &entry) < 0)
		audit->stats.unwritten++;
	pthread_mutex_unlock(&audit->lock);
}

size_t nt_audit_list(struct nt_audit *audit, uint64_t before, size_t max,
		     struct nt_audit_entry *ret_entry)
{
	size_t count = 0, change = 0, refused = 0;
	const struct nt_audit_entry *entry;

	pthread_mutex_lock(&audit->lock);
	while (count < max && (entry = take_newest(audit, &change, &refused))) {
		if (entry->number < before)
			ret_entry[count++] = *entry;
	}
	pthread_mutex_unlock(&audit->lock);
	return count;
}

void nt_audit_stats(struct nt_audit *audit, struct nt_audit_stats *ret_stats)
{
	pthread_mutex_lock(&audit->lock);
	*ret_stats = audit->stats;
	pthread_mutex_unlock(&audit->lock);
}
