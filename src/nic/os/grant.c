/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's side of the direct port; the user's side is direct.c. */
#include "grant.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cable.h"
#include "pages.h"

enum {
	REMOTE_ALL = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_ATOMIC,
};

/* ---- the table ---------------------------------------------------------- */

/* The first grant whose end lies behind addr. */
static unsigned grant_index(const struct grant_table *t, const uint8_t *addr)
{
	unsigned lo = 0, hi = t->count;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;
		const struct grant *g = &t->grants[mid];

		if (g->addr + g->len_bytes <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct grant *grant_find(const struct grant_table *t,
				const uint8_t *addr)
{
	unsigned i = grant_index(t, addr);

	return i < t->count && t->grants[i].addr == addr ? &t->grants[i] : NULL;
}

static int table_insert(struct grant_table *t, const struct grant *g)
{
	unsigned i;

	if (t->count == OS_GRANT_MAX)
		return -ENOSPC;
	if (t->count == t->capacity) {
		unsigned n = t->capacity ? 2 * t->capacity : 16;
		struct grant *more = realloc(t->grants, n * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->grants = more;
		t->capacity = n;
	}
	i = grant_index(t, g->addr);
	memmove(&t->grants[i + 1], &t->grants[i],
		(t->count - i) * sizeof(*t->grants));
	t->grants[i] = *g;
	t->count++;
	return 0;
}

static void table_remove(struct grant_table *t, struct grant *g)
{
	size_t i = (size_t)(g - t->grants);

	t->count--;
	memmove(g, g + 1, (t->count - i) * sizeof(*g));
}

/* ---- grants ------------------------------------------------------------- */

static void grant_release(struct grant *g)
{
	if (g->peer_fd >= 0 && g->peer_fd != g->fd)
		close(g->peer_fd);
	if (g->addr)
		munmap(g->addr, g->len_bytes);
	if (g->fd >= 0)
		close(g->fd);
}

/* What peers touch costs memory, so they must not make it larger, nor keep us
 * from taking it back by a seal of their own. No huge pages: one byte would
 * cost 2 MiB. */
static int map_sparse(struct grant *g)
{
	if (fcntl(g->fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	g->addr = pages_map(g->fd, g->len_bytes, true);
	if (!g->addr)
		return -errno;
	(void)madvise(g->addr, g->len_bytes, MADV_NOHUGEPAGE);
	g->peer_fd = g->fd;
	return 0;
}

static int grant_make(struct grant *g, size_t len_bytes, unsigned flags)
{
	int err;

	*g = (struct grant){
		.len_bytes = pages_round(len_bytes),
		.fd = -1,
		.peer_fd = -1,
		.read_only = (flags & NIC_GRANT_READ_ONLY) != 0,
	};
	if (len_bytes == 0 || g->len_bytes < len_bytes)
		return -EINVAL;
	g->fd = pages_memfd("aquifer-grant", g->len_bytes);
	if (g->fd < 0)
		return g->fd;
	if (flags & NIC_GRANT_SPARSE)
		return map_sparse(g);
	g->addr = pages_map(g->fd, g->len_bytes, true);
	if (!g->addr)
		return -errno;
	/* Every page exists from the start: no peer and no owner ever gets
	 * SIGBUS for lack of memory. */
	err = pages_make(g->fd, g->addr, g->len_bytes);
	if (err)
		return err;
	/* The seal leaves the mapping that exists writable: the owner's. */
	g->peer_fd = g->read_only ? pages_open_read_only(g->fd, false) : g->fd;
	return g->peer_fd < 0 ? g->peer_fd : 0;
}

int grant_alloc(struct nic_host *host, size_t len_bytes, unsigned flags,
		void **addr)
{
	struct os_host *h = host_of(host);
	struct grant g;
	int err;

	if ((flags & ~(unsigned)(NIC_GRANT_READ_ONLY | NIC_GRANT_SPARSE)) ||
	    flags == (NIC_GRANT_READ_ONLY | NIC_GRANT_SPARSE))
		return -EINVAL;
	err = grant_make(&g, len_bytes, flags);
	if (!err) {
		lock_take(&host->lock);
		err = table_insert(&h->grants, &g);
		lock_drop(&host->lock);
	}
	if (err) {
		grant_release(&g);
		return err;
	}
	*addr = g.addr;
	return 0;
}

int grant_used(struct nic_host *host, void *addr, uint64_t *used_bytes)
{
	enum {
		BLOCK_BYTES = 512, /* of st_blocks, whatever st_blksize says */
	};
	struct os_host *h = host_of(host);
	const struct grant *g;
	struct stat st;
	int err = -EINVAL;

	lock_take(&host->lock);
	g = grant_find(&h->grants, addr);
	if (g)
		err = fstat(g->fd, &st) < 0 ? -errno : 0;
	lock_drop(&host->lock);
	if (!err)
		*used_bytes = (uint64_t)st.st_blocks * BLOCK_BYTES;
	return err;
}

int grant_private(struct nic_host *host, void *addr)
{
	struct os_host *h = host_of(host);
	const struct grant *g;
	int rc;

	lock_take(&host->lock);
	g = grant_find(&h->grants, addr);
	rc = g ? !g->was_handed : -EINVAL;
	lock_drop(&host->lock);
	return rc;
}

bool grant_has(struct nic_host *host, const void *addr)
{
	const struct grant_table *t = &host_of(host)->grants;
	const uint8_t *at = addr;
	unsigned i;
	bool has;

	lock_take(&host->lock);
	i = grant_index(t, at);
	has = i < t->count && at >= (const uint8_t *)t->grants[i].addr;
	lock_drop(&host->lock);
	return has;
}

/* ---- mappings given to peers -------------------------------------------- */

static void take_back(struct os_host *h, struct cable *c, unsigned i)
{
	struct grant_handed *m = &c->handed[i];

	/* GRANT-1, with map_valid: even, or odd and larger, is not the
	 * generation that it holds. */
	atomic_store_explicit(&c->words_own[i], m->generation + 1,
			      memory_order_release);
	m->used = false;
	h->handed_count--;
	h->stats->direct_revokes++;
}

/* Takes back what matches the key, or else the grant. */
static void take_back_all(struct os_host *h, const uint8_t *addr,
			  const uint32_t *rkey)
{
	if (h->handed_count == 0)
		return;
	for (struct cable *c = h->cables; c; c = c->next) {
		if (!c->handed || !c->words_own)
			continue;
		for (unsigned i = 0; i < OS_DIRECT_WORDS; i++) {
			struct grant_handed *m = &c->handed[i];

			if (m->used &&
			    (rkey ? m->rkey == *rkey : m->addr == addr))
				take_back(h, c, i);
		}
	}
}

void grant_revoke(struct os_host *h, uint32_t rkey)
{
	take_back_all(h, NULL, &rkey);
}

int grant_free(struct nic_host *host, void *addr)
{
	struct os_host *h = host_of(host);
	struct grant *g, gone;

	lock_take(&host->lock);
	g = grant_find(&h->grants, addr);
	if (!g) {
		lock_drop(&host->lock);
		return -EINVAL;
	}
	take_back_all(h, g->addr, NULL);
	gone = *g;
	table_remove(&h->grants, g);
	lock_drop(&host->lock);
	/* First the pages go away from everybody, then our mapping. A child of
	 * fork shares the memfd and must not do this to its parent. */
	if (!h->forgotten && ftruncate(gone.fd, 0) < 0)
		log_warn("os", "a grant could not be truncated; peers may "
			       "see it until they close it");
	grant_release(&gone);
	return 0;
}

void grant_table_release(struct os_host *h)
{
	for (unsigned i = 0; i < h->grants.count; i++)
		grant_release(&h->grants.grants[i]);
	free(h->grants.grants);
	h->grants = (struct grant_table){0};
}

void grant_handed_release(struct cable *c)
{
	if (!c->handed)
		return;
	for (unsigned i = 0; i < OS_DIRECT_WORDS; i++)
		if (c->handed[i].used)
			c->path.host->handed_count--;
	free(c->handed);
	c->handed = NULL;
}

/* The place for this key: the one it has already, or a free one. */
static int handed_place(struct cable *c, uint32_t rkey)
{
	int place = -ENOSPC;

	if (!c->handed) {
		c->handed = calloc(OS_DIRECT_WORDS, sizeof(*c->handed));
		if (!c->handed)
			return -ENOMEM;
	}
	for (int i = OS_DIRECT_WORDS - 1; i >= 0; i--) {
		if (!c->handed[i].used)
			place = i;
		else if (c->handed[i].rkey == rkey)
			return i;
	}
	return place;
}

static void hand_out(struct cable *c, unsigned i, uint32_t rkey,
		     const struct grant *g)
{
	struct grant_handed *m = &c->handed[i];

	if (m->used)
		return;
	m->rkey = rkey;
	m->addr = g->addr;
	m->generation = (m->generation + 1) | 1;
	m->used = true;
	/* GRANT-1: who finds the generation finds what it stands for. */
	atomic_store_explicit(&c->words_own[i], m->generation,
			      memory_order_release);
	c->path.host->handed_count++;
}

/* Only a region that is a whole grant, with rights that a mapping can have. */
static bool may_map(const struct grant *g, const struct nic_mr_attr *attr)
{
	int remote = attr->access & REMOTE_ALL;

	if (!g || pages_round(attr->length) != g->len_bytes)
		return false;
	if (g->read_only)
		return remote == IBV_ACCESS_REMOTE_READ;
	return remote == REMOTE_ALL;
}

static int decide(struct cable *c, const struct cable_map_req *req,
		  struct cable_map_rep *rep, struct grant **out)
{
	struct os_host *h = c->path.host;
	struct nic_mr_attr attr;
	struct grant *g;
	int err, place;

	/* The peer's own queue pairs are in its slot. */
	if (req->user_qpn >> NIC_QPN_INDEX_BITS != c->slot)
		return -EACCES;
	err = nic_direct_grant(h->base.nic, req->owner_qpn, req->user_qpn,
			       req->rkey, &attr);
	if (err)
		return err;
	g = grant_find(&h->grants, attr.addr);
	if (!may_map(g, &attr))
		return reach_give(c, &attr, rep) ? 0 : -EACCES;
	place = handed_place(c, req->rkey);
	if (place < 0)
		return place;
	hand_out(c, (unsigned)place, req->rkey, g);
	rep->access = (uint32_t)attr.access & REMOTE_ALL;
	rep->iova = attr.iova;
	rep->length = attr.length;
	rep->word = (uint32_t)place;
	rep->generation = c->handed[place].generation;
	g->was_handed = true;
	*out = g;
	return 0;
}

int grant_request(struct cable *c, const struct cable_msg *msg)
{
	const struct cable_map_req *req = &msg->map_req;
	struct os_host *h = c->path.host;
	struct cable_msg reply;
	struct grant *g = NULL;
	int err;

	cable_msg_init(&reply, CABLE_MAP_REP);
	reply.map_rep.owner_qpn = req->owner_qpn;
	reply.map_rep.rkey = req->rkey;
	err = decide(c, req, &reply.map_rep, &g);
	/* It has guessed keys, and is not answered for a while. Its cable
	 * stays: others of its connections may be as they should. */
	if (err == -EAGAIN)
		err = -EACCES;
	reply.map_rep.status = err;
	if (g)
		h->stats->direct_grants++;
	else if (err)
		h->stats->direct_denials++;
	err = cable_msg_send(c->sock, &reply, g ? &g->peer_fd : NULL,
			     g ? 1 : 0);
	/* A peer that asks faster than it reads goes without an answer. */
	return err == -EAGAIN ? 0 : err;
}
