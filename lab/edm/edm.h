/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line calls. */
#ifndef AQ_EDM_H
#define AQ_EDM_H

/* `aquifer sim edm ...`; argv[0] is "edm". Returns an exit code: 0 ran, 1
 * failed, 2 wrong usage. */
int sim_edm_cmd(int argc, char **argv);

#endif
