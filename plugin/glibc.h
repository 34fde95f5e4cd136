/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included by the compiler before each file of the libraries. They must load where glibc is old
 * (2.28), so functions that moved between its libraries are taken with their first version.
 */
#ifndef NT_PLUGIN_GLIBC_H
#define NT_PLUGIN_GLIBC_H

#if defined(__x86_64__)
#define NT_GLIBC_FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define NT_GLIBC_FIRST "GLIBC_2.17"
#endif

#ifdef __GLIBC__
__asm__(".symver dlopen, dlopen@" NT_GLIBC_FIRST);
__asm__(".symver dlsym, dlsym@" NT_GLIBC_FIRST);
#endif

#endif
