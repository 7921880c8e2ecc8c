/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is opened with RTLD_DEEPBIND, and opens another one that only
 * its own search path leads to. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int run_module_copy(void);
EXPORT int run_module_open(const char *name);

/* libc's strdup takes the program's malloc, free is whose the linker finds. */
int run_module_copy(void)
{
	char *copy = strdup("a string long enough for a block of its own");
	int ok = copy && copy[0] == 'a';

	free(copy);
	return ok;
}

int run_module_open(const char *name)
{
	return dlopen(name, RTLD_NOW | RTLD_DEEPBIND) != NULL;
}
