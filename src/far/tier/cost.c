/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model, and what cannot be asked of it. */
#include "cost.h"

#include <errno.h>
#include <math.h>

#include "base/error.h"

static int check(const struct tier_cost *a)
{
	if (!isfinite(a->rd) || !isfinite(a->rc) || !isfinite(a->c) ||
	    !isfinite(a->rt))
		return error_set(-EINVAL, "every input is a finite number");
	if (a->rd <= 1)
		return error_set(-EINVAL,
				 "rd is %.10g: where main memory is not faster "
				 "than SSD, the model has nothing to compare",
				 a->rd);
	if (a->rc < 1)
		return error_set(
			-EINVAL,
			"rc is %.10g: CXL memory that is slower than SSD "
			"is not used at all",
			a->rc);
	if (a->rc > a->rd)
		return error_set(
			-EINVAL,
			"rc is %.10g and rd %.10g: CXL memory is not faster "
			"than main memory",
			a->rc, a->rd);
	if (a->c <= 0)
		return error_set(
			-EINVAL,
			"c is %.10g: a server has some main memory for "
			"each byte of CXL memory",
			a->c);
	if (a->rt <= 0)
		return error_set(
			-EINVAL,
			"rt is %.10g: a server costs more than nothing", a->rt);
	return 0;
}

int tier_cost_save(const struct tier_cost *cost, struct tier_saving *out)
{
	const double rd = cost->rd, rc = cost->rc, c = cost->c;
	double servers;
	int err = check(cost);

	if (err)
		return err;
	/* C Rc (Rd - 1) + Rd (Rc - 1) is the published denominator, and the
	 * bounds above make both terms positive, or the second one 0. It is
	 * divided by the first one, because for large inputs both together are
	 * more than a double holds. */
	servers = 1 / (1 + (rc - 1) / rc * (rd / (rd - 1)) / c);
	if (!(servers > 0))
		return error_set(-EINVAL,
				 "c is %.10g: no server has so little main "
				 "memory for so much CXL memory",
				 c);
	out->servers = servers;
	out->saving = 1 - servers * cost->rt;
	return 0;
}
