/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs look for beside the library: sysfs entries and device nodes of
 * the soft NICs, in a mount namespace that only this process and its children
 * see. The machine itself is not touched.
 */
#ifndef AQ_CLI_FACADE_H
#define AQ_CLI_FACADE_H

#include "base/base.h"

/*
 * Describes the devices of the verbs library `path`. Before any thread exists;
 * the process must go on to exec. -EPERM where neither root's rights nor user
 * namespaces are available; `why` says in words what failed. After an error
 * past that point the process may be in a half-made namespace.
 */
int cli_facade_enter(const char *path, char why[256]) MUST_CHECK;

#endif
