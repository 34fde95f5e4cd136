/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "agent/elf/elf.h"
#include "tests/unit/agent/elf_image.h"

static struct image image;

static int begin(void **state)
{
	(void)state;
	image_init(&image);
	return 0;
}

static int end(void **state)
{
	(void)state;
	image_close(&image);
	return 0;
}

static struct nt_elf *open_image(void)
{
	struct nt_elf *elf = NULL;

	assert_int_equal(nt_elf_open(image_save(&image), &elf), 0);
	return elf;
}

static void check_refused(int error)
{
	struct nt_elf *elf = NULL;

	assert_int_equal(nt_elf_open(image_save(&image), &elf), error);
	assert_null(elf);
}

static void check_offset(const char *name, uint64_t at)
{
	struct nt_elf *elf = open_image();
	struct nt_elf_symbol symbol;

	assert_int_equal(find_one(elf, name, &symbol), 0);
	assert_int_equal(symbol.offset, IMAGE_CODE + at);
	nt_elf_close(elf);
}

static void check_missing(const char *name, int error)
{
	struct nt_elf *elf = open_image();
	struct nt_elf_symbol symbol = {.offset = 42};

	assert_int_equal(find_one(elf, name, &symbol), error);
	assert_int_equal(symbol.offset, 42);
	nt_elf_close(elf);
}

static void an_address_becomes_an_offset_in_the_file(void **state)
{
	(void)state;
	(void)image_add_dynamic(&image, "ncclAllReduce", 0x20, 1);
	check_offset("ncclAllReduce", 0x20);
}

static void a_name_that_is_not_defined_here_is_not_found(void **state)
{
	(void)state;
	image_add_dynamic(&image, "ncclAllReduce", 0x20, 1)->st_shndx = SHN_UNDEF;
	check_missing("ncclAllReduce", -ENOENT);
	check_missing("ncclAllReduc", -ENOENT);
	check_missing("", -ENOENT);
}

static void data_is_no_function(void **state)
{
	(void)state;
	image_add_dynamic(&image, "ncclAllReduce", 0x20, 1)->st_info =
		ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	check_missing("ncclAllReduce", -ENOENT);
}

static void the_default_version_wins_wherever_it_stands(void **state)
{
	(void)state;
	(void)image_add_dynamic(&image, "ibv_open_device", 0x20, 2 | 0x8000);
	(void)image_add_dynamic(&image, "ibv_open_device", 0x40, 3);
	(void)image_add_dynamic(&image, "ibv_open_device", 0x60, 4 | 0x8000);
	check_offset("ibv_open_device", 0x40);
}

static void a_hidden_version_is_better_than_none(void **state)
{
	(void)state;
	(void)image_add_dynamic(&image, "ibv_open_device", 0x20, 2 | 0x8000);
	check_offset("ibv_open_device", 0x20);
}

static void a_static_symbol_is_found_in_an_unstripped_program(void **state)
{
	(void)state;
	image_add_static(&image, "cudaLaunchKernel", 0x80)->st_info =
		ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
	check_offset("cudaLaunchKernel", 0x80);
}

static void of_two_of_one_rank_the_later_is_taken(void **state)
{
	(void)state;
	(void)image_add_static(&image, "cudaLaunchKernel", 0x80);
	(void)image_add_static(&image, "cudaLaunchKernel", 0x90);
	(void)image_add_dynamic(&image, "ncclSend", 0x20, 2);
	(void)image_add_dynamic(&image, "ncclSend", 0x30, 3);
	check_offset("cudaLaunchKernel", 0x90);
	image_close(&image);
	check_offset("ncclSend", 0x30);
}

static void the_dynamic_symbol_is_preferred_to_the_static_one(void **state)
{
	(void)state;
	(void)image_add_static(&image, "cudaLaunchKernel", 0x80);
	(void)image_add_dynamic(&image, "cudaLaunchKernel", 0x40, 1 | 0x8000);
	check_offset("cudaLaunchKernel", 0x40);
}

