/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The REST interface over a synthetic snapshot, and request helpers. */
#ifndef NT_TESTS_UNIT_AGGREGATOR_API_H
#define NT_TESTS_UNIT_AGGREGATOR_API_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/api/api.h"
#include "common/base/duration.h"
#include "proto/json.h"
#include "tests/api/snapshot_scene.h"
#include "tests/unit/common/http.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES];
static struct nt_board *board;
static struct nt_store *store;
static struct nt_api *api;

static inline int open_store(void)
{
	char path[SCRATCH_BYTES + 16];
	struct nt_store_error error;

	(void)snprintf(path, sizeof(path), "%s/store.db", dir);
	return nt_store_open(&(struct nt_store_options){.path = path}, &store, &error);
}

static inline int start(struct nt_api_options options)
{
	struct nt_api_error error;

	options.listen = "127.0.0.1:0";
	/* On idle time and with sanitizers, a large answer takes longer than any client should wait. */
	options.header_timeout_ns = 10 * NT_MINUTE;
	options.request_timeout_ns = options.request_timeout_ns ?: 10 * NT_MINUTE;
	options.board = board;
	options.store = store;
	return nt_api_start(&options, &api, &error);
}

/* No verdict exists yet. */
static inline int set_up_board(void **state)
{
	(void)state;
	return scratch_make(dir) || nt_board_new(&board) || open_store();
}

static inline int set_up(void **state)
{
	if (set_up_board(state))
		return -1;
	nt_board_post(board, nt_test_snapshot());
	return start((struct nt_api_options){0});
}

static inline int tear_down(void **state)
{
	(void)state;
	nt_api_stop(api);
	nt_store_close(store);
	nt_board_free(board);
	api = NULL;
	store = NULL;
	board = NULL;
	scratch_remove(dir);
	return 0;
}

static inline void put(const char *id, const char *state)
{
	struct nt_wire_incident incident = nt_test_incident(id, state, &nt_test_rank_5, 1);
	const struct nt_sink sink = nt_store_sink(store);

	assert_int_equal(sink.incident(sink.data, &incident), 0);
}

/* The document of a GET that must return this status. */
static inline json_t *get_status(const char *target, int status)
{
	http_auto struct http_reply reply = http_request(nt_api_port(api), "GET", target, "", NULL);
	json_t *json = NULL;

	assert_int_equal(reply.status, status);
	assert_int_equal(nt_json_load(reply.body, strlen(reply.body), &json), 0);
	return json;
}

static inline json_t *get(const char *target)
{
	return get_status(target, 200);
}

static inline const char *text(const json_t *object, const char *name)
{
	return nt_json_get_text(object, name, "(none)");
}

/* The members called `name` of a list's items, each followed by a blank. */
static inline const char *names(const json_t *list, const char *name)
{
	static char all[4096];
	const json_t *items = json_object_get(list, "items");

	assert_true(json_is_array(items));
	all[0] = '\0';
	for (size_t i = 0; i < json_array_size(items); i++) {
		size_t len = strlen(all);

		(void)snprintf(all + len, sizeof(all) - len, "%s ",
			       text(json_array_get(items, i), name));
	}
	return all;
}

static inline void check_problem(const char *target, int status, const char *code)
{
	nt_autojson json_t *problem = get_status(target, status);

	assert_string_equal(text(problem, "code"), code);
	assert_int_equal(json_integer_value(json_object_get(problem, "status")), status);
	assert_string_not_equal(text(problem, "request_id"), "(none)");
}

/* With or without the snapshot and the interface. */
#define TEST(fn)       cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
#define TEST_BOARD(fn) cmocka_unit_test_setup_teardown(fn, set_up_board, tear_down)

#endif
