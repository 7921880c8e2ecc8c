/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates for the machines of a rack: an authority of its own, and what it
 * signs, for servers and for callers alike. Texts in and out (PEM), no files;
 * keys are ECDSA on P-256. The caller brings the time.
 */
#ifndef AQ_CERT_H
#define AQ_CERT_H

#include <time.h>

#include "base/base.h"

enum {
	CERT_NAME_MAX = 63, /* characters */
	CERT_ADDRESSES_MAX = 16,
	CERT_ADDRESS_MAX = 253, /* characters of one */
	CERT_DAYS_MAX = 36500,
	CERT_PRINT_TEXT = 2 * 32 + 1, /* SHA-256 in hex */
};

/* Both on the heap, ended by NUL. */
struct cert_pair {
	char *cert;
	char *key;
};

struct cert_wish {
	const char *name; /* the subject */
	/* DNS names and IP addresses that it is also valid for. */
	const char *const *address;
	unsigned address_count;
	unsigned days;
	time_t now;
};

struct cert_facts {
	char subject[256], issuer[256];
	char names[CERT_ADDRESSES_MAX + 1][CERT_ADDRESS_MAX + 1];
	unsigned name_count;
	bool is_authority;
	time_t not_before, not_after;
	char print[CERT_PRINT_TEXT];
};

/* 1 to 63 letters, digits, '-', '_' and '.', not beginning with '-' or '.'. */
bool cert_name_is_valid(const char *name);
/* A host name or an IP address. */
bool cert_address_is_valid(const char *address);

/* All of them: -EINVAL for a wish or a text that is wrong, else what GnuTLS
 * could not do; error_last() has the words. */
int cert_authority_make(const struct cert_wish *wish,
			struct cert_pair *out) MUST_CHECK;
int cert_issue(const struct cert_pair *authority, const struct cert_wish *wish,
	       struct cert_pair *out) MUST_CHECK;
/* The first certificate in a text. */
int cert_describe(const char *pem, struct cert_facts *out) MUST_CHECK;
/* Whether a certificate is signed by that authority, now and for now. */
int cert_check(const char *pem, const char *authority_pem,
	       time_t now) MUST_CHECK;
void cert_pair_release(struct cert_pair *pair);

#endif
