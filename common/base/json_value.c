/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/json_value.h"

#include <string.h>

const struct nt_json_value *nt_json_value_get(const struct nt_json_value *object, const char *key)
{
	const struct nt_json_value *found = NULL;

	if (!nt_json_value_is(object, NT_JSON_OBJECT))
		return NULL;
	nt_json_value_each(object, member)
	{
		if (strcmp(member->key, key) == 0)
			found = member;
	}
	return found;
}
