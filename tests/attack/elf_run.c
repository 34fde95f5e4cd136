/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Programs that are dear to look at, made and executed by any user. Each is a valid executable of
 * one page that sleeps until it is killed; the rest of the file is symbols.
 *
 *	names  every symbol's name begins in one huge run of bytes: whoever measures each to its
 *	       end walks (symbols × bytes)
 *	tables the same table is stated as dynamic and as static symbols, near the largest that is
 *	       read: whoever keeps all of them needs many times the file
 *
 * Prints "running" when the program has been executed, and again for each time.
 */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attack/attack.h"
#include "tests/sim/job.h"

enum {
	SECTIONS = 5, /* none, .symtab, .dynsym, .strtab, .shstrtab */
	CODE_AT = 0x1000,
	TABLES_AT = 0x2000,
	BASE = 0x400000,
	NAME_BYTES = 2, /* of a short name, with its NUL */
};

/* A program that waits for nothing, for ever. */
#ifdef __x86_64__
static const uint8_t code[] = {0xb8, 0x22, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7}; /* pause() */
#else
static const uint32_t code[] = {0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003,
				0xd2800928, 0xd4000001, 0x17fffffa}; /* ppoll(0, 0, 0, 0) */
#endif

static const char section_names[] = "\0.symtab\0.dynsym\0.strtab\0.shstrtab";

struct file {
	uint8_t *bytes;
	size_t size;
};

static void put_head(struct file *file, uint64_t sections_at)
{
	Elf64_Ehdr head = {.e_type = ET_EXEC,
			   .e_version = EV_CURRENT,
			   .e_entry = BASE + CODE_AT,
			   .e_phoff = sizeof(head),
			   .e_shoff = sections_at,
			   .e_ehsize = sizeof(head),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1,
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = SECTIONS,
			   .e_shstrndx = SECTIONS - 1};
	Elf64_Phdr load = {.p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_offset = CODE_AT,
			   .p_vaddr = BASE + CODE_AT,
			   .p_paddr = BASE + CODE_AT,
			   .p_filesz = sizeof(code),
			   .p_memsz = sizeof(code),
			   .p_align = CODE_AT};

	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
#ifdef __x86_64__
	head.e_machine = EM_X86_64;
#else
	head.e_machine = EM_AARCH64;
#endif
	memcpy(file->bytes, &head, sizeof(head));
	memcpy(file->bytes + sizeof(head), &load, sizeof(load));
	memcpy(file->bytes + CODE_AT, code, sizeof(code));
}

static Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t at, uint64_t size)
{
	return (Elf64_Shdr){.sh_name = name,
			    .sh_type = type,
			    .sh_offset = at,
			    .sh_size = size,
			    .sh_link = SECTIONS - 2,
			    .sh_addralign = 8,
			    .sh_entsize = type == SHT_STRTAB ? 0 : sizeof(Elf64_Sym)};
}

/* Half of the file are symbols, or nearly all of it; the rest is their names. */
static struct file make(size_t size, bool one_run)
{
	size_t tail = SECTIONS * sizeof(Elf64_Shdr) + sizeof(section_names);
	size_t room = size - TABLES_AT - tail;
	size_t symbols = (one_run ? room / 2 : room / 16 * 15) / sizeof(Elf64_Sym);
	uint64_t names_at = TABLES_AT + symbols * sizeof(Elf64_Sym);
	uint64_t sections_at = (size - tail) & ~(uint64_t)7, names = sections_at - names_at;
	struct file file = {.bytes = calloc(1, size), .size = size};
	Elf64_Shdr header[SECTIONS] = {
		{0},
		section(1, SHT_SYMTAB, TABLES_AT, symbols * sizeof(Elf64_Sym)),
		section(9, SHT_DYNSYM, TABLES_AT, one_run ? 0 : symbols * sizeof(Elf64_Sym)),
		section(17, SHT_STRTAB, names_at, names),
		section(25, SHT_STRTAB, sections_at + sizeof(header), sizeof(section_names)),
	};

	if (!file.bytes)
		attack_give_up("have so much memory");
	for (uint64_t i = 0; i < names - 1; i++)
		file.bytes[names_at + i] = one_run || i % NAME_BYTES == 0 ? 'n' : '\0';
	for (size_t i = 0; i < symbols; i++) {
		Elf64_Sym symbol = {
			.st_name =
				(uint32_t)(one_run ? i % names : i * NAME_BYTES % (names & ~1UL)),
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 1,
			.st_value = BASE + CODE_AT,
		};

		memcpy(file.bytes + TABLES_AT + i * sizeof(symbol), &symbol, sizeof(symbol));
	}
	put_head(&file, sections_at);
	memcpy(file.bytes + sections_at, header, sizeof(header));
	memcpy(file.bytes + sections_at + sizeof(header), section_names, sizeof(section_names));
	return file;
}

static void write_program(const char *path, struct file file)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	(void)attack_must(fd, path);
	for (size_t at = 0; at < file.size;)
		at += (size_t)attack_must(write(fd, file.bytes + at, file.size - at), path);
	(void)attack_must(close(fd), path);
	free(file.bytes);
}

static pid_t execute(const char *path, uid_t user)
{
	int failed[2], error = 0;
	pid_t pid;

	(void)attack_must(pipe2(failed, O_CLOEXEC), "make a pipe");
	pid = (pid_t)attack_must(fork(), "fork");
	if (pid == 0) {
		attack_become(user);
		(void)execl(path, path, NULL);
		(void)!write(failed[1], "", 1);
		_exit(127);
	}
	(void)close(failed[1]);
	if (read(failed[0], &error, 1) != 0)
		attack_give_up("execute the program");
	(void)close(failed[0]);
	attack_say("running");
	return pid;
}

int main(int argc, char **argv)
{
	double bytes = 5e6, times = 3, seconds = 3, user = ATTACK_NOBODY;
	const char *kind = "names", *path = NULL;
	const struct attack_option options[] = {
		{"file", "where to make it", NULL, &path},
		{"bytes", "size of the file (5000000)", &bytes, NULL},
		{"kind", "names or tables", NULL, &kind},
		{"times", "how often it is executed (3)", &times, NULL},
		{"seconds", "how long each lives (3)", &seconds, NULL},
		{"user", "user id to run as (nobody)", &user, NULL},
	};

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	if (!path || bytes < 100000 || bytes > 1e9)
		return 2;
	attack_take_signals();
	write_program(path, make((size_t)bytes, kind[0] == 'n'));
	for (int i = 0; i < (int)times; i++) {
		pid_t pid = execute(path, (uid_t)user);
		bool signalled = attack_wait(seconds);

		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		if (signalled)
			break;
	}
	return 0;
}
