/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model beside the figures that it was calibrated on. */
#ifndef AQ_FIGURES_MODEL_CHECK_H
#define AQ_FIGURES_MODEL_CHECK_H

#include "sim/model.h"

struct model_row {
	const char *figure;
	const char *what;
	const char *unit;
	double published;
	/* Largest |model / published - 1| that counts as reproduced. */
	double tolerance;
	double model; /* negative: not part of the model */
};

enum model_verdict {
	MODEL_REPRODUCED,
	MODEL_OFF,	    /* modelled, but outside its tolerance */
	MODEL_NOT_MODELLED, /* published, and left out here */
};

enum model_check_limits {
	MODEL_ROWS_MAX = 96
};

/* Runs every experiment: well under a second. */
int MUST_CHECK model_check_run(const struct model_params *params,
			       struct model_row rows[MODEL_ROWS_MAX],
			       size_t *count);
enum model_verdict model_row_verdict(const struct model_row *row);

#endif
