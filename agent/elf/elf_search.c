/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/elf/elf_search.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "common/base/search.h"

enum {
	HIDDEN = 0x8000, /* of .gnu.version: not the default version */
	SYMBOLS_AT_ONCE = 2730, /* 64 KiB of them */
	BLOCK_BYTES = 65536, /* of the string table */
	BLOCK_WORDS = BLOCK_BYTES / 64, /* of `begins` */
	WINDOW_BYTES = 32 << 20, /* of the string table: 4 MiB of `begins` */
	KEY_BYTES = 8,
	SLOTS = 1024, /* a power of two */
	MATCHES_MAX = 4096, /* places in one window of the string table */
	BYTES_OF_WORK = 16, /* compared for one unit of work */
	NONE = UINT16_MAX,
};

_Static_assert(WINDOW_BYTES % BLOCK_BYTES == 0, "a window has whole blocks");
_Static_assert((int)NT_ELF_WANTED_MAX < (int)NONE, "an index is less than none");

/*
 * Each symbol is visited twice per window; its name is read, and compared with one wanted. Of the
 * string table only the blocks in which names begin are read.
 */
struct nt_elf_cost nt_elf_table_cost(const struct nt_elf_table *table)
{
	uint64_t windows = (table->strings_bytes + WINDOW_BYTES - 1ULL) / WINDOW_BYTES;
	uint64_t blocks = (table->strings_bytes + BLOCK_BYTES - 1ULL) / BLOCK_BYTES;
	uint64_t all = table->strings_bytes + blocks * NT_ELF_NAME_BYTES;
	uint64_t named = table->symbols * (uint64_t)(BLOCK_BYTES + NT_ELF_NAME_BYTES);
	uint64_t visits = 2 * windows * table->symbols;

	return (struct nt_elf_cost){
		.bytes = (all < named ? all : named) + visits * sizeof(Elf64_Sym) +
			 windows * table->versions * sizeof(Elf64_Versym),
		.work = visits + 2ULL * table->symbols,
	};
}

/* A wanted name, keyed by its first bytes. */
struct wanted_entry {
	uint64_t key;
	uint16_t len;
	uint16_t next; /* next key of the same slot */
	uint16_t same; /* next entry of the same key */
};

/* A wanted name found in the string table. */
struct match {
	uint32_t at;
	uint16_t wanted;
};

struct symbol_search {
	struct nt_elf_reader *reader;
	const struct nt_elf_table *table;
	const struct nt_elf_wanted *wanted;
	nt_elf_hit_fn fn;
	void *data;
	uint8_t type; /* of the wanted symbols: STT_FUNC or STT_OBJECT */

	struct wanted_entry entry[NT_ELF_WANTED_MAX];
	uint16_t head[SLOTS];
	uint16_t shorter; /* prefixes shorter than a key */

	/* The current window of the string table, and where names begin in it. */
	uint32_t begin, end;
	uint64_t *begins;
	struct match match[MATCHES_MAX]; /* by `at`, as found */
	size_t matches;

	Elf64_Versym version[SYMBOLS_AT_ONCE];
	union {
		Elf64_Sym symbol[SYMBOLS_AT_ONCE];
		/* Padded: the last name of a block is complete, and a key can be read anywhere. */
		char name[BLOCK_BYTES + NT_ELF_NAME_BYTES + KEY_BYTES];
	};
};

/* The first 8 bytes of a name, zero past its end. */
static uint64_t key_of(const char *name)
{
	const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
	uint64_t key, zero;

	memcpy(&key, name, sizeof(key));
	zero = (key - ones) & ~key & highs;
	return zero ? key & (((zero & -zero) >> 7) - 1) : key;
}

static size_t slot_of(uint64_t key)
{
	return key * 0x9e3779b97f4a7c15 >> 54;
}

_Static_assert(1ULL << (64 - 54) == SLOTS, "a slot is the upper bits of the product");

/* The first wanted name with this key, or NONE. */
static uint16_t find_key(const struct symbol_search *s, uint64_t key, uint64_t *work)
{
	uint16_t i = s->head[slot_of(key)];

	for (; i != NONE && s->entry[i].key != key; i = s->entry[i].next)
		++*work;
	return i;
}

/* Adds it behind the others of its key, or as a new key. */
static void add_key(struct symbol_search *s, uint16_t i)
{
	uint64_t key = s->entry[i].key, work = 0;
	uint16_t first = find_key(s, key, &work);
	uint16_t *head = &s->head[slot_of(key)];

	if (first != NONE) {
		s->entry[i].same = s->entry[first].same;
		s->entry[first].same = i;
		return;
	}
	s->entry[i].same = NONE;
	s->entry[i].next = *head;
	*head = i;
}

static bool is_whole(enum nt_elf_match match)
{
	return match == NT_ELF_WHOLE || match == NT_ELF_OBJECT;
}

