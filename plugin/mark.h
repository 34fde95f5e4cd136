/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks: places in this library at which a tracer in the kernel may read words (USDT, format 3 of
 * SystemTap's notes). A mark is one nop. Its semaphore counts the tracers that are attached. The
 * words are in the registers of the first three arguments of a call.
 *
 * The nop has five bytes on x86-64: from Linux 6.18 on the kernel replaces it by a call.
 */
#ifndef NT_PLUGIN_MARK_H
#define NT_PLUGIN_MARK_H

#include <stdint.h>

#if defined(__x86_64__)
#define NT_MARK_NOP  ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00"
#define NT_MARK_ARGS "8@%%rdi 8@%%rsi 8@%%rdx"
#elif defined(__aarch64__)
#define NT_MARK_NOP  "nop"
#define NT_MARK_ARGS "8@x0 8@x1 8@x2"
#else
/* cppcheck-suppress preprocessorErrorDirective */
#error "no marks for this processor"
#endif

/* In a header, so that a look at the semaphore is a load where it is needed, and no call. */
#define NT_MARK_DECLARE(name)                                                                      \
	extern volatile uint16_t neutracer_##name##_semaphore __attribute__((visibility("hidden")))

/* Once per mark, in one source file. The semaphore must lie in the file's data, not in .bss. */
#define NT_MARK_SEMAPHORE(name)                                                                    \
	volatile uint16_t neutracer_##name##_semaphore                                             \
		__attribute__((section(".probes"), visibility("hidden"))) = 0

/* True while a tracer is attached. */
#define NT_MARK_IS_TRACED(name)                                                                    \
	(__atomic_load_n(&neutracer_##name##_semaphore, __ATOMIC_RELAXED) != 0)

#define NT_MARK_NOTE(name)                                                                         \
	"990:	" NT_MARK_NOP "\n"                                                                 \
	".pushsection .note.stapsdt, \"\", \"note\"\n"                                             \
	".balign 4\n"                                                                              \
	".4byte 992f - 991f, 994f - 993f, 3\n"                                                     \
	"991:	.asciz \"stapsdt\"\n"                                                                \
	"992:	.balign 4\n"                                                                         \
	"993:	.8byte 990b\n"                                                                       \
	".8byte _.stapsdt.base\n"                                                                  \
	".8byte neutracer_" name "_semaphore\n"                                                    \
	".asciz \"neutracer\"\n"                                                                   \
	".asciz \"" name "\"\n"                                                                    \
	".asciz \"" NT_MARK_ARGS "\"\n"                                                            \
	"994:	.balign 4\n"                                                                         \
	".popsection\n"                                                                            \
	".ifndef _.stapsdt.base\n"                                                                 \
	".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"                \
	".weak _.stapsdt.base\n"                                                                   \
	".hidden _.stapsdt.base\n"                                                                 \
	"_.stapsdt.base: .space 1\n"                                                               \
	".size _.stapsdt.base, 1\n"                                                                \
	".popsection\n"                                                                            \
	".endif\n"

#if defined(__x86_64__)
#define NT_MARK(name, word0, word1, word2)                                                         \
	__asm__ volatile(NT_MARK_NOTE(#name)                                                       \
			 :                                                                         \
			 : "D"((uint64_t)(word0)), "S"((uint64_t)(word1)), "d"((uint64_t)(word2))  \
			 : "memory")
#else
#define NT_MARK(name, word0, word1, word2)                                                         \
	do {                                                                                       \
		register uint64_t x0 __asm__("x0") = (uint64_t)(word0);                            \
		register uint64_t x1 __asm__("x1") = (uint64_t)(word1);                            \
		register uint64_t x2 __asm__("x2") = (uint64_t)(word2);                            \
		__asm__ volatile(NT_MARK_NOTE(#name) : : "r"(x0), "r"(x1), "r"(x2) : "memory");    \
	} while (0)
#endif

#endif
