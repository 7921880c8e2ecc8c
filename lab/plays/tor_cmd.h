/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the simulator that have the switch in them. */
#ifndef AQ_SCENARIO_TOR_CMD_H
#define AQ_SCENARIO_TOR_CMD_H

/* `aquifer sim switch`: the scenario "verbs" through a switch. argv[0] is its
 * name; returns the exit code. */
int scenario_tor_cmd(int argc, char **argv);

#endif