static void prefixes_find_what_is_linked_statically(void **state)
{
	struct nt_elf *elf;

	(void)state;
	(void)image_add_static(&image, "cudaLaunchKernel", 0x80);
	image_add_dynamic(&image, "ncclAllReduce", 0x20, 1)->st_shndx = SHN_UNDEF;
	elf = open_image();
	assert_int_equal(nt_elf_has_prefix(elf, "cudaLaunch"), 1);
	assert_int_equal(nt_elf_has_prefix(elf, "cudaLaunchKernelExC"), 0);
	assert_int_equal(nt_elf_has_prefix(elf, "nccl"), 0);
	nt_elf_close(elf);
}

static void the_build_id_is_hex(void **state)
{
	struct nt_elf *elf = open_image();

	(void)state;
	assert_string_equal(nt_elf_build_id(elf), "deadbeef");
	nt_elf_close(elf);
}

static void a_file_without_build_id_has_an_empty_one(void **state)
{
	struct nt_elf *elf;

	(void)state;
	image_section(&image, SECTION_NOTE)->sh_type = SHT_NULL;
	elf = open_image();
	assert_string_equal(nt_elf_build_id(elf), "");
	nt_elf_close(elf);
}

static void a_build_id_of_the_longest_kind_is_whole(void **state)
{
	struct nt_elf *elf;

	(void)state;
	((Elf64_Nhdr *)(void *)(image.bytes + AT_NOTE))->n_descsz = 32;
	memset(image.bytes + AT_NOTE + 16, 0xab, 32);
	image_section(&image, SECTION_NOTE)->sh_size = 16 + 32;
	elf = open_image();
	assert_int_equal(strlen(nt_elf_build_id(elf)), 64);
	assert_int_equal(strspn(nt_elf_build_id(elf), "ab"), 64);
	nt_elf_close(elf);
	image_close(&image);
	((Elf64_Nhdr *)(void *)(image.bytes + AT_NOTE))->n_descsz = 33;
	image_section(&image, SECTION_NOTE)->sh_size = 16 + 36;
	elf = open_image();
	assert_string_equal(nt_elf_build_id(elf), "");
	nt_elf_close(elf);
}

static void a_build_id_is_one_among_the_notes_alone(void **state)
{
	struct nt_elf *elf;

	(void)state;
	image_section(&image, SECTION_NOTE)->sh_type = SHT_PROGBITS;
	elf = open_image();
	assert_string_equal(nt_elf_build_id(elf), "");
	nt_elf_close(elf);
	image_close(&image);
	image_section(&image, SECTION_NOTE)->sh_type = SHT_NOTE;
	((Elf64_Nhdr *)(void *)(image.bytes + AT_NOTE))->n_type = NT_GNU_BUILD_ID + 1;
	elf = open_image();
	assert_string_equal(nt_elf_build_id(elf), "");
	nt_elf_close(elf);
	image_close(&image);
	((Elf64_Nhdr *)(void *)(image.bytes + AT_NOTE))->n_type = NT_GNU_BUILD_ID;
	image.bytes[AT_NOTE + 12] = 'X';
	elf = open_image();
	assert_string_equal(nt_elf_build_id(elf), "");
	nt_elf_close(elf);
}

static void notes_are_read_up_to_a_page(void **state)
{
	struct nt_elf *elf;

	(void)state;
	image_section(&image, SECTION_NOTE)->sh_size = 4096;
	elf = open_image();
	assert_string_equal(nt_elf_build_id(elf), "deadbeef");
	nt_elf_close(elf);
	image_close(&image);
	image_section(&image, SECTION_NOTE)->sh_size = 4097;
	elf = open_image();
	assert_string_equal(nt_elf_build_id(elf), "");
	nt_elf_close(elf);
}

