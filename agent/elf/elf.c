/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/elf/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/elf/elf_impl.h"
#include "agent/elf/insn.h"

enum {
	SECTIONS_MAX = 4096, /* plus the first, which is a placeholder */
	HEADERS_MAX = 4096, /* of segments */
	HEADERS_AT_ONCE = 64,
	TABLE_BYTES_MAX = 64 << 20, /* of one symbol or string table */
	NOTES_MAX = 16, /* sections searched for the build-id */
	NOTE_BYTES_MAX = 4096, /* of one */
	MARKS_BYTES_MAX = 1 << 20, /* of all notes of places for probes */
	MARKS_MAX = 16, /* of one name */
	CLONES_MAX = 16, /* of one function */
	SECTION_NAME_BYTES = 14, /* longest name looked up: both have this length */
};

static int read_segments(struct nt_elf *e, const Elf64_Ehdr *header)
{
	Elf64_Phdr program[HEADERS_AT_ONCE];
	/* PN_XNUM is above HEADERS_MAX: no special case. */
	size_t left = header->e_phnum < HEADERS_MAX ? header->e_phnum : HEADERS_MAX, n;

	if (left && header->e_phentsize != sizeof(*program))
		return -EBADMSG;
	if (!nt_elf_reader_holds(&e->reader, header->e_phoff, left * sizeof(*program)))
		return -EBADMSG;
	for (uint64_t at = header->e_phoff; left; left -= n, at += n * sizeof(*program)) {
		int r;

		n = left < HEADERS_AT_ONCE ? left : HEADERS_AT_ONCE;
		r = nt_elf_reader_read(&e->reader, at, program, n * sizeof(*program));
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++) {
			const struct nt_elf_segment segment = {
				.vaddr = program[i].p_vaddr,
				.offset = program[i].p_offset,
				.size = program[i].p_filesz,
			};

			if (program[i].p_type == PT_GNU_EH_FRAME)
				e->unwind_vaddr = segment.vaddr;
			if (program[i].p_type != PT_LOAD)
				continue;
			if ((program[i].p_flags & PF_X) && e->codes < NT_ELF_SEGMENTS)
				e->code[e->codes++] = segment;
			else if ((program[i].p_flags & PF_W) && e->datas < NT_ELF_SEGMENTS)
				e->data[e->datas++] = segment;
		}
	}
	return 0;
}

/* Counts that do not fit into the header are in the first section. */
static int read_sections(struct nt_elf *e, const Elf64_Ehdr *header)
{
	uint64_t n = header->e_shnum;
	Elf64_Shdr first;
	int r;

	if (!header->e_shoff)
		return 0;
	if (header->e_shentsize != sizeof(first))
		return -EBADMSG;
	r = nt_elf_reader_read(&e->reader, header->e_shoff, &first, sizeof(first));
	if (r < 0)
		return r;
	if (!n)
		n = first.sh_size;
	if (n > SECTIONS_MAX + 1)
		n = SECTIONS_MAX + 1;
	if (!n)
		return 0;
	if (!nt_elf_reader_holds(&e->reader, header->e_shoff, n * sizeof(first)))
		return -EBADMSG;
	r = nt_elf_reader_alloc(&e->reader, n * sizeof(first), (void **)&e->section);
	if (r < 0)
		return r;
	e->sections = (uint32_t)n;
	e->names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
	return nt_elf_reader_read(&e->reader, header->e_shoff, e->section, n * sizeof(first));
}

/* True if the section's range lies in the file. */
static bool holds(const struct nt_elf *e, const Elf64_Shdr *section)
{
	return section->sh_size &&
	       nt_elf_reader_holds(&e->reader, section->sh_offset, section->sh_size);
}

