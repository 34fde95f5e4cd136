/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A process whose memory or files cannot be read without waiting for a server that does not answer.
 * What the process does is harmless to itself: it never touches the page in question.
 *
 *	nccl, mpi	a communicator of its calls lies in a file of that server
 *	memory		a communicator lies in memory whose faults its own process does not serve
 *	environ		its environment lies in such memory
 *	library		it maps a probed library that lies on that file system
 *
 * Prints "stalled" once the trap is set and "waiting N" at the end: how many requests hung there.
 * Ends when it is signalled or the time is over, and nothing waits for it any longer.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attack/attack.h"
#include "tests/attack/fuse.h"
#include "tests/sim/job.h"

enum {
	FILE_BYTES = 4 << 20,
	HANDLE_AT = 1 << 20, /* far from what is read ahead at the start */
	ENVIRON_BYTES = 4096,
	STAT_FIELDS = 52,
	PAUSE_NS = 50 * 1000 * 1000,
};

enum mode {
	MODE_NCCL,
	MODE_MPI,
	MODE_MEMORY,
	MODE_ENVIRON,
	MODE_LIBRARY,
	MODE_END,
};

static const char *const mode_names[MODE_END] = {"nccl", "mpi", "memory", "environ", "library"};

struct victim {
	enum mode mode;
	const char *dir, *libraries;
	uid_t user;
	int trapped; /* a byte is written there when the trap may snap */
	int go; /* and one is read from there when it has */
};

/* Memory of our own of which nobody serves the faults. */
static char *trapped_memory(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	char *memory =
		mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	(void)attack_must(fd, "open a userfaultfd");
	if (memory == MAP_FAILED)
		attack_give_up("map memory");
	range.range.start = (uintptr_t)memory;
	range.range.len = FILE_BYTES;
	(void)attack_must(ioctl(fd, UFFDIO_API, &api), "begin with userfaultfd");
	(void)attack_must(ioctl(fd, UFFDIO_REGISTER, &range), "register memory");
	return memory;
}

static char *trapped_file(const char *dir, int protection)
{
	char *path = attack_library(dir, FUSE_FILE), *memory;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)attack_must(fd, path);
	memory = mmap(NULL, FILE_BYTES, protection, MAP_PRIVATE, fd, 0);
	if (memory == MAP_FAILED)
		attack_give_up("map the file");
	free(path);
	return memory;
}

/* The words of /proc/self/stat behind the program's name, as numbers; field 3 is the first. */
static void read_stat(uint64_t *ret_field, size_t fields)
{
	char text[4096], *at;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = attack_must(read(fd, text, sizeof(text) - 1), "read /proc/self/stat");

	(void)close(fd);
	text[n] = '\0';
	at = strrchr(text, ')');
	for (size_t i = 3; at && i < fields; i++) {
		at = strchr(at + 1, ' ');
		if (!at)
			break;
		ret_field[i] = 0;
		for (const char *digit = at + 1; *digit >= '0' && *digit <= '9'; digit++)
			ret_field[i] = ret_field[i] * 10 + (uint64_t)(*digit - '0');
	}
}

/* Any process may state where its environment lies: the kernel shows what lies there. */
static void replace_environ(const char *memory)
{
	uint64_t field[STAT_FIELDS] = {0};
	struct prctl_mm_map map = {.exe_fd = (uint32_t)-1};

	read_stat(field, STAT_FIELDS);
	map.start_code = field[26];
	map.end_code = field[27];
	map.start_stack = field[28];
	map.start_data = field[45];
	map.end_data = field[46];
	map.start_brk = field[47];
	map.brk = (uintptr_t)sbrk(0);
	map.arg_start = field[48];
	map.arg_end = field[49];
	map.env_start = (uintptr_t)memory;
	map.env_end = (uintptr_t)memory + ENVIRON_BYTES;
	(void)attack_must(prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0), "move environ");
}

static void set_trap(const struct victim *victim)
{
	char byte;

	(void)attack_must(write(victim->trapped, "", 1), "say that it is ready");
	(void)attack_must(read(victim->go, &byte, 1), "wait for the trap");
}