/* Real libraries have tens of thousands. */
static void each_of_thousands_of_functions_is_found(void **state)
{
	enum {
		MANY = 5000,
		NAME_BYTES = 8,
		AT_ONCE = 1000,
	};
	static struct nt_elf_wanted wanted[AT_ONCE];
	static struct nt_elf_found found[AT_ONCE];
	static Elf64_Sym symbol[MANY];
	static char names[MANY * NAME_BYTES];
	struct nt_elf *elf = NULL;
	const char *path;

	(void)state;
	for (uint32_t i = 1; i < MANY; i++) {
		(void)snprintf(names + (size_t)i * NAME_BYTES, NAME_BYTES, "f%u", i);
		symbol[i] = image_function(i * NAME_BYTES, i % IMAGE_CODE_BYTES);
	}
	image_section(&image, SECTION_VERSYM)->sh_type = SHT_NULL;
	image_section(&image, SECTION_DYNSYM)->sh_offset = IMAGE_BYTES;
	image_section(&image, SECTION_DYNSYM)->sh_size = sizeof(symbol);
	image_section(&image, SECTION_DYNSTR)->sh_offset = IMAGE_BYTES + sizeof(symbol);
	image_section(&image, SECTION_DYNSTR)->sh_size = sizeof(names);
	path = image_save(&image);
	assert_int_equal(write(image.fd, symbol, sizeof(symbol)), sizeof(symbol));
	assert_int_equal(write(image.fd, names, sizeof(names)), sizeof(names));
	assert_int_equal(nt_elf_open(path, &elf), 0);
	for (uint32_t first = 0; first < MANY; first += AT_ONCE) {
		for (uint32_t i = 0; i < AT_ONCE; i++)
			wanted[i].name = names + (size_t)(first + i) * NAME_BYTES;
		assert_int_equal(nt_elf_find_all(elf, wanted, AT_ONCE, found), 0);
		for (uint32_t i = 0; i < AT_ONCE; i++) {
			assert_int_equal(found[i].result, first + i ? 0 : -ENOENT);
			if (first + i)
				assert_int_equal(found[i].symbol.offset,
						 IMAGE_CODE + (first + i) % IMAGE_CODE_BYTES);
		}
	}
	wanted[0].name = "f5000";
	assert_int_equal(nt_elf_find_all(elf, wanted, 1, found), 0);
	assert_int_equal(found[0].result, -ENOENT);
	nt_elf_close(elf);
}

/* A table of symbols that stands behind so many sections is not looked for. */
static void sections_are_looked_at_up_to_a_cap(void **state)
{
	enum {
		CAP = 4096, /* and the first, which is none */
	};
	static Elf64_Shdr section[CAP + 2];

	(void)state;
	(void)image_add_static(&image, "f", 0x10);
	image_header(&image)->e_shoff = IMAGE_BYTES;
	image_header(&image)->e_shnum = CAP + 2;
	section[1] = *image_section(&image, SECTION_STRTAB);
	for (size_t at = CAP; at <= CAP + 1; at++) {
		struct nt_elf_symbol symbol;
		struct nt_elf *elf = NULL;
		const char *path;

		section[at] = *image_section(&image, SECTION_SYMTAB);
		section[at].sh_link = 1;
		path = image_save(&image);
		assert_int_equal(write(image.fd, section, sizeof(section)), sizeof(section));
		assert_int_equal(nt_elf_open(path, &elf), 0);
		assert_int_equal(find_one(elf, "f", &symbol), at == CAP ? 0 : -ENOENT);
		nt_elf_close(elf);
		image_close(&image);
		section[at] = (Elf64_Shdr){.sh_type = SHT_NULL};
	}
}

static void the_first_instruction_decides_where_probes_go(void **state)
{
	struct nt_elf_symbol symbol;
	struct nt_elf *elf;

	(void)state;
	image_code(&image, 0x40, "\xf3\x0f\x1e\xfa\x53", 5); /* endbr64; push %rbx */
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	elf = open_image();
	assert_int_equal(find_one(elf, "ncclSend", &symbol), 0);
	assert_int_equal(symbol.offset, IMAGE_CODE + 0x40);
	assert_int_equal(symbol.entry_offset, IMAGE_CODE + 0x44);
	assert_int_equal(symbol.insn, NT_INSN_CHEAP);
	assert_int_equal(symbol.return_offset, IMAGE_CODE + 0x44);
	assert_int_equal(symbol.return_insn, NT_INSN_CHEAP);
	nt_elf_close(elf);
}

