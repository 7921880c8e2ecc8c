/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate of a listening socket, and whose callers' certificates it
 * believes. The files can be read again at any time: who connects from then on
 * meets the new ones, and connections that exist go on. If they are wrong,
 * nothing changes.
 */
#ifndef AQ_CTL_TLS_PRIV_H
#define AQ_CTL_TLS_PRIV_H

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include "base/base.h"

enum {
	TLS_NAME_TEXT = 64, /* of a caller's certificate */
};

struct tls_files {
	const char *cert; /* PEM */
	const char *key;
	const char *ca; /* NULL: callers need no certificate */
};

struct tls;

/* error_last() has the words. */
int tls_create(const struct tls_files *files, struct tls **out) MUST_CHECK;
int tls_reload(struct tls *t) MUST_CHECK;
void tls_destroy(struct tls *t); /* NULL is fine; no connection is left */

/* For each new connection, before its handshake: lets GnuTLS find `t`, and ask
 * for a certificate where one is needed. */
void tls_begin(struct tls *t, gnutls_session_t session);
/* A gnutls_certificate_retrieve_function2. */
int tls_retrieve(gnutls_session_t session, const gnutls_datum_t *rdn, int rdns,
		 const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
		 gnutls_pcert_st **certs, unsigned *count,
		 gnutls_privkey_t *key);

bool tls_needs_caller(const struct tls *t);
/* Whether the peer has a certificate that is believed; the name in it. -EACCES
 * with words. */
int tls_check_caller(struct tls *t, gnutls_session_t session,
		     char name[TLS_NAME_TEXT]) MUST_CHECK;

#endif
