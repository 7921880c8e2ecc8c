/* SPDX-License-Identifier: Apache-2.0 */
/* A program that nothing can be preloaded into: says that it is there, and
 * waits until its input ends. */
#include <unistd.h>

int main(void)
{
	char byte;

	if (write(STDOUT_FILENO, "there\n", 6) != 6)
		return 1;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
