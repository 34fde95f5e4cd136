/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plain data out of Python's pickles: each opcode, and whatever is no plain data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/pickle.h"
#include "common/base/buf.h"

#define BYTES(text) text, sizeof(text) - 1

static int read_bytes(const char *bytes, size_t len, json_t **ret_root,
		      struct nt_trace_error *error)
{
	/* Exactly as long, so that the sanitizer sees a byte too many. */
	nt_autofree uint8_t *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	return nt_pickle_read("file", copy, len, ret_root, error);
}

/* What Python's pickle.dumps() makes of it, in the protocols 2 to 5, is read as the same JSON. */
static void plain_data_of_every_protocol_is_read(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *json;
	} pickles[] = {
		{BYTES("\200\002]q\0(NX\1\0\0\0aq\1h\1\210\211K\377M\377\377J\376\377\377\377"
		       "\212\5\0\0\0\0\1\212\1\377\212\0G?\370\0\0\0\0\0\0e."),
		 "[null,\"a\",\"a\",true,false,255,65535,-2,4294967296,-1,0,1.5]"},
		{BYTES("\200\002}q\0(X\1\0\0\0aq\1K\1K\2)X\2\0\0\0tsq\2K\1\205q\3K\3K\4K\5\206q\4u."),
		 "{\"a\":1,\"2\":[],\"ts\":[1],\"3\":[4,5]}"},
		{BYTES("\200\002}q\0(X\1\0\0\0aq\1K\1K\2)X\2\0\0\0tsq\2K\4K\5\206q\4u."),
		 "{\"a\":1,\"2\":[],\"ts\":[4,5]}"},
		{BYTES("\200\004\225\022\0\0\0\0\0\0\0]\224(\214\2hi\224h\1K\1\205\224K\1K\2K\3\207"
		       "\224(K\7K\10K\11K\12tt\224e."),
		 NULL}, /* a tuple too many ended */
		{BYTES("\200\005\225\022\0\0\0\0\0\0\0]\224(\214\2hi\224h\1K\1\205\224K\1K\2K\3\207"
		       "\224(K\7K\10K\11K\12t\224e."),
		 "[\"hi\",\"hi\",[1],[1,2,3],[7,8,9,10]]"},
		{BYTES("\200\002(K\1K\2l."), "[1,2]"},
		{BYTES("\200\002(U\1aK\1T\1\0\0\0bK\2d."), "{\"a\":1,\"b\":2}"},
		{BYTES("\200\004]\215\1\0\0\0\0\0\0\0xa."), "[\"x\"]"},
		{BYTES("\200\002}X\1\0\0\0xK\1s."), "{\"x\":1}"},
		{BYTES("\200\002]\213\4\0\0\0\377\377\377\377"
		       "a."),
		 "[-1]"},
		{BYTES("\200\002]G\177\370\0\0\0\0\0\0a."), "[null]"},
		/* A list that is made, remembered and then used twice, before it is part of another. */
		{BYTES("\200\002}(X\1\0\0\0a]q\0(K\1eX\1\0\0\0bh\0u."), "{\"a\":[1],\"b\":[1]}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pickles) / sizeof(pickles[0]); i++) {
		struct nt_trace_error error = {0};
		nt_autofree char *text = NULL;
		json_t *root = NULL;
		const int r = read_bytes(pickles[i].bytes, pickles[i].len, &root, &error);

		if (!pickles[i].json) {
			assert_int_equal(r, -EBADMSG);
			assert_null(root);
			continue;
		}
		if (r != 0)
			fail_msg("%zu: %s", i, error.text);
		text = json_dumps(root, JSON_COMPACT);
		assert_string_equal(text, pickles[i].json);
		json_decref(root);
	}
}

