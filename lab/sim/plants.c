/* SPDX-License-Identifier: Apache-2.0 */
/* The names of planted bugs, and which one is on. */
#include "plants.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *what;
} plants[PLANT_COUNT] = {[PLANT_none] = {"none", "no bug is planted"},
#define PLANT_ROW(id, n, w) [PLANT_##id] = {.name = (n), .what = (w)},
			 PLANTS(PLANT_ROW)
#undef PLANT_ROW
};

/* Rooms built with -DAQ_PLANT look at it (base/plant.h). */
extern enum plant plant_now;
enum plant plant_now;

const char *plant_name(enum plant plant)
{
	return plants[plant].name;
}

enum plant plant_find(const enum plant *list, const char *name)
{
	while (*list != PLANT_none && strcmp(plants[*list].name, name) != 0)
		list++;
	return *list;
}

void plant_print(const enum plant *list)
{
	for (; *list != PLANT_none; list++)
		printf("%-22s %s\n", plants[*list].name, plants[*list].what);
}

void plant_set(enum plant plant)
{
	plant_now = plant;
}
