/* SPDX-License-Identifier: Apache-2.0 */
/* A server that the kernel swaps to must never wait for what it serves. */
#ifndef AQ_NBD_PIN_H
#define AQ_NBD_PIN_H

#include "base/base.h"

/*
 * Keeps this process, and what it will allocate, in memory and alive: locked,
 * spared by the OOM killer, without I/O for its own allocations, and not ended
 * with the process that started it. Call it before threads exist. -errno of the
 * step that failed, whose name goes to *what.
 */
int nbd_pin(const char **what) MUST_CHECK;

#endif
