/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of an invented /proc or /sys in a scratch directory. */
#ifndef NT_TESTS_UNIT_AGENT_NODE_NODE_TREE_H
#define NT_TESTS_UNIT_AGENT_NODE_NODE_TREE_H

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	TREE_PATH_BYTES = 512,
};

/* Writes a file and makes its directories. */
static inline void tree_put(const char *dir, const char *name, const char *text)
{
	char path[2 * TREE_PATH_BYTES];
	FILE *file;
	const int len = snprintf(path, sizeof(path), "%s/%s", dir, name);

	assert_true(len > 0 && (size_t)len < sizeof(path));
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

#endif
