/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of KEYS, SCAN and CONFIG GET: * ? [a-z] [^a] and \. */
#ifndef AQ_REDIS_GLOB_H
#define AQ_REDIS_GLOB_H

#include "resp.h"

/* Time is bounded by the product of the two lengths. */
bool glob_match(struct resp_str pattern, struct resp_str text,
		bool ignore_case);

#endif
