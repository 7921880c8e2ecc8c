/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of messages: fixed, of five applications, or of a key-value store.
 */
#ifndef AQ_EDM_SIZES_H
#define AQ_EDM_SIZES_H

#include "base/rng.h"
#include "edm_config.h"

uint32_t edm_sizes_draw(const struct edm_config *c, enum edm_op op,
			struct rng *r);
uint32_t edm_sizes_max(const struct edm_config *c);
double edm_sizes_mean(const struct edm_config *c);

/* Mean of fn over sizes and operations, exact up to the grid of sizes. */
double edm_sizes_expect(const struct edm_config *c,
			double (*fn)(const struct edm_config *c, enum edm_op op,
				     uint32_t bytes));

#endif
