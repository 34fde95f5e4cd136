/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/catalog.h"

#include <errno.h>
#include <string.h>

#include "common/base/hash.h"

struct nt_catalog_owner {
	uint64_t id;
	size_t files, held;
	UT_hash_handle hh;
};

void nt_catalog_init(struct nt_catalog *catalog)
{
	nt_share_init(&catalog->share, NT_CATALOG_WAITERS);
}

/* ---- owners --------------------------------------------------------------------------------- */

static struct nt_catalog_owner *take_owner(struct nt_catalog *catalog, uint64_t id)
{
	struct nt_catalog_owner *owner = NULL;

	HASH_FIND(hh, catalog->owner, &id, sizeof(id), owner);
	if (owner)
		return owner;
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return NULL;
	owner->id = id;
	HASH_ADD(hh, catalog->owner, id, sizeof(owner->id), owner);
	return owner;
}

static void leave_owner(struct nt_catalog *catalog, struct nt_catalog_owner *owner)
{
	if (--owner->files > 0)
		return;
	HASH_DEL(catalog->owner, owner);
	free(owner);
}

static struct nt_catalog_owner *owner_with_most(const struct nt_catalog *catalog)
{
	struct nt_catalog_owner *most = catalog->owner;

	for (struct nt_catalog_owner *owner = catalog->owner; owner; owner = owner->hh.next)
		if (owner->files > most->files)
			most = owner;
	return most;
}

static struct nt_catalog_owner *owner_with_most_held(const struct nt_catalog *catalog)
{
	struct nt_catalog_owner *most = catalog->owner;

	for (struct nt_catalog_owner *owner = catalog->owner; owner; owner = owner->hh.next)
		if (owner->held > most->held)
			most = owner;
	return most;
}

/* ---- inodes --------------------------------------------------------------------------------- */

static uint16_t *inodes_of(struct nt_catalog *catalog, uint64_t ino)
{
	return &catalog->inodes[nt_hash_mix(ino) % NT_CATALOG_INODES];
}

bool nt_catalog_has_inode(const struct nt_catalog *catalog, uint64_t ino)
{
	return catalog->inodes[nt_hash_mix(ino) % NT_CATALOG_INODES] > 0;
}

static void remove_changing(struct nt_catalog *catalog, struct nt_catalog_changing *changing)
{
	HASH_DEL(catalog->changing, changing);
	--*inodes_of(catalog, changing->key.ino);
	free(changing);
}

/* Moves the entry to the end. NULL: out of memory. */
static struct nt_catalog_changing *take_changing(struct nt_catalog *catalog,
						 const struct nt_catalog_key *file, uint64_t owner,
						 uint64_t now_ns)
{
	const struct nt_catalog_changing wanted = {
		.key = {.dev = file->dev, .ino = file->ino, .owner = owner}};
	struct nt_catalog_changing *changing = NULL;

	HASH_FIND(hh, catalog->changing, &wanted.key, sizeof(wanted.key), changing);
	if (changing) {
		HASH_DEL(catalog->changing, changing);
	} else {
		changing = calloc(1, sizeof(*changing));
		if (!changing)
			return NULL;
		changing->key = wanted.key;
		changing->since_ns = now_ns;
		++*inodes_of(catalog, file->ino);
	}
	HASH_ADD(hh, catalog->changing, key, sizeof(changing->key), changing);
	while (HASH_COUNT(catalog->changing) > NT_CATALOG_CHANGING) {
		catalog->over_cap += now_ns < catalog->changing->until_ns;
		remove_changing(catalog, catalog->changing);
	}
	return changing;
}

