/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as handles: from a file, from bytes, or ready ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "traverse.h"
#include "traverse_priv.h"
#include "walk/ready.h"

static int check_options(const struct aq_walk_options *o)
{
	const uint32_t where = AQ_WALK_HERE | AQ_WALK_THERE;
	const uint32_t cross = AQ_WALK_CROSS_SWITCH | AQ_WALK_CROSS_BOUNCE;

	if (o->flags & ~(where | cross) || (o->flags & where) == where ||
	    (o->flags & cross) == cross)
		return error_set(-EINVAL,
				 "the flags of a walk are AQ_WALK_HERE or "
				 "AQ_WALK_THERE, and AQ_WALK_CROSS_SWITCH or "
				 "AQ_WALK_CROSS_BOUNCE, not %#x",
				 o->flags);
	return 0;
}

/* Copies the image; it need not be aligned. */
static int open_image(struct aq_walk *walk, const void *bytes, size_t len_bytes)
{
	/* What a node takes is up to the node. */
	const struct walk_options options = {.longest_max = UINT32_MAX};
	struct walk_image image;
	int err;

	walk->image = malloc(len_bytes ? len_bytes : 1);
	if (!walk->image)
		return error_set(-ENOMEM, "no memory for a walk");
	memcpy(walk->image, bytes, len_bytes);
	walk->image_bytes = len_bytes;
	err = walk_image_parse(walk->image, len_bytes, &image);
	return err ? err : walk_program_open(&image, &options, &walk->program);
}

int aq_walk_load_bytes(struct aq_rack *rack, const void *bytes,
		       size_t len_bytes, const struct aq_walk_options *options,
		       struct aq_walk **walk)
{
	static const struct aq_walk_options none;
	const struct aq_walk_options *o = options ? options : &none;
	struct aq_walk *w;
	int err = check_options(o);

	if (err)
		return err;
	w = calloc(1, sizeof(*w));
	if (!w)
		return error_set(-ENOMEM, "no memory for a walk");
	w->rack = rack;
	w->flags = o->flags;
	w->iterations = o->iterations ? o->iterations : TRAVERSE_ITERATIONS;
	pthread_mutex_init(&w->lock, NULL);
	err = open_image(w, bytes, len_bytes);
	if (err) {
		aq_walk_close(w);
		return err;
	}
	*walk = w;
	return 0;
}

/* As much as an image can have, and a byte more for what is too long. */
static int read_file(const char *path, uint8_t *bytes, size_t *len_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;
	int err = 0;

	if (fd < 0)
		return error_set(-errno, "%s: %s; check the path", path,
				 strerror(errno));
	*len_bytes = 0;
	while (n > 0 && *len_bytes <= WALK_IMAGE_MAX) {
		n = read(fd, bytes + *len_bytes,
			 WALK_IMAGE_MAX + 1 - *len_bytes);
		if (n < 0)
			err = error_set(-errno, "%s: %s", path,
					strerror(errno));
		else
			*len_bytes += (size_t)n;
	}
	(void)close(fd); /* it was only read */
	return err;
}

int aq_walk_load(struct aq_rack *rack, const char *path,
		 const struct aq_walk_options *options, struct aq_walk **walk)
{
	uint8_t *bytes = malloc(WALK_IMAGE_MAX + 1);
	size_t len_bytes = 0;
	int err;

	if (!bytes)
		return error_set(-ENOMEM, "no memory for a walk");
	err = read_file(path, bytes, &len_bytes);
	if (!err) {
		err = aq_walk_load_bytes(rack, bytes, len_bytes, options, walk);
		if (err)
			(void)error_prefix(err, "%s: ", path);
	}
	free(bytes);
	return err;
}

int traverse_load(struct aq_rack *rack, const struct walk_image *image,
		  const struct aq_walk_options *options, struct aq_walk **walk)
{
	uint8_t *bytes = malloc(walk_image_bytes(image));
	int err;

	if (!bytes)
		return error_set(-ENOMEM, "no memory for a walk");
	walk_image_write(image, bytes);
	err = aq_walk_load_bytes(rack, bytes, walk_image_bytes(image), options,
				 walk);
	free(bytes);
	return err;
}

int aq_walk_make(struct aq_rack *rack, const struct aq_walk_shape *shape,
		 const struct aq_walk_options *options, struct aq_walk **walk)
{
	struct walk_build *build = NULL;
	struct walk_image image;
	int err = walk_ready(shape, UINT32_MAX, &build, &image);

	if (!err)
		err = traverse_load(rack, &image, options, walk);
	walk_build_destroy(build);
	return err;
}

void aq_walk_close(struct aq_walk *walk)
{
	if (!walk)
		return;
	aq_walks_close(walk->own);
	walk_program_close(walk->program);
	pthread_mutex_destroy(&walk->lock);
	free(walk->image);
	free(walk);
}

void aq_walk_info(const struct aq_walk *walk, struct aq_walk_info *info)
{
	const struct walk_image *image = &walk->program->image;

	*info = (struct aq_walk_info){
		.stores = (image->flags & WALK_STORES) != 0,
		.hash = image->hash,
		.instructions = image->count,
		.longest = walk->program->facts.longest,
		.load_from = image->load_lo,
		.load_bytes = image->load_bytes,
		.pad_bytes = image->pad_bytes,
	};
	memcpy(info->name, image->name, WALK_NAME_BYTES);
}

const void *aq_walk_image(const struct aq_walk *walk, size_t *len_bytes)
{
	*len_bytes = walk->image_bytes;
	return walk->image;
}
