/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/elf_note.h"
#include "agent/insn.h"

enum {
	SECTIONS_MAX = 4096,
	SEGMENTS_MAX = 64,
	TABLE_BYTES_MAX = 64 << 20, /* of one symbol or string table */
	NOTE_BYTES_MAX = 4096,
	MARKS_BYTES_MAX = 1 << 20, /* of all notes of places for probes */
	MARKS_MAX = 16, /* of one name */
	BUILD_ID_BYTES_MAX = 32,
	HIDDEN = 0x8000, /* of .gnu.version: not the default version */
	NO_SYMBOL = UINT32_MAX,
};

struct segment {
	uint64_t vaddr, offset, size;
};

/* Lower is better where a name is there twice. */
enum rank {
	RANK_DEFAULT,
	RANK_HIDDEN,
	RANK_SYMTAB,
};

struct symbol {
	const char *name; /* in a string table that libelf holds */
	uint64_t value;
	uint32_t next; /* with the same hash */
	uint32_t rank;
};

struct nt_elf {
	int fd;
	Elf *elf;
	uint16_t machine;
	struct segment code[SEGMENTS_MAX], data[SEGMENTS_MAX]; /* executable; writable */
	size_t codes, datas;
	struct symbol *symbol;
	size_t symbols, symbol_cap;
	uint32_t *head;
	size_t heads; /* a power of two */
	const Elf_Data *marks; /* .note.stapsdt; NULL: none. libelf holds it */
	uint64_t marks_base; /* address of .stapsdt.base; 0: not there */
	char build_id[2 * BUILD_ID_BYTES_MAX + 1];
};

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261U;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619U;
	return hash;
}

/* The whole data of a section; NULL where the header lies or is too big. */
static Elf_Data *read_section(Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data;

	if (header->sh_type == SHT_NOBITS || header->sh_size == 0 ||
	    header->sh_size > TABLE_BYTES_MAX)
		return NULL;
	data = elf_getdata(section, NULL);
	return data && data->d_buf && data->d_size ? data : NULL;
}

static int add_symbol(struct nt_elf *e, const char *name, uint64_t value, enum rank rank)
{
	if (e->symbols == e->symbol_cap) {
		size_t cap = e->symbol_cap ? e->symbol_cap * 2 : 1024;
		struct symbol *grown = realloc(e->symbol, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		e->symbol = grown;
		e->symbol_cap = cap;
	}
	e->symbol[e->symbols++] = (struct symbol){.name = name, .value = value, .rank = rank};
	return 0;
}

/* The names must end within their table, wherever the file says that they start. */
static const char *name_at(const Elf_Data *strings, size_t at)
{
	const char *name;

	if (at >= strings->d_size)
		return NULL;
	name = (const char *)strings->d_buf + at;
	return memchr(name, '\0', strings->d_size - at) ? name : NULL;
}

static int read_symbols(struct nt_elf *e, Elf_Scn *section, const GElf_Shdr *header,
			Elf_Data *versions)
{
	Elf_Data *data = read_section(section, header);
	Elf_Scn *string_section = elf_getscn(e->elf, header->sh_link);
	GElf_Shdr string_header;
	Elf_Data *strings;
	int r;

	if (!data || !string_section || !gelf_getshdr(string_section, &string_header) ||
	    string_header.sh_type != SHT_STRTAB)
		return 0;
	strings = read_section(string_section, &string_header);
	if (!strings)
		return 0;
	for (size_t i = 0; i < data->d_size / sizeof(Elf64_Sym); i++) {
		enum rank rank = versions ? RANK_DEFAULT : RANK_SYMTAB;
		const char *name;
		GElf_Versym version;
		GElf_Sym symbol;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
		    !symbol.st_value)
			continue;
		name = name_at(strings, symbol.st_name);
		if (!name || !*name)
			continue;
		if (header->sh_type == SHT_DYNSYM) {
			rank = RANK_DEFAULT;
			if (versions && gelf_getversym(versions, (int)i, &version) &&
			    (version & HIDDEN))
				rank = RANK_HIDDEN;
		}
		r = add_symbol(e, name, symbol.st_value, rank);
		if (r < 0)
			return r;
	}
	return 0;
}

static void read_build_id(struct nt_elf *e, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = header->sh_size <= NOTE_BYTES_MAX ? read_section(section, header) : NULL;
	size_t at = 0, name_at_byte, desc_at;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name_at_byte, &desc_at)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    memcmp((const char *)data->d_buf + name_at_byte, "GNU", 4) != 0 ||
		    note.n_descsz > BUILD_ID_BYTES_MAX)
			continue;
		for (size_t i = 0; i < note.n_descsz; i++)
			(void)snprintf(e->build_id + 2 * i, 3, "%02x",
				       ((const uint8_t *)data->d_buf)[desc_at + i]);
		return;
	}
}