/* Combines the headers of a symbol table, its names and its versions (NULL: none). */
static struct nt_elf_table table_of(const Elf64_Shdr *symbols, const Elf64_Shdr *strings,
				    const Elf64_Shdr *versions)
{
	struct nt_elf_table table = {
		.symbols_at = symbols->sh_offset,
		.symbols = (uint32_t)(symbols->sh_size / sizeof(Elf64_Sym)),
		.strings_at = strings->sh_offset,
		.strings_bytes = (uint32_t)strings->sh_size,
		.rank = symbols->sh_type == SHT_DYNSYM ? NT_ELF_RANK_DEFAULT : NT_ELF_RANK_SYMTAB,
	};
	uint64_t n = versions ? versions->sh_size / sizeof(Elf64_Versym) : 0;

	if (n) {
		table.versions_at = versions->sh_offset;
		table.versions = n < table.symbols ? (uint32_t)n : table.symbols;
	}
	return table;
}

/*
 * Leaves *table unchanged if the headers are invalid, or a search of it after *before would exceed
 * the budget.
 */
static void find_table(struct nt_elf *e, const Elf64_Shdr *symbols, const Elf64_Shdr *versions,
		       const struct nt_elf_table *before, struct nt_elf_table *table)
{
	struct nt_elf_cost cost = nt_elf_table_cost(before), more;
	const Elf64_Shdr *strings;
	struct nt_elf_table found;

	if (!symbols || symbols->sh_link >= e->sections)
		return;
	strings = &e->section[symbols->sh_link];
	if (strings->sh_type != SHT_STRTAB || !holds(e, symbols) || !holds(e, strings))
		return;
	found = table_of(symbols, strings, versions);
	more = nt_elf_table_cost(&found);
	if (symbols->sh_size > TABLE_BYTES_MAX || strings->sh_size > TABLE_BYTES_MAX ||
	    !nt_elf_reader_affords(&e->reader, cost.bytes + more.bytes, cost.work + more.work))
		e->passed_over = true;
	else
		*table = found;
}

static int read_build_id(struct nt_elf *e, const Elf64_Shdr *section)
{
	uint8_t note[NOTE_BYTES_MAX];
	int r;

	if (section->sh_size > sizeof(note) || !holds(e, section))
		return 0;
	r = nt_elf_reader_read(&e->reader, section->sh_offset, note, section->sh_size);
	if (r < 0)
		return r;
	(void)nt_elf_note_build_id(note, section->sh_size, e->build_id);
	return 0;
}

static int look_at_sections(struct nt_elf *e)
{
	const Elf64_Shdr *dynsym = NULL, *symtab = NULL, *versions = NULL;
	size_t notes = 0;

	for (uint32_t i = 1; i < e->sections; i++) {
		const Elf64_Shdr *section = &e->section[i];
		int r = 0;

		if (section->sh_type == SHT_DYNSYM && !dynsym)
			dynsym = section;
		else if (section->sh_type == SHT_SYMTAB && !symtab)
			symtab = section;
		else if (section->sh_type == SHT_GNU_versym && !versions && holds(e, section))
			versions = section;
		else if (section->sh_type == SHT_NOTE && !e->build_id[0] && notes++ < NOTES_MAX)
			r = read_build_id(e, section);
		if (r < 0)
			return r;
	}
	find_table(e, dynsym, versions, &e->dynsym, &e->dynsym);
	find_table(e, symtab, NULL, &e->dynsym, &e->symtab);
	return 0;
}

static int read_headers(struct nt_elf *e)
{
	static const uint8_t begin[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
	Elf64_Ehdr header;
	int r = nt_elf_reader_read(&e->reader, 0, &header, sizeof(header));

	if (r < 0)
		return r;
	if (memcmp(header.e_ident, begin, sizeof(begin)) != 0 ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64))
		return -EBADMSG;
	e->machine = header.e_machine;
	r = read_segments(e, &header);
	if (r < 0)
		return r;
	r = read_sections(e, &header);
	return r < 0 ? r : look_at_sections(e);
}

int nt_elf_open_fd(int fd, const struct nt_elf_budget *budget, struct nt_elf **ret_elf)
{
	nt_auto(nt_elf) struct nt_elf *e = NULL;
	struct nt_elf_reader reader;
	int r;

	r = nt_elf_reader_init(&reader, fd, budget);
	if (r < 0)
		return r;
	r = nt_elf_reader_alloc(&reader, sizeof(*e), (void **)&e);
	if (r < 0)
		return r;
	e->reader = reader;
	e->own_fd = -1;
	r = read_headers(e);
	if (r < 0)
		return r;
	*ret_elf = nt_take(e);
	return 0;
}

