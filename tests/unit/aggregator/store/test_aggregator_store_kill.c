/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An aggregator that is killed at each write to its store in turn, and started again: every message
 * is sent, an end only after its beginning, and at most one message of a kill is sent twice.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/aggregator/store.h"

enum {
	KILLED = 77,
	MAX_WRITES = 5000,
	LOG_BYTES = 4096,
};

/* ---- writes that kill ------------------------------------------------------------------------ */

struct killing_file {
	sqlite3_file base;
	sqlite3_file *real;
};

static unsigned int writes, kill_at; /* kill_at 0: never */
static sqlite3_vfs *real_vfs;
static sqlite3_vfs killing_vfs;
static sqlite3_io_methods killing_methods;

static void count_write(void)
{
	if (++writes == kill_at)
		_exit(KILLED);
}

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct killing_file *)file)->real;
}

static int write_counted(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
	count_write();
	return real_of(file)->pMethods->xWrite(real_of(file), data, len, at);
}

static int truncate_counted(sqlite3_file *file, sqlite3_int64 size)
{
	count_write();
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int close_real(sqlite3_file *file)
{
	sqlite3_file *real = real_of(file);
	int r = real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;

	free(real);
	return r;
}

#define FORWARD(name, parameters, arguments)                                                       \
	static int name##_real parameters                                                          \
	{                                                                                          \
		return real_of(file)->pMethods->name arguments;                                    \
	}

FORWARD(xRead, (sqlite3_file * file, void *data, int len, sqlite3_int64 at),
	(real_of(file), data, len, at))
FORWARD(xSync, (sqlite3_file * file, int flags), (real_of(file), flags))
FORWARD(xFileSize, (sqlite3_file * file, sqlite3_int64 *size), (real_of(file), size))
FORWARD(xLock, (sqlite3_file * file, int level), (real_of(file), level))
FORWARD(xUnlock, (sqlite3_file * file, int level), (real_of(file), level))
FORWARD(xCheckReservedLock, (sqlite3_file * file, int *out), (real_of(file), out))
FORWARD(xFileControl, (sqlite3_file * file, int op, void *data), (real_of(file), op, data))
FORWARD(xSectorSize, (sqlite3_file * file), (real_of(file)))
FORWARD(xDeviceCharacteristics, (sqlite3_file * file), (real_of(file)))
FORWARD(xShmMap, (sqlite3_file * file, int page, int size, int extend, void volatile **out),
	(real_of(file), page, size, extend, out))
FORWARD(xShmLock, (sqlite3_file * file, int offset, int n, int flags),
	(real_of(file), offset, n, flags))
FORWARD(xShmUnmap, (sqlite3_file * file, int remove_it), (real_of(file), remove_it))

static void shm_barrier(sqlite3_file *file)
{
	real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int open_counted(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
			int *ret_flags)
{
	struct killing_file *killing = (struct killing_file *)file;
	int r;

	(void)vfs;
	killing->real = calloc(1, (size_t)real_vfs->szOsFile);
	assert_non_null(killing->real);
	r = real_vfs->xOpen(real_vfs, name, killing->real, flags, ret_flags);
	file->pMethods = &killing_methods;
	return r;
}

static void install_kills(void)
{
	real_vfs = sqlite3_vfs_find(NULL);
	killing_methods = (sqlite3_io_methods){
		.iVersion = 2,
		.xClose = close_real,
		.xRead = xRead_real,
		.xWrite = write_counted,
		.xTruncate = truncate_counted,
		.xSync = xSync_real,
		.xFileSize = xFileSize_real,
		.xLock = xLock_real,
		.xUnlock = xUnlock_real,
		.xCheckReservedLock = xCheckReservedLock_real,
		.xFileControl = xFileControl_real,
		.xSectorSize = xSectorSize_real,
		.xDeviceCharacteristics = xDeviceCharacteristics_real,
		.xShmMap = xShmMap_real,
		.xShmLock = xShmLock_real,
		.xShmBarrier = shm_barrier,
		.xShmUnmap = xShmUnmap_real,
	};
	killing_vfs = *real_vfs;
	killing_vfs.zName = "killing";
	killing_vfs.szOsFile = sizeof(struct killing_file);
	killing_vfs.xOpen = open_counted;
	assert_int_equal(sqlite3_vfs_register(&killing_vfs, 1), SQLITE_OK);
}

/* ---- the life of incidents ------------------------------------------------------------------- */

static char log_path[SCRATCH_BYTES + 16];

/* What a receiver has got: a line each. */
static void log_message(const struct nt_outbox_message *message)
{
	char line[256];
	int len = snprintf(line, sizeof(line), "%s\n", message->id);
	int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, line, (size_t)len), len);
	(void)close(fd);
}

