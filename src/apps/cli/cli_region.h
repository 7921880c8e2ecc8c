/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `aquifer region`. */
#ifndef AQ_CLI_REGION_H
#define AQ_CLI_REGION_H

#include "base/base.h"

/* Prints the grants of a region, or of all (NULL). Returns the exit code. */
int cli_region_grants(const char *name, uint32_t deadline_ms, bool as_json);

#endif
