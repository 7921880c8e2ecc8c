/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cloud earns from processors that it could not sell for lack of memory:
 * a server has less memory for a processor than its customers rent, so some
 * processors stay without. CXL memory lets them be sold, at a discount because
 * it is slower.
 */
#ifndef AQ_TIER_VM_H
#define AQ_TIER_VM_H

#include "base/base.h"

struct tier_vm {
	double have;	 /* GiB of main memory for each processor */
	double want;	 /* GiB that a machine rents with each processor */
	double discount; /* of machines on CXL memory: 0 to 1 */
};

struct tier_revenue {
	double sold;   /* processors that are sold without CXL, of all */
	double cxl;    /* GiB of CXL memory for each processor of the server */
	double before; /* revenue, of what all processors at full price bring */
	double after;
	double gain; /* of the revenue: after / before - 1 */
};

/* -EINVAL with words: nothing is left unsold, or no such server exists. */
int tier_vm_earn(const struct tier_vm *vm, struct tier_revenue *out) MUST_CHECK;

#endif
