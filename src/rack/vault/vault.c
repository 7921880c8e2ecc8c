/* SPDX-License-Identifier: Apache-2.0 */
/* What all vaults have in common: names, and which of them a place is. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "vault_priv.h"

/* ---- names --------------------------------------------------------------- */

static bool is_name(const char *text, size_t len)
{
	static const char signs[] = "-_.+@";

	if (!len || text[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && !memchr(signs, c, 5))
			return false;
	}
	return true;
}

bool vault_image_is_valid(const char *image)
{
	const char *slash = strchr(image, '/');

	return slash && strlen(image) < VAULT_IMAGE_MAX &&
	       is_name(image, (size_t)(slash - image)) &&
	       is_name(slash + 1, strlen(slash + 1));
}

bool vault_place_is_s3(const char *path)
{
	return strncmp(path, VAULT_S3, strlen(VAULT_S3)) == 0;
}

/* BUCKET or BUCKET/PREFIX/... */
static bool is_bucket(const char *text)
{
	for (;;) {
		size_t len = strcspn(text, "/");

		if (!is_name(text, len))
			return false;
		if (!text[len])
			return true;
		text += len + 1;
	}
}

bool vault_place_is_valid(const char *path)
{
	if (strlen(path) >= VAULT_PLACE_MAX)
		return false;
	return vault_place_is_s3(path) ? is_bucket(path + strlen(VAULT_S3))
				       : path[0] == '/';
}

static int check(const struct vault_place *place, const char *image,
		 const char *object)
{
	if (!vault_place_is_valid(place->path))
		return error_set(-EINVAL, "'%.40s' is no place for a vault",
				 place->path);
	if (!vault_image_is_valid(image) ||
	    (object && (strlen(object) >= VAULT_OBJECT_MAX ||
			!is_name(object, strlen(object)))))
		return error_set(-EINVAL, "'%.80s' is no name of an image",
				 image);
	return 0;
}

/* ---- both kinds ---------------------------------------------------------- */

int vault_put(const struct vault_place *place, const char *image,
	      const char *object, const struct iovec *parts, unsigned count)
{
	int err = check(place, image, object);

	if (err)
		return err;
	return vault_place_is_s3(place->path)
		       ? vault_s3_put(place, image, object, parts, count)
		       : vault_dir_put(place->path, image, object, parts,
				       count);
}

int vault_get(const struct vault_place *place, const char *image,
	      const char *object, size_t max_bytes, void **out, size_t *bytes)
{
	int err = check(place, image, object);

	if (err)
		return err;
	return vault_place_is_s3(place->path)
		       ? vault_s3_get(place, image, object, max_bytes, out,
				      bytes)
		       : vault_dir_get(place->path, image, object, max_bytes,
				       out, bytes);
}

int vault_remove(const struct vault_place *place, const char *image,
		 const char *object)
{
	int err = check(place, image, object);

	if (err)
		return err;
	return vault_place_is_s3(place->path)
		       ? vault_s3_remove(place, image, object)
		       : vault_dir_remove(place->path, image, object);
}

int vault_erase(const struct vault_place *place, const char *image)
{
	int err = check(place, image, NULL);

	if (err)
		return err;
	return vault_place_is_s3(place->path)
		       ? vault_s3_erase(place, image)
		       : vault_dir_erase(place->path, image);
}