int nt_elf_open(const char *path, struct nt_elf **ret_elf)
{
	/* Non-blocking: the path may lead to a pipe or a device by now. */
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return -errno;
	r = nt_elf_open_fd(fd, NULL, ret_elf);
	if (r < 0)
		return r;
	(*ret_elf)->own_fd = nt_take_fd(&fd);
	return 0;
}

void nt_elf_close(struct nt_elf *elf)
{
	if (!elf)
		return;
	free(elf->section);
	if (elf->own_fd >= 0)
		(void)close(elf->own_fd);
	free(elf);
}

const struct nt_elf_cost *nt_elf_cost(const struct nt_elf *elf)
{
	return &elf->reader.cost;
}

bool nt_elf_passed_over(const struct nt_elf *elf)
{
	return elf->passed_over;
}

static int offset_in(const struct nt_elf_segment *segment, size_t segments, uint64_t value,
		     uint64_t *ret_offset)
{
	for (size_t i = 0; i < segments; i++) {
		const struct nt_elf_segment *s = &segment[i];

		if (value < s->vaddr || value - s->vaddr >= s->size ||
		    __builtin_add_overflow(value - s->vaddr, s->offset, ret_offset))
			continue;
		return *ret_offset > INT64_MAX ? -EBADMSG : 0;
	}
	return -EBADMSG;
}

