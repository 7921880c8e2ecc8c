/* SPDX-License-Identifier: Apache-2.0 */
/* Pins: memory that the kernel lends to devices. */
#ifndef AQ_RUN_PINS_H
#define AQ_RUN_PINS_H

#include "base/base.h"

/*
 * Where the kernel does not tell which pages are pinned (before Linux 6.8), far
 * memory must have none: for this process and all that it starts, calls that
 * would pin memory for a transfer fail as on file systems and kernels that lack
 * them, which programs can handle. Without CAP_SYS_ADMIN also sets
 * no_new_privs: the kernel asks for it.
 */
int run_pins_refuse(void) MUST_CHECK;

#endif
