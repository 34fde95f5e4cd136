/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An aggregator that is killed at each write to its store in turn, and started again: every message
 * is sent, an end only after its beginning, and at most one message of a kill is sent twice.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/aggregator/killing_file.h"
#include "tests/unit/aggregator/store.h"

enum {
	MAX_WRITES = 5000,
	LOG_BYTES = 4096,
};

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
		char id[8];

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
	killing_install();
	while (was_killed && ++at < MAX_WRITES) {
		assert_int_equal(scratch_make_in_memory(dir), 0);
		(void)snprintf(path, sizeof(path), "%s/store.db", dir);
		(void)snprintf(log_path, sizeof(log_path), "%s/log", dir);
		was_killed = killing_run(live, at);
		if (was_killed)
			assert_false(killing_run(live, 0));
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
