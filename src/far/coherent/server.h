/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This machine's cache server: found by its socket, and started where there is
 * none. One that was started so ends by itself when nobody has used it for a
 * while; what it says is in a file of the rack's runtime directory.
 */
#ifndef AQ_COHERENT_SERVER_H
#define AQ_COHERENT_SERVER_H

#include "base/base.h"

/* A connection to it. -EHOSTDOWN with words: there
 * is none, and none can be started. */
int coherent_server_connect(const char *rack, int *out) MUST_CHECK;

/* The same, without starting one: -ENOENT. */
int coherent_server_find(const char *rack, int *out) MUST_CHECK;

/* The path of its socket, for programs that have no settings. -ENAMETOOLONG:
 * the runtime directory's is too long. */
int coherent_server_path(const char *rack, char *out, size_t max) MUST_CHECK;

#endif
