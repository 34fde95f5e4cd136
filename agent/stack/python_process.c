/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/python_process.h"

#include <errno.h>
#include <string.h>

#include "agent/elf/elf.h"
#include "agent/host/mount.h"
#include "agent/host/proc.h"
#include "agent/host/root_path.h"

enum {
	MAJOR = 3,
	MINOR_MAX = 99,
	MAJOR_SHIFT = 8, /* of a version */
	HEX_SHIFT = 16, /* of Py_Version */
};

enum object {
	OBJECT_RUNTIME,
	OBJECT_CODE_TYPE,
	OBJECT_VERSION,
	OBJECT_END,
};

/* The mapped file of the interpreter: a library is preferred to a program. */
struct interpreter {
	char path[NT_PROC_PATH];
	struct nt_mapping mapping; /* `path` is above */
	bool is_found, is_library;
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

uint16_t nt_python_version_of(const char *name)
{
	const char *at = strstr(name, "python3.");
	unsigned int minor = 0;

	if (!at)
		return 0;
	at += strlen("python3.");
	if (*at < '0' || *at > '9')
		return 0;
	for (; *at >= '0' && *at <= '9' && minor <= MINOR_MAX; at++)
		minor = minor * 10 + (unsigned int)(*at - '0');
	return minor <= MINOR_MAX ? (uint16_t)(MAJOR << MAJOR_SHIFT | minor) : 0;
}

static void see_mapping(void *data, const struct nt_mapping *mapping)
{
	struct interpreter *found = data;
	const char *name = base_of(mapping->path);
	const bool is_library = begins_with(name, "libpython3.");
	size_t len = strlen(mapping->path);

	if ((!is_library && !begins_with(name, "python")) || len >= sizeof(found->path) ||
	    (found->is_found && (found->is_library || !is_library)))
		return;
	found->mapping = *mapping;
	memcpy(found->path, mapping->path, len + 1);
	found->mapping.path = found->path;
	found->is_found = true;
	found->is_library = is_library;
}

/* Addresses in the process; 0: not there. */
static int find_addresses(const struct nt_stack_memory *memory, const struct interpreter *found,
			  uint64_t ret_address[OBJECT_END])
{
	static const char *const names[OBJECT_END] = {
		[OBJECT_RUNTIME] = "_PyRuntime",
		[OBJECT_CODE_TYPE] = "PyCode_Type",
		[OBJECT_VERSION] = "Py_Version",
	};
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	nt_autoclose int path_fd = -1, fd = -1;
	uint64_t bias;
	struct stat st;
	int r;

	path_fd = nt_root_path_open_mapping(memory->pid, &found->mapping, &st);
	if (path_fd < 0)
		return path_fd;
	if (!memory->takes_fuse && nt_mount_is_fuse(memory->pid, path_fd, &st))
		return -EOPNOTSUPP;
	fd = nt_root_path_read(path_fd, st.st_dev, st.st_ino);
	if (fd < 0)
		return fd;
	r = nt_elf_open_fd(fd, NULL, &elf);
	if (r < 0)
		return r;
	r = nt_elf_load_bias(elf, found->mapping.start, found->mapping.offset, &bias);
	if (r < 0)
		return r;
	r = nt_elf_find_objects(elf, names, OBJECT_END, ret_address);
	for (int i = 0; i < OBJECT_END && r == 0; i++)
		ret_address[i] += ret_address[i] ? bias : 0;
	return r;
}

static uint16_t read_version(struct nt_stack_memory *memory, uint64_t address, const char *path)
{
	uint32_t hex;

	if (address && nt_stack_memory_read(memory, address, &hex, sizeof(hex)) == 0)
		return (uint16_t)(hex >> HEX_SHIFT);
	return nt_python_version_of(base_of(path));
}

static enum nt_stack_reason read_layout(struct nt_stack_memory *memory,
					const uint64_t address[OBJECT_END], const char *path,
					struct nt_python_layout *ret_layout)
{
	uint8_t offsets[NT_PYTHON_OFFSETS_BYTES];
	int r = nt_stack_memory_read(memory, address[OBJECT_RUNTIME], offsets, sizeof(offsets));

	if (r < 0)
		return r == -EPERM ? NT_STACK_REFUSED : NT_STACK_MALFORMED;
	r = nt_python_layout_parse(offsets, sizeof(offsets), ret_layout);
	if (r == -ENOENT)
		r = nt_python_layout_of(read_version(memory, address[OBJECT_VERSION], path),
					ret_layout);
	if (r == -ENOTSUP)
		return NT_STACK_UNKNOWN_VERSION;
	return r < 0 ? NT_STACK_MALFORMED : NT_STACK_WHOLE;
}

enum nt_stack_reason nt_python_find(struct nt_stack_memory *memory,
				    struct nt_python_runtime *ret_runtime)
{
	struct nt_python_runtime runtime = {0};
	struct interpreter found = {0};
	uint64_t address[OBJECT_END];
	enum nt_stack_reason reason;
	int r = nt_proc_mappings(memory->pid, see_mapping, &found);

	if (r < 0)
		return r == -ESRCH ? NT_STACK_ENDED : NT_STACK_REFUSED;
	if (!found.is_found)
		return NT_STACK_NO_PYTHON;
	r = find_addresses(memory, &found, address);
	if (r < 0 || !address[OBJECT_RUNTIME])
		return NT_STACK_NO_SYMBOLS;
	reason = read_layout(memory, address, found.path, &runtime.layout);
	if (reason != NT_STACK_WHOLE)
		return reason;
	runtime.runtime = address[OBJECT_RUNTIME];
	runtime.code_type = address[OBJECT_CODE_TYPE];
	*ret_runtime = runtime;
	return NT_STACK_WHOLE;
}
