/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys of a terminal, from the bytes that it sends for them. */
#ifndef NT_CLI_TERM_KEYS_H
#define NT_CLI_TERM_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum nt_key_kind {
	NT_KEY_TEXT, /* a printable character */
	NT_KEY_UP,
	NT_KEY_DOWN,
	NT_KEY_LEFT,
	NT_KEY_RIGHT,
	NT_KEY_PAGE_UP,
	NT_KEY_PAGE_DOWN,
	NT_KEY_HOME,
	NT_KEY_LAST,
	NT_KEY_ENTER,
	NT_KEY_ESCAPE,
	NT_KEY_BACKSPACE,
	NT_KEY_TAB,
	NT_KEY_REDRAW, /* Ctrl-L */
};

struct nt_key {
	enum nt_key_kind kind;
	char text[5]; /* of NT_KEY_TEXT: one character, UTF-8 */
};

enum {
	NT_KEYS_MAX_BYTES = 64, /* that are kept; a longer sequence is discarded */
	NT_KEYS_WAIT_MS = 50, /* after which an escape byte is the escape key */
};

/* All zero: nothing was read yet. */
struct nt_keys {
	char byte[NT_KEYS_MAX_BYTES];
	size_t len;
};

/* Appends bytes, at most NT_KEYS_MAX_BYTES - len; the rest is discarded. */
void nt_keys_add(struct nt_keys *keys, const char *byte, size_t len);

/*
 * Takes the next key; false: none is complete. is_over: nothing followed for NT_KEYS_WAIT_MS, so
 * that an incomplete sequence is the escape key. Unknown sequences are skipped.
 */
bool nt_keys_next(struct nt_keys *keys, bool is_over, struct nt_key *ret_key);

#endif
