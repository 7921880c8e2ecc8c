/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim mind --model`, and its table of cases. */
#ifndef AQ_MODEL_MIND_CMD_H
#define AQ_MODEL_MIND_CMD_H

#include "mind_world.h"
#include "sim/plants.h"

struct mind_case {
	const char *name;
	const char *what;
	bool full; /* only with --full, or by name */
	struct mind_config config;
};

/* The last one's name is NULL. */
extern const struct mind_case mind_cases[];
/* Bugs that the cases without `full` find; ends with PLANT_none. */
extern const enum plant mind_bugs[];

/* 0: all promises hold, or the planted bug was found; 1: not; 2: wrong
 * arguments, or it could not run, or there were too many states. */
int mind_model_cmd(int argc, char **argv);

#endif