/* Sections that are known by name alone. */
static void read_marks(struct nt_elf *e, Elf_Scn *section, const GElf_Shdr *header, size_t names)
{
	const char *name = elf_strptr(e->elf, names, header->sh_name);

	if (!name)
		return;
	if (header->sh_type == SHT_NOTE && !e->marks && header->sh_size <= MARKS_BYTES_MAX &&
	    strcmp(name, ".note.stapsdt") == 0)
		e->marks = read_section(section, header);
	else if (header->sh_type == SHT_PROGBITS && strcmp(name, ".stapsdt.base") == 0)
		e->marks_base = header->sh_addr;
}

static int read_sections(struct nt_elf *e)
{
	Elf_Scn *section = NULL, *dynsym = NULL, *symtab = NULL;
	GElf_Shdr header, dynsym_header, symtab_header;
	Elf_Data *versions = NULL;
	size_t n = 0, names = 0;
	int r;

	if (elf_getshdrstrndx(e->elf, &names) < 0)
		names = 0;

	while ((section = elf_nextscn(e->elf, section)) && n++ < SECTIONS_MAX) {
		if (!gelf_getshdr(section, &header))
			continue;
		if (header.sh_type == SHT_DYNSYM && !dynsym) {
			dynsym = section;
			dynsym_header = header;
		} else if (header.sh_type == SHT_SYMTAB && !symtab) {
			symtab = section;
			symtab_header = header;
		} else if (header.sh_type == SHT_GNU_versym && !versions) {
			versions = read_section(section, &header);
		} else if (header.sh_type == SHT_NOTE && !e->build_id[0]) {
			read_build_id(e, section, &header);
		}
		if (names)
			read_marks(e, section, &header, names);
	}
	if (dynsym) {
		r = read_symbols(e, dynsym, &dynsym_header, versions);
		if (r < 0)
			return r;
	}
	return symtab ? read_symbols(e, symtab, &symtab_header, NULL) : 0;
}

static int read_segments(struct nt_elf *e)
{
	GElf_Phdr header;
	size_t n;

	if (elf_getphdrnum(e->elf, &n) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < n && i < SECTIONS_MAX; i++) {
		struct segment segment;

		if (!gelf_getphdr(e->elf, (int)i, &header))
			return -EBADMSG;
		if (header.p_type != PT_LOAD)
			continue;
		segment = (struct segment){
			.vaddr = header.p_vaddr,
			.offset = header.p_offset,
			.size = header.p_filesz,
		};
		if ((header.p_flags & PF_X) && e->codes < SEGMENTS_MAX)
			e->code[e->codes++] = segment;
		else if ((header.p_flags & PF_W) && e->datas < SEGMENTS_MAX)
			e->data[e->datas++] = segment;
	}
	return 0;
}

static int index_symbols(struct nt_elf *e)
{
	e->heads = 64;
	while (e->heads < e->symbols)
		e->heads *= 2;
	e->head = malloc(e->heads * sizeof(*e->head));
	if (!e->head)
		return -ENOMEM;
	memset(e->head, 0xff, e->heads * sizeof(*e->head));
	for (size_t i = 0; i < e->symbols; i++) {
		uint32_t *head = &e->head[hash_of(e->symbol[i].name) & (e->heads - 1)];

		e->symbol[i].next = *head;
		*head = (uint32_t)i;
	}
	return 0;
}

int nt_elf_open(const char *path, struct nt_elf **ret_elf)
{
	nt_auto(nt_elf) struct nt_elf *e = NULL;
	GElf_Ehdr header;
	struct stat st;
	int r;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	/* Not blocking: the path may lead to a pipe or a device by now. */
	e->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (e->fd < 0)
		return -errno;
	if (fstat(e->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	/* Read, not mapped: a file that shrinks meanwhile must not kill us. */
	e->elf = elf_begin(e->fd, ELF_C_READ, NULL);
	if (!e->elf || elf_kind(e->elf) != ELF_K_ELF || !gelf_getehdr(e->elf, &header))
		return -EBADMSG;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64))
		return -EBADMSG;
	e->machine = header.e_machine;
	r = read_segments(e);
	if (r < 0)
		return r;
	r = read_sections(e);
	if (r < 0)
		return r;
	r = index_symbols(e);
	if (r < 0)
		return r;
	*ret_elf = nt_take(e);
	return 0;
}

void nt_elf_close(struct nt_elf *elf)
{
	if (!elf)
		return;
	free(elf->head);
	free(elf->symbol);
	if (elf->elf)
		elf_end(elf->elf);
	if (elf->fd >= 0)
		(void)close(elf->fd);
	free(elf);
}

static int offset_in(const struct segment *segment, size_t segments, uint64_t value,
		     uint64_t *ret_offset)
{
	for (size_t i = 0; i < segments; i++) {
		const struct segment *s = &segment[i];

		if (value < s->vaddr || value - s->vaddr >= s->size ||
		    __builtin_add_overflow(value - s->vaddr, s->offset, ret_offset))
			continue;
		return *ret_offset > INT64_MAX ? -EBADMSG : 0;
	}
	return -EBADMSG;
}