bool nt_catalog_may_inspect(struct nt_catalog *catalog, const struct nt_catalog_key *key,
			    uint64_t owner, uint64_t now_ns, bool *ret_is_news)
{
	struct nt_catalog_changing *changing = take_changing(catalog, key, owner, now_ns);

	*ret_is_news = false;
	if (!changing)
		return true;
	if (changing->until_ns && now_ns < changing->until_ns)
		return false;
	if (changing->until_ns || now_ns - changing->since_ns >= NT_CATALOG_CHANGES_NS) {
		changing->inspections = 0;
		changing->since_ns = now_ns;
		changing->until_ns = 0;
	}
	if (++changing->inspections <= NT_CATALOG_CHANGES)
		return true;
	changing->until_ns = now_ns + NT_CATALOG_CHANGES_NS;
	*ret_is_news = true;
	return false;
}

/* ---- files ---------------------------------------------------------------------------------- */

void nt_catalog_waiter_free(struct nt_catalog_waiter *waiter)
{
	if (!waiter)
		return;
	free(waiter->name);
	free(waiter);
}

void nt_catalog_remove(struct nt_catalog *catalog, struct nt_catalog_file *file)
{
	struct nt_catalog_waiter *waiter = nt_catalog_take_waiters(catalog, file);

	while (waiter) {
		struct nt_catalog_waiter *next = waiter->next;

		nt_catalog_waiter_free(waiter);
		waiter = next;
	}
	HASH_DEL(catalog->file, file);
	--*inodes_of(catalog, file->key.ino);
	if (file->state == NT_CATALOG_HOLDS) {
		catalog->held--;
		file->owner->held--;
	}
	leave_owner(catalog, file->owner);
	nt_closep(&file->fd);
	free(file->symbols);
	free(file);
}

void nt_catalog_release(struct nt_catalog *catalog)
{
	struct nt_catalog_file *file, *next;

	HASH_ITER(hh, catalog->file, file, next)
	nt_catalog_remove(catalog, file);
	while (catalog->changing)
		remove_changing(catalog, catalog->changing);
	nt_share_release(&catalog->share);
}

void nt_catalog_key(const struct nt_inspection_file *file, struct nt_catalog_key *ret_key)
{
	*ret_key = (struct nt_catalog_key){
		.dev = file->dev,
		.ino = file->ino,
		.bytes = file->bytes,
		.changed_ns = file->changed_ns,
		.library = file->library,
	};
}

struct nt_catalog_file *nt_catalog_find(struct nt_catalog *catalog,
					const struct nt_catalog_key *key, uint64_t now_ns)
{
	struct nt_catalog_file *file;

	HASH_FIND(hh, catalog->file, key, sizeof(*key), file);
	if (file && file->retry_ns && now_ns >= file->retry_ns) {
		nt_catalog_remove(catalog, file);
		return NULL;
	}
	if (file)
		file->used_ns = now_ns;
	return file;
}

const struct nt_catalog_file *nt_catalog_find_inode(const struct nt_catalog *catalog, uint64_t dev,
						    uint64_t ino)
{
	for (const struct nt_catalog_file *file = catalog->file; file; file = file->hh.next)
		if (file->state == NT_CATALOG_HOLDS && file->key.dev == dev && file->key.ino == ino)
			return file;
	return NULL;
}

struct nt_catalog_file *nt_catalog_find_number(const struct nt_catalog *catalog, uint64_t number)
{
	for (struct nt_catalog_file *file = catalog->file; file; file = file->hh.next)
		if (file->state == NT_CATALOG_PENDING && file->number == number)
			return file;
	return NULL;
}

/* Evicts the oldest of the owner with the most; a pending one only for an owner that has less. */
static void make_room(struct nt_catalog *catalog, const struct nt_catalog_owner *wants)
{
	const struct nt_catalog_owner *most = owner_with_most(catalog);
	struct nt_catalog_file *file, *pending = NULL;

	for (file = catalog->file; file; file = file->hh.next) {
		if (file->owner != most)
			continue;
		if (file->state != NT_CATALOG_PENDING)
			break;
		pending = pending ? pending : file;
	}
	if (!file && wants->files < most->files)
		file = pending;
	if (!file)
		return;
	for (const struct nt_catalog_waiter *waiter = file->waiter; waiter; waiter = waiter->next)
		catalog->lost++;
	nt_catalog_remove(catalog, file);
}

