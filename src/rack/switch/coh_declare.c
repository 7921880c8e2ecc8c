/* SPDX-License-Identifier: Apache-2.0 */
/* What the control plane declares of shared memory: memory nodes, rights,
 * machines with their connections and keys. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "coh_ctl.h"

enum {
	MTU_MIN = 256,
};

/* ---- parts of calls --------------------------------------------------------
 */

static uint32_t read_mtu(struct tor_words *p)
{
	uint32_t mtu = (uint32_t)tor_words_opt(p, "mtu", WIRE_MTU_MAX, 1024);

	if (!p->err && (mtu < MTU_MIN || mtu & (mtu - 1)))
		p->err = error_set(-EINVAL, "coherence: mtu is 256 to 4096");
	return mtu;
}

static bool is_bad_pair(struct tor_words *p, const uint8_t a[16],
			const uint8_t b[16])
{
	if (!p->err && wire_is_ipv4(a) != wire_is_ipv4(b))
		p->err = error_set(-EINVAL, "coherence: addresses of two "
					    "kinds");
	return p->err;
}

/* NULL: there is none that is declared, or an error came before. */
static struct coh_machine *read_machine(struct coh *c, struct tor_words *p)
{
	uint32_t i = tor_words_u32(p, "machine", (uint32_t)c->opt.machines - 1);

	if (!p->err && !c->machines[i].used)
		p->err = error_set(-ENOENT,
				   "coherence: machine %u was not "
				   "declared",
				   i);
	return p->err ? NULL : &c->machines[i];
}

/* ---- calls -----------------------------------------------------------------
 */

void coh_read_at(struct tor_words *p, struct coh_node_at *out)
{
	*out = (struct coh_node_at){
		.addr = tor_words_u64(p, "addr", UINT64_MAX),
		.size_bytes =
			tor_words_u64(p, "size", 1ull << COHERENCE_NODE_SHIFT),
		.mtu = read_mtu(p),
		.rkey = tor_words_u32(p, "rkey", UINT32_MAX),
		.reads = (uint32_t)tor_words_opt(p, "reads", 128,
						 COH_NODE_READS),
		.own_qpn = tor_words_u32(p, "own_qpn", WIRE_QPN_MASK),
		.qpn = tor_words_u32(p, "qpn", WIRE_QPN_MASK),
		.psn = tor_words_u32(p, "psn", WIRE_PSN_MASK)};
	tor_words_ip(p, "ip", out->ip);
	tor_words_ip(p, "own_ip", out->own_ip);
	(void)is_bad_pair(p, out->ip, out->own_ip);
}

static void set_node(struct coh *c, struct coh_node *n,
		     const struct coh_node_at *at)
{
	*n = (struct coh_node){
		.coh = c,
		.mtu = at->mtu,
		.rkey = at->rkey,
		.reads = at->reads,
		.at = {.own_qpn = at->own_qpn},
		.tx =
			{
				.header = {.ttl = 64,
					   .src_port = 0xc0de,
					   .pkey = 0xffff},
				.qpn = at->qpn,
				.una_psn = at->psn,
			},
	};
	memcpy(n->tx.header.dst_ip, at->ip, 16);
	memcpy(n->tx.header.src_ip, at->own_ip, 16);
}

/* A node is told with its connection, or with the offer that has it, or, if it
 * is away, with its size alone. */
int coh_declare_node(struct coh *c, struct tor_words *p)
{
	uint32_t i = tor_words_u32(p, "node", COHERENCE_NODES - 1);
	uint64_t va = tor_words_opt(p, "va", UINT64_MAX, coherence_arena(i));
	bool is_away = tor_words_get(p, "away");
	struct coh_offer *offer = NULL;
	struct coh_node_at at = {.mtu = MTU_MIN};
	int err;

	if (is_away)
		at.size_bytes =
			tor_words_u64(p, "size", 1ull << COHERENCE_NODE_SHIFT);
	else if (tor_words_get(p, "offer"))
		offer = coh_offer_read(c, p);
	else
		coh_read_at(p, &at);
	err = tor_words_end(p);
	if (err)
		return err;
	if (offer)
		at = offer->at;
	if (c->nodes[i].used)
		return error_set(-EEXIST,
				 "coherence: node %u is there, until "
				 "the next term",
				 i);
	err = translate_node(&c->translate, i, va, at.addr, at.size_bytes);
	if (err)
		return error_set(err, "coherence: an arena is whole pages, up "
				      "to 1 TiB, where no other one is");
	set_node(c, &c->nodes[i], &at);
	if (is_away)
		coh_node_start_away(&c->nodes[i]);
	else
		err = coh_node_start(&c->nodes[i]);
	if (err)
		translate_forget(&c->translate, i);
	if (!err && offer) {
		offer->is_taken = true;
		offer->node = (uint8_t)i;
	}
	return err;
}

int coh_declare_outlier(struct coh *c, struct tor_words *p)
{
	uint64_t va = tor_words_u64(p, "va", UINT64_MAX);
	uint64_t size = tor_words_u64(p, "size", 1ull << COHERENCE_NODE_SHIFT);
	uint32_t node;
	uint64_t addr;
	int err = coh_read_part(c, p, size, &node, &addr);

	if (!err)
		err = tor_words_end(p);
	if (err)
		return err;
	/* What is read and written meanwhile would go to two places. */
	if (c->has_begun && c->dir.used != c->dir.lost_count)
		return error_set(-EBUSY, "coherence: pages are in use");
	if (!size || (va | size) % COHERENCE_PAGE_BYTES ||
	    va < COHERENCE_BASE || va > coherence_arena(COHERENCE_NODES) - size)
		return error_set(-EINVAL,
				 "coherence: an outlier is whole pages");
	return coh_outlier_set(c, va, size, node, addr);
}

