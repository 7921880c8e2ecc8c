/* SPDX-License-Identifier: Apache-2.0 */
/* The systems whose figures are made here (report/figure.h), and the commands
 * of those that have no play. */
#ifndef AQ_FIGURES_COMMANDS_H
#define AQ_FIGURES_COMMANDS_H

struct sim_fabric_choice;

extern const struct figure_system offload_figures, kv_figures, switch_figures,
	paging_figures, model_figures, walk_figures, tier_figures, mind_figures,
	elastic_figures, index_figures;

/* All of `aquifer sim nic-model`, `tier` and `paging`; an exit code (enum
 * figure_exit). argv[0] is the system's name. */
int model_figure_cmd(int argc, char **argv);
int tier_figure_cmd(int argc, char **argv);
int paging_figure_cmd(const struct sim_fabric_choice *fabrics, int argc,
		      char **argv);

#endif
