/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/json_tree.h"

static json_t *make_parent(const struct nt_json_value *parent)
{
	json_t *tree = parent->kind == NT_JSON_OBJECT ? json_object() : json_array();

	if (!tree)
		return NULL;
	nt_json_value_each(parent, child)
	{
		json_t *made = nt_json_tree(child);
		const int r = child->key ? json_object_set_new(tree, child->key, made)
					 : json_array_append_new(tree, made);

		if (r < 0) {
			json_decref(tree);
			return NULL;
		}
	}
	return tree;
}

json_t *nt_json_tree(const struct nt_json_value *value)
{
	switch (value->kind) {
	case NT_JSON_NULL:
		return json_null();
	case NT_JSON_FALSE:
	case NT_JSON_TRUE:
		return json_boolean(value->kind == NT_JSON_TRUE);
	case NT_JSON_INTEGER:
		return json_integer(value->integer);
	case NT_JSON_REAL:
		return json_real(value->real);
	case NT_JSON_STRING:
		return json_string(value->text);
	default:
		return make_parent(value);
	}
}
