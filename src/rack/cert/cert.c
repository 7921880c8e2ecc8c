/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates, by GnuTLS. */
#include "cert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"

enum {
	SERIAL_BYTES = 16,
	KEY_ID_BYTES = 64,
	DAY_S = 24 * 3600,
	EARLIER_S = 3600, /* for machines whose clocks are behind */
};

static const char name_chars[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

static bool is_ip(const char *text, uint8_t bytes[16], unsigned *len)
{
	*len = 4;
	if (inet_pton(AF_INET, text, bytes) == 1)
		return true;
	*len = 16;
	return inet_pton(AF_INET6, text, bytes) == 1;
}

static bool is_name(const char *text, size_t max)
{
	size_t len = strlen(text);

	return len >= 1 && len <= max && strspn(text, name_chars) == len &&
	       text[0] != '-' && text[0] != '.';
}

bool cert_name_is_valid(const char *name)
{
	return is_name(name, CERT_NAME_MAX);
}

bool cert_address_is_valid(const char *address)
{
	uint8_t bytes[16];
	unsigned len;

	return is_ip(address, bytes, &len) ||
	       is_name(address, CERT_ADDRESS_MAX);
}

/* 0, or the words of GnuTLS. */
static int check(int rc, const char *what)
{
	return rc < 0 ? error_set(rc == GNUTLS_E_MEMORY_ERROR ? -ENOMEM
							      : -EINVAL,
				  "cannot %s: %s", what, gnutls_strerror(rc))
		      : 0;
}

/* ---- reading ------------------------------------------------------------- */

static int read_cert(const char *pem, gnutls_x509_crt_t *out)
{
	const gnutls_datum_t data = {(unsigned char *)(uintptr_t)pem,
				     (unsigned)strlen(pem)};
	int rc = gnutls_x509_crt_init(out);

	if (rc < 0)
		return check(rc, "read a certificate");
	rc = gnutls_x509_crt_import(*out, &data, GNUTLS_X509_FMT_PEM);
	if (rc < 0)
		gnutls_x509_crt_deinit(*out);
	return check(rc, "read a certificate");
}

static int read_key(const char *pem, gnutls_x509_privkey_t *out)
{
	const gnutls_datum_t data = {(unsigned char *)(uintptr_t)pem,
				     (unsigned)strlen(pem)};
	int rc = gnutls_x509_privkey_init(out);

	if (rc < 0)
		return check(rc, "read a key");
	rc = gnutls_x509_privkey_import2(*out, &data, GNUTLS_X509_FMT_PEM, NULL,
					 GNUTLS_PKCS_PLAIN);
	if (rc < 0)
		gnutls_x509_privkey_deinit(*out);
	return check(rc, "read the key");
}

/* ---- what a certificate says --------------------------------------------- */

static void take_names(gnutls_x509_crt_t crt, struct cert_facts *out)
{
	for (unsigned i = 0; out->name_count < ARRAY_LEN(out->names); i++) {
		char *name = out->names[out->name_count];
		uint8_t bytes[CERT_ADDRESS_MAX + 1];
		size_t len = CERT_ADDRESS_MAX;
		unsigned kind;
		int rc = gnutls_x509_crt_get_subject_alt_name2(
			crt, i, bytes, &len, &kind, NULL);

		if (rc == GNUTLS_E_SHORT_MEMORY_BUFFER)
			continue; /* longer than any that is made here */
		if (rc < 0)
			return; /* there are no more */
		if (rc == GNUTLS_SAN_DNSNAME) {
			memcpy(name, bytes, len);
			name[len] = '\0';
			out->name_count++;
		} else if (rc == GNUTLS_SAN_IPADDRESS &&
			   (len == 4 || len == 16)) {
			out->name_count +=
				!!inet_ntop(len == 4 ? AF_INET : AF_INET6,
					    bytes, name, CERT_ADDRESS_MAX);
		}
	}
}

int cert_describe(const char *pem, struct cert_facts *out)
{
	size_t subject = sizeof(out->subject), issuer = sizeof(out->issuer);
	uint8_t print[32];
	size_t print_bytes = sizeof(print);
	gnutls_x509_crt_t crt;
	int rc, err = read_cert(pem, &crt);

	if (err)
		return err;
	*out = (struct cert_facts){0};
	rc = gnutls_x509_crt_get_dn(crt, out->subject, &subject);
	if (rc >= 0)
		rc = gnutls_x509_crt_get_issuer_dn(crt, out->issuer, &issuer);
	if (rc >= 0)
		rc = gnutls_x509_crt_get_fingerprint(crt, GNUTLS_DIG_SHA256,
						     print, &print_bytes);
	if (rc >= 0) {
		hex_write(out->print, print, sizeof(print));
		out->is_authority =
			gnutls_x509_crt_get_ca_status(crt, NULL) > 0;
		out->not_before = gnutls_x509_crt_get_activation_time(crt);
		out->not_after = gnutls_x509_crt_get_expiration_time(crt);
		take_names(crt, out);
	}
	gnutls_x509_crt_deinit(crt);
	return check(rc, "read what the certificate says");
}

/* ---- making -------------------------------------------------------------- */

static int check_wish(const struct cert_wish *w)
{
	if (!cert_name_is_valid(w->name))
		return error_set(-EINVAL,
				 "a name has 1 to %d letters, digits, '-', '_' "
				 "and '.', not '%.80s'",
				 CERT_NAME_MAX, w->name);
	if (w->days < 1 || w->days > CERT_DAYS_MAX)
		return error_set(-EINVAL, "a certificate is for 1 to %d days",
				 CERT_DAYS_MAX);
	if (w->address_count > CERT_ADDRESSES_MAX)
		return error_set(-EINVAL,
				 "a certificate has up to %d addresses",
				 CERT_ADDRESSES_MAX);
	for (unsigned i = 0; i < w->address_count; i++)
		if (!cert_address_is_valid(w->address[i]))
			return error_set(-EINVAL,
					 "'%.80s' is no IP address and no host "
					 "name",
					 w->address[i]);
	return 0;
}

static int set_serial(gnutls_x509_crt_t crt)
{
	uint8_t serial[SERIAL_BYTES];
	int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

	serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40); /* positive, long */
	return rc < 0 ? rc
		      : gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
}

