/* SPDX-License-Identifier: Apache-2.0 */
/* The scenario "verbs" as a program of its own, for tests without the CLI. */
#include "plays/verbs_cmd.h"

int main(int argc, char **argv)
{
	return sim_verbs_cmd(argc, argv, NULL);
}
