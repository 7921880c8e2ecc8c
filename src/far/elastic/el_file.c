/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files. Where a block begins follows from the ends of those before it, which
 * are final. Appends are messages; reads are READs of the header and the data,
 * loads where the memory is mapped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "el_priv.h"

enum {
	/* Blocks are asked for when those that are there will be full so soon
	 * as appends go; a node makes them in 10 to 30 ms. */
	AHEAD_MS = 50,
	PACE_PARTS = 8,
	STRUCK_MS = 2000, /* until the controller has heard of a block */
};

struct aq_file {
	struct el_object object;
	uint64_t at;	/* number of the block that appends go to */
	uint64_t asked; /* number of the last block, when more were asked for */
	/* Appends to this block: since when, and how much. */
	uint64_t pace_ns;
	uint64_t pace_bytes;
};

/* ---- blocks -------------------------------------------------------------- */

/* What a block says of itself; `start` is where it begins. */
static int read_block(struct aq_file *f, uint64_t number, uint64_t start,
		      uint64_t deadline_ns)
{
	struct el_object *o = &f->object;
	struct el_block *b = el_find(o, number);
	enum block_status status;
	struct block_head head;
	struct el_stat stat;
	int err;

	/* Only the member of a chain that may answer knows its end. */
	if (!b->is_read || (b->is_chained && !b->is_final)) {
		err = el_stat(o, number, &stat, &status, deadline_ns);
		if (!err && status != BLOCK_OK)
			err = el_error(o, status);
		b = err ? NULL : el_find(o, number);
		if (!b)
			return err ? err : el_error(o, BLOCK_STALE);
		b->address = stat.address;
		b->key = stat.key;
		b->flags = stat.flags;
		b->end = stat.end;
		b->is_read = true;
	} else if (!b->is_final) {
		err = el_read(o, number, 0, &head, sizeof(head), deadline_ns);
		if (err)
			return err;
		if (be32_get(head.magic) != BLOCK_MAGIC ||
		    be64_get(head.generation) != b->generation ||
		    be64_get(head.end) > o->block_bytes - BLOCK_HEAD_BYTES)
			return el_error(o, BLOCK_STALE);
		b->flags = be32_get(head.flags);
		b->end = be64_get(head.end);
		/* Sealed between our looks at both: the end may be larger. */
		if (b->flags & BLOCK_IS_SEALED && !b->is_final) {
			err = el_read(o, number, 0, &head, sizeof(head),
				      deadline_ns);
			if (err)
				return err;
			b->end = be64_get(head.end);
		}
	}
	b->start = start;
	b->is_final = b->flags & BLOCK_IS_SEALED;
	return 0;
}

/* A node that could not make a block knows it before the map does: whether it
 * leaves the map. Else the file itself is gone. */
static int is_struck(struct aq_file *f, uint64_t number, uint64_t deadline_ns,
		     bool *out)
{
	struct el_object *o = &f->object;
	const struct el_block *b = el_find(o, number);
	uint64_t generation = b ? b->generation : 0;
	uint64_t until_ns =
		u64_min(deadline_ns, el_now_ns() + STRUCK_MS * 1000000ull);
	unsigned tries = 0;
	int err;

	do {
		err = el_refresh(o, deadline_ns);
		if (err)
			return err;
		b = el_find(o, number);
		*out = !b || b->generation != generation;
	} while (!*out && el_pause(&tries, until_ns));
	return 0;
}

/* The block that an offset lies in, or the last one; NULL: there is none. */
static int find_block(struct aq_file *f, uint64_t offset, uint64_t deadline_ns,
		      struct el_block **out)
{
	struct el_object *o = &f->object;
	uint64_t number = 0, start = 0;
	struct el_block *b = el_find(o, 0);
	bool is_fresh = false, is_gone = false;
	int err, why;

	*out = NULL;
	for (;;) {
		if (!b && is_fresh)
			return 0;
		if (!b) {
			/* Others may have made it grow. */
			is_fresh = true;
			err = el_refresh(o, deadline_ns);
			if (err)
				return err;
			b = *out ? el_next(o, number) : el_find(o, 0);
			*out = *out ? el_find(o, number) : NULL;
			continue;
		}
		number = b->number;
		if (!b->is_final || !b->is_read) {
			err = why = read_block(f, number, start, deadline_ns);
			if (why == -ESTALE)
				err = is_struck(f, number, deadline_ns,
						&is_gone);
			if (err)
				return err;
			if (why == -ESTALE && !is_gone)
				return el_error(o, BLOCK_STALE);
			if (why == -ESTALE) {
				number = start = 0;
				b = el_find(o, 0);
				*out = NULL;
				continue;
			}
			b = el_find(o, number);
		}
		*out = b;
		if (offset - start < b->end || !b->is_final ||
		    b->flags & BLOCK_IS_LAST)
			return 0;
		start += b->end;
		b = el_next(o, number);
	}
}