/* The probe places of a function at this address. */
static int place(struct nt_elf *elf, uint64_t value, struct nt_elf_symbol *ret_symbol)
{
	uint8_t code[NT_INSN_BYTES];
	struct nt_insn_plan plan;
	uint64_t offset;
	ssize_t n;
	int r;

	r = offset_in(elf->code, elf->codes, value, &offset);
	if (r < 0)
		return r;
	n = nt_elf_reader_read_some(&elf->reader, offset, code, sizeof(code));
	if (n <= 0)
		return n < 0 ? (int)n : -EBADMSG;
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

static int search(struct nt_elf *elf, const struct nt_elf_wanted *wanted, size_t n,
		  nt_elf_hit_fn fn, void *data)
{
	int r = nt_elf_search(&elf->reader, &elf->dynsym, wanted, n, fn, data);

	return r ?: nt_elf_search(&elf->reader, &elf->symtab, wanted, n, fn, data);
}

/* The best symbol of a name so far. */
struct best {
	bool found;
	enum nt_elf_rank rank;
	uint32_t symbol;
	uint64_t value;
};

struct wanted_search {
	const struct nt_elf_wanted *wanted;
	struct best *best;
	size_t open; /* wanted names whose result may still change */
};

/* Of two symbols of one rank the later wins. */
static int keep_best(void *data, const struct nt_elf_hit *hit)
{
	struct wanted_search *finding = data;
	struct best *best = &finding->best[hit->wanted];

	if (finding->wanted[hit->wanted].match == NT_ELF_PREFIX) {
		finding->open -= !best->found;
		best->found = true;
		return !finding->open;
	}
	if (best->found &&
	    (best->rank < hit->rank || (best->rank == hit->rank && best->symbol > hit->symbol)))
		return 0;
	*best = (struct best){
		.found = true, .rank = hit->rank, .symbol = hit->symbol, .value = hit->value};
	return 0;
}

/* An error of one function is its result; an error of the file fails the call. */
static int place_best(struct nt_elf *elf, enum nt_elf_match match, const struct best *best,
		      struct nt_elf_found *ret_found)
{
	struct nt_elf_found found = {.result = best->found ? 0 : -ENOENT};

	if (best->found && match != NT_ELF_PREFIX)
		found.result = place(elf, best->value, &found.symbol);
	if (found.result < 0 && found.result != -ENOENT && found.result != -EBADMSG)
		return found.result;
	*ret_found = found;
	return 0;
}

int nt_elf_find_all(struct nt_elf *elf, const struct nt_elf_wanted *wanted, size_t n,
		    struct nt_elf_found *ret_found)
{
	struct wanted_search finding = {.wanted = wanted, .open = n};
	int r;

	if (n == 0 || n > NT_ELF_WANTED_MAX)
		return -EINVAL;
	r = nt_elf_reader_alloc(&elf->reader, n * sizeof(*finding.best), (void **)&finding.best);
	if (r < 0)
		return r;
	r = search(elf, wanted, n, keep_best, &finding);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = place_best(elf, wanted[i].match, &finding.best[i], &ret_found[i]);
	nt_elf_reader_free(&elf->reader, finding.best, n * sizeof(*finding.best));
	return r < 0 ? r : 0;
}

int nt_elf_has_prefix(struct nt_elf *elf, const char *prefix)
{
	const struct nt_elf_wanted wanted = {.name = prefix, .match = NT_ELF_PREFIX};
	struct nt_elf_found found;
	int r;

	r = nt_elf_find_all(elf, &wanted, 1, &found);
	return r < 0 ? r : found.result == 0;
}

struct naming {
	nt_elf_name_fn fn;
	void *data;
};

static int pass_name(void *data, const struct nt_elf_hit *hit)
{
	const struct naming *naming = data;

	naming->fn(naming->data, hit->name);
	return 0;
}

int nt_elf_each_name(struct nt_elf *elf, const char *prefix, nt_elf_name_fn fn, void *data)
{
	const struct nt_elf_wanted wanted = {.name = prefix, .match = NT_ELF_PREFIX};
	struct naming naming = {.fn = fn, .data = data};
	int r = nt_elf_search(&elf->reader, &elf->dynsym, &wanted, 1, pass_name, &naming);

	return r < 0 ? r : 0;
}

struct clones {
	uint64_t value[CLONES_MAX];
	size_t n, max;
};

static int keep_clone(void *data, const struct nt_elf_hit *hit)
{
	struct clones *clones = data;

	for (size_t i = 0; i < clones->n; i++)
		if (clones->value[i] == hit->value)
			return 0;
	if (clones->n == clones->max)
		return -E2BIG;
	clones->value[clones->n++] = hit->value;
	return 0;
}

int nt_elf_find_clones(struct nt_elf *elf, const char *name, struct nt_elf_symbol *ret_symbol,
		       size_t max)
{
	const struct nt_elf_wanted wanted = {.name = name, .match = NT_ELF_CLONES};
	struct clones clones = {.max = max};
	struct nt_elf_symbol symbol[CLONES_MAX];
	size_t n = 0;
	int r;

	if (max > CLONES_MAX)
		return -EINVAL;
	r = search(elf, &wanted, 1, keep_clone, &clones);
	if (r < 0)
		return r;
	for (size_t i = 0; i < clones.n; i++) {
		size_t known = 0;

		r = place(elf, clones.value[i], &symbol[n]);
		if (r < 0)
			return r;
		while (known < n && symbol[known].offset != symbol[n].offset)
			known++;
		n += known == n;
	}
	memcpy(ret_symbol, symbol, n * sizeof(*symbol));
	return (int)n;
}

/* One byte in SystemTap's marks, five in those that the kernel can replace by a call. */
static bool is_nop(struct nt_elf *elf, uint64_t offset)
{
	static const uint8_t one[] = {0x90}, five[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	static const uint8_t nop_arm64[] = {0x1f, 0x20, 0x03, 0xd5};
	uint8_t code[sizeof(five)] = {0};

	if (elf->machine == EM_AARCH64)
		return nt_elf_reader_read(&elf->reader, offset, code, sizeof(nop_arm64)) == 0 &&
		       memcmp(code, nop_arm64, sizeof(nop_arm64)) == 0;
	if (nt_elf_reader_read(&elf->reader, offset, code, sizeof(one)) < 0)
		return false;
	if (code[0] == one[0])
		return true;
	return nt_elf_reader_read(&elf->reader, offset, code, sizeof(five)) == 0 &&
	       memcmp(code, five, sizeof(five)) == 0;
}

/* Reads as much of a section's name as the wanted ones are long. */
static int read_name(struct nt_elf *elf, const Elf64_Shdr *section, char name[SECTION_NAME_BYTES])
{
	const Elf64_Shdr *names;

	memset(name, 0, SECTION_NAME_BYTES);
	if (!elf->names || elf->names >= elf->sections)
		return 0;
	names = &elf->section[elf->names];
	if (names->sh_type != SHT_STRTAB || !holds(elf, names) ||
	    section->sh_name > names->sh_size ||
	    names->sh_size - section->sh_name < SECTION_NAME_BYTES)
		return 0;
	return nt_elf_reader_read(&elf->reader, names->sh_offset + section->sh_name, name,
				  SECTION_NAME_BYTES);
}

/* ret_notes: NULL where there are none. ret_base: address of .stapsdt.base; 0: not there. */
static int find_notes(struct nt_elf *elf, const Elf64_Shdr **ret_notes, uint64_t *ret_base)
{
	static const char notes_name[SECTION_NAME_BYTES] = ".note.stapsdt",
			  base_name[SECTION_NAME_BYTES] = ".stapsdt.base";
	const Elf64_Shdr *notes = NULL;
	uint64_t base = 0;

	for (uint32_t i = 1; i < elf->sections; i++) {
		const Elf64_Shdr *section = &elf->section[i];
		char name[SECTION_NAME_BYTES];
		int r;

		if (section->sh_type != SHT_NOTE && section->sh_type != SHT_PROGBITS)
			continue;
		r = read_name(elf, section, name);
		if (r < 0)
			return r;
		if (section->sh_type == SHT_PROGBITS && memcmp(name, base_name, sizeof(name)) == 0)
			base = section->sh_addr;
		if (section->sh_type == SHT_NOTE && !notes &&
		    memcmp(name, notes_name, sizeof(name)) == 0 &&
		    section->sh_size <= MARKS_BYTES_MAX && holds(elf, section))
			notes = section;
	}
	*ret_notes = notes;
	*ret_base = base;
	return 0;
}

/* Returns their number, and the first MARKS_MAX. */
static int read_marks(struct nt_elf *elf, const Elf64_Shdr *notes, const char *provider,
		      const char *name, struct nt_elf_note *ret_note)
{
	size_t bytes = notes ? notes->sh_size : 0;
	void *data;
	int r;

	if (!bytes)
		return 0;
	r = nt_elf_reader_work(&elf->reader, bytes / sizeof(Elf64_Nhdr));
	if (r < 0)
		return r;
	r = nt_elf_reader_alloc(&elf->reader, bytes, &data);
	if (r < 0)
		return r;
	r = nt_elf_reader_read(&elf->reader, notes->sh_offset, data, bytes);
	if (r >= 0)
		r = (int)nt_elf_note_find(data, bytes, provider, name, ret_note, MARKS_MAX);
	nt_elf_reader_free(&elf->reader, data, bytes);
	return r;
}

int nt_elf_find_marks(struct nt_elf *elf, const char *provider, const char *name,
		      struct nt_elf_mark *ret_mark, size_t max)
{
	struct nt_elf_note note[MARKS_MAX];
	struct nt_elf_mark mark[MARKS_MAX] = {0};
	const Elf64_Shdr *notes;
	uint64_t base;
	int r, n;

	r = find_notes(elf, &notes, &base);
	if (r < 0)
		return r;
	n = read_marks(elf, notes, provider, name, note);
	if (n < 0)
		return n;
	if ((size_t)n > max || n > MARKS_MAX)
		return -E2BIG;
	for (int i = 0; i < n; i++) {
		/* prelink moves all but the notes. Wraps if that was downwards. */
		uint64_t moved = base ? base - note[i].base : 0;

		if (offset_in(elf->code, elf->codes, note[i].location + moved, &mark[i].offset) <
			    0 ||
		    !is_nop(elf, mark[i].offset))
			return -EBADMSG;
		if (note[i].semaphore && offset_in(elf->data, elf->datas, note[i].semaphore + moved,
						   &mark[i].semaphore) < 0)
			return -EBADMSG;
	}
	memcpy(ret_mark, mark, (size_t)n * sizeof(*mark));
	return n;
}

const char *nt_elf_build_id(const struct nt_elf *elf)
{
	return elf->build_id;
}
