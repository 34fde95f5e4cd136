/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/health/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next word of a line, which ends at a blank; NULL: there is none. */
static char *cut(char **line)
{
	char *word = strsep(line, " \n");

	return word && *word ? word : NULL;
}

static unsigned long long digits(const char **word)
{
	unsigned long long number = 0;

	while (**word >= '0' && **word <= '9')
		number = 10 * number + (unsigned long long)(*(*word)++ - '0');
	return number;
}

/* Of "NUMBER/ID" the number, and in the upper half the id and one. */
static unsigned long long number_of(const char *word)
{
	const unsigned long long number = digits(&word);

	if (*word != '/')
		return number;
	word++;
	return number | (digits(&word) + 1) << 32;
}

/* Finds the line with these first words, and its other two. */
static bool find_line(const char *variable, const char *first, const char *second,
		      unsigned int skip, char text[ANSWERS_LINE], char *ret_words[3])
{
	const char *path = getenv(variable);
	FILE *file = path ? fopen(path, "re") : NULL;
	bool found = false;

	while (file && !found && fgets(text, ANSWERS_LINE, file)) {
		char *line = text;

		for (int i = 0; i < 3; i++)
			ret_words[i] = cut(&line);
		found = ret_words[2] && strcmp(ret_words[0], first) == 0 &&
			(!second || strcmp(ret_words[1], second) == 0) && !skip--;
	}
	if (file)
		(void)fclose(file);
	return found;
}

bool answers_find(const char *variable, const char *first, const char *second, unsigned int skip,
		  unsigned long long *ret_second, unsigned long long *ret_value)
{
	char text[ANSWERS_LINE], *words[3];

	if (!find_line(variable, first, second, skip, text, words))
		return false;
	*ret_value = number_of(words[2]);
	if (ret_second)
		*ret_second = number_of(words[1]);
	return true;
}

bool answers_text(const char *variable, const char *first, const char *second,
		  char ret_text[ANSWERS_LINE])
{
	char text[ANSWERS_LINE], *words[3];

	if (!find_line(variable, first, second, 0, text, words))
		return false;
	for (char *at = words[2]; *at; at++)
		*at = (char)(*at == '_' ? ' ' : *at);
	(void)snprintf(ret_text, ANSWERS_LINE, "%s", words[2]);
	return true;
}

/* Its parent may not have waited for it. */
static bool is_gone(unsigned long long pid)
{
	char path[64], text[256] = "";
	const char *name_end;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%llu/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return true;
	(void)!fgets(text, sizeof(text), file);
	(void)fclose(file);
	name_end = strrchr(text, ')');
	return !name_end || name_end[1] == '\0' || name_end[2] == 'Z';
}

bool answers_ended(const char *variable, unsigned long long pid)
{
	unsigned long long late = 0;

	return answers_find(variable, "late-pid", NULL, 0, NULL, &late) && late == pid &&
	       is_gone(late);
}
