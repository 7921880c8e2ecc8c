/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a fault on memory that is gone into an error: a peer may revoke what is
 * mapped here, and the program may unmap what it has registered. The handler is
 * process-wide, as signals are; faults that the faulting thread does not expect
 * (landing.h) go to the handler that was installed before. A program may
 * install its own handler after us: ours is put before it again where memory is
 * registered, and now and then while the NIC works (landing.c). Until then the
 * program's handler gets our faults.
 */
#ifndef AQ_FAULT_GUARD_H
#define AQ_FAULT_GUARD_H

#include "base/base.h"

struct atomic_op;

/* Takes SIGSEGV and SIGBUS over, or back from the program, at most eight times:
 * then the program keeps them. */
int fault_guard_install(void) MUST_CHECK;

struct fault_range {
	const uint8_t *start;
	size_t len_bytes;
};

/*
 * Copies between `far`, inside the range, and ordinary memory. Every aligned
 * eight-byte word of far is loaded or stored by one instruction, and the last
 * bytes are stored after all others, for readers that poll them. -EFAULT: the
 * range is gone, -EADDRNOTAVAIL: `near` is.
 */
int fault_guard_read(const struct fault_range *r, const void *far, void *near,
		     size_t len_bytes) MUST_CHECK;
int fault_guard_write(const struct fault_range *r, void *far, const void *near,
		      size_t len_bytes) MUST_CHECK;
int fault_guard_atomic(const struct fault_range *r, const struct atomic_op *op,
		       void *far, uint64_t *original) MUST_CHECK;

#endif