static void index_wanted(struct symbol_search *s, size_t n)
{
	memset(s->head, 0xff, sizeof(s->head));
	s->shorter = NONE;
	for (uint16_t i = 0; i < n; i++) {
		const struct nt_elf_wanted *wanted = &s->wanted[i];
		size_t len = strnlen(wanted->name, NT_ELF_NAME_BYTES);
		char padded[KEY_BYTES] = {0};

		/* No function has an empty name; names this long are skipped. */
		if (len == NT_ELF_NAME_BYTES || (!len && wanted->match != NT_ELF_PREFIX))
			continue;
		memcpy(padded, wanted->name, len < KEY_BYTES ? len : KEY_BYTES);
		s->entry[i] = (struct wanted_entry){.key = key_of(padded), .len = (uint16_t)len};
		if (len >= KEY_BYTES || is_whole(wanted->match)) {
			add_key(s, i);
		} else {
			s->entry[i].same = s->shorter;
			s->shorter = i;
		}
	}
}

/* `room`: bytes left in the string table, or more than a name may have. */
static bool is_match(enum nt_elf_match match, const char *wanted, size_t len, const char *name,
		     size_t room, uint64_t *work)
{
	size_t cap = room < NT_ELF_NAME_BYTES ? room : NT_ELF_NAME_BYTES;
	size_t end;

	*work += 1 + len / BYTES_OF_WORK;
	if (len >= cap || memcmp(name, wanted, len) != 0)
		return false;
	if (is_whole(match))
		return name[len] == '\0';
	end = strnlen(name, cap);
	*work += end / BYTES_OF_WORK;
	if (end == cap || end == 0)
		return false;
	if (match == NT_ELF_PREFIX || name[len] == '\0')
		return true;
	return name[len] == '.' && !strstr(name + len, ".cold");
}

static int add_match(struct symbol_search *s, uint16_t wanted, const char *name, uint32_t at)
{
	const struct nt_elf_hit hit = {.wanted = wanted, .name = name};

	if (s->wanted[wanted].match == NT_ELF_PREFIX)
		return s->fn(s->data, &hit);
	if (s->matches == MATCHES_MAX)
		return -EOVERFLOW;
	s->match[s->matches++] = (struct match){.at = at, .wanted = wanted};
	return 0;
}

/* Compares the name at this place with all wanted ones. */
static int match_name(struct symbol_search *s, const char *name, size_t room, uint32_t at,
		      uint64_t *work)
{
	const uint16_t lists[] = {find_key(s, key_of(name), work), s->shorter};

	for (size_t list = 0; list < 2; list++)
		for (uint16_t i = lists[list]; i != NONE; i = s->entry[i].same) {
			const struct nt_elf_wanted *wanted = &s->wanted[i];
			int r;

			if (!is_match(wanted->match, wanted->name, s->entry[i].len, name, room,
				      work))
				continue;
			r = add_match(s, i, name, at);
			if (r != 0)
				return r;
		}
	return 0;
}

