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

/* An option whose value is the next argument, of those of Python: the last letter of "-uX". */
static bool has_value(struct text option)
{
	if (begins_with(option, "--"))
		return option.len == strlen("--check-hash-based-pycs") &&
		       begins_with(option, "--check-hash-based-pycs");
	return option.len > 1 && strchr("WX", option.at[option.len - 1]);
}

void nt_script_find(const char *data, size_t size, char ret_name[NT_SCRIPT_NAME])
{
	struct text rest = {data, size < NT_SCRIPT_MAX_BYTES ? size : NT_SCRIPT_MAX_BYTES};
	struct text argument, base;

	ret_name[0] = '\0';
	if (!take(&rest, &argument))
		return;
	base = base_of(argument);
	if (!begins_with(base, "python") && !begins_with(base, "pypy"))
		return;
	while (take(&rest, &argument)) {
		if (!begins_with(argument, "-")) {
			base = base_of(argument);
			nt_ascii_copy(ret_name, NT_SCRIPT_NAME, base.at, base.len);
			return;
		}
		/* "-" is a script on standard input, and nothing follows -c but arguments. */
		if (argument.len == 1 ||
		    (argument.at[1] != '-' && memchr(argument.at, 'c', argument.len)))
			return;
		if (argument.at[1] != '-' && argument.at[argument.len - 1] == 'm') {
			if (take(&rest, &argument))
				nt_ascii_copy(ret_name, NT_SCRIPT_NAME, argument.at, argument.len);
			return;
		}
		if (has_value(argument) && !take(&rest, &argument))
			return;
	}
}
