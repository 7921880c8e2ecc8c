/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets for the server, unix and TCP. */
#ifndef AQ_CTL_LISTEN_PRIV_H
#define AQ_CTL_LISTEN_PRIV_H

#include "base/base.h"

/* A descriptor or -errno; error_last() has the words. */
int listen_unix(const char *path) MUST_CHECK;
/* -EPERM: others can reach the address, and `may_be_public` is false. */
int listen_tcp(const char *address, bool may_be_public,
	       uint16_t *port) MUST_CHECK;

#endif
