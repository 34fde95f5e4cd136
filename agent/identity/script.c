/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/script.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/ascii.h"

struct text {
	const char *at;
	size_t len;
};

/* Takes the first argument off the rest. False: there is none. */
static bool take(struct text *rest, struct text *ret_argument)
{
	const char *end;

	if (!rest->len)
		return false;
	end = memchr(rest->at, '\0', rest->len);
	*ret_argument = (struct text){rest->at, end ? (size_t)(end - rest->at) : rest->len};
	rest->at += ret_argument->len + (end != NULL);
	rest->len -= ret_argument->len + (end != NULL);
	return true;
}

static struct text base_of(struct text path)
{
	const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;

	if (!slash)
		return path;
	return (struct text){slash + 1, path.len - (size_t)(slash + 1 - path.at)};
}

static bool begins_with(struct text text, const char *prefix)
{
	return text.len >= strlen(prefix) && memcmp(text.at, prefix, strlen(prefix)) == 0;
}

/* What an option of Python means for the search. */
enum option {
	OPTION_FLAG,
	OPTION_VALUE, /* the next argument is its value */
	OPTION_MODULE, /* the text is a module, or the next argument if it is empty */
	OPTION_NO_SCRIPT, /* code on the command line or on standard input */
};

/* Short options may be joined: "-uW" takes a value, "-Wonce" has one. text: behind a module's letter. */
static enum option read_option(struct text option, struct text *ret_text)
{
	static const char long_with_value[] = "--check-hash-based-pycs";

	if (option.len == 1)
		return OPTION_NO_SCRIPT;
	if (option.at[1] == '-')
		return option.len == strlen(long_with_value) && begins_with(option, long_with_value)
			       ? OPTION_VALUE
			       : OPTION_FLAG;
	for (size_t i = 1; i < option.len; i++) {
		*ret_text = (struct text){option.at + i + 1, option.len - i - 1};
		switch (option.at[i]) {
		case 'c':
			return OPTION_NO_SCRIPT;
		case 'm':
			return OPTION_MODULE;
		case 'W':
		case 'X':
			return ret_text->len ? OPTION_FLAG : OPTION_VALUE;
		default:
			break;
		}
	}
	return OPTION_FLAG;
}

void nt_script_find(const char *data, size_t size, char ret_name[NT_SCRIPT_NAME])
{
	struct text rest = {data, size < NT_SCRIPT_MAX_BYTES ? size : NT_SCRIPT_MAX_BYTES};
	struct text argument, base, name;

	ret_name[0] = '\0';
	if (!take(&rest, &argument))
		return;
	base = base_of(argument);
	if (!begins_with(base, "python") && !begins_with(base, "pypy"))
		return;
	while (take(&rest, &argument)) {
		if (!begins_with(argument, "-")) {
			name = base_of(argument);
			nt_ascii_copy(ret_name, NT_SCRIPT_NAME, name.at, name.len);
			return;
		}
		switch (read_option(argument, &name)) {
		case OPTION_FLAG:
			break;
		case OPTION_VALUE:
			if (!take(&rest, &argument))
				return;
			break;
		case OPTION_MODULE:
			if (name.len || take(&rest, &name))
				nt_ascii_copy(ret_name, NT_SCRIPT_NAME, name.at, name.len);
			return;
		case OPTION_NO_SCRIPT:
			return;
		}
	}
}
