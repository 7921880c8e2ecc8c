/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AQ_SCENARIO_PAGING_CMD_H
#define AQ_SCENARIO_PAGING_CMD_H

/* `aquifer sim paging`: the exit code; 2 for wrong usage. */
int paging_figure_cmd(int argc, char **argv);

#endif
