/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef NT_COMMON_BASE_VERSION_H
#define NT_COMMON_BASE_VERSION_H

#define NT_VERSION "0.1.0"

#endif
