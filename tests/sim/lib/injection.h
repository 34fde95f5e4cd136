/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The library that CUDA_INJECTION64_PATH names. */
#ifndef NT_SIM_INJECTION_H
#define NT_SIM_INJECTION_H

/*
 * Opens it at the first call and calls its InitializeInjection(), without the device's lock. Other
 * threads return after that. What fails is ignored, as by the real driver.
 */
void sim_injection_load(void);

#endif
