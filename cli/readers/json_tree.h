/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef NT_CLI_READERS_JSON_TREE_H
#define NT_CLI_READERS_JSON_TREE_H

#include <jansson.h>

#include "common/base/json_value.h"

/* A value as a tree of jansson's, for readers of small ones. The caller owns it; NULL: no memory. */
json_t *nt_json_tree(const struct nt_json_value *value);

#endif