static void call_for_ever(attack_call call, bool mpi, const char *comm)
{
	const void *a = attack_target;

	for (;;) {
		if (mpi)
			(void)call(a, a, (void *)1024, a, a, comm, NULL, NULL);
		else
			(void)call(a, a, (void *)1024, (void *)7, NULL, comm, NULL, NULL);
		sim_sleep_ns(PAUSE_NS);
	}
}

static void be_victim(const struct victim *victim)
{
	bool mpi = victim->mode == MODE_MPI;
	char *memory = NULL;

	if (victim->mode == MODE_MEMORY || victim->mode == MODE_ENVIRON)
		memory = trapped_memory();
	if (victim->mode == MODE_ENVIRON)
		replace_environ(memory);
	attack_become(victim->user);
	if (victim->mode == MODE_LIBRARY) {
		int fd;
		char *path = attack_library(victim->dir, FUSE_FILE);

		fd = open(path, O_RDONLY | O_CLOEXEC);
		(void)attack_must(fd, path);
		set_trap(victim);
		attack_map_code(fd);
		for (;;)
			(void)pause();
	}
	if (!memory)
		memory = trapped_file(victim->dir, PROT_READ);
	set_trap(victim);
	if (victim->mode == MODE_ENVIRON)
		call_for_ever(attack_function(victim->libraries, "ncclAllReduce"), false,
			      attack_target);
	call_for_ever(attack_function(victim->libraries, mpi ? "MPI_Allreduce" : "ncclAllReduce"),
		      mpi, memory + HANDLE_AT);
}

static uint8_t *file_bytes(const char *libraries)
{
	uint8_t *bytes = calloc(1, FILE_BYTES);
	int fd = attack_open_library(libraries, "libnccl.so.2");

	if (!bytes)
		attack_give_up("have memory");
	(void)attack_must(read(fd, bytes, FILE_BYTES), "read the library");
	(void)close(fd);
	return bytes;
}

int main(int argc, char **argv)
{
	double seconds = 15, user = ATTACK_NOBODY, processes = 1;
	const char *mode = "nccl", *dir = NULL, *libraries = NULL;
	const struct attack_option options[] = {
		{"mode", "nccl, mpi, memory, environ, library", NULL, &mode},
		{"dir", "an empty directory to mount on", NULL, &dir},
		{"seconds", "how long (15)", &seconds, NULL},
		{"processes", "how many do so (1)", &processes, NULL},
		{"libraries", "directory of the libraries (lib beside the program)", NULL,
		 &libraries},
		{"user", "user id to run as (nobody)", &user, NULL},
	};
	int trapped[2], go[2];
	struct victim victim = {.mode = MODE_END};
	static struct fuse fuse;
	char line[64], byte;
	uint8_t *bytes;

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	for (int i = 0; i < MODE_END; i++)
		if (strcmp(mode, mode_names[i]) == 0)
			victim.mode = (enum mode)i;
	if (!dir || victim.mode == MODE_END)
		return 2;
	attack_take_signals();
	bytes = file_bytes(libraries);
	(void)attack_must(unshare(CLONE_NEWNS), "have a mount namespace");
	(void)attack_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "keep mounts apart");
	(void)attack_must(pipe2(trapped, O_CLOEXEC), "make a pipe");
	(void)attack_must(pipe2(go, O_CLOEXEC), "make a pipe");
	fuse_start(&fuse, dir, bytes, FILE_BYTES);
	victim.dir = dir;
	victim.libraries = libraries;
	victim.user = (uid_t)user;
	victim.trapped = trapped[1];
	victim.go = go[0];
	for (int i = 0; i < (int)processes; i++)
		if (attack_must(fork(), "fork") == 0) {
			(void)close(fuse.fd); /* or the connection outlives the server */
			be_victim(&victim);
		}
	(void)close(trapped[1]);
	for (int i = 0; i < (int)processes; i++)
		if (read(trapped[0], &byte, 1) != 1)
			return 1; /* it has said why */
	fuse_stall(&fuse);
	for (int i = 0; i < (int)processes; i++)
		(void)attack_must(write(go[1], "", 1), "let them go");
	attack_say("stalled");
	(void)attack_wait(seconds);
	(void)snprintf(line, sizeof(line), "waiting %u", fuse.stalled);
	attack_say(line);
	fuse_end(&fuse, dir);
	free(bytes);
	return 0;
}
