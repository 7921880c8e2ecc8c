/* SPDX-License-Identifier: Apache-2.0 */
/* Images at the vault: of a block, and the manifest of all of them. */
#include "image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/error.h"
#include "control/ctl_http.h"

#define MANIFEST_NAME "manifest.json"

static void object_name(uint64_t number, char out[VAULT_OBJECT_MAX])
{
	(void)snprintf(out, VAULT_OBJECT_MAX, "%" PRIu64 ".blk", number);
}

/* That the place is not there is no news about a block. */
static int put_error(int err)
{
	return err == -ENOENT ? -EIO : err;
}

/* ---- writing ------------------------------------------------------------- */

/* [lo, hi, frozen lo, frozen hi, to, token, batch], as blk_image.h has them. */
static json_t *slots_json(const struct blk_image *image)
{
	struct blk_image_slots s;

	if (blk_image_slots(image, &s))
		return NULL;
	return json_pack("[I, I, I, I, I, I, I]", (json_int_t)s.lo,
			 (json_int_t)s.hi, (json_int_t)s.frozen_lo,
			 (json_int_t)s.frozen_hi, (json_int_t)s.to,
			 (json_int_t)s.token, (json_int_t)s.batch);
}

int mem_image_write(const struct mem_image *i, struct blk_image *image,
		    struct mem_image_sum *out)
{
	char name[VAULT_OBJECT_MAX];
	struct iovec parts[2];

	blk_image_sum(image);
	parts[0] = (struct iovec){&image->head, sizeof(image->head)};
	parts[1] = (struct iovec){(void *)(uintptr_t)image->payload,
				  (size_t)image->bytes};
	object_name(i->block.number, name);
	*out = (struct mem_image_sum){
		.bytes = sizeof(image->head) + image->bytes,
		.crc = blk_image_crc(image),
		.flags = be32_get(image->head.flags),
		.items = be32_get(image->head.items),
		.slots = slots_json(image),
	};
	return put_error(vault_put(&i->place, i->dir, name, parts, 2));
}

/* {"manifest": {...}, "crc": "16 digits of the sum of the other member's text,
 * with its members in order and no spaces"} */
static char *manifest_text(json_t *body, uint64_t *crc)
{
	char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);

	*crc = text ? crc64(0, text, strlen(text)) : 0;
	return text;
}

int mem_manifest_write(const struct mem_image *i, json_t *text)
{
	uint64_t crc;
	char *body = manifest_text(text, &crc), *whole = NULL;
	struct iovec part;
	int len, err;

	len = body ? asprintf(&whole,
			      "{\"crc\": \"%016" PRIx64 "\",\n"
			      "\"manifest\": %s}\n",
			      crc, body)
		   : -1;
	free(body);
	if (len < 0)
		return error_set(-ENOMEM, "no memory for a manifest");
	part = (struct iovec){whole, (size_t)len};
	err = put_error(vault_put(&i->place, i->dir, MANIFEST_NAME, &part, 1));
	free(whole);
	return err;
}

/* ---- reading ------------------------------------------------------------- */

/* The manifest that is there, if it is as it was written; the caller's. */
static int read_manifest(const struct mem_image *i, json_t **out)
{
	json_t *whole = NULL, *body;
	const char *said;
	char *text, sum[20];
	uint64_t crc;
	size_t bytes = 0;
	void *buf = NULL;
	int err = vault_get(&i->place, i->dir, MANIFEST_NAME, MEM_MANIFEST_MAX,
			    &buf, &bytes);

	if (err)
		return err;
	whole = json_loadb(buf, bytes, JSON_REJECT_DUPLICATES, NULL);
	free(buf);
	body = json_object_get(whole, "manifest");
	said = json_string_value(json_object_get(whole, "crc"));
	text = json_is_object(body) ? manifest_text(body, &crc) : NULL;
	if (text)
		(void)snprintf(sum, sizeof(sum), "%016" PRIx64, crc);
	if (!text || !said || strcmp(said, sum) != 0)
		err = error_set(-EBADMSG,
				"%s/" MANIFEST_NAME " is damaged: its sum is "
				"wrong",
				i->dir);
	else
		*out = json_incref(body);
	free(text);
	json_decref(whole);
	return err;
}

/* What the manifest has for a block. */
struct listed {
	uint64_t crc;
	uint64_t number; /* that it had when it was saved */
	uint64_t lo, hi; /* slots of a store that come from it */
};

static int parse_listed(const json_t *row, bool has_slots, struct listed *out)
{
	const char *text = json_string_value(json_object_get(row, "crc"));
	int err =
		ctl_field_u64(row, "number", true, 0, INT64_MAX, &out->number);

	if (!err && has_slots)
		err = ctl_field_u64(row, "lo", true, 0, UINT32_MAX, &out->lo);
	if (!err && has_slots)
		err = ctl_field_u64(row, "hi", true, 0, UINT32_MAX, &out->hi);
	if (err || !text || sscanf(text, "%16" SCNx64, &out->crc) != 1)
		return -EBADMSG;
	return 0;
}

/* Blocks of a store are counted anew in each image: some had ended, and their
 * numbers are missing. */
static int find_listed(const json_t *manifest, const struct mem_image *i,
		       const struct blk_options *o, struct listed *out)
{
	const json_t *rows = json_object_get(manifest, "blocks"), *row;
	bool is_store = o->kind == BLOCK_EKV;
	size_t at;

	if ((uint64_t)json_integer_value(json_object_get(manifest, "image")) !=
	    i->block.image)
		return error_set(-EBADMSG,
				 "%s/" MANIFEST_NAME " is of another image",
				 i->dir);
	json_array_foreach(rows, at, row)
	{
		if (parse_listed(row, is_store, out) ||
		    (is_store ? at : out->number) != i->block.number)
			continue;
		return 0;
	}
	return error_set(-EBADMSG, "%s/" MANIFEST_NAME " has no block %" PRIu64,
			 i->dir, i->block.number);
}

static int read_block(const struct mem_image *i, const struct blk_options *o,
		      const struct listed *row, void **buf,
		      struct blk_image *image)
{
	struct blk_image_id id = i->block;
	char name[VAULT_OBJECT_MAX];
	size_t bytes = 0;
	int err;

	id.number = row->number;
	object_name(id.number, name);
	err = vault_get(&i->place, i->dir, name,
			(size_t)o->size_bytes + sizeof(struct blk_image_wire),
			buf, &bytes);
	if (err)
		return err;
	err = blk_image_parse(*buf, bytes, &id, image);
	if (!err && blk_image_crc(image) != row->crc)
		err = error_set(-EBADMSG, "the manifest has another sum");
	if (!err) {
		image->lo = (uint32_t)row->lo;
		image->hi = (uint32_t)row->hi;
	}
	return err ? error_prefix(err, "%s/%s is refused: ", i->dir, name) : 0;
}

int mem_image_read(const struct mem_image *i, const struct blk_options *o,
		   void **buf, struct blk_image *image)
{
	struct listed row = {0};
	json_t *manifest = NULL;
	int err = read_manifest(i, &manifest);

	if (!err)
		err = find_listed(manifest, i, o, &row);
	json_decref(manifest);
	return err ? err : read_block(i, o, &row, buf, image);
}

int mem_image_erase(const struct mem_image *i)
{
	/* Without its manifest nothing of it is an image any more. */
	int err = vault_remove(&i->place, i->dir, MANIFEST_NAME);

	return err ? err : vault_erase(&i->place, i->dir);
}
