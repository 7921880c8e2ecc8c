/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of the server, through GnuTLS. */
#include "tls_priv.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "ctl_server.h"

enum {
	CHAIN_MAX = 8,
	/* A handshake may be using what was replaced; it ends sooner. */
	KEEP_S = 60,
};

/* What the files said at one time. */
struct identity {
	struct list link;
	uint64_t replaced_ns;
	gnutls_pcert_st chain[CHAIN_MAX];
	unsigned chain_count;
	gnutls_privkey_t key;
	gnutls_x509_trust_list_t trust; /* or NULL */
};

struct tls {
	char *cert_path, *key_path, *ca_path;
	pthread_mutex_t lock;
	struct identity *now;
	struct list former;
};

/* ---- files --------------------------------------------------------------- */

static int read_pem(const char *path, gnutls_datum_t *out)
{
	char *text = malloc(CTL_SERVER_PEM_MAX + 1);
	FILE *f = fopen(path, "re");
	size_t n = 0;
	int err = 0;

	if (!text || !f)
		err = text ? -errno : -ENOMEM;
	if (!err) {
		n = fread(text, 1, CTL_SERVER_PEM_MAX + 1, f);
		if (ferror(f) || n == 0 || n > CTL_SERVER_PEM_MAX)
			err = -EINVAL;
	}
	if (f)
		(void)fclose(f); /* only read */
	if (err) {
		free(text);
		return error_set(err, "cannot read %s: %s", path,
				 strerror(-err));
	}
	text[n] = 0;
	*out = (gnutls_datum_t){(unsigned char *)text, (unsigned)n};
	return 0;
}

static void forget(gnutls_datum_t *text)
{
	if (text->data)
		explicit_bzero(text->data, text->size);
	free(text->data);
}

static void identity_destroy(struct identity *id)
{
	if (!id)
		return;
	for (unsigned i = 0; i < id->chain_count; i++)
		gnutls_pcert_deinit(&id->chain[i]);
	if (id->key)
		gnutls_privkey_deinit(id->key);
	if (id->trust)
		gnutls_x509_trust_list_deinit(id->trust, 1);
	free(id);
}

/* GnuTLS compares the two only where it is given both at once. */
static bool belong_together(const gnutls_datum_t *cert,
			    const gnutls_datum_t *key)
{
	gnutls_certificate_credentials_t both;
	bool fit;

	if (gnutls_certificate_allocate_credentials(&both) < 0)
		return false;
	fit = gnutls_certificate_set_x509_key_mem(both, cert, key,
						  GNUTLS_X509_FMT_PEM) >= 0;
	gnutls_certificate_free_credentials(both);
	return fit;
}

static int take_pair(struct identity *id, const gnutls_datum_t *cert,
		     const gnutls_datum_t *key)
{
	unsigned count = CHAIN_MAX;

	if (!belong_together(cert, key) ||
	    gnutls_pcert_list_import_x509_raw(id->chain, &count, cert,
					      GNUTLS_X509_FMT_PEM, 0) < 0)
		return error_set(-EINVAL, "cannot use the certificate: are "
					  "--tls-cert and --tls-key PEM files "
					  "that belong together?");
	id->chain_count = count;
	if (gnutls_privkey_init(&id->key) < 0 ||
	    gnutls_privkey_import_x509_raw(id->key, key, GNUTLS_X509_FMT_PEM,
					   NULL, 0) < 0)
		return error_set(-EINVAL, "cannot use the key of --tls-key");
	return 0;
}

static int take_trust(struct identity *id, const gnutls_datum_t *ca)
{
	if (gnutls_x509_trust_list_init(&id->trust, 0) < 0)
		return error_set(-ENOMEM, "no memory for certificates");
	if (gnutls_x509_trust_list_add_trust_mem(id->trust, ca, NULL,
						 GNUTLS_X509_FMT_PEM, 0, 0) < 1)
		return error_set(-EINVAL,
				 "there is no certificate in --tls-ca");
	return 0;
}

static int load(const struct tls *t, struct identity **out)
{
	gnutls_datum_t cert = {0}, key = {0}, ca = {0};
	struct identity *id = calloc(1, sizeof(*id));
	int err = id ? 0 : error_set(-ENOMEM, "no memory for certificates");

	if (!err)
		err = read_pem(t->cert_path, &cert);
	if (!err)
		err = read_pem(t->key_path, &key);
	if (!err && t->ca_path)
		err = read_pem(t->ca_path, &ca);
	if (!err)
		err = take_pair(id, &cert, &key);
	if (!err && t->ca_path)
		err = take_trust(id, &ca);
	forget(&cert);
	forget(&key);
	forget(&ca);
	if (err)
		identity_destroy(id);
	else
		*out = id;
	return err;
}

/* ---- life ---------------------------------------------------------------- */

