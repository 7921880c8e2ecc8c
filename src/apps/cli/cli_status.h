/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `aquifer status`. */
#ifndef AQ_CLI_STATUS_H
#define AQ_CLI_STATUS_H

#include <jansson.h>

/* Lines about shared memory of those nodes that have some. */
void cli_status_print_shared(const json_t *nodes);

#endif
