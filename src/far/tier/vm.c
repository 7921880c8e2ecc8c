/* SPDX-License-Identifier: Apache-2.0 */
/* Processors without memory, and what they bring with CXL memory. */
#include "vm.h"

#include <errno.h>
#include <math.h>

#include "base/error.h"

static int check(const struct tier_vm *a)
{
	if (!isfinite(a->have) || !isfinite(a->want) || !isfinite(a->discount))
		return error_set(-EINVAL, "every input is a finite number");
	if (a->have <= 0)
		return error_set(-EINVAL,
				 "have is %.10g: a server without memory sells "
				 "nothing to begin with",
				 a->have);
	if (a->want < a->have)
		return error_set(
			-EINVAL,
			"want is %.10g and have %.10g: there is memory for "
			"all processors, so none is left to sell",
			a->want, a->have);
	if (a->discount < 0 || a->discount > 1)
		return error_set(
			-EINVAL,
			"discount is %.10g: it is a part of the price, "
			"from 0 to 1",
			a->discount);
	return 0;
}

int tier_vm_earn(const struct tier_vm *vm, struct tier_revenue *out)
{
	struct tier_revenue r;
	int err = check(vm);

	if (err)
		return err;
	r.sold = vm->have / vm->want;
	r.cxl = (1 - r.sold) * vm->want;
	r.before = r.sold;
	r.after = r.sold + (1 - r.sold) * (1 - vm->discount);
	r.gain = r.after / r.before - 1;
	if (!isfinite(r.gain))
		return error_set(-EINVAL,
				 "want is %.10g and have %.10g: without CXL "
				 "memory such a server sells nothing",
				 vm->want, vm->have);
	*out = r;
	return 0;
}
