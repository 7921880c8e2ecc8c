/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path from a NIC to itself: the same ring as in a cable, both ends in this
 * process, so that two queue pairs of one NIC see frames like any others.
 */
#include <errno.h>
#include <stdlib.h>

#include "os_priv.h"
#include "pages.h"

struct loop {
	struct env_path path;
	struct ring_ctl ctl;
	struct ring_tx tx;
	struct ring_rx rx;
	struct bell_peer self; /* our own page */
};

static struct loop *loop_of(struct env_path *path)
{
	return container_of(path, struct loop, path);
}

static uint8_t *loop_tx_begin(struct env_path *path, size_t max_bytes)
{
	return ring_reserve(&loop_of(path)->tx, max_bytes);
}

static void loop_tx_end(struct env_path *path, size_t len_bytes)
{
	struct loop *l = loop_of(path);

	ring_publish(&l->tx, len_bytes);
	/* Our own NIC thread may sleep like any peer's. */
	if (UNLIKELY(bell_must_ring(&l->self)))
		nic_thread_kick(path->host);
}

static uint32_t loop_from(struct env_path *path)
{
	return path->host->slot;
}

static unsigned loop_poll(struct env_path *path, unsigned budget)
{
	struct loop *l = loop_of(path);
	const uint8_t *frame;
	size_t len_bytes;
	unsigned n = 0;

	while (n < budget && (frame = ring_peek(&l->rx, &len_bytes))) {
		host_input(path->host, frame, len_bytes, loop_from(path));
		ring_release(&l->rx);
		n++;
	}
	ring_rx_publish(&l->rx);
	return n;
}

static bool loop_ready(struct env_path *path)
{
	return ring_ready(&loop_of(path)->rx);
}

static const struct port_ops loop_port = {
	.tx_begin = loop_tx_begin,
	.tx_end = loop_tx_end,
	.from = loop_from,
	.poll = loop_poll,
	.ready = loop_ready,
};

int loop_open(struct os_host *h, struct env_path **out)
{
	uint32_t bytes = h->cfg.ring_bytes;
	struct loop *l = h->loop;
	uint8_t *data;

	if (l) {
		*out = &l->path;
		return 0;
	}
	if (h->polled_count == ARRAY_LEN(h->polled))
		return -EMFILE;
	l = aligned_alloc(128, align_up(sizeof(*l), 128));
	if (!l)
		return -ENOMEM;
	data = pages_alloc(bytes);
	if (!data) {
		free(l);
		return -ENOMEM;
	}
	*l = (struct loop){
		.path = {.port = &loop_port, .host = h},
		.self = {.page = h->bell.page},
	};
	ring_tx_init(&l->tx, &l->ctl, data, bytes);
	ring_rx_init(&l->rx, &l->ctl, data, bytes);
	h->loop = l;
	host_poll_add(h, &l->path);
	*out = &l->path;
	return 0;
}

void loop_destroy(struct loop *l)
{
	if (!l)
		return;
	pages_free(l->rx.data, l->rx.size_bytes);
	free(l);
}
