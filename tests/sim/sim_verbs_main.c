/* SPDX-License-Identifier: Apache-2.0 */
/* The play "verbs" as a program of its own, for debuggers and profilers. */
#include "plays/verbs_play.h"

int main(int argc, char **argv)
{
	static const struct play *const plays[] = {&verbs_play, NULL};

	argv[0] = (char *)verbs_play.name;
	return play_cmd(plays, NULL, argc, argv);
}
