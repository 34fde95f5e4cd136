/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/term/keys.h"

#include <string.h>

#include "common/base/utf8.h"

static const struct {
	const char *sequence; /* behind the escape byte */
	enum nt_key_kind kind;
} sequences[] = {
	{"[A", NT_KEY_UP},    {"OA", NT_KEY_UP},       {"[B", NT_KEY_DOWN},
	{"OB", NT_KEY_DOWN},  {"[C", NT_KEY_RIGHT},    {"OC", NT_KEY_RIGHT},
	{"[D", NT_KEY_LEFT},  {"OD", NT_KEY_LEFT},     {"[H", NT_KEY_HOME},
	{"OH", NT_KEY_HOME},  {"[1~", NT_KEY_HOME},    {"[7~", NT_KEY_HOME},
	{"[F", NT_KEY_LAST},  {"OF", NT_KEY_LAST},     {"[4~", NT_KEY_LAST},
	{"[8~", NT_KEY_LAST}, {"[5~", NT_KEY_PAGE_UP}, {"[6~", NT_KEY_PAGE_DOWN},
	{"OM", NT_KEY_ENTER},
};

void nt_keys_add(struct nt_keys *keys, const char *byte, size_t len)
{
	size_t room = NT_KEYS_MAX_BYTES - keys->len;

	len = len < room ? len : room;
	memcpy(keys->byte + keys->len, byte, len);
	keys->len += len;
}

static void drop(struct nt_keys *keys, size_t len)
{
	keys->len -= len;
	memmove(keys->byte, keys->byte + len, keys->len);
}

/* Bytes of the escape sequence at the front; 0: it is incomplete. */
static size_t sequence_length(const struct nt_keys *keys)
{
	size_t i = 2;

	if (keys->len < 2)
		return 0;
	if (keys->byte[1] == 'O')
		return keys->len > 2 ? 3 : 0;
	if (keys->byte[1] != '[')
		return 1; /* the escape key, and what follows is a key of its own */
	while (i < keys->len && keys->byte[i] >= 0x20 && keys->byte[i] < 0x40)
		i++;
	if (i == keys->len)
		return keys->len == NT_KEYS_MAX_BYTES ? keys->len : 0;
	return i + 1;
}

static bool find_sequence(const char *sequence, size_t len, struct nt_key *key)
{
	for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
		if (strlen(sequences[i].sequence) != len ||
		    memcmp(sequences[i].sequence, sequence, len) != 0)
			continue;
		key->kind = sequences[i].kind;
		return true;
	}
	return false;
}

/* Keys of one control byte; false: it is none. */
static bool find_control(unsigned char byte, struct nt_key *key)
{
	switch (byte) {
	case '\r':
	case '\n':
		key->kind = NT_KEY_ENTER;
		return true;
	case '\t':
		key->kind = NT_KEY_TAB;
		return true;
	case 0x08:
	case 0x7f:
		key->kind = NT_KEY_BACKSPACE;
		return true;
	case 0x0c:
		key->kind = NT_KEY_REDRAW;
		return true;
	default:
		return false;
	}
}

/* A whole character at the front. Otherwise the byte is invalid, or the rest has yet to come. */
static bool take_text(struct nt_keys *keys, bool is_over, bool *ret_waits, struct nt_key *key)
{
	const unsigned char first = (unsigned char)keys->byte[0];
	size_t length = nt_utf8_length(keys->byte, keys->len);

	*ret_waits = false;
	if (!length) {
		size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;

		*ret_waits = first >= 0xc2 && first < 0xf5 && keys->len < whole && !is_over;
		if (!*ret_waits)
			drop(keys, 1);
		return false;
	}
	*key = (struct nt_key){.kind = NT_KEY_TEXT};
	memcpy(key->text, keys->byte, length);
	drop(keys, length);
	return true;
}

/* False: the sequence is unknown, or not complete yet, as *ret_waits states. */
static bool take_sequence(struct nt_keys *keys, bool is_over, bool *ret_waits, struct nt_key *key)
{
	size_t length = sequence_length(keys);
	bool known = true;

	*ret_waits = !length && !is_over;
	if (*ret_waits)
		return false;
	*key = (struct nt_key){.kind = NT_KEY_ESCAPE};
	if (length > 1)
		known = find_sequence(keys->byte + 1, length - 1, key);
	/* Over, and incomplete: the escape key, and nothing of what follows it is a text. */
	drop(keys, length ? length : keys->len);
	return known;
}

bool nt_keys_next(struct nt_keys *keys, bool is_over, struct nt_key *ret_key)
{
	while (keys->len) {
		const unsigned char first = (unsigned char)keys->byte[0];
		bool waits = false;

		if (first == 0x1b) {
			if (take_sequence(keys, is_over, &waits, ret_key))
				return true;
		} else if (first < 0x20 || first == 0x7f) {
			*ret_key = (struct nt_key){0};
			drop(keys, 1);
			if (find_control(first, ret_key))
				return true;
		} else if (take_text(keys, is_over, &waits, ret_key)) {
			return true;
		}
		if (waits)
			return false;
	}
	return false;
}
