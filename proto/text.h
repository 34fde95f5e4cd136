/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sanitises untrusted text for terminals, logs and JSON: valid UTF-8 without control characters,
 * line separators and direction overrides. All else becomes '?'.
 */
#ifndef NT_PROTO_TEXT_H
#define NT_PROTO_TEXT_H

#include <stddef.h>

/*
 * Writes at most max bytes, cut between characters, and a NUL. out has room for max + 1, or for len
 * + 1 if that is less. Returns the bytes written without the NUL.
 */
size_t nt_text_clean(const char *text, size_t len, char *out, size_t max);

#endif
