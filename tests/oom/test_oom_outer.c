/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The store, the audit log, tokens, secrets, servers and tables under failed allocations. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/api/api.h"
#include "aggregator/api/audit.h"
#include "aggregator/notify/notify.h"
#include "aggregator/notify/receiver_config.h"
#include "aggregator/store/store.h"
#include "cli/live/table.h"
#include "common/http/token.h"
#include "common/system/file.h"
#include "tests/api/snapshot_scene.h"
#include "tests/oom/oom.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];

static int set_up(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static int use_store(void *data)
{
	static const char *const receivers[] = {"webhook"};
	const struct nt_store_options options = {
		.path = path, .receiver = receivers, .receivers = 1};
	const struct nt_store_filter filter = {.limit = 10};
	nt_auto(nt_store) struct nt_store *store = NULL;
	nt_autopage struct nt_store_page page = {0};
	struct nt_outbox_message message = {0};
	struct nt_store_error error;
	struct nt_wire_incident incident;
	struct nt_sink sink;
	uint64_t next_ns;
	char id[32];
	int r;

	r = nt_store_open(&options, &store, &error);
	if (r < 0)
		return r;
	/* A new one each time, or the store would have nothing to write. */
	(void)snprintf(id, sizeof(id), "id-%u", (*(unsigned int *)data)++);
	incident = nt_test_incident(id, "firing", &nt_test_rank_5, 1);
	sink = nt_store_sink(store);
	r = sink.incident(sink.data, &incident);
	if (r == 0)
		r = nt_store_list(store, &filter, &page);
	if (r == 0)
		r = nt_store_outbox_next(store, "webhook", 1, &message, &next_ns);
	nt_outbox_message_release(&message);
	return r < 0 ? r : 0;
}

static void a_store_survives_failed_allocations(void **state)
{
	unsigned int count = 0;

	(void)state;
	assert_true(nt_oom_sweep(use_store, &count) > 4);
}

static int use_tokens(void *data)
{
	nt_auto(nt_tokens) struct nt_tokens *tokens = NULL;
	nt_autofree char *token = NULL;
	struct nt_token_error error;
	int r;

	(void)data;
	r = nt_tokens_open(path, &tokens, &error);
	return r < 0 ? r : nt_token_read(path, &token);
}

static void tokens_survive_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(use_tokens, NULL) > 2);
}

static int read_secret(void *data)
{
	nt_autofree char *text = NULL;

	(void)data;
	return nt_receiver_secret_read(path, &text);
}

static void secrets_survive_failed_allocations(void **state)
{
	(void)state;
	assert_int_equal(nt_file_create(path, 0600, "https://x/\n", 11), 0);
	assert_true(nt_oom_sweep(read_secret, NULL) >= 2);
}

static int serve(void *data)
{
	const struct nt_api_options options = {
		.listen = "127.0.0.1:0",
		.token_file = path,
		.board = data,
	};
	nt_auto(nt_api) struct nt_api *api = NULL;
	struct nt_api_error error;

	return nt_api_start(&options, &api, &error);
}

static void a_server_that_cannot_start_survives_failed_allocations(void **state)
{
	nt_auto(nt_board) struct nt_board *board = NULL;

	(void)state;
	assert_int_equal(nt_board_new(&board), 0);
	assert_true(nt_oom_sweep(serve, board) > 4);
}

static int use_audit(void *data)
{
	const struct nt_httpd_identity identity = {NT_TOKEN_ADMIN, true, "alice"};
	const struct nt_httpd_write write = {
		.identity = &identity,
		.certificate = "a host",
		.address = "::1",
		.method = "POST",
		.path = "/",
		.request_id = "id",
		.body = "{}",
		.body_len = 2,
		.status = 202,
	};
	nt_auto(nt_audit) struct nt_audit *audit = NULL;
	struct nt_audit_stats stats;
	int r = nt_audit_open(path, &audit);

	(void)data;
	if (r < 0)
		return r;
	nt_audit_add(audit, &write, NT_TEST_TIME_NS);
	nt_audit_stats(audit, &stats);
	return stats.unwritten ? -ENOMEM : 0;
}

static void an_audit_log_survives_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(use_audit, NULL) > 4);
}

static int use_table(void *data)
{
	static const struct nt_column columns[] = {{.title = "ONE"}, {.title = "TWO"}};
	nt_auto(nt_table) struct nt_table *table = NULL;
	int r;

	(void)data;
	r = nt_table_new(columns, 2, &table);
	for (int i = 0; r == 0 && i < 100; i++)
		r = nt_table_add(table, NT_STYLE_PLAIN, "cell %d", i);
	return r;
}

static void a_table_survives_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(use_table, NULL) > 100);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_store_survives_failed_allocations),
		TEST(tokens_survive_failed_allocations),
		TEST(secrets_survive_failed_allocations),
		TEST(a_server_that_cannot_start_survives_failed_allocations),
		TEST(an_audit_log_survives_failed_allocations),
		TEST(a_table_survives_failed_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