static int set_address(gnutls_x509_crt_t crt, const char *address)
{
	uint8_t bytes[16];
	unsigned len;

	if (is_ip(address, bytes, &len))
		return gnutls_x509_crt_set_subject_alt_name(
			crt, GNUTLS_SAN_IPADDRESS, bytes, len,
			GNUTLS_FSAN_APPEND);
	return gnutls_x509_crt_set_subject_alt_name(
		crt, GNUTLS_SAN_DNSNAME, address, (unsigned)strlen(address),
		GNUTLS_FSAN_APPEND);
}

/* What all have: who, from when to when, and the key with its name. */
static int fill(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key,
		const struct cert_wish *w)
{
	uint8_t id[KEY_ID_BYTES];
	size_t id_bytes = sizeof(id);
	int rc = gnutls_x509_crt_set_version(crt, 3);

	if (rc >= 0)
		rc = set_serial(crt);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_dn_by_oid(
			crt, GNUTLS_OID_X520_COMMON_NAME, 0, w->name,
			(unsigned)strlen(w->name));
	if (rc >= 0)
		rc = gnutls_x509_crt_set_activation_time(crt,
							 w->now - EARLIER_S);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_expiration_time(
			crt, w->now + (time_t)w->days * DAY_S);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_key(crt, key);
	if (rc >= 0)
		rc = gnutls_x509_crt_get_key_id(crt, 0, id, &id_bytes);
	return rc < 0 ? rc
		      : gnutls_x509_crt_set_subject_key_id(crt, id, id_bytes);
}

