/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stable hashes. Their values are part of the wire contract: agents of different versions must
 * derive the same communicator id. None of them resists an attacker.
 */
#ifndef NT_COMMON_BASE_HASH_H
#define NT_COMMON_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define NT_HASH_SEED 0xcbf29ce484222325ULL

/* FNV-1a. Start with NT_HASH_SEED, or continue from an earlier hash. */
static inline uint64_t nt_hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++) {
		hash ^= bytes[i];
		hash *= 0x100000001b3ULL;
	}
	return hash;
}

/* The terminating NUL is hashed too, so that ("ab", "c") and ("a", "bc") differ. */
static inline uint64_t nt_hash_text(uint64_t hash, const char *text)
{
	for (;; text++) {
		hash ^= (uint8_t)*text;
		hash *= 0x100000001b3ULL;
		if (!*text)
			return hash;
	}
}

/* From the lowest byte up, so that the result does not depend on the machine. */
static inline uint64_t nt_hash_u64(uint64_t hash, uint64_t value)
{
	for (int i = 0; i < 8; i++) {
		hash ^= (uint8_t)(value >> (8 * i));
		hash *= 0x100000001b3ULL;
	}
	return hash;
}

/* Mixes every bit into all others (the finaliser of splitmix64). */
static inline uint64_t nt_hash_mix(uint64_t value)
{
	value ^= value >> 30;
	value *= 0xbf58476d1ce4e5b9ULL;
	value ^= value >> 27;
	value *= 0x94d049bb133111ebULL;
	return value ^ (value >> 31);
}

#endif
