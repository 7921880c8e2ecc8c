/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that make figures; each returns an exit code (enum figure_exit).
 * argv[0] is the system's name. */
#ifndef AQ_FIGURES_COMMANDS_H
#define AQ_FIGURES_COMMANDS_H

/* `aquifer sim NAME --figure ...`, and offload --costs */
int offload_figure_cmd(int argc, char **argv);
int kv_figure_cmd(int argc, char **argv);
int vfig_cmd(int argc, char **argv);
/* All of `aquifer sim nic-model`. */
int model_figure_cmd(int argc, char **argv);
/* All of `aquifer sim paging`, which has no other use. */
int paging_figure_cmd(int argc, char **argv);

#endif