/* ---- opening ------------------------------------------------------------- */

int aq_file_open(struct aq_rack *rack, const char *path,
		 const struct aq_elastic_options *options, struct aq_file **out)
{
	struct aq_file *f = calloc(1, sizeof(*f));
	int err;

	error_clear();
	if (!f)
		return error_set(-ENOMEM, "no memory for a file");
	err = el_open(&f->object, rack, path, BLOCK_FILE, options);
	if (err) {
		aq_file_close(f);
		return err;
	}
	f->at = UINT64_MAX;
	f->asked = UINT64_MAX;
	*out = f;
	return 0;
}

void aq_file_close(struct aq_file *f)
{
	if (!f)
		return;
	el_close(&f->object);
	free(f);
}

uint64_t aq_file_record_max(const struct aq_file *f)
{
	return f->object.block_bytes - BLOCK_HEAD_BYTES;
}

/* ---- appending ----------------------------------------------------------- */

/* The block that takes appends: the last one that is in use. */
static int find_end(struct aq_file *f, uint64_t deadline_ns,
		    struct el_block **out)
{
	int err;

	/* More of them may be on their way. */
	el_ahead_take(&f->object, true);
	err = find_block(f, UINT64_MAX, deadline_ns, out);
	if (!err && !*out) {
		err = el_grow(&f->object, UINT64_MAX, 1, deadline_ns);
		if (!err)
			err = find_block(f, UINT64_MAX, deadline_ns, out);
	}
	if (!err && *out && (*out)->is_final &&
	    !((*out)->flags & BLOCK_IS_LAST)) {
		err = el_grow(&f->object, (*out)->number, 1, deadline_ns);
		if (!err)
			err = find_block(f, UINT64_MAX, deadline_ns, out);
	}
	if (!err && !*out)
		err = error_set(-EAGAIN, "%s has no block yet", f->object.path);
	if (!err)
		f->at = (*out)->number;
	return err;
}

/* The block is sealed, and that is its end: the next one begins there. */
static void go_on(struct aq_file *f, uint64_t end)
{
	struct el_object *o = &f->object;
	struct el_block *b = el_find(o, f->at), *next = el_next(o, f->at);

	f->pace_ns = 0;
	f->at = UINT64_MAX;
	if (!b || !next || end > o->block_bytes - BLOCK_HEAD_BYTES)
		return; /* who looks finds it, or asks for it */
	b->flags |= BLOCK_IS_SEALED;
	b->is_final = true;
	b->end = end;
	next->start = b->start + end;
	f->at = next->number;
}

/* How many blocks are missing for what will be appended soon. No more are ahead
 * than the file has filled, as nobody knows how long it will be. */
static unsigned missing(struct aq_file *f, uint64_t end, uint64_t bytes)
{
	const struct el_object *o = &f->object;
	const struct el_block *b = el_find(&f->object, f->at);
	uint64_t now_ns = el_now_ns(), left, used, ahead;
	double soon;

	if (!f->pace_ns) {
		f->pace_ns = now_ns;
		f->pace_bytes = 0;
		return 0;
	}
	f->pace_bytes += bytes;
	if (!b || f->asked == o->block[o->block_count - 1].number ||
	    f->pace_bytes < o->block_bytes / PACE_PARTS)
		return 0;
	used = (uint64_t)(b - o->block) + 1;
	ahead = o->block_count - used;
	left = o->block_bytes * (ahead + 1) -
	       u64_min(end + BLOCK_HEAD_BYTES, o->block_bytes);
	soon = (double)f->pace_bytes * AHEAD_MS * 1e6 /
	       (double)u64_max(now_ns - f->pace_ns, 1);
	if (soon <= (double)left || ahead >= used)
		return 0;
	soon = (soon - (double)left) / (double)o->block_bytes + 1;
	return (unsigned)u64_min((uint64_t)soon, used - ahead);
}

/* Asks for blocks before they are needed. Nobody waits for them, and whoever
 * needs one finds out why there is none. */
static void look_ahead(struct aq_file *f, uint64_t end, uint64_t bytes)
{
	struct el_object *o = &f->object;
	unsigned most;

	el_ahead_take(o, false);
	most = missing(f, end, bytes);
	if (!most)
		return;
	f->asked = o->block[o->block_count - 1].number;
	el_ahead_ask(o, f->asked, most);
}

