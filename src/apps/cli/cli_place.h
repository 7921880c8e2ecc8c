/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things are, relative to the running binary, so that a build tree and
 * an installed prefix both work from any folder without configuration.
 */
#ifndef AQ_CLI_PLACE_H
#define AQ_CLI_PLACE_H

#include <limits.h>

#include "base/base.h"

#define CLI_PLACE_VERBS_SONAME "libibverbs.so.1"

/* The folder of the running program, without a slash at the end. */
int cli_place_bindir(char out[PATH_MAX]) MUST_CHECK;

/*
 * The folder of the private libibverbs.so.1 for a program in `bindir`. On
 * -ENOENT `out` holds the folder where an installed one would be.
 */
int cli_place_verbs_libdir_at(const char *bindir,
			      char out[PATH_MAX]) MUST_CHECK;

/* The same for the running program. */
int cli_place_verbs_libdir(char out[PATH_MAX]) MUST_CHECK;

/* The library that programs under `aquifer run` get. On -ENOENT `out` holds
 * the file that an installed one would be. */
int cli_place_run_library(char out[PATH_MAX]) MUST_CHECK;
/* The same for programs with --shared. */
int cli_place_shm_library(char out[PATH_MAX]) MUST_CHECK;
/* The same for the plugin of nbdkit. */
int cli_place_nbd_plugin(char out[PATH_MAX]) MUST_CHECK;
/* The same for a program of the laboratory. */
int cli_place_lab(const char *program, char out[PATH_MAX]) MUST_CHECK;

#endif