static void arm64_code_is_read_as_such(void **state)
{
	struct nt_elf_symbol symbol;
	struct nt_elf *elf;

	(void)state;
	image_header(&image)->e_machine = EM_AARCH64;
	image_code(&image, 0x40, "\x5f\x24\x03\xd5\xfd\x7b\xbe\xa9", 8); /* bti c; stp x29, x30 */
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	elf = open_image();
	assert_int_equal(find_one(elf, "ncclSend", &symbol), 0);
	assert_int_equal(symbol.entry_offset, IMAGE_CODE + 0x44);
	assert_int_equal(symbol.insn, NT_INSN_CHEAP);
	nt_elf_close(elf);
}

/* ---- hostile ------------------------------------------------------------------------------ */

static void an_address_outside_the_code_is_an_error(void **state)
{
	(void)state;
	(void)image_add_dynamic(&image, "before", 0, 1);
	image_add_dynamic(&image, "past", 0, 1)->st_value = IMAGE_BASE + IMAGE_CODE_BYTES;
	image_add_dynamic(&image, "far", 0, 1)->st_value = UINT64_MAX;
	image_add_dynamic(&image, "low", 0, 1)->st_value = 1;
	check_offset("before", 0);
	check_missing("past", -EBADMSG);
	check_missing("far", -EBADMSG);
	check_missing("low", -EBADMSG);
}

static void code_beyond_the_end_of_the_file_is_an_error(void **state)
{
	(void)state;
	image_segment(&image)->p_offset = IMAGE_BYTES;
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	check_missing("ncclSend", -EBADMSG);
}

static void segments_beyond_the_end_of_the_file_are_refused(void **state)
{
	(void)state;
	image_header(&image)->e_phnum = 2000;
	image_header(&image)->e_phoff = IMAGE_BYTES - 56;
	check_refused(-EBADMSG);
}

static void an_offset_that_wraps_around_is_an_error(void **state)
{
	(void)state;
	image_segment(&image)->p_offset = UINT64_MAX - 0x10;
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	check_missing("ncclSend", -EBADMSG);
}

static void a_segment_that_is_not_executable_holds_no_functions(void **state)
{
	(void)state;
	image_segment(&image)->p_flags = PF_R | PF_W;
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	check_missing("ncclSend", -EBADMSG);
}

static void a_name_beyond_its_table_is_passed_over(void **state)
{
	(void)state;
	image_add_dynamic(&image, "ncclSend", 0x40, 1)->st_name = 512;
	image_add_dynamic(&image, "ncclRecv", 0x60, 1)->st_name = UINT32_MAX;
	(void)image_add_dynamic(&image, "ncclReduce", 0x80, 1);
	check_missing("ncclSend", -ENOENT);
	check_missing("ncclRecv", -ENOENT);
	check_offset("ncclReduce", 0x80);
}

static void a_name_without_an_end_is_passed_over(void **state)
{
	(void)state;
	image_section(&image, SECTION_DYNSTR)->sh_size = 5;
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	check_missing("ncclSend", -ENOENT);
	check_missing("nccl", -ENOENT);
}

static void tables_that_lie_about_their_place_are_passed_over(void **state)
{
	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	image_section(&image, SECTION_DYNSYM)->sh_offset = UINT64_MAX - 4;
	check_missing("ncclSend", -ENOENT);
	image_close(&image);
	image_section(&image, SECTION_DYNSYM)->sh_offset = AT_DYNSYM;
	image_section(&image, SECTION_DYNSYM)->sh_size = 1ULL << 40;
	check_missing("ncclSend", -ENOENT);
}

static void a_table_that_links_to_no_strings_is_passed_over(void **state)
{
	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	image_section(&image, SECTION_DYNSYM)->sh_link = SECTION_DYNSYM;
	check_missing("ncclSend", -ENOENT);
	image_close(&image);
	image_section(&image, SECTION_DYNSYM)->sh_link = 4000;
	check_missing("ncclSend", -ENOENT);
}

static void versions_for_too_few_symbols_are_no_versions(void **state)
{
	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	(void)image_add_dynamic(&image, "ncclRecv", 0x60, 1);
	image_section(&image, SECTION_VERSYM)->sh_size = 2;
	check_offset("ncclRecv", 0x60);
}

static void a_build_id_that_is_too_long_is_none(void **state)
{
	struct nt_elf *elf;

	(void)state;
	((Elf64_Nhdr *)(void *)(image.bytes + AT_NOTE))->n_descsz = 4000;
	elf = open_image();
	assert_string_equal(nt_elf_build_id(elf), "");
	nt_elf_close(elf);
}

