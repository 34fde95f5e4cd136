/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the delay matrix share; for detect/matrix*.c alone. */
#ifndef NT_DETECT_MATRIX_IMPL_H
#define NT_DETECT_MATRIX_IMPL_H

/* No call takes longer: it is a clock that is wrong. */
static const double longest_ns = 1e12;

#endif
