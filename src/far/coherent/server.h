/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This machine's cache server: found by its socket, and started where there is
 * none. One that was started so ends by itself when nobody has used it for a
 * while; what it says is in a file of the rack's runtime directory.
 */
#ifndef AQ_COHERENT_SERVER_H
#define AQ_COHERENT_SERVER_H

#include "base/base.h"

/* A connection to it; rack: NULL, as configured. -EHOSTDOWN with words: there
 * is none, and none can be started. */
int coherent_server_connect(const char *rack, int *out) MUST_CHECK;

#endif
