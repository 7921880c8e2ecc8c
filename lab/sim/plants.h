/* SPDX-License-Identifier: Apache-2.0 */
/* Planted bugs by name: what `--bug` of every play takes and lists. */
#ifndef AQ_SIM_PLANTS_H
#define AQ_SIM_PLANTS_H

#include "base/plant.h"

const char *plant_name(enum plant plant);

/* The bug of that name in a play's list, which ends with PLANT_none; PLANT_none
 * if there is no such bug. */
enum plant plant_find(const enum plant *list, const char *name);

/* Prints the list: a name and a sentence per line. */
void plant_print(const enum plant *list);

/* Turns one on for this process, or with PLANT_none the last one off. */
void plant_set(enum plant plant);

#endif