static int match_block(struct symbol_search *s, uint32_t at, uint64_t *begins)
{
	uint32_t left = s->table->strings_bytes - at;
	size_t room = BLOCK_BYTES + NT_ELF_NAME_BYTES;
	size_t words = left < BLOCK_BYTES ? (left + 63) / 64 : BLOCK_WORDS;
	bool any = false;
	int r;

	for (size_t i = 0; i < words && !any; i++)
		any = begins[i];
	if (!any)
		return 0;
	if (room > left)
		room = left;
	r = nt_elf_reader_read(s->reader, s->table->strings_at + at, s->name, room);
	if (r < 0)
		return r;
	memset(s->name + room, 0, KEY_BYTES);
	for (size_t i = 0; i < words; i++) {
		uint64_t work = 0;

		for (; begins[i]; begins[i] &= begins[i] - 1) {
			size_t p = i * 64 + (size_t)__builtin_ctzll(begins[i]);

			work++;
			r = match_name(s, s->name + p, room - p, at + (uint32_t)p, &work);
			if (r != 0)
				return r;
		}
		r = nt_elf_reader_work(s->reader, work);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Reads the next symbols from `first` on. */
static int read_symbols(struct symbol_search *s, uint32_t first, uint32_t *ret_n)
{
	uint32_t n = s->table->symbols - first;
	int r;

	if (n > SYMBOLS_AT_ONCE)
		n = SYMBOLS_AT_ONCE;
	r = nt_elf_reader_work(s->reader, n);
	if (r < 0)
		return r;
	r = nt_elf_reader_read(s->reader, s->table->symbols_at + first * sizeof(Elf64_Sym),
			       s->symbol, n * sizeof(Elf64_Sym));
	if (r < 0)
		return r;
	*ret_n = n;
	return 0;
}

static int read_versions(struct symbol_search *s, uint32_t first, uint32_t n)
{
	if (first >= s->table->versions)
		return 0;
	if (n > s->table->versions - first)
		n = s->table->versions - first;
	return nt_elf_reader_read(s->reader, s->table->versions_at + first * sizeof(Elf64_Versym),
				  s->version, n * sizeof(Elf64_Versym));
}

/* True for a symbol of the wanted type that is defined here and named in the window. */
static bool is_candidate(const struct symbol_search *s, const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == s->type && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_value && symbol->st_name >= s->begin && symbol->st_name < s->end;
}

static void set_begin(struct symbol_search *s, uint32_t name)
{
	uint32_t bit = name - s->begin;

	s->begins[bit / 64] |= 1ULL << bit % 64;
}

static bool is_begin(const struct symbol_search *s, uint32_t name)
{
	uint32_t bit = name - s->begin;

	return s->begins[bit / 64] >> bit % 64 & 1;
}

static int mark_names(struct symbol_search *s)
{
	uint32_t n;

	for (uint32_t first = 0; first < s->table->symbols; first += n) {
		int r = read_symbols(s, first, &n);

		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++)
			if (is_candidate(s, &s->symbol[i]))
				set_begin(s, s->symbol[i].st_name);
	}
	return 0;
}

/* Compares the marked names; then only matches stay marked. */
static int match_names(struct symbol_search *s)
{
	uint64_t *begins = s->begins;

	s->matches = 0;
	for (uint32_t at = s->begin; at < s->end; at += BLOCK_BYTES) {
		int r = match_block(s, at, begins);

		if (r != 0)
			return r;
		begins += BLOCK_WORDS;
	}
	for (size_t i = 0; i < s->matches; i++)
		set_begin(s, s->match[i].at);
	return 0;
}

static size_t first_match(const struct symbol_search *s, uint32_t at)
{
	return nt_search_first(0, s->matches, i, s->match[i].at >= at);
}

static int report_symbol(struct symbol_search *s, uint32_t number, uint32_t i)
{
	const Elf64_Sym *symbol = &s->symbol[i];
	struct nt_elf_hit hit = {
		.rank = s->table->rank, .symbol = number, .value = symbol->st_value};

	if (number < s->table->versions && (s->version[i] & HIDDEN))
		hit.rank = NT_ELF_RANK_HIDDEN;
	for (size_t m = first_match(s, symbol->st_name);
	     m < s->matches && s->match[m].at == symbol->st_name; m++) {
		int r = nt_elf_reader_work(s->reader, 1);

		if (r < 0)
			return r;
		hit.wanted = s->match[m].wanted;
		r = s->fn(s->data, &hit);
		if (r != 0)
			return r;
	}
	return 0;
}

static int report_symbols(struct symbol_search *s)
{
	uint32_t n;

	for (uint32_t first = 0; s->matches && first < s->table->symbols; first += n) {
		int r = read_symbols(s, first, &n);

		if (r < 0)
			return r;
		r = read_versions(s, first, n);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++) {
			if (!is_candidate(s, &s->symbol[i]) || !is_begin(s, s->symbol[i].st_name))
				continue;
			r = report_symbol(s, first + i, i);
			if (r != 0)
				return r;
		}
	}
	return 0;
}

static int search_window(struct symbol_search *s)
{
	size_t bytes = (s->end - s->begin + 63ULL) / 64 * sizeof(*s->begins);
	int r = nt_elf_reader_alloc(s->reader, bytes, (void **)&s->begins);

	if (r < 0)
		return r;
	r = mark_names(s);
	r = r ?: match_names(s);
	r = r ?: report_symbols(s);
	nt_elf_reader_free(s->reader, s->begins, bytes);
	return r;
}

int nt_elf_search(struct nt_elf_reader *reader, const struct nt_elf_table *table,
		  const struct nt_elf_wanted *wanted, size_t n, nt_elf_hit_fn fn, void *data)
{
	struct symbol_search *s;
	int r;

	if (n > NT_ELF_WANTED_MAX)
		return -EINVAL;
	if (!table->symbols)
		return 0;
	r = nt_elf_reader_alloc(reader, sizeof(*s), (void **)&s);
	if (r < 0)
		return r;
	s->reader = reader;
	s->table = table;
	s->wanted = wanted;
	s->fn = fn;
	s->data = data;
	s->type = n && wanted[0].match == NT_ELF_OBJECT ? STT_OBJECT : STT_FUNC;
	index_wanted(s, n);
	while (r == 0 && s->end < table->strings_bytes) {
		s->begin = s->end;
		s->end = table->strings_bytes - s->begin > WINDOW_BYTES ? s->begin + WINDOW_BYTES
									: table->strings_bytes;
		r = search_window(s);
	}
	nt_elf_reader_free(reader, s, sizeof(*s));
	return r;
}
