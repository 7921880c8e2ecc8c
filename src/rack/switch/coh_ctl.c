/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory's options, and what the control plane declares. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "coh.h"
#include "words.h"

enum {
	MTU_MIN = 256,
	MS = 1000000,
};

int coh_parse(const char *text, struct coh_options *out)
{
	struct tor_words p;

	tor_words_parse(&p, "coherence", text);
	*out = (struct coh_options){
		.entries = (uint32_t)tor_words_opt(
			&p, "entries", COH_ENTRIES_MAX, COH_ENTRIES),
		.region_pages = (uint32_t)tor_words_opt(&p, "region_pages",
							COH_REGION_PAGES_MAX,
							COH_REGION_PAGES),
		.machines = (uint8_t)tor_words_opt(
			&p, "machines", COH_MACHINES_MAX, COH_MACHINES_MAX),
		.lanes = (uint8_t)tor_words_opt(&p, "lanes", COH_LANES_MAX,
						COH_LANES_MAX),
		.rto_ns = tor_words_opt(&p, "rto_us", 1000000,
					END_TX_RTO_NS / 1000) *
			  1000,
		.epoch_ns = tor_words_opt(&p, "epoch_ms", 1000000,
					  COH_EPOCH_NS / MS) *
			    MS,
		.fin_ns =
			tor_words_opt(&p, "fin_ms", 1000000, COH_FIN_NS / MS) *
			MS,
		.peer_ns = tor_words_opt(&p, "peer_ms", 1000000,
					 COH_PEER_NS / MS) *
			   MS,
		.node_ns = tor_words_opt(&p, "node_ms", 1000000,
					 COH_NODE_NS / MS) *
			   MS,
		.last = tor_words_get(&p, "last")};
	if (!p.err && out->region_pages & (out->region_pages - 1))
		p.err = error_set(-EINVAL, "coherence: region_pages is a power "
					   "of two");
	return tor_words_end(&p);
}

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

/* Pages, from an address and a size in bytes. */
static struct coh_range read_pages(struct tor_words *p, uint64_t *count)
{
	uint64_t va = tor_words_u64(p, "va", UINT64_MAX);
	uint64_t size = tor_words_u64(p, "size", UINT64_MAX);