int tls_create(const struct tls_files *files, struct tls **out)
{
	struct tls *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return error_set(-ENOMEM, "no memory for certificates");
	pthread_mutex_init(&t->lock, NULL);
	list_init(&t->former);
	t->cert_path = strdup(files->cert);
	t->key_path = strdup(files->key);
	t->ca_path = files->ca ? strdup(files->ca) : NULL;
	if (!t->cert_path || !t->key_path || (files->ca && !t->ca_path))
		err = error_set(-ENOMEM, "no memory for certificates");
	else
		err = load(t, &t->now);
	if (err)
		tls_destroy(t);
	else
		*out = t;
	return err;
}

/* Those that no handshake can have any more, or all. */
static void drop_former(struct tls *t, uint64_t before_ns)
{
	while (!list_is_empty(&t->former)) {
		struct identity *id =
			container_of(t->former.next, struct identity, link);

		if (id->replaced_ns > before_ns)
			return;
		list_remove(&id->link);
		identity_destroy(id);
	}
}

int tls_reload(struct tls *t)
{
	uint64_t now_ns = clock_mono_ns();
	struct identity *fresh;
	int err = load(t, &fresh);

	if (err)
		return err;
	pthread_mutex_lock(&t->lock);
	t->now->replaced_ns = now_ns;
	list_append(&t->former, &t->now->link);
	t->now = fresh;
	drop_former(t, now_ns - u64_min(now_ns, KEEP_S * 1000000000ull));
	pthread_mutex_unlock(&t->lock);
	return 0;
}

void tls_destroy(struct tls *t)
{
	if (!t)
		return;
	drop_former(t, UINT64_MAX);
	identity_destroy(t->now);
	pthread_mutex_destroy(&t->lock);
	free(t->cert_path);
	free(t->key_path);
	free(t->ca_path);
	free(t);
}

/* ---- handshakes ---------------------------------------------------------- */

void tls_begin(struct tls *t, gnutls_session_t session)
{
	gnutls_session_set_ptr(session, t);
	if (!t->ca_path)
		return;
	gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
	/* Which authorities we believe is nobody's business, and may change
	 * while the connection is being made. */
	gnutls_certificate_send_x509_rdn_sequence(session, 1);
}

int tls_retrieve(gnutls_session_t session, const gnutls_datum_t *rdn, int rdns,
		 const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
		 gnutls_pcert_st **certs, unsigned *count,
		 gnutls_privkey_t *key)
{
	struct tls *t = gnutls_session_get_ptr(session);

	(void)rdn; /* of the peer's request, which a server never gets */
	(void)rdns;
	(void)algorithms;
	(void)algorithm_count;
	pthread_mutex_lock(&t->lock);
	*certs = t->now->chain;
	*count = t->now->chain_count;
	*key = t->now->key;
	pthread_mutex_unlock(&t->lock);
	return 0;
}

/* ---- callers ------------------------------------------------------------- */

bool tls_needs_caller(const struct tls *t)
{
	return t->ca_path != NULL;
}

static int read_chain(const gnutls_datum_t *peers, unsigned count,
		      gnutls_x509_crt_t chain[CHAIN_MAX], unsigned *made)
{
	for (*made = 0; *made < count; ++*made) {
		if (gnutls_x509_crt_init(&chain[*made]) < 0)
			return -ENOMEM;
		if (gnutls_x509_crt_import(chain[*made], &peers[*made],
					   GNUTLS_X509_FMT_DER) < 0) {
			++*made;
			return -EACCES;
		}
	}
	return 0;
}

static int verify(struct tls *t, gnutls_x509_crt_t *chain, unsigned count)
{
	gnutls_typed_vdata_st purpose = {
		.type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT,
	};
	unsigned status = 0;
	int rc;

	pthread_mutex_lock(&t->lock);
	rc = gnutls_x509_trust_list_verify_crt2(t->now->trust, chain, count,
						&purpose, 1, 0, &status, NULL);
	pthread_mutex_unlock(&t->lock);
	return rc < 0 || status ? -EACCES : 0;
}

int tls_check_caller(struct tls *t, gnutls_session_t session,
		     char name[TLS_NAME_TEXT])
{
	unsigned count = 0, made = 0;
	const gnutls_datum_t *peers =
		gnutls_certificate_get_peers(session, &count);
	gnutls_x509_crt_t chain[CHAIN_MAX];
	size_t len = TLS_NAME_TEXT;
	int err;

	if (!peers || !count || count > CHAIN_MAX)
		return error_set(-EACCES,
				 "this port takes callers with a certificate "
				 "only; see cert and key in rack.ini(5)");
	err = read_chain(peers, count, chain, &made);
	if (!err)
		err = verify(t, chain, count);
	if (!err &&
	    gnutls_x509_crt_get_dn_by_oid(chain[0], GNUTLS_OID_X520_COMMON_NAME,
					  0, 0, name, &len) < 0)
		err = -EACCES;
	for (unsigned i = 0; i < made; i++)
		gnutls_x509_crt_deinit(chain[i]);
	return err ? error_set(err, "the certificate of the caller is not one "
				    "of this rack's authority, or is not valid "
				    "now")
		   : 0;
}
