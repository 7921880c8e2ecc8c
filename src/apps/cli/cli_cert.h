/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates in files, for `aquifer cert` and `aquifer doctor`. */
#ifndef AQ_CLI_CERT_H
#define AQ_CLI_CERT_H

#include <limits.h>

#include "base/base.h"

/* Where a rack's certificates are unless somebody says otherwise: beside its
 * rack.ini, or where that would be. */
int cli_cert_dir(char dir[PATH_MAX]) MUST_CHECK;

/* The whole text of a file, on the heap. error_last() has the words. */
int cli_cert_read(const char *path, char **out) MUST_CHECK;
/* Writes a file; it appears complete or not at all. `mode` 0600 for keys.
 * Without `replace` -EEXIST: there is one. */
int cli_cert_write(const char *path, const char *text, unsigned mode,
		   bool replace) MUST_CHECK;

#endif
