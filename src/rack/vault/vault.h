/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vault: where images of elastic memory lie outside of the rack. A place is
 * the absolute path of a folder, which several machines may share, or a bucket
 * of S3. An image is two names below it, TENANT/IMAGE, with its objects in it.
 *
 * An object is there as a whole, or as it was before: a file is written beside
 * its name, brought to the disk and renamed; S3 does so by itself. Calls block
 * for as long as the disk or the network behind it takes. What fails has words
 * in error_last(), and these never have a secret in them.
 */
#ifndef AQ_VAULT_H
#define AQ_VAULT_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "base/base.h"

enum {
	VAULT_PLACE_MAX = 256, /* with the NUL, as the next two */
	VAULT_IMAGE_MAX = 300,
	VAULT_OBJECT_MAX = 32,
	VAULT_ENDPOINT_MAX = 256,
	VAULT_REGION_MAX = 64,
	VAULT_KEY_ID_MAX = 129,
	VAULT_SECRET_MAX = 129,
	VAULT_SESSION_MAX = 2049,
	VAULT_KEY_FILE_MAX = 16384,
};

#define VAULT_S3 "s3://"

/* What S3 wants to be shown. */
struct vault_key {
	char id[VAULT_KEY_ID_MAX]; /* "": there is none */
	char secret[VAULT_SECRET_MAX];
	char session[VAULT_SESSION_MAX]; /* a token; "": none */
};

struct vault_place {
	char path[VAULT_PLACE_MAX]; /* /FOLDER or s3://BUCKET[/PREFIX] */
	/* Of S3 only. */
	char endpoint[VAULT_ENDPOINT_MAX]; /* http[s]://HOST[:PORT] */
	char region[VAULT_REGION_MAX];
	struct vault_key key;
	/* A call gives up within a second when it becomes true; NULL: never. */
	const atomic_bool *is_over;
};

bool vault_place_is_s3(const char *path);
/* [profile] and "aws_access_key_id = ..." as programs for S3 have them; the
 * first profile counts. -EINVAL: no id, or no secret. */
int vault_key_parse(const char *text, size_t len,
		    struct vault_key *out) MUST_CHECK;
/* The same from a file that its owner alone may read. -EPERM: others may. */
int vault_key_read(const char *path, struct vault_key *out) MUST_CHECK;
void vault_key_forget(struct vault_key *key);

/* TENANT/IMAGE: two names of letters, digits and some signs, without dots at
 * their beginning. */
bool vault_image_is_valid(const char *image);
bool vault_place_is_valid(const char *path);

/* All parts, one after the other, as one object. -EINVAL, -ENOSPC, -EACCES,
 * -EIO ... */
int vault_put(const struct vault_place *place, const char *image,
	      const char *object, const struct iovec *parts,
	      unsigned count) MUST_CHECK;
/* The whole object, which the caller frees. -ENOENT; -EFBIG: it is larger than
 * max_bytes; -ENOMEM. */
int vault_get(const struct vault_place *place, const char *image,
	      const char *object, size_t max_bytes, void **out,
	      size_t *bytes) MUST_CHECK;
/* Removes one object, which need not be there. */
int vault_remove(const struct vault_place *place, const char *image,
		 const char *object) MUST_CHECK;
/* Removes all of an image, which need not be there. */
int vault_erase(const struct vault_place *place, const char *image) MUST_CHECK;

#endif
