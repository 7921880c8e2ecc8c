/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A swap system as Fastswap is one: pages of the structure at the client, the
 * one that was not used for the longest time makes room. A fault costs its
 * software, of which a part keeps the others from theirs, and a READ. Requests
 * do not change pages, so none is written back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "wfig_costs.h"
#include "wfig_priv.h"

struct frame {
	struct list link; /* the one to go first at the head */
	uint32_t page;	  /* number + 1; 0: empty */
	bool is_coming;
};

struct wfig_cache {
	struct wfig_phase *phase;
	uint32_t pages_each; /* of a piece */
	uint32_t *of_page;   /* frame + 1; 0: not here */
	struct frame *frame;
	uint8_t *bytes;
	struct list order;
	bool is_whole; /* there is room for everything */
	uint64_t swap_free_ps;
};

int wfig_cache_create(struct wfig_phase *p, uint32_t ppm,
		      struct wfig_cache **out)
{
	struct wfig_cache *k = calloc(1, sizeof(*k));
	uint64_t pages, frames;

	if (!k)
		return -ENOMEM;
	k->phase = p;
	list_init(&k->order);
	k->pages_each =
		(uint32_t)(p->data->piece_bytes / wfig_costs.page_bytes);
	pages = (uint64_t)k->pages_each * p->data->cfg.nodes;
	/* Of what is used: the pieces have room to spare. */
	frames = (uint64_t)p->data->cfg.size * sizeof(struct wfig_node) +
		 p->data->objects * wfig_costs.object_bytes;
	frames = frames / wfig_costs.page_bytes * ppm / 1000000;
	k->is_whole = ppm >= 1000000;
	frames = k->is_whole ? pages : u64_max(frames, 2 * WFIG_THREADS_MAX);
	k->of_page = calloc(pages, sizeof(*k->of_page));
	k->frame = calloc(frames, sizeof(*k->frame));
	k->bytes = aligned_alloc(4096, frames * wfig_costs.page_bytes);
	if (!k->of_page || !k->frame || !k->bytes) {
		wfig_cache_destroy(k);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < frames; i++) {
		list_init(&k->frame[i].link);
		list_append(&k->order, &k->frame[i].link);
	}
	*out = k;
	return 0;
}

void wfig_cache_destroy(struct wfig_cache *k)
{
	if (!k)
		return;
	free(k->of_page);
	free(k->frame);
	free(k->bytes);
	free(k);
}

static uint8_t *bytes_of(struct wfig_cache *k, const struct frame *f)
{
	return k->bytes + (size_t)(f - k->frame) * wfig_costs.page_bytes;
}

static void use(struct wfig_cache *k, struct frame *f)
{
	list_remove(&f->link);
	list_append(&k->order, &f->link);
}

/* The oldest frame, for this page. */
static struct frame *replace(struct wfig_cache *k, uint32_t page)
{
	struct frame *f = container_of(k->order.next, struct frame, link);

	if (f->page)
		k->of_page[f->page - 1] = 0;
	f->page = page + 1;
	k->of_page[page] = (uint32_t)(f - k->frame) + 1;
	return f;
}

static void touch(void *ctx, uint32_t node, uint64_t local)
{
	struct wfig_cache *k = ctx;
	uint32_t page = node * k->pages_each +
			(uint32_t)(local / wfig_costs.page_bytes);
	struct frame *f;

	if (k->of_page[page]) {
		use(k, &k->frame[k->of_page[page] - 1]);
		return;
	}
	f = replace(k, page);
	use(k, f);
	memcpy(bytes_of(k, f),
	       k->phase->region[node]->mem +
		       local / wfig_costs.page_bytes * wfig_costs.page_bytes,
	       wfig_costs.page_bytes);
}

void wfig_cache_warm(struct wfig_cache *k, uint32_t ops, uint64_t seed)
{
	const struct wfig_data *d = k->phase->data;
	struct wfig_ask ask;
	struct rng r;

	for (uint32_t i = 0; k->is_whole && i < d->cfg.nodes; i++)
		for (uint64_t at = 0; at < d->piece_bytes;
		     at += wfig_costs.page_bytes)
			touch(k, i, at);
	sim_rand_init(&r, seed, 99);
	for (uint32_t i = 0; i < ops; i++) {
		struct wfig_visit v = {.touch = touch, .ctx = k};

		wfig_data_ask(d, &r, &ask);
		wfig_data_walk(d, &ask, &v);
		if (d->cfg.app == WFIG_WEB) {
			uint64_t local;
			uint32_t node = wfig_data_object(d, ask.total, &local);

			touch(k, node, local);
			touch(k, node, local + wfig_costs.page_bytes);
		}
	}
}

/* Brings the page; the frame is nobody else's meanwhile. */
static bool fault(struct wfig_cache *k, struct wfig_client *c, struct frame *f,
		  uint32_t node, uint64_t local)
{
	struct sim *sim = k->phase->sim;
	uint64_t begins = u64_max(sim_now_ps(sim), k->swap_free_ps);
	bool ok;

	list_remove(&f->link);
	f->is_coming = true;
	k->swap_free_ps = begins + wfig_costs.swap_ps;
	wfig_sleep(c, begins + wfig_costs.fault_ps - sim_now_ps(sim));
	ok = wfig_read(c, node,
		       local / wfig_costs.page_bytes * wfig_costs.page_bytes,
		       (uint32_t)wfig_costs.page_bytes);
	memcpy(bytes_of(k, f), c->buf, wfig_costs.page_bytes);
	f->is_coming = false;
	list_append(&k->order, &f->link);
	return ok;
}

uint8_t *wfig_cache_get(struct wfig_cache *k, struct wfig_client *c,
			uint32_t node, uint64_t local, uint64_t *spent_ps)
{
	uint32_t page = node * k->pages_each +
			(uint32_t)(local / wfig_costs.page_bytes);
	struct frame *f;

	for (;;) {
		if (!k->of_page[page]) {
			wfig_sleep(c, *spent_ps);
			*spent_ps = 0;
			/* Others ran meanwhile. */
			if (k->of_page[page])
				continue;
			f = replace(k, page);
			if (!fault(k, c, f, node, local))
				return NULL;
			break;
		}
		f = &k->frame[k->of_page[page] - 1];
		if (!f->is_coming)
			break;
		/* Another thread brings it. */
		wfig_sleep(c, *spent_ps + wfig_costs.look_ps);
		*spent_ps = 0;
	}
	use(k, f);
	return bytes_of(k, f) + local % wfig_costs.page_bytes;
}
