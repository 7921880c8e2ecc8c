/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory's options, its control calls, and its term. */
#include "coh_ctl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"

enum {
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

/* ---- terms -----------------------------------------------------------------
 */

/* Of a former term nothing is left but the options. */
static void forget(struct coh *c)
{
	for (unsigned i = 0; i < COHERENCE_NODES; i++)
		coh_node_stop(&c->nodes[i]);
	for (unsigned i = 0; i < c->opt.machines; i++)
		coh_machine_gone(&c->machines[i]);
	memset(c->nodes, 0, COHERENCE_NODES * sizeof(*c->nodes));
	memset(c->offers, 0, COHERENCE_NODES * sizeof(*c->offers));
	memset(c->machines, 0, c->opt.machines * sizeof(*c->machines));
	translate_clear(&c->translate);
	c->rights.count = 0;
	memset(&c->move, 0, sizeof(c->move));
	c->pair_count = c->dir.goes_on_count = 0;
	c->out.count = 0;
	c->is_due = c->in_epoch = false;
}

/* Whose term it is: nobody else ends it. */
static int read_keeper(struct tor_words *p, char out[COH_KEEPER_TEXT])
{
	const char *by = tor_words_get(p, "by");

	if (!p->err && by && strlen(by) >= COH_KEEPER_TEXT)
		p->err = error_set(-EINVAL, "coherence: by=%.40s is too long",
				   by);
	if (!p->err)
		snprintf(out, COH_KEEPER_TEXT, "%s", by ? by : "");
	return p->err;
}

/* A switch that was restarted knows nothing of former terms. A term follows
 * another one in the same switch when its keeper was restarted, or a memory
 * node did not answer for a while. What was given back to that one in vain is
 * in nobody's memory: unless the keeper knows of all of it, and so which
 * segments that lost, everything is lost. */
static int begin(struct coh *c, struct tor_words *p)
{
	uint32_t term = tor_words_u32(p, "term", UINT32_MAX);
	uint16_t unclean = 0;
	bool lost = tor_words_get(p, "lost");
	uint64_t known = tor_words_opt(p, "void", UINT64_MAX, 0);
	char by[COH_KEEPER_TEXT];
	int err;

	if (tor_words_get(p, "unclean"))
		unclean = (uint16_t)tor_words_u32(p, "unclean",
						  (1u << c->opt.machines) - 1);
	err = read_keeper(p, by);
	if (!err)
		err = tor_words_end(p);
	if (err)
		return err;
	if (c->has_begun && strcmp(by, c->keeper) != 0)
		return error_set(-EBUSY,
				 "coherence: term %u is kept by '%s', not by "
				 "'%s'",
				 c->dir.term, c->keeper, by);
	if (c->has_begun && term <= c->dir.term)
		return error_set(-EBUSY, "coherence: term %u has begun",
				 c->dir.term);
	if (c->has_begun) {
		lost |= c->c[COH_C_gives_void] - c->void_before != known ||
			c->dir.lost;
		forget(c);
		timer_cancel(tor_timers(c->tor), &c->timer);
	}
	memcpy(c->keeper, by, sizeof(by));
	c->void_before = c->c[COH_C_gives_void];
	coh_dir_init(&c->dir, term, unclean, lost);
	coh_split_init(&c->split);
	c->has_begun = true;
	coh_timer_start(c);
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
	c->machines[i].is_gone = false;
	c->machines[i].gone_at = 0;
	coh_timer_in(c, COH_STEP_NS);
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

int coh_control(void *state, const char *text, struct json_out *out)
{
	enum {
		BEGIN,
		NODE,
		OFFER,
		ARENA,
		SCRUB,
		OUTLIER,
		MOVE,
		MOVED,
		UNMOVE,
		PAIR,
		PAIRED,
		SINGLE,
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
		CLEAR,
		LAST,
		FIND,
		CHECK,
		SHOW
	};
	static const char *const verbs[] = {
		"begin",  "node",    "offer",  "arena", "scrub",  "outlier",
		"move",	  "moved",   "unmove", "pair",	"paired", "single",
		"allow",  "machine", "lane",   "key",	"gone",	  "lost",
		"repair", "recall",  "split",  "join",	"clear",  "last",
		"find",	  "check",   "show",   NULL};
	struct coh *c = state;
	struct tor_words p;
	int verb = tor_words_verb(&p, "coherence", verbs, text);

	switch (verb) {
	case BEGIN:
		return begin(c, &p);
	case NODE:
		return coh_declare_node(c, &p);
	case OFFER:
		return coh_offer_make(c, &p);
	case ARENA:
		return coh_offer_look(c, &p, out);
	case SCRUB:
		return coh_offer_scrub(c, &p);
	case OUTLIER:
		return coh_declare_outlier(c, &p);
	case MOVE:
		return coh_move_begin(c, &p);
	case MOVED:
		return coh_move_conclude(c, &p);
	case UNMOVE:
		return coh_move_cancel(c, &p);
	case PAIR:
		return coh_pair_declare(c, &p);
	case PAIRED:
		return coh_move_pair(c, &p);
	case SINGLE:
		return coh_pair_single(c, &p);
	case ALLOW:
		return coh_declare_right(c, &p);
	case MACHINE:
		return coh_declare_machine(c, &p);
	case LANE:
		return coh_declare_lane(c, &p);
	case KEY:
		return coh_declare_key(c, &p);
	case GONE:
		return gone(c, &p);
	case LOST:
		return coh_region_lost(c, &p);
	case REPAIR:
		return coh_region_repair(c, &p);
	case RECALL:
		return coh_region_recall(c, &p);
	case SPLIT:
		return coh_region_split(c, &p);
	case JOIN:
		return coh_region_join(c, &p);
	case CLEAR:
		return coh_region_clear(c, &p, out);
	case LAST:
		return coh_region_last(c, &p);
	case FIND:
		return coh_region_find(c, &p, out);
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