	if (!p->err && (va % COHERENCE_PAGE_BYTES || !size ||
			size % COHERENCE_PAGE_BYTES || va + size < va))
		p->err = error_set(-EINVAL, "coherence: va and size are whole "
					    "pages");
	*count = size >> COHERENCE_PAGE_SHIFT;
	return (struct coh_range){va >> COHERENCE_PAGE_SHIFT,
				  (uint32_t)u64_min(*count, UINT32_MAX)};
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

/* A switch has one term: the next one is another switch's. */
static int begin(struct coh *c, struct tor_words *p)
{
	uint32_t term = tor_words_u32(p, "term", UINT32_MAX);
	uint16_t unclean = 0;
	bool lost = tor_words_get(p, "lost");
	int err;

	if (tor_words_get(p, "unclean"))
		unclean = (uint16_t)tor_words_u32(p, "unclean",
						  (1u << c->opt.machines) - 1);
	err = tor_words_end(p);
	if (err)
		return err;
	if (c->has_begun)
		return error_set(-EBUSY, "coherence: term %u has begun",
				 c->dir.term);
	coh_dir_init(&c->dir, term, unclean, lost);
	coh_split_init(&c->split);
	c->has_begun = true;
	coh_timer_start(c);
	return 0;
}

static int add_node(struct coh *c, struct tor_words *p)
{
	uint32_t i = tor_words_u32(p, "node", COHERENCE_NODES - 1);
	uint64_t addr = tor_words_u64(p, "addr", UINT64_MAX);
	uint64_t size = tor_words_u64(p, "size", 1ull << COHERENCE_NODE_SHIFT);
	struct coh_node *n;
	int err;
	struct coh_node new = {
		.coh = c,
		.mtu = read_mtu(p),
		.rkey = tor_words_u32(p, "rkey", UINT32_MAX),
		.reads = (uint32_t)tor_words_opt(p, "reads", 128,
						 COH_NODE_READS),
		.at = {.own_qpn = tor_words_u32(p, "own_qpn", WIRE_QPN_MASK)},
		.tx =
			{
				.header = {.ttl = 64,
					   .src_port = 0xc0de,
					   .pkey = 0xffff},
				.qpn = tor_words_u32(p, "qpn", WIRE_QPN_MASK),
				.una_psn =
					tor_words_u32(p, "psn", WIRE_PSN_MASK),
			},
	};

	tor_words_ip(p, "ip", new.tx.header.dst_ip);
	tor_words_ip(p, "own_ip", new.tx.header.src_ip);
	if (is_bad_pair(p, new.tx.header.dst_ip, new.tx.header.src_ip))
		return p->err;
	err = tor_words_end(p);
	if (err)
		return err;
	n = &c->nodes[i];
	if (n->used)
		return error_set(-EEXIST,
				 "coherence: node %u is there, until "
				 "the next term",
				 i);
	err = translate_node(&c->translate, i, addr, size);
	if (err)
		return error_set(err, "coherence: an arena is whole pages, up "
				      "to 1 TiB");
	*n = new;
	err = coh_node_start(n);
	if (err)
		c->translate.node[i].size_bytes = 0;
	return err;
}

static int add_outlier(struct coh *c, struct tor_words *p)
{
	uint64_t va = tor_words_u64(p, "va", UINT64_MAX);
	uint64_t size = tor_words_u64(p, "size", UINT64_MAX);
	uint32_t node = tor_words_u32(p, "node", COHERENCE_NODES - 1);
	uint64_t addr = tor_words_u64(p, "addr", UINT64_MAX);
	int err = tor_words_end(p);

	if (err)
		return err;
	/* What is read and written meanwhile would go to two places. */
	if (c->has_begun && c->dir.used)
		return error_set(-EBUSY, "coherence: pages are in use");
	err = translate_outlier(&c->translate, va, size, node, addr);
	return err ? error_set(err, "coherence: an outlier is an aligned power "
				    "of two of pages, told once, at a node "
				    "that is there")
		   : 0;
}

static int allow(struct coh *c, struct tor_words *p)
{
	static const char *const names[] = {"none", "r", "rw"};
	uint32_t domain = tor_words_u32(p, "domain", UINT32_MAX);
	uint64_t count;
	struct coh_range r = read_pages(p, &count);
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

/* The talk of a machine, which is a member from now on. */
static int add_machine(struct coh *c, struct tor_words *p)
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

static int add_lane(struct coh *c, struct tor_words *p)
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

static int add_key(struct coh *c, struct tor_words *p)
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

static int gone(struct coh *c, struct tor_words *p)
{
	uint32_t i = tor_words_u32(p, "machine", (uint32_t)c->opt.machines - 1);
	int err = tor_words_end(p);

	if (err)
		return err;
	if (c->machines[i].used) {
		coh_machine_gone(&c->machines[i]);
		return 0;
	}
	if (!c->has_begun || c->machines[i].is_going ||
	    !(c->dir.members & 1u << i))
		return error_set(-ENOENT, "coherence: machine %u is no member",
				 i);
	/* Of a former term, and it never came back. */
	c->machines[i].coh = c;
	c->machines[i].number = (uint8_t)i;
	c->machines[i].is_going = true;
	c->machines[i].gone_at = 0;
	coh_timer_in(c, COH_STEP_NS);
	return 0;
}

/* A region was lost in a former term; memory's bytes shall count; an entry is
 * taken back; a region is split, or joined with its right neighbour. */
static int about_region(struct coh *c, struct tor_words *p, char what)
{
	struct coh_dir_entry *e;
	uint64_t count;
	struct coh_range r = read_pages(p, &count);
	int err = tor_words_end(p);

	if (err)
		return err;
	if (!c->has_begun)
		return error_set(-EAGAIN, "coherence: no term has begun");
	e = (struct coh_dir_entry *)(uintptr_t)coh_dir_find(&c->dir, r.page);
	switch (what) {
	case 'l':
		coh_dir_set_lost(&c->dir, &r);
		return 0;
	case 'r':
		err = coh_dir_repair(&c->dir, r.page, &c->out);
		if (err)
			return error_set(err, "coherence: machines of a former "
					      "term are not clean");
		break;
	case 's':
		return e && coh_dir_split(&c->dir, e)
			       ? 0
			       : error_set(-EBUSY, "coherence: cannot be "
						   "split");
	case 'j':
		return e && coh_dir_merge(&c->dir, e)
			       ? 0
			       : error_set(-EBUSY, "coherence: cannot be "
						   "joined");
	default:
		/* One for each get is always possible; more are not. */
		if (c->dir.recalls >= COH_MACHINES_MAX * COH_LANES_MAX / 2)
			return error_set(-EBUSY, "coherence: many are being "
						 "recalled");
		coh_dir_recall(&c->dir, r.page, &c->out);
		break;
	}
	coh_act(c, NULL, NULL);
	return 0;
}

static int check(const struct coh *c, struct tor_words *p, struct json_out *out)
{
	const char *wrong = coh_check(c);
	int err = tor_words_end(p);

	if (!err && out)
		json_out_string(out, "wrong", wrong ? wrong : "");
	return err;
}

/* The region of a page, and who may have copies of it. */
static int find(const struct coh *c, struct tor_words *p, struct json_out *out)
{
	uint64_t va = tor_words_u64(p, "va", UINT64_MAX);
	const struct coh_dir_entry *e;
	int err = tor_words_end(p);

	if (err)
		return err;
	if (!c->has_begun)
		return error_set(-EAGAIN, "coherence: no term has begun");
	e = coh_dir_find(&c->dir, va >> COHERENCE_PAGE_SHIFT);
	if (!out)
		return 0;
	json_out_string(out, "state",
			coh_dir_state_name(e ? (enum coh_dir_state)e->state
					     : COH_DIR_FREE));
	json_out_u64(out, "sharers", e ? e->sharers : 0);
	json_out_u64(out, "va", e ? coh_va(e->page) : va);
	json_out_u64(out, "size", e ? coh_va(coh_dir_pages(e)) : 0);
	return 0;
}

int coh_control(void *state, const char *text, struct json_out *out)
{
	enum {
		BEGIN,
		NODE,
		OUTLIER,
		ALLOW,
		MACHINE,
		LANE,
		KEY,
		GONE,
		LOST,
		REPAIR,
		RECALL,
		SPLIT,
		JOIN,
		FIND,
		CHECK,
		SHOW
	};
	static const char *const verbs[] = {
		"begin", "node", "outlier", "allow",  "machine", "lane",
		"key",	 "gone", "lost",    "repair", "recall",	 "split",
		"join",	 "find", "check",   "show",   NULL};
	static const char region_verbs[] = {[LOST] = 'l',
					    [REPAIR] = 'r',
					    [RECALL] = 'c',
					    [SPLIT] = 's',
					    [JOIN] = 'j'};
	struct coh *c = state;
	struct tor_words p;
	int verb = tor_words_verb(&p, "coherence", verbs, text);

	switch (verb) {
	case BEGIN:
		return begin(c, &p);
	case NODE:
		return add_node(c, &p);
	case OUTLIER:
		return add_outlier(c, &p);
	case ALLOW:
		return allow(c, &p);
	case MACHINE:
		return add_machine(c, &p);
	case LANE:
		return add_lane(c, &p);
	case KEY:
		return add_key(c, &p);
	case GONE:
		return gone(c, &p);
	case LOST:
	case REPAIR:
	case RECALL:
	case SPLIT:
	case JOIN:
		return about_region(c, &p, region_verbs[verb]);
	case FIND:
		return find(c, &p, out);
	case CHECK:
		return check(c, &p, out);
	case SHOW:
		if (out)
			coh_show(c, out);
		return 0;
	default:
		return verb;
	}
}