/* Where a function at this address is probed. */
static int place(const struct nt_elf *elf, uint64_t value, struct nt_elf_symbol *ret_symbol)
{
	uint8_t code[NT_INSN_BYTES];
	struct nt_insn_plan plan;
	uint64_t offset;
	ssize_t n;
	int r;

	r = offset_in(elf->code, elf->codes, value, &offset);
	if (r < 0)
		return r;
	n = pread(elf->fd, code, sizeof(code), (off_t)offset);
	if (n <= 0)
		return n < 0 ? -errno : -EBADMSG;
	if (elf->machine == EM_AARCH64)
		nt_insn_plan_arm64(code, (size_t)n, &plan);
	else
		nt_insn_plan_x86_64(code, (size_t)n, &plan);
	*ret_symbol = (struct nt_elf_symbol){
		.offset = offset,
		.entry_offset = offset + plan.entry,
		.return_offset = offset + plan.ret,
		.insn = plan.entry_insn,
		.return_insn = plan.return_insn,
	};
	return 0;
}

int nt_elf_find(const struct nt_elf *elf, const char *name, struct nt_elf_symbol *ret_symbol)
{
	const struct symbol *found = NULL;

	for (uint32_t i = elf->head[hash_of(name) & (elf->heads - 1)]; i != NO_SYMBOL;
	     i = elf->symbol[i].next) {
		const struct symbol *s = &elf->symbol[i];

		if (strcmp(s->name, name) == 0 && (!found || s->rank < found->rank))
			found = s;
	}
	return found ? place(elf, found->value, ret_symbol) : -ENOENT;
}

static bool is_clone(const char *symbol, const char *name, size_t len)
{
	return strncmp(symbol, name, len) == 0 &&
	       (symbol[len] == '\0' || (symbol[len] == '.' && !strstr(symbol + len, ".cold")));
}

int nt_elf_find_clones(const struct nt_elf *elf, const char *name, struct nt_elf_symbol *ret_symbol,
		       size_t max)
{
	size_t len = strlen(name), n = 0;
	int r;

	for (size_t i = 0; i < elf->symbols; i++) {
		struct nt_elf_symbol symbol;
		size_t known = 0;

		if (!is_clone(elf->symbol[i].name, name, len))
			continue;
		r = place(elf, elf->symbol[i].value, &symbol);
		if (r < 0)
			return r;
		while (known < n && ret_symbol[known].offset != symbol.offset)
			known++;
		if (known < n)
			continue;
		if (n == max)
			return -E2BIG;
		ret_symbol[n++] = symbol;
	}
	return (int)n;
}

static bool is_nop(const struct nt_elf *elf, uint64_t offset)
{
	static const uint8_t nop_x86_64[] = {0x90}, nop_arm64[] = {0x1f, 0x20, 0x03, 0xd5};
	bool arm64 = elf->machine == EM_AARCH64;
	size_t len = arm64 ? sizeof(nop_arm64) : sizeof(nop_x86_64);
	uint8_t code[sizeof(nop_arm64)];

	return pread(elf->fd, code, len, (off_t)offset) == (ssize_t)len &&
	       memcmp(code, arm64 ? nop_arm64 : nop_x86_64, len) == 0;
}

int nt_elf_find_marks(const struct nt_elf *elf, const char *provider, const char *name,
		      struct nt_elf_mark *ret_mark, size_t max)
{
	struct nt_elf_note note[MARKS_MAX];
	struct nt_elf_mark mark[MARKS_MAX] = {0};
	size_t n = 0;

	if (elf->marks)
		n = nt_elf_note_find(elf->marks->d_buf, elf->marks->d_size, provider, name, note,
				     MARKS_MAX);
	if (n > max || n > MARKS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		/* prelink moves all but the notes. It wraps where that was downwards. */
		uint64_t moved = elf->marks_base ? elf->marks_base - note[i].base : 0;

		if (offset_in(elf->code, elf->codes, note[i].location + moved, &mark[i].offset) <
			    0 ||
		    !is_nop(elf, mark[i].offset))
			return -EBADMSG;
		if (note[i].semaphore && offset_in(elf->data, elf->datas, note[i].semaphore + moved,
						   &mark[i].semaphore) < 0)
			return -EBADMSG;
	}
	memcpy(ret_mark, mark, n * sizeof(*mark));
	return (int)n;
}

bool nt_elf_has_prefix(const struct nt_elf *elf, const char *prefix)
{
	size_t len = strlen(prefix);

	for (size_t i = 0; i < elf->symbols; i++)
		if (strncmp(elf->symbol[i].name, prefix, len) == 0)
			return true;
	return false;
}

const char *nt_elf_build_id(const struct nt_elf *elf)
{
	return elf->build_id;
}
