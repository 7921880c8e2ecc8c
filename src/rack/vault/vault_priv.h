/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of vaults; arguments are those of vault.h, and were checked. */
#ifndef AQ_VAULT_PRIV_H
#define AQ_VAULT_PRIV_H

#include "vault.h"

int vault_dir_put(const char *place, const char *image, const char *object,
		  const struct iovec *parts, unsigned count) MUST_CHECK;
int vault_dir_get(const char *place, const char *image, const char *object,
		  size_t max_bytes, void **out, size_t *bytes) MUST_CHECK;
int vault_dir_remove(const char *place, const char *image,
		     const char *object) MUST_CHECK;
int vault_dir_erase(const char *place, const char *image) MUST_CHECK;

int vault_s3_put(const struct vault_place *place, const char *image,
		 const char *object, const struct iovec *parts,
		 unsigned count) MUST_CHECK;
int vault_s3_get(const struct vault_place *place, const char *image,
		 const char *object, size_t max_bytes, void **out,
		 size_t *bytes) MUST_CHECK;
int vault_s3_remove(const struct vault_place *place, const char *image,
		    const char *object) MUST_CHECK;
int vault_s3_erase(const struct vault_place *place,
		   const char *image) MUST_CHECK;

/* ---- vault_xml.c --------------------------------------------------------- */

/* The text of the next <NAME> behind *at, which moves on; false: there is none,
 * or it is longer, or no plain text. */
bool vault_xml_next(const char **at, const char *end, const char *name,
		    char *out, size_t room);

#endif
