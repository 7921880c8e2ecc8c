/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vault: where images of elastic memory lie outside of the rack. A place is
 * the absolute path of a folder, which several machines may share. An image is
 * a folder two names below it, TENANT/IMAGE, with its objects in it.
 *
 * An object is there as a whole, or as it was before: it is written beside its
 * name, brought to the disk and renamed. Calls block for as long as the disk
 * or the network behind it takes. What fails has words in error_last().
 */
#ifndef AQ_VAULT_H
#define AQ_VAULT_H

#include <sys/uio.h>

#include "base/base.h"

enum {
	VAULT_PLACE_MAX = 256, /* with the NUL, as the next two */
	VAULT_IMAGE_MAX = 300,
	VAULT_OBJECT_MAX = 32,
};

/* TENANT/IMAGE: two names of letters, digits and some signs, without dots at
 * their beginning. */
bool vault_image_is_valid(const char *image);
bool vault_place_is_valid(const char *place);

/* All parts, one after the other, as one object. -EINVAL, -ENOSPC, -EACCES,
 * -EIO ... */
int vault_put(const char *place, const char *image, const char *object,
	      const struct iovec *parts, unsigned count) MUST_CHECK;
/* The whole object, which the caller frees. -ENOENT; -EFBIG: it is larger than
 * max_bytes; -ENOMEM. */
int vault_get(const char *place, const char *image, const char *object,
	      size_t max_bytes, void **out, size_t *bytes) MUST_CHECK;
/* Removes one object, which need not be there. */
int vault_remove(const char *place, const char *image,
		 const char *object) MUST_CHECK;
/* Removes all of an image, which need not be there. */
int vault_erase(const char *place, const char *image) MUST_CHECK;

#endif