struct nt_catalog_file *nt_catalog_add(struct nt_catalog *catalog, const struct nt_catalog_key *key,
				       uint64_t owner)
{
	struct nt_catalog_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->owner = take_owner(catalog, owner);
	if (!file->owner) {
		free(file);
		return NULL;
	}
	file->owner->files++;
	if (HASH_COUNT(catalog->file) >= NT_CATALOG_FILES) {
		catalog->over_cap++;
		make_room(catalog, file->owner);
	}
	if (HASH_COUNT(catalog->file) >= NT_CATALOG_FILES) {
		leave_owner(catalog, file->owner);
		free(file);
		return NULL;
	}
	file->key = *key;
	file->fd = -1;
	file->waiter_end = &file->waiter;
	HASH_ADD(hh, catalog->file, key, sizeof(file->key), file);
	++*inodes_of(catalog, key->ino);
	return file;
}

/* ---- waiters -------------------------------------------------------------------------------- */

static uint16_t *waiting_of(struct nt_catalog *catalog, uint32_t pid)
{
	return &catalog->waiting[nt_hash_mix(pid) % NT_CATALOG_PIDS];
}

bool nt_catalog_is_awaited(const struct nt_catalog *catalog, uint32_t pid)
{
	return catalog->waiting[nt_hash_mix(pid) % NT_CATALOG_PIDS] > 0;
}

static struct nt_catalog_waiter *copy(const struct nt_catalog_waiter *waiter)
{
	struct nt_catalog_waiter *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *waiter;
	copy->next = NULL;
	copy->place = (struct nt_share_entry){0};
	copy->name = strdup(waiter->name);
	if (copy->name)
		return copy;
	free(copy);
	return NULL;
}

void nt_catalog_wait(struct nt_catalog *catalog, struct nt_catalog_file *file,
		     const struct nt_catalog_waiter *waiter)
{
	struct nt_catalog_waiter *added = copy(waiter);
	int r = added ? nt_share_enter_for_good(&catalog->share, &added->owner, &added->place)
		      : -ENOMEM;

	if (r < 0) {
		catalog->over_cap += r == -ENOSPC;
		catalog->lost++;
		nt_catalog_waiter_free(added);
		return;
	}
	*file->waiter_end = added;
	file->waiter_end = &added->next;
	++*waiting_of(catalog, added->pid);
}

struct nt_catalog_waiter *nt_catalog_take_waiters(struct nt_catalog *catalog,
						  struct nt_catalog_file *file)
{
	struct nt_catalog_waiter *first = file->waiter;

	file->waiter = NULL;
	file->waiter_end = &file->waiter;
	for (struct nt_catalog_waiter *waiter = first; waiter; waiter = waiter->next) {
		--*waiting_of(catalog, waiter->pid);
		nt_share_leave(&catalog->share, &waiter->place);
	}
	return first;
}

void nt_catalog_hold(struct nt_catalog *catalog, struct nt_catalog_file *file, int fd,
		     struct nt_symbols *symbols, uint64_t now_ns)
{
	const struct nt_catalog_owner *most = owner_with_most_held(catalog);
	struct nt_catalog_file *oldest = NULL;

	for (struct nt_catalog_file *f = catalog->file; f && catalog->held >= NT_CATALOG_HELD;
	     f = f->hh.next)
		if (f->state == NT_CATALOG_HOLDS && most && f->owner == most &&
		    (!oldest || f->used_ns < oldest->used_ns))
			oldest = f;
	if (oldest) {
		catalog->over_cap++;
		nt_catalog_remove(catalog, oldest);
	}
	catalog->held++;
	file->owner->held++;
	file->state = NT_CATALOG_HOLDS;
	file->used_ns = now_ns;
	file->fd = fd;
	file->symbols = symbols;
}
