/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of bytes as pages: whole ones side by side, the ends one by one. */
#include "disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aquifer/aquifer.h"
#include "base/relax.h"
#include "base/tally.h"
#include "page/page_store.h"

enum {
	DISK_WINDOW = 64, /* operations under way */
};

struct nbd_disk {
	struct aq_rack *rack;
	struct page_store *store;
	uint64_t size_bytes;
	uint64_t room_bytes;
	uint8_t edge[PAGE_BYTES]; /* of a page that is written in part */
};

int nbd_disk_open(const struct nbd_disk_options *options, struct nbd_disk **out)
{
	struct page_store_options o = {
		.pages = options->size_bytes / PAGE_BYTES,
		.mode = PAGE_CHAIN,
		.copies = options->copies,
		.depth = DISK_WINDOW,
		.patience_ms = options->patience_ms,
		.counted_as = TALLY_NBD,
	};
	struct nbd_disk *d;
	int err;

	if (options->size_bytes == 0 || options->size_bytes % PAGE_BYTES)
		return -EINVAL;
	if (options->mode) {
		err = page_mode_parse(options->mode, &o.mode);
		if (err)
			return err;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->size_bytes = options->size_bytes;
	err = aq_rack_open(options->rack, &d->rack);
	/* Where it cannot be found out, opening the store says why. */
	if (!err && page_rack_room(d->rack, &o, &d->room_bytes))
		d->room_bytes = UINT64_MAX;
	if (!err)
		err = page_store_open(d->rack, options->name, &o, &d->store);
	if (err)
		nbd_disk_close(d);
	else
		*out = d;
	return err;
}

void nbd_disk_close(struct nbd_disk *d)
{
	if (!d)
		return;
	page_store_close(d->store);
	aq_rack_close(d->rack);
	free(d);
}

uint64_t nbd_disk_size(const struct nbd_disk *d)
{
	return d->size_bytes;
}

uint64_t nbd_disk_room(const struct nbd_disk *d)
{
	return d->room_bytes;
}

bool nbd_disk_gives_back(const struct nbd_disk *d)
{
	return page_store_options(d->store)->mode != PAGE_STATIC;
}

const char *nbd_disk_lost_node(const struct nbd_disk *d)
{
	return page_lost_node(d->store);
}

/* ---- whole pages -------------------------------------------------------- */

struct window {
	struct page_op op[DISK_WINDOW];
	struct page_op *idle[DISK_WINDOW];
	unsigned idle_count;
	int err; /* the first */
};

static void window_init(struct window *w)
{
	w->err = 0;
	w->idle_count = DISK_WINDOW;
	for (unsigned i = 0; i < DISK_WINDOW; i++)
		w->idle[i] = &w->op[i];
}

/* Takes what has ended; a page that was never stored is zeros. */
static void window_take(struct nbd_disk *d, struct window *w)
{
	struct page_op *done[DISK_WINDOW];
	int n = page_poll(d->store, done, DISK_WINDOW);

	if (n <= 0)
		relax_briefly();
	for (int i = 0; i < n; i++) {
		int err = done[i]->result;

		if (err == -ENODATA) {
			if (done[i]->kind == PAGE_LOAD)
				memset(done[i]->buf, 0, PAGE_BYTES);
			err = 0;
		}
		if (err && !w->err)
			w->err = err;
		w->idle[w->idle_count++] = done[i];
	}
}

static void window_finish(struct nbd_disk *d, struct window *w)
{
	while (w->idle_count < DISK_WINDOW)
		window_take(d, w);
}

static void window_start(struct nbd_disk *d, struct window *w,
			 enum page_kind kind, uint64_t page, void *buf)
{
	struct page_op *op;

	while (w->idle_count == 0)
		window_take(d, w);
	op = w->idle[--w->idle_count];
	*op = (struct page_op){.kind = kind, .page = page, .buf = buf};
	while (page_submit(d->store, &op, 1) != 1)
		window_take(d, w);
}

static bool is_zero(const uint8_t *p)
{
	return p[0] == 0 && memcmp(p, p + 1, PAGE_BYTES - 1) == 0;
}

static int read_pages(struct nbd_disk *d, uint8_t *buf, uint64_t page,
		      uint64_t count)
{
	struct window w;

	window_init(&w);
	for (uint64_t i = 0; i < count; i++) {
		uint8_t *to = buf + i * PAGE_BYTES;

		if (page_is_stored(d->store, page + i))
			window_start(d, &w, PAGE_LOAD, page + i, to);
		else
			memset(to, 0, PAGE_BYTES);
	}
	window_finish(d, &w);
	return w.err;
}

/* NULL: zeros. A page of zeros takes no room, whoever writes it. */
static int write_pages(struct nbd_disk *d, const uint8_t *buf, uint64_t page,
		       uint64_t count)
{
	struct window w;

	window_init(&w);
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *from = buf ? buf + i * PAGE_BYTES : NULL;

		if (from && !is_zero(from))
			window_start(d, &w, PAGE_STORE, page + i,
				     (void *)(uintptr_t)from);
		else if (page_is_stored(d->store, page + i))
			window_start(d, &w, PAGE_INVALIDATE, page + i, NULL);
	}
	window_finish(d, &w);
	return w.err;
}

