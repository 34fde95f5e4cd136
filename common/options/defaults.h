/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Default addresses by which the programs of one machine connect without configuration. */
#ifndef NT_COMMON_OPTIONS_DEFAULTS_H
#define NT_COMMON_OPTIONS_DEFAULTS_H

#define NT_DEFAULT_LISTEN     "127.0.0.1:9480"
#define NT_DEFAULT_SERVER     "http://127.0.0.1:9480"
#define NT_DEFAULT_TOKEN_FILE "/var/lib/neutracer/token"
#define NT_DEFAULT_STORE      "/var/lib/neutracer/store.db"

#endif
