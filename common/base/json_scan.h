/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A scanner for JSON documents of any size, which need the memory of one value. The caller goes
 * down to the list that it wants and takes its elements one at a time; of an element only the
 * members that it picks are stored. Everything is checked, also what is skipped.
 *
 * It accepts what jansson accepts: an array or object in UTF-8, integers of 64 bits, finite
 * reals, no NUL in strings, NT_JSON_SCAN_DEPTH levels. It also has caps: see the constants.
 */
#ifndef NT_COMMON_BASE_JSON_SCAN_H
#define NT_COMMON_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/json_value.h"

enum {
	NT_JSON_SCAN_DEPTH = 2048,
	NT_JSON_SCAN_TEXT_BYTES = 16 << 20, /* of the strings of one stored value */
	NT_JSON_SCAN_VALUES = 1 << 20, /* in one stored value */
	NT_JSON_SCAN_NUMBER = 512, /* bytes of a number */
};

/* A member to store. The last of a list has no key. */
struct nt_json_pick {
	const char *key;
	const struct nt_json_pick *inner; /* members to store of this one; NULL: all of it */
};

struct nt_json_scan;

/* Frees with nt_json_scan_free(). `fill` returns bytes, 0 at the end, or a negative error. */
NT_MUST_CHECK int nt_json_scan_new(ptrdiff_t (*fill)(void *context, char *data, size_t size),
				   void *context, struct nt_json_scan **ret_scan);
void nt_json_scan_free(struct nt_json_scan *scan);
NT_DEFINE_AUTO(nt_json_scan, nt_json_scan_free)

/*
 * All others return -EBADMSG for a malformed document or a value beyond the caps, and
 * nt_json_scan_why() says why; -ENOMEM; or the error of `fill`, for which it says nothing.
 */

/* Goes to the next value, without entering it: its kind, and the line in which it begins. */
NT_MUST_CHECK int nt_json_scan_peek(struct nt_json_scan *scan, enum nt_json_kind *ret_kind,
				    uint64_t *ret_line);

/* Enters the array or object that is next, also the outermost one. */
NT_MUST_CHECK int nt_json_scan_enter(struct nt_json_scan *scan);

/*
 * Goes to the next member of the entered object or element of the entered array. 1: it is next; 0:
 * there is none, and the array or object is left. The key is valid until the next call.
 */
NT_MUST_CHECK int nt_json_scan_next(struct nt_json_scan *scan, const char **ret_key,
				    uint64_t *ret_line);

/* Stores the next value: of objects the members in `pick`; NULL: all. Valid until the next call. */
NT_MUST_CHECK int nt_json_scan_take(struct nt_json_scan *scan, const struct nt_json_pick *pick,
				    const struct nt_json_value **ret_value);

/* Goes over the next value, and checks it. */
NT_MUST_CHECK int nt_json_scan_skip(struct nt_json_scan *scan);

/* After the outermost value: nothing may follow. */
NT_MUST_CHECK int nt_json_scan_end(struct nt_json_scan *scan);

/* Of a malformed document: what is wrong, the line, and the bytes before it. */
const char *nt_json_scan_why(const struct nt_json_scan *scan, uint64_t *ret_line,
			     uint64_t *ret_byte);

#endif
