/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Log lines on stderr, by level. */
#ifndef NT_COMMON_SYSTEM_LOG_H
#define NT_COMMON_SYSTEM_LOG_H

enum nt_log_level {
	NT_LOG_ERR,
	NT_LOG_WARN,
	NT_LOG_INFO,
	NT_LOG_DEBUG,
};

/* Writes one line to stderr when level is enabled. err is 0 or a negative errno. Returns err. */
int nt_log_write(enum nt_log_level level, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define nt_err(err, ...)  nt_log_write(NT_LOG_ERR, (err), __VA_ARGS__)
#define nt_warn(err, ...) nt_log_write(NT_LOG_WARN, (err), __VA_ARGS__)
#define nt_info(...)      ((void)nt_log_write(NT_LOG_INFO, 0, __VA_ARGS__))
#define nt_debug(...)     ((void)nt_log_write(NT_LOG_DEBUG, 0, __VA_ARGS__))

#endif
