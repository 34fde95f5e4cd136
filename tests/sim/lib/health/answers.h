/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The answers of a stand-in for a driver's library, in a file which a variable of the environment
 * names: lines of three words. It is read at each call, so that a test can change it.
 */
#ifndef TESTS_SIM_LIB_HEALTH_ANSWERS_H
#define TESTS_SIM_LIB_HEALTH_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	ANSWERS_WORD = 32, /* bytes with the NUL */
	ANSWERS_LINE = 128,
};

/*
 * Finds the line with these first words; second: NULL for any. skip: so many others before it. A word
 * "NUMBER/ID" has NUMBER in its lower half, and ID and one in the upper.
 */
bool answers_find(const char *variable, const char *first, const char *second, unsigned int skip,
		  unsigned long long *ret_second, unsigned long long *ret_value);
/* The third word of that line, with blanks in place of "_". */
bool answers_text(const char *variable, const char *first, const char *second,
		  char ret_text[ANSWERS_LINE]);
/* Whether it is the process of a line "late-pid", and has ended. */
bool answers_ended(const char *variable, unsigned long long pid);

#endif