static void a_file_that_ends_early_is_refused_or_empty(void **state)
{
	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	for (size_t size = 0; size < AT_NOTE; size += 7) {
		struct nt_elf_symbol symbol;
		struct nt_elf *elf = NULL;
		int r;

		image.size = size;
		r = nt_elf_open(image_save(&image), &elf);
		assert_true(r == 0 || r == -EBADMSG);
		if (r == 0)
			assert_true(find_one(elf, "ncclSend", &symbol) < 0);
		nt_elf_close(elf);
		image_close(&image);
	}
}

static void other_machines_and_formats_are_refused(void **state)
{
	(void)state;
	image_header(&image)->e_machine = EM_RISCV;
	check_refused(-EBADMSG);
	image_close(&image);
	image_header(&image)->e_machine = EM_X86_64;
	image.bytes[EI_DATA] = ELFDATA2MSB;
	check_refused(-EBADMSG);
	image_close(&image);
	image.bytes[EI_DATA] = ELFDATA2LSB;
	image.bytes[EI_CLASS] = ELFCLASS32;
	check_refused(-EBADMSG);
	image_close(&image);
	image.bytes[0] = '#';
	check_refused(-EBADMSG);
}

static void what_is_no_regular_file_is_refused(void **state)
{
	struct nt_elf *elf = NULL;

	(void)state;
	assert_int_equal(nt_elf_open("/dev/null", &elf), -EBADMSG);
	assert_int_equal(nt_elf_open("/proc", &elf), -EBADMSG);
	assert_int_equal(nt_elf_open("/no/such/file", &elf), -ENOENT);
	assert_null(elf);
	nt_elf_close(NULL);
}

static void our_own_program_has_this_function(void **state)
{
	struct nt_elf_symbol symbol;
	struct nt_elf *elf = NULL;

	(void)state;
	assert_int_equal(nt_elf_open("/proc/self/exe", &elf), 0);
	assert_int_equal(find_one(elf, "main", &symbol), 0);
	assert_true(symbol.offset > 0);
	nt_elf_close(elf);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(an_address_becomes_an_offset_in_the_file),
		WITH(a_name_that_is_not_defined_here_is_not_found),
		WITH(data_is_no_function),
		WITH(the_default_version_wins_wherever_it_stands),
		WITH(a_hidden_version_is_better_than_none),
		WITH(a_static_symbol_is_found_in_an_unstripped_program),
		WITH(of_two_of_one_rank_the_later_is_taken),
		WITH(the_dynamic_symbol_is_preferred_to_the_static_one),
		WITH(prefixes_find_what_is_linked_statically),
		WITH(the_build_id_is_hex),
		WITH(a_file_without_build_id_has_an_empty_one),
		WITH(a_build_id_of_the_longest_kind_is_whole),
		WITH(a_build_id_is_one_among_the_notes_alone),
		WITH(notes_are_read_up_to_a_page),
		WITH(each_of_thousands_of_functions_is_found),
		WITH(sections_are_looked_at_up_to_a_cap),
		WITH(the_first_instruction_decides_where_probes_go),
		WITH(arm64_code_is_read_as_such),
		WITH(an_address_outside_the_code_is_an_error),
		WITH(code_beyond_the_end_of_the_file_is_an_error),
		WITH(segments_beyond_the_end_of_the_file_are_refused),
		WITH(an_offset_that_wraps_around_is_an_error),
		WITH(a_segment_that_is_not_executable_holds_no_functions),
		WITH(a_name_beyond_its_table_is_passed_over),
		WITH(a_name_without_an_end_is_passed_over),
		WITH(tables_that_lie_about_their_place_are_passed_over),
		WITH(a_table_that_links_to_no_strings_is_passed_over),
		WITH(versions_for_too_few_symbols_are_no_versions),
		WITH(a_build_id_that_is_too_long_is_none),
		WITH(a_file_that_ends_early_is_refused_or_empty),
		WITH(other_machines_and_formats_are_refused),
		WITH(what_is_no_regular_file_is_refused),
		WITH(our_own_program_has_this_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