int coh_declare_right(struct coh *c, struct tor_words *p)
{
	static const char *const names[] = {"none", "r", "rw"};
	uint32_t domain = tor_words_u32(p, "domain", UINT32_MAX);
	uint64_t count;
	struct coh_range r = coh_read_pages(p, &count);
	unsigned right = tor_words_pick(p, "right", names, ARRAY_LEN(names));
	int err = tor_words_end(p);

	if (err)
		return err;
	err = rights_set(&c->rights, domain, r.page, count,
			 (enum coh_right)right);
	return err ? error_set(err, "coherence: up to %d pieces of rights",
			       RIGHTS_PIECES)
		   : 0;
}

int coh_declare_machine(struct coh *c, struct tor_words *p)
{
	uint32_t i = tor_words_u32(p, "machine", (uint32_t)c->opt.machines - 1);
	uint32_t mtu = read_mtu(p);
	uint32_t qpn = tor_words_u32(p, "qpn", WIRE_QPN_MASK);
	uint32_t own_qpn = tor_words_u32(p, "own_qpn", WIRE_QPN_MASK);
	uint32_t psn = tor_words_u32(p, "psn", WIRE_PSN_MASK);
	uint32_t own_psn = tor_words_u32(p, "own_psn", WIRE_PSN_MASK);
	struct coh_machine *m;
	uint8_t ip[16], own_ip[16];
	bool is_member;
	int err;

	tor_words_ip(p, "ip", ip);
	tor_words_ip(p, "own_ip", own_ip);
	if (is_bad_pair(p, ip, own_ip))
		return p->err;
	err = tor_words_end(p);
	if (err)
		return err;
	m = &c->machines[i];
	if (!c->has_begun)
		return error_set(-EAGAIN, "coherence: no term has begun");
	if (m->used)
		return error_set(-EEXIST, "coherence: machine %u is there", i);
	if (!coh_machine_is_idle(m))
		return error_set(-EBUSY,
				 "coherence: a former machine %u is "
				 "still being taken out",
				 i);
	is_member = c->dir.members & 1u << i;
	err = is_member ? 0 : coh_dir_join(&c->dir, (uint8_t)i);
	if (err)
		return error_set(err, "coherence: memory is being read for a "
				      "former machine");
	memset(m, 0, sizeof(*m));
	m->coh = c;
	m->number = (uint8_t)i;
	m->mtu = mtu;
	m->qpn = qpn;
	m->rx.next_psn = psn;
	m->tx = (struct end_tx){
		.header = {.ttl = 64, .src_port = 0xc0de, .pkey = 0xffff},
		.qpn = qpn,
		.una_psn = own_psn};
	memcpy(m->tx.header.dst_ip, ip, 16);
	memcpy(m->tx.header.src_ip, own_ip, 16);
	m->at.own_qpn = own_qpn;
	memcpy(m->at.own_ip, own_ip, 16);
	memcpy(m->at.peer_ip, ip, 16);
	coh_tell_start(m);
	m->used = true;
	err = coh_talk_start(m);
	if (err)
		coh_machine_gone(m);
	return err;
}

int coh_declare_lane(struct coh *c, struct tor_words *p)
{
	struct coh_machine *m = read_machine(c, p);
	uint32_t i = tor_words_u32(p, "lane", (uint32_t)c->opt.lanes - 1);
	uint32_t qpn = tor_words_u32(p, "qpn", WIRE_QPN_MASK);
	uint32_t own_qpn = tor_words_u32(p, "own_qpn", WIRE_QPN_MASK);
	uint32_t psn = tor_words_u32(p, "psn", WIRE_PSN_MASK);
	int err = tor_words_end(p);
	struct coh_lane *l;

	if (err)
		return err;
	l = &m->lanes[i];
	if (l->used)
		return error_set(-EEXIST, "coherence: lane %u is there", i);
	memset(l, 0, sizeof(*l));
	l->coh = c;
	l->machine = m->number;
	l->number = (uint8_t)i;
	l->mtu = m->mtu;
	l->qpn = qpn;
	l->rx.next_psn = psn;
	l->at.own_qpn = own_qpn;
	memcpy(l->at.own_ip, m->at.own_ip, 16);
	memcpy(l->at.peer_ip, m->at.peer_ip, 16);
	return coh_lane_start(l);
}

int coh_declare_key(struct coh *c, struct tor_words *p)
{
	struct coh_machine *m = read_machine(c, p);
	struct coh_key k = {
		.domain = tor_words_u32(p, "domain", UINT32_MAX),
		.key = {[COH_NONE] = tor_words_u32(p, "give", UINT32_MAX),
			[COH_READ] = tor_words_u32(p, "read", UINT32_MAX),
			[COH_WRITE] = tor_words_u32(p, "write", UINT32_MAX)}};
	enum coh_right right;
	uint32_t domain;
	int err = tor_words_end(p);

	if (err)
		return err;
	if (m->key_count == COH_DOMAINS)
		return error_set(-ENOSPC,
				 "coherence: a machine has up to %d "
				 "domains",
				 COH_DOMAINS);
	for (unsigned i = 0; i <= COH_WRITE; i++)
		if (coh_key_find(m, k.key[i], &domain, &right) ||
		    k.key[i] == k.key[(i + 1) % (COH_WRITE + 1)])
			return error_set(-EEXIST, "coherence: a key is in "
						  "use");
	m->keys[m->key_count++] = k;
	return 0;
}