static void deliver(void)
{
	struct nt_outbox_message message = {0};
	uint64_t next_ns;

	while (nt_store_outbox_next(store, "webhook", UINT64_MAX / 4, &message, &next_ns) > 0) {
		log_message(&message);
		assert_int_equal(nt_store_outbox_done(store, message.number, NT_OUTBOX_SENT,
						      NT_TEST_TIME_NS, 0),
				 0);
		nt_outbox_message_release(&message);
	}
}

static void change(const char *id, bool resolved, uint64_t minute)
{
	struct nt_wire_incident incident =
		nt_test_incident(id, resolved ? "resolved" : "firing", &nt_test_rank_5, 1);

	incident.seen_real_ns = NT_TEST_TIME_NS + minute * NT_MINUTE;
	incident.until_real_ns = resolved ? incident.seen_real_ns : 0;
	assert_int_equal(put(&incident), 0);
	deliver();
}

/* One incident ends as usual, one is announced as flapping, and one is held and stays open. */
static void live(void)
{
	assert_int_equal(
		open_with(&(struct nt_store_options){
			.path = path,
			.receiver = receivers,
			.receivers = 1,
			.flap = {.changes = 2, .window_ns = NT_HOUR, .quiet_ns = 30 * NT_MINUTE}}),
		0);
	deliver();
	for (unsigned int i = 0; i < 2; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "a%u", i);
		change(id, false, 2 * (uint64_t)i);
		change(id, true, 2 * (uint64_t)i + 1);
	}
	change("a2", false, 4);
	nt_store_tick(store, NT_TEST_TIME_NS + NT_HOUR);
	deliver();
	nt_store_close(store);
	store = NULL;
}

/* Whether it was killed. */
static bool live_until(unsigned int write_number)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		writes = 0;
		kill_at = write_number;
		live();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED);
	return WEXITSTATUS(status) == KILLED;
}

/* ---- what was sent --------------------------------------------------------------------------- */

static size_t count(const char *log, const char *id, size_t *ret_first)
{
	size_t found = 0, len = strlen(id), line = 0;

	for (const char *at = log; *at; at = strchr(at, '\n') + 1, line++)
		if (!strncmp(at, id, len) && at[len] == '\n' && !found++)
			*ret_first = line;
	return found;
}

static void check_log(unsigned int write_number)
{
	static const char *const sent[] = {
		"msg_a0_firing_critical", "msg_a0_resolved",        "msg_a1_firing_critical",
		"msg_a1_resolved",        "msg_a2_firing_critical",
	};
	size_t place[5] = {0}, lines = 0;
	char log[LOG_BYTES] = "";
	FILE *file = fopen(log_path, "re");

	assert_non_null(file);
	log[fread(log, 1, sizeof(log) - 1, file)] = '\0';
	(void)fclose(file);
	for (const char *at = log; *at; at++)
		lines += *at == '\n';
	for (size_t i = 0; i < 5; i++) {
		if (!count(log, sent[i], &place[i]))
			fail_msg("killed at write %u: %s was lost:\n%s", write_number, sent[i],
				 log);
	}
	if (lines > 5 + 1 || place[0] > place[1] || place[2] > place[3])
		fail_msg("killed at write %u:\n%s", write_number, log);
}

static void nothing_is_lost_or_out_of_order_whatever_write_it_is_killed_at(void **state)
{
	unsigned int at = 0;
	bool was_killed = true;

	(void)state;
	install_kills();
	while (was_killed && ++at < MAX_WRITES) {
		assert_int_equal(scratch_make_in_memory(dir), 0);
		(void)snprintf(path, sizeof(path), "%s/store.db", dir);
		(void)snprintf(log_path, sizeof(log_path), "%s/log", dir);
		was_killed = live_until(at);
		if (was_killed)
			assert_false(live_until(0));
		check_log(at);
		scratch_remove(dir);
	}
	print_message("killed at each of %u writes\n", at - 1);
	assert_true(at > 100 && at < MAX_WRITES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_or_out_of_order_whatever_write_it_is_killed_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
