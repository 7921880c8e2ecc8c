/* SPDX-License-Identifier: Apache-2.0 */
/* The switches of a rack on this machine, for `aquifer up`. */
#ifndef AQ_CLI_SWITCH_H
#define AQ_CLI_SWITCH_H

#include <jansson.h>

#include "cli_rack.h"

/* Starts those of the file that do not run; a row for each. Returns how many
 * failed, after a line on stderr. */
unsigned cli_switch_up(const struct cli_rack *rack, json_t *rows);

/*
 * The address of the node with this index, for its environment, or NULL: as
 * configured. Nodes at a switch that replaces atomics have addresses of their
 * own, because the switch knows servers by address; no other process uses those
 * addresses.
 */
const char *cli_switch_address(const struct cli_rack *rack, unsigned index,
			       char out[16]);

/* All nodes run: waits until they have declared themselves to their switch, and
 * opens it. 0 or -errno with words. */
int cli_switch_open(const struct cli_rack *rack, unsigned nodes) MUST_CHECK;

/* The switch that an engine with this setting is inside of; NULL: none. */
const char *cli_switch_engine(const struct cli_rack *rack, const char *setting);

#endif