static void what_is_no_plain_data_is_refused_with_its_byte(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *why;
	} pickles[] = {
		{BYTES(""), "cut short: the pickle ends at byte 0"},
		{BYTES("\200"), "cut short: the pickle ends at byte 1"},
		{BYTES("\200\006N."), "byte 0 of the pickle: the protocol is newer than 5"},
		{BYTES("\200\002."), "byte 2 of the pickle: the pickle does not end with exactly"},
		{BYTES("\200\002NN."),
		 "byte 4 of the pickle: the pickle does not end with exactly"},
		{BYTES("\200\002(."), "the pickle does not end with exactly"},
		{BYTES("\200\002N.N"), "1 bytes follow the end of the pickle"},
		{BYTES("\200\002X\4\0\0\0abc"), "cut short: the pickle ends at byte 10"},
		{BYTES("\200\002X\377\377\377\377"), "cut short"},
		{BYTES("\200\004\215\377\377\377\377\377\377\377\377"), "cut short"},
		{BYTES("\200\002X\1\0\0\0\377."), "byte 2 of the pickle: a string is not UTF-8"},
		{BYTES("\200\002\212\011\0\0\0\0\0\0\0\0\0."), "an integer has more than 64 bits"},
		{BYTES("\200\002"
		       "cos\nsystem\nX\2\0\0\0ls\205R."),
		 "byte 2 of the pickle: opcode 0x63: only numbers"},
		{BYTES("\200\002h\0."), "byte 2 of the pickle: no such value in the memo"},
		{BYTES("\200\002q\0."), "no value to store in the memo"},
		{BYTES("\200\002(q\0."), "no value to store in the memo"},
		{BYTES("\200\002Nr\0\0\0\1."), "the index in the memo is too large"},
		{BYTES("\200\002Nr\0\1\0\0."), "the index in the memo is too large"},
		{BYTES("\200\002Na."), "too few values on the stack"},
		{BYTES("\200\002NNa."), "no list to add to"},
		{BYTES("\200\002]N(a."), "no list to add to"},
		{BYTES("\200\002](a."), "a mark inside of a list"},
		{BYTES("\200\002}(N\207."), "a mark inside of a list"},
		{BYTES("\200\002]NNs."), "no dict to add to"},
		{BYTES("\200\002}NNs."), "a key of a dict is neither a string nor an integer"},
		{BYTES("\200\002}X\2\0\0\0a\0Ns."),
		 "a key of a dict is neither a string nor an integer"},
		{BYTES("\200\002}(Nu."), "a key of a dict has no value"},
		{BYTES("\200\002Ne."), "no mark on the stack"},
		{BYTES("\200\002(Ne."), "no list to add to"},
		{BYTES("\200\002\207."), "too few values on the stack"},
		/* A list that is part of itself, at once and by way of another. */
		{BYTES("\200\002]q\0h\0a."),
		 "byte 7 of the pickle: no list to add to, or it is part"},
		{BYTES("\200\002]q\0(h\0e."),
		 "no list to add to, or it is part of another value already"},
		{BYTES("\200\002]q\0]q\1h\0ah\0h\1a."), "or it is part of another value already"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pickles) / sizeof(pickles[0]); i++) {
		struct nt_trace_error error = {0};
		json_t *root = NULL;

		assert_int_equal(read_bytes(pickles[i].bytes, pickles[i].len, &root, &error),
				 -EBADMSG);
		assert_null(root);
		if (!strstr(error.text, pickles[i].why) || strncmp(error.text, "file: ", 6) != 0)
			fail_msg("%zu: '%s' does not say '%s'", i, error.text, pickles[i].why);
	}
}

static void assert_too_much(const struct nt_buf *buf, const char *why)
{
	struct nt_trace_error error = {0};
	json_t *root = NULL;

	assert_int_equal(nt_pickle_read("file", buf->data, buf->len, &root, &error), -EBADMSG);
	if (!strstr(error.text, why))
		fail_msg("'%s' does not say '%s'", error.text, why);
}

static void lists_in_lists_are_read_up_to_the_cap(void **state)
{
	(void)state;
	for (int depth = NT_PICKLE_MAX_DEPTH; depth <= NT_PICKLE_MAX_DEPTH + 1; depth++) {
		nt_autobuf struct nt_buf buf = {0};
		struct nt_trace_error error = {0};
		json_t *root = NULL;

		assert_int_equal(nt_buf_append(&buf, "\200\002]", 3), 0);
		for (int i = 1; i < depth; i++)
			assert_int_equal(nt_buf_append(&buf, "\205", 1), 0);
		assert_int_equal(nt_buf_append(&buf, ".", 1), 0);
		if (depth > NT_PICKLE_MAX_DEPTH) {
			assert_too_much(&buf, "lists are nested too deep");
			continue;
		}
		assert_int_equal(nt_pickle_read("file", buf.data, buf.len, &root, &error), 0);
		json_decref(root);
	}
}

/* Ten bytes double what is there: a few hundred would stand for more than any memory holds. */
static void a_list_that_is_used_often_counts_as_often(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_int_equal(nt_buf_append(&buf, "\200\004N\205\224", 5), 0);
	for (int i = 0; i < 27; i++) {
		const char twice[] = {'h', (char)i, '\206', '\224'};

		assert_int_equal(nt_buf_append(&buf, twice, sizeof(twice)), 0);
	}
	assert_int_equal(nt_buf_append(&buf, ".", 1), 0);
	assert_too_much(&buf, "byte 103 of the pickle: more values than the reader accepts");
}

static void values_that_wait_beyond_the_cap_are_refused(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_int_equal(nt_buf_append(&buf, "\200\002", 2), 0);
	for (int i = 0; i < NT_PICKLE_MAX_STACK / 1024 + 1; i++) {
		char marks[1024];

		memset(marks, '(', sizeof(marks));
		assert_int_equal(nt_buf_append(&buf, marks, sizeof(marks)), 0);
	}
	assert_too_much(&buf, "too many values on the stack");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_data_of_every_protocol_is_read),
		cmocka_unit_test(what_is_no_plain_data_is_refused_with_its_byte),
		cmocka_unit_test(lists_in_lists_are_read_up_to_the_cap),
		cmocka_unit_test(a_list_that_is_used_often_counts_as_often),
		cmocka_unit_test(values_that_wait_beyond_the_cap_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
