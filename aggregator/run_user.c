/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/run_user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "common/system/log.h"

enum nt_exit nt_run_user_become(const char *name)
{
	const struct passwd *user;
	int r;

	if (!name || !*name)
		return NT_EXIT_OK;
	errno = 0;
	user = getpwnam(name);
	if (!user) {
		(void)nt_err(errno ? -errno : 0, "there is no user '%s'", name);
		return NT_EXIT_CONFIG;
	}
	if (geteuid() == user->pw_uid)
		return NT_EXIT_OK;
	if (initgroups(name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
	    setuid(user->pw_uid) < 0) {
		r = -errno;
		(void)nt_err(r, "switch to user '%s'", name);
		return NT_EXIT_CONFIG;
	}
	return NT_EXIT_OK;
}
