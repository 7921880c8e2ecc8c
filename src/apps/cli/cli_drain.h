/* SPDX-License-Identifier: Apache-2.0 */
/* Emptying a memory node that takes nothing new. */
#ifndef AQ_CLI_DRAIN_H
#define AQ_CLI_DRAIN_H

#include "cli_admin.h"

/*
 * Moves what can be moved from the node to others, and says of the rest what it
 * is and why it stays: on standard output as it goes, or as members "moved" and
 * "stays" of one object. `m` has the controller. The exit code: CLI_FAILED
 * where something that can be moved was not.
 */
int cli_drain_run(struct cli_admin *m, const char *node, bool as_json);

/* Makes the table's next generation, of the same size, on nodes that take
 * something new; its clients follow. -errno with words: it is as it was, or the
 * next who resizes it goes on. */
int cli_drain_table(struct cli_admin *m, const char *tenant,
		    const char *table) MUST_CHECK;

#endif