/* Some of the records, into one block. */
static int append_some(struct aq_file *f, struct aq_record *records,
		       unsigned count, unsigned *done, uint64_t deadline_ns)
{
	struct el_value v[BLOCK_OPS_MAX];
	enum block_status status;
	struct el_block *b = el_find(&f->object, f->at);
	uint64_t end = 0, start, bytes = 0;
	bool is_gone;
	int err = b ? 0 : find_end(f, deadline_ns, &b);

	*done = 0;
	if (err)
		return err;
	count = u32_min(count, BLOCK_OPS_MAX);
	for (unsigned i = 0; i < count; i++)
		v[i] = (struct el_value){records[i].data, records[i].len_bytes,
					 0};
	start = b->start;
	err = el_send(&f->object, f->at, BLOCK_APPEND, start, v, count, done,
		      &status, &end, deadline_ns);
	for (unsigned i = 0; i < *done; i++) {
		records[i].offset = start + v[i].answer;
		bytes += v[i].len_bytes;
	}
	if (err == -ENODEV) {
		f->at = UINT64_MAX; /* it could not be made */
		return 0;
	}
	if (status == BLOCK_SEALED) {
		go_on(f, end);
		return 0;
	}
	if (!err && status == BLOCK_STALE) {
		err = is_struck(f, f->at, deadline_ns, &is_gone);
		if (!err && is_gone)
			f->at = UINT64_MAX;
		else if (!err)
			err = el_error(&f->object, status);
		return err;
	}
	if (*done)
		look_ahead(f, v[*done - 1].answer + v[*done - 1].len_bytes,
			   bytes);
	if (err || status == BLOCK_OK || status == BLOCK_LATER)
		return err;
	return status == BLOCK_TOO_LONG
		       ? error_set(-EMSGSIZE,
				   "a record of %s has at most %llu bytes",
				   f->object.path,
				   (unsigned long long)aq_file_record_max(f))
		       : el_error(&f->object, status);
}

int aq_file_append_many(struct aq_file *f, struct aq_record *records,
			unsigned count, unsigned *done)
{
	uint64_t deadline_ns = el_deadline_ns(&f->object);
	unsigned some = 0, all = 0;
	int err = 0;

	error_clear();
	for (unsigned i = 0; i < count && !err; i++)
		if (records[i].len_bytes > aq_file_record_max(f))
			err = error_set(
				-EMSGSIZE,
				"a record of %s has at most %llu bytes",
				f->object.path,
				(unsigned long long)aq_file_record_max(f));
	while (all < count && !err) {
		err = append_some(f, records + all, count - all, &some,
				  deadline_ns);
		all += some;
		if (!err && !some && el_now_ns() >= deadline_ns)
			err = error_set(-ETIMEDOUT, "%s did not grow in time",
					f->object.path);
	}
	if (done)
		*done = all;
	return err;
}

int aq_file_append(struct aq_file *f, const void *data, size_t len_bytes,
		   uint64_t *offset)
{
	struct aq_record r = {.data = data, .len_bytes = len_bytes};
	int err = aq_file_append_many(f, &r, 1, NULL);

	if (!err && offset)
		*offset = r.offset;
	return err;
}

int aq_file_seal(struct aq_file *f)
{
	uint64_t deadline_ns = el_deadline_ns(&f->object);
	struct block_result r;
	struct el_block *b;
	int err;

	error_clear();
	do {
		err = find_end(f, deadline_ns, &b);
		if (!err)
			err = el_tell(&f->object, f->at, BLOCK_SEAL, 1, &r,
				      deadline_ns);
		if (err)
			return err;
	} while (r.status == BLOCK_SEALED && el_now_ns() < deadline_ns);
	return r.status == BLOCK_OK ? 0 : el_error(&f->object, r.status);
}

/* ---- reading ------------------------------------------------------------- */

int aq_file_read(struct aq_file *f, uint64_t offset, void *data,
		 size_t len_bytes, size_t *got)
{
	uint64_t deadline_ns = el_deadline_ns(&f->object);
	uint8_t *to = data;
	int err = 0;

	error_clear();
	*got = 0;
	while (*got < len_bytes && !err) {
		struct el_block *b;
		uint64_t in, n;

		err = find_block(f, offset, deadline_ns, &b);
		if (err || !b || offset - b->start >= b->end)
			break;
		in = offset - b->start;
		n = u64_min(len_bytes - *got, b->end - in);
		err = el_read(&f->object, b->number, BLOCK_HEAD_BYTES + in,
			      to + *got, n, deadline_ns);
		if (!err) {
			*got += n;
			offset += n;
		}
	}
	return err;
}

int aq_file_size(struct aq_file *f, uint64_t *size_bytes)
{
	struct el_block *b;
	int err;

	error_clear();
	err = find_block(f, UINT64_MAX, el_deadline_ns(&f->object), &b);
	if (!err)
		*size_bytes = b ? b->start + b->end : 0;
	return err;
}
