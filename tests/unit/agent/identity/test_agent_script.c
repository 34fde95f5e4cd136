/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A literal's bytes, with the NULs inside. */
#define FINDS(name, text)                                                                          \
	do {                                                                                       \
		char found_[NT_SCRIPT_NAME] = "before";                                            \
		nt_script_find(text, sizeof(text) - 1, found_);                                    \
		assert_string_equal(found_, name);                                                 \
	} while (0)

static void a_script_or_module_of_python_is_found(void **state)
{
	(void)state;
	FINDS("train.py", "python3\0train.py\0--lr\0001\0");
	FINDS("train.py", "/usr/bin/python3.11\0-u\0/data/train.py\0");
	FINDS("train.py", "python\0-W\0ignore\0-X\0importtime\0-OO\0train.py");
	FINDS("pkg.train", "/opt/conda/bin/python\0-u\0-m\0pkg.train\0--config\0x");
	FINDS("pkg.train", "python\0-um\0pkg.train");
	FINDS("pkg.train", "python\0-umpkg.train\0train.py");
	/* The value of an option is no option. */
	FINDS("train.py", "python\0-Wonce::DeprecationWarning\0-uW\0ignore\0train.py");
	FINDS("main.py", "pypy3\0--check-hash-based-pycs\0always\0main.py");
}

static void what_runs_no_script_has_none(void **state)
{
	(void)state;
	FINDS("", "");
	FINDS("", "\0");
	FINDS("", "/usr/bin/lmp\0-in\0bench.py\0");
	FINDS("", "python3\0");
	FINDS("", "python3\0-c\0import torch\0train.py");
	FINDS("", "python3\0-uc\0import torch\0train.py");
	FINDS("", "python3\0-\0train.py");
	FINDS("", "python3\0-W");
	FINDS("", "python3\0-m");
}

static void hostile_text_is_cleaned_and_cut(void **state)
{
	char text[NT_SCRIPT_MAX_BYTES + 100], found[NT_SCRIPT_NAME];

	(void)state;
	FINDS("a?b.py", "python3\0a\nb.py\0");
	memset(text, 'x', sizeof(text));
	memcpy(text, "python", 7);
	nt_script_find(text, sizeof(text), found);
	assert_int_equal(strlen(found), NT_SCRIPT_NAME - 1);
	memset(text + 7, '-', sizeof(text) - 7);
	nt_script_find(text, sizeof(text), found);
	assert_string_equal(found, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_script_or_module_of_python_is_found),
		cmocka_unit_test(what_runs_no_script_has_none),
		cmocka_unit_test(hostile_text_is_cleaned_and_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