static int fill_authority(gnutls_x509_crt_t crt)
{
	int rc = gnutls_x509_crt_set_basic_constraints(crt, 1, 0);

	return rc < 0 ? rc
		      : gnutls_x509_crt_set_key_usage(
				crt,
				GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
}

/* For whoever serves and whoever asks: nodes do both. */
static int fill_leaf(gnutls_x509_crt_t crt, gnutls_x509_crt_t issuer,
		     const struct cert_wish *w)
{
	uint8_t id[KEY_ID_BYTES];
	size_t id_bytes = sizeof(id);
	int rc = gnutls_x509_crt_set_basic_constraints(crt, 0, -1);

	if (rc >= 0)
		rc = gnutls_x509_crt_set_key_usage(
			crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_key_purpose_oid(
			crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (rc >= 0)
		rc = gnutls_x509_crt_set_key_purpose_oid(
			crt, GNUTLS_KP_TLS_WWW_CLIENT, 0);
	if (rc >= 0)
		rc = set_address(crt, w->name);
	for (unsigned i = 0; rc >= 0 && i < w->address_count; i++)
		if (strcmp(w->address[i], w->name) != 0)
			rc = set_address(crt, w->address[i]);
	if (rc >= 0)
		rc = gnutls_x509_crt_get_key_id(issuer, 0, id, &id_bytes);
	return rc < 0 ? rc
		      : gnutls_x509_crt_set_authority_key_id(crt, id, id_bytes);
}

static int export_pair(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key,
		       struct cert_pair *out)
{
	gnutls_datum_t cert_text = {0}, key_text = {0};
	int rc = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &cert_text);

	if (rc >= 0)
		rc = gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM,
						       NULL, GNUTLS_PKCS_PLAIN,
						       &key_text);
	if (rc >= 0) {
		out->cert = strndup((char *)cert_text.data, cert_text.size);
		out->key = strndup((char *)key_text.data, key_text.size);
		if (!out->cert || !out->key) {
			cert_pair_release(out);
			rc = GNUTLS_E_MEMORY_ERROR;
		}
	}
	gnutls_free(cert_text.data);
	if (key_text.data)
		gnutls_memset(key_text.data, 0, key_text.size);
	gnutls_free(key_text.data);
	return rc;
}

/* `issuer` NULL: it signs itself, and may sign others. */
static int make(gnutls_x509_crt_t issuer, gnutls_x509_privkey_t issuer_key,
		const struct cert_wish *w, struct cert_pair *out)
{
	gnutls_x509_privkey_t key = NULL;
	gnutls_x509_crt_t crt = NULL;
	int rc = gnutls_x509_privkey_init(&key);

	if (rc >= 0)
		rc = gnutls_x509_privkey_generate(
			key, GNUTLS_PK_ECDSA,
			GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	if (rc >= 0)
		rc = gnutls_x509_crt_init(&crt);
	if (rc >= 0)
		rc = fill(crt, key, w);
	if (rc >= 0)
		rc = issuer ? fill_leaf(crt, issuer, w) : fill_authority(crt);
	if (rc >= 0)
		rc = gnutls_x509_crt_sign2(crt, issuer ? issuer : crt,
					   issuer ? issuer_key : key,
					   GNUTLS_DIG_SHA256, 0);
	if (rc >= 0)
		rc = export_pair(crt, key, out);
	if (crt)
		gnutls_x509_crt_deinit(crt);
	if (key)
		gnutls_x509_privkey_deinit(key);
	return check(rc, "make a certificate");
}

int cert_authority_make(const struct cert_wish *wish, struct cert_pair *out)
{
	int err = check_wish(wish);

	return err ? err : make(NULL, NULL, wish, out);
}

/* An authority that may not sign, or whose key is another's, would make
 * certificates that nobody believes. */
static int check_authority(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key)
{
	uint8_t of_crt[KEY_ID_BYTES], of_key[KEY_ID_BYTES];
	size_t crt_bytes = sizeof(of_crt), key_bytes = sizeof(of_key);

	if (gnutls_x509_crt_get_ca_status(crt, NULL) <= 0)
		return error_set(-EINVAL, "that certificate is no authority's");
	if (gnutls_x509_crt_get_key_id(crt, 0, of_crt, &crt_bytes) < 0 ||
	    gnutls_x509_privkey_get_key_id(key, 0, of_key, &key_bytes) < 0 ||
	    crt_bytes != key_bytes || memcmp(of_crt, of_key, crt_bytes) != 0)
		return error_set(-EINVAL, "the authority's key does not belong "
					  "to its certificate");
	return 0;
}

int cert_issue(const struct cert_pair *authority, const struct cert_wish *wish,
	       struct cert_pair *out)
{
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	int err = check_wish(wish);

	if (!err)
		err = read_cert(authority->cert, &crt);
	if (err)
		return err;
	err = read_key(authority->key, &key);
	if (!err) {
		err = check_authority(crt, key);
		if (!err && gnutls_x509_crt_get_expiration_time(crt) <
				    wish->now + (time_t)wish->days * DAY_S)
			err = error_set(-EINVAL, "the authority's certificate "
						 "ends before that");
		if (!err)
			err = make(crt, key, wish, out);
		gnutls_x509_privkey_deinit(key);
	}
	gnutls_x509_crt_deinit(crt);
	return err;
}

int cert_check(const char *pem, const char *authority_pem, time_t now)
{
	gnutls_x509_crt_t crt, issuer;
	unsigned status = 0;
	int rc, err = read_cert(pem, &crt);

	if (err)
		return err;
	err = read_cert(authority_pem, &issuer);
	if (!err) {
		rc = gnutls_x509_crt_verify(crt, &issuer, 1,
					    GNUTLS_VERIFY_DISABLE_TIME_CHECKS,
					    &status);
		err = check(rc, "check a certificate");
		if (!err && status)
			err = error_set(-EINVAL,
					"it is not signed by that authority");
		if (!err && (now < gnutls_x509_crt_get_activation_time(crt) ||
			     now > gnutls_x509_crt_get_expiration_time(crt)))
			err = error_set(-EINVAL, "it is not valid now");
		gnutls_x509_crt_deinit(issuer);
	}
	gnutls_x509_crt_deinit(crt);
	return err;
}

void cert_pair_release(struct cert_pair *pair)
{
	free(pair->cert);
	if (pair->key)
		gnutls_memset(pair->key, 0, strlen(pair->key));
	free(pair->key);
	*pair = (struct cert_pair){0};
}
