/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/api/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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
	MAX_LINE_BYTES = 4096, /* text in JSON takes at most six bytes for each */
	MAX_FILE_BYTES = MAX_FAILED_LINES * MAX_LINE_BYTES,
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
	bool is_torn; /* the file may end in a part of a line */
	uint64_t last_number;
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

/* ---- lines ----------------------------------------------------------------------------------- */

json_t *nt_audit_entry_json(const struct nt_audit_entry *entry)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(object, "number", json_integer((json_int_t)entry->number));
	failed |= json_object_set_new(object, "time", nt_json_time(entry->real_ns));
	failed |= json_object_set_new(object, "token", nt_json_text(entry->token));
	failed |= json_object_set_new(object, "certificate", nt_json_text(entry->certificate));
	failed |= json_object_set_new(object, "by_cookie", json_boolean(entry->by_cookie));
	failed |= json_object_set_new(object, "address", nt_json_text(entry->address));
	failed |= json_object_set_new(object, "method", nt_json_text(entry->method));
	failed |= json_object_set_new(object, "path", nt_json_text(entry->path));
	failed |= json_object_set_new(object, "status", json_integer((json_int_t)entry->status));
	failed |= json_object_set_new(object, "body", nt_json_text(entry->body));
	failed |= json_object_set_new(object, "request_id", nt_json_text(entry->request_id));
	return failed ? NULL : nt_take(object);
}

static int append_line(const struct nt_audit_entry *entry, struct nt_buf *buf)
{
	nt_autojson json_t *object = nt_audit_entry_json(entry);

	return object ? nt_json_dump(object, false, buf) : -ENOMEM;
}

static bool get_word(const json_t *object, const char *name, char *text, size_t size)
{
	const char *word = nt_json_get_text(object, name, "");

	(void)snprintf(text, size, "%s", word);
	return strlen(word) < size;
}

static bool parse_line(const char *text, size_t len, struct nt_audit_entry *ret_entry)
{
	struct nt_audit_entry entry = {0};
	nt_autojson json_t *object = NULL;
	const char *time;
	json_int_t number, status;

	if (len > MAX_LINE_BYTES || nt_json_load(text, len, &object) < 0)
		return false;
	number = json_integer_value(json_object_get(object, "number"));
	status = json_integer_value(json_object_get(object, "status"));
	time = nt_json_get_text(object, "time", "");
	if (number <= 0 || number > NT_AUDIT_MAX_NUMBER || status < 100 || status > 599 ||
	    nt_clock_parse(time, strlen(time), &entry.real_ns) < 0 ||
	    !get_word(object, "token", entry.token, sizeof(entry.token)) ||
	    !get_word(object, "certificate", entry.certificate, sizeof(entry.certificate)) ||
	    !get_word(object, "address", entry.address, sizeof(entry.address)) ||
	    !get_word(object, "method", entry.method, sizeof(entry.method)) ||
	    !get_word(object, "path", entry.path, sizeof(entry.path)) ||
	    !get_word(object, "body", entry.body, sizeof(entry.body)) ||
	    !get_word(object, "request_id", entry.request_id, sizeof(entry.request_id)))
		return false;
	entry.number = (uint64_t)number;
	entry.status = (unsigned int)status;
	entry.by_cookie = json_is_true(json_object_get(object, "by_cookie"));
	*ret_entry = entry;
	return true;
}

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
		if (parse_line(text, (size_t)(line_end - text), &entry) &&
		    entry.number > audit->last_number) {
			audit->last_number = entry.number;
			keep(audit, &entry);
		} else {
			audit->stats.unreadable++;
		}
		text = line_end + 1;
	}
}

/* ---- the file -------------------------------------------------------------------------------- */

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

/* All entries, the oldest first. */
static int append_entries(const struct nt_audit *audit, struct nt_buf *buf)
{
	size_t count = audit->changes.count + audit->refused.count, change = 0, refused = 0;
	nt_autofree const struct nt_audit_entry **entry = calloc(count + 1, sizeof(*entry));
	int r = 0;

	if (!entry)
		return -ENOMEM;
	for (size_t i = count; i-- > 0;)
		entry[i] = take_newest(audit, &change, &refused);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = append_line(entry[i], buf);
	return r;
}

/* Replaces the file by what is in memory. It is unchanged on failure. */
static int rewrite(struct nt_audit *audit)
{
	nt_autobuf struct nt_buf text = {0};
	nt_autofree char *new_path = NULL;
	nt_autoclose int fd = -1;
	int r = append_entries(audit, &text);

	if (r < 0)
		return r;
	if (asprintf(&new_path, "%s.new", audit->path) < 0) {
		new_path = NULL;
		return -ENOMEM;
	}
	(void)unlink(new_path); /* of a run that was killed */
	fd = open_file(new_path, O_EXCL);
	if (fd < 0)
		return fd;
	r = write_all(fd, text.data, text.len);
	if (r == 0 && (fdatasync(fd) || rename(new_path, audit->path)))
		r = -errno;
	if (r < 0) {
		(void)unlink(new_path);
		return r;
	}
	if (audit->fd >= 0)
		(void)close(audit->fd);
	audit->fd = nt_take_fd(&fd);
	audit->lines = audit->changes.count + audit->refused.count;
	audit->rewrite_at = MAX_LINES;
	audit->is_torn = false;
	return 0;
}

static int append(struct nt_audit *audit, const struct nt_audit_entry *entry)
{
	nt_autobuf struct nt_buf line = {0};
	int r;

	if (audit->lines >= MAX_FAILED_LINES && ++audit->skipped % RETRY_LINES)
		return -ENOSPC;
	if (audit->lines >= audit->rewrite_at) {
		r = rewrite(audit);
		if (r == 0 || audit->lines >= MAX_FAILED_LINES)
			return r; /* the entry is in memory already */
		audit->rewrite_at += RETRY_LINES;
	}
	r = audit->is_torn ? nt_buf_append(&line, "\n", 1) : 0;
	if (r == 0)
		r = append_line(entry, &line);
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

int nt_audit_open(const char *path, struct nt_audit **ret_audit)
{
	nt_auto(nt_audit) struct nt_audit *audit = calloc(1, sizeof(*audit));
	int r;

	if (!audit)
		return -ENOMEM;
	pthread_mutex_init(&audit->lock, NULL);
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
	}
	*ret_audit = nt_take(audit);
	return 0;
}

void nt_audit_close(struct nt_audit *audit)
{
	if (!audit)
		return;
	if (audit->fd >= 0)
		(void)close(audit->fd);
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
