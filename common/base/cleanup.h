/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef NT_COMMON_BASE_CLEANUP_H
#define NT_COMMON_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#define NT_MUST_CHECK __attribute__((warn_unused_result))

/*
 * Owning locals, released when their scope ends. The declaration shows the ownership:
 *
 *	nt_auto(nt_batch) struct nt_batch *b = NULL;
 *	nt_autofree char *path = NULL;
 *	nt_autoclose int fd = -1;
 *
 * Ownership leaves the scope only through nt_take() or nt_take_fd().
 */
#define nt_auto(type) __attribute__((cleanup(type##_freep)))
#define nt_autofree   __attribute__((cleanup(nt_freep)))
#define nt_autoclose  __attribute__((cleanup(nt_closep)))

#define nt_take(ptr)                                                                               \
	({                                                                                         \
		__typeof__(ptr) nt_taken_ = (ptr);                                                 \
		(ptr) = NULL;                                                                      \
		nt_taken_;                                                                         \
	})

static inline int nt_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Defines the release function of nt_auto(type). Placed beside the declaration of free_fn. */
#define NT_DEFINE_AUTO(type, free_fn)                                                              \
	static inline void type##_freep(struct type **p)                                           \
	{                                                                                          \
		free_fn(*p);                                                                       \
	}

static inline void nt_freep(void *p)
{
	free(*(void **)p);
}

static inline void nt_closep(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

#endif