/* ---- any bytes ---------------------------------------------------------- */

/* The part of the range that is in its first page, when it is not whole. */
static uint32_t edge_bytes(uint64_t offset, uint64_t bytes)
{
	uint32_t in = (uint32_t)(offset % PAGE_BYTES);

	if (in == 0 && bytes >= PAGE_BYTES)
		return 0;
	return (uint32_t)u64_min(PAGE_BYTES - in, bytes);
}

static int read_edge(struct nbd_disk *d, uint8_t *buf, uint32_t bytes,
		     uint64_t offset)
{
	int err = read_pages(d, d->edge, offset / PAGE_BYTES, 1);

	if (!err)
		memcpy(buf, d->edge + offset % PAGE_BYTES, bytes);
	return err;
}

static int write_edge(struct nbd_disk *d, const uint8_t *buf, uint32_t bytes,
		      uint64_t offset)
{
	uint8_t *at = d->edge + offset % PAGE_BYTES;
	int err = read_pages(d, d->edge, offset / PAGE_BYTES, 1);

	if (err)
		return err;
	if (buf)
		memcpy(at, buf, bytes);
	else
		memset(at, 0, bytes);
	return write_pages(d, d->edge, offset / PAGE_BYTES, 1);
}

int nbd_disk_read(struct nbd_disk *d, void *buf, uint32_t bytes,
		  uint64_t offset)
{
	uint8_t *to = buf;
	uint32_t n;
	int err;

	while (bytes > 0) {
		n = edge_bytes(offset, bytes);
		if (n) {
			err = read_edge(d, to, n, offset);
		} else {
			n = bytes / PAGE_BYTES * PAGE_BYTES;
			err = read_pages(d, to, offset / PAGE_BYTES,
					 n / PAGE_BYTES);
		}
		if (err)
			return err;
		to += n;
		offset += n;
		bytes -= n;
	}
	return 0;
}

/* NULL: zeros. */
static int put(struct nbd_disk *d, const uint8_t *from, uint64_t bytes,
	       uint64_t offset)
{
	uint64_t n;
	int err;

	while (bytes > 0) {
		n = edge_bytes(offset, bytes);
		if (n) {
			err = write_edge(d, from, (uint32_t)n, offset);
		} else {
			n = bytes / PAGE_BYTES * PAGE_BYTES;
			err = write_pages(d, from, offset / PAGE_BYTES,
					  n / PAGE_BYTES);
		}
		if (err)
			return err;
		if (from)
			from += n;
		offset += n;
		bytes -= n;
	}
	return 0;
}

int nbd_disk_write(struct nbd_disk *d, const void *buf, uint32_t bytes,
		   uint64_t offset)
{
	return put(d, buf, bytes, offset);
}

int nbd_disk_zero(struct nbd_disk *d, uint64_t bytes, uint64_t offset)
{
	return put(d, NULL, bytes, offset);
}

uint64_t nbd_disk_extent(const struct nbd_disk *d, uint64_t offset,
			 uint64_t max, bool *is_hole)
{
	uint64_t end = offset + max;
	uint64_t page = offset / PAGE_BYTES;
	uint64_t at = (page + 1) * PAGE_BYTES;

	*is_hole = !page_is_stored(d->store, page);
	while (at < end &&
	       page_is_stored(d->store, at / PAGE_BYTES) != *is_hole)
		at += PAGE_BYTES;
	return u64_min(at, end) - offset;
}
