/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/elf/elf_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static const struct nt_elf_budget default_budget = {
	.bytes = NT_ELF_BYTES_MAX,
	.work = NT_ELF_WORK_MAX,
	.memory = NT_ELF_MEMORY_MAX,
};

int nt_elf_reader_init(struct nt_elf_reader *reader, int fd, const struct nt_elf_budget *budget)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	*reader = (struct nt_elf_reader){
		.fd = fd,
		.size = (uint64_t)st.st_size,
		.budget = budget ? *budget : default_budget,
	};
	return 0;
}

bool nt_elf_reader_holds(const struct nt_elf_reader *reader, uint64_t offset, uint64_t len)
{
	return offset <= reader->size && len <= reader->size - offset;
}

ssize_t nt_elf_reader_read_some(struct nt_elf_reader *reader, uint64_t offset, void *to, size_t len)
{
	size_t done = 0;

	if (!nt_elf_reader_affords(reader, len, 0))
		return -EOVERFLOW;
	reader->cost.bytes += len;
	if (offset > INT64_MAX - len)
		return -EBADMSG;
	while (done < len) {
		ssize_t n =
			pread(reader->fd, (char *)to + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int nt_elf_reader_read(struct nt_elf_reader *reader, uint64_t offset, void *to, size_t len)
{
	ssize_t n = nt_elf_reader_read_some(reader, offset, to, len);

	if (n < 0)
		return (int)n;
	return (size_t)n < len ? -EBADMSG : 0;
}

bool nt_elf_reader_affords(const struct nt_elf_reader *reader, uint64_t bytes, uint64_t work)
{
	return bytes <= reader->budget.bytes - reader->cost.bytes &&
	       work <= reader->budget.work - reader->cost.work;
}

int nt_elf_reader_work(struct nt_elf_reader *reader, uint64_t units)
{
	if (!nt_elf_reader_affords(reader, 0, units))
		return -EOVERFLOW;
	reader->cost.work += units;
	return 0;
}

int nt_elf_reader_alloc(struct nt_elf_reader *reader, size_t bytes, void **ret)
{
	void *p;

	if (bytes > reader->budget.memory - reader->memory)
		return -EOVERFLOW;
	p = calloc(1, bytes);
	if (!p)
		return -ENOMEM;
	reader->memory += bytes;
	if (reader->memory > reader->cost.memory)
		reader->cost.memory = reader->memory;
	*ret = p;
	return 0;
}

void nt_elf_reader_free(struct nt_elf_reader *reader, void *p, size_t bytes)
{
	if (!p)
		return;
	free(p);
	reader->memory -= bytes;
}
