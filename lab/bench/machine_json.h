/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as the JSON object that every benchmark prints. */
#ifndef AQ_BENCH_MACHINE_JSON_H
#define AQ_BENCH_MACHINE_JSON_H

#include <jansson.h>

#include "machine.h"

json_t *machine_json(const struct machine *m);

#endif
