/* SPDX-License-Identifier: Apache-2.0 */
/* What shared memory says about itself, and whether it holds together. */
#include <arpa/inet.h>

#include "base/json_out.h"
#include "coh_ctl.h"

enum {
	LOST_SHOWN = 16384, /* fits into an answer */
};

static void show_machine(const struct coh_machine *m, struct json_out *out)
{
	char ip[INET6_ADDRSTRLEN];
	unsigned lanes = 0;

	for (unsigned i = 0; i < COH_LANES_MAX; i++)
		lanes += m->lanes[i].used;
	json_out_object(out, NULL);
	json_out_u64(out, "machine", m->number);
	json_out_string(out, "ip",
			inet_ntop(AF_INET6, m->at.peer_ip, ip, sizeof(ip)));
	json_out_string(out, "state", m->used ? "member" : "going");
	json_out_u64(out, "lanes", lanes);
	json_out_u64(out, "unanswered",
		     m->unanswered + m->inval_next - m->inval_first);
	json_out_close(out);
}

static void show_lost(const struct coh *c, struct json_out *out)
{
	unsigned shown = 0;

	json_out_array(out, "lost");
	for (uint32_t i = 0; i < c->dir.entry_count && shown < LOST_SHOWN;
	     i++) {
		const struct coh_dir_entry *e = &c->dir.entries[i];

		if (e->state != COH_DIR_LOST)
			continue;
		shown++;
		json_out_object(out, NULL);
		json_out_u64(out, "va", coh_va(e->page));
		json_out_u64(out, "size", coh_va(coh_dir_pages(e)));
		json_out_close(out);
	}
	json_out_close(out);
}

void coh_show(const struct coh *c, struct json_out *out)
{
	json_out_bool(out, "begun", c->has_begun);
	json_out_u64(out, "term", c->dir.term);
	json_out_string(out, "by", c->keeper);
	json_out_u64(out, "members", c->dir.members);
	json_out_u64(out, "unclean", c->dir.unclean);
	json_out_bool(out, "all_lost", c->dir.lost);
	json_out_u64(out, "entries", c->dir.entry_count);
	json_out_u64(out, "used", c->dir.used);
	json_out_u64(out, "threshold", c->split.threshold);
	json_out_u64(out, "epochs", c->split.epochs);
	json_out_u64(out, "rights", c->rights.count);
	json_out_u64(out, "outliers", c->translate.outlier_count);
	json_out_array(out, "machines");
	for (uint8_t i = 0; i < c->opt.machines; i++)
		if (c->machines[i].used || c->machines[i].is_going)
			show_machine(&c->machines[i], out);
	json_out_close(out);
	json_out_array(out, "nodes");
	for (unsigned i = 0; i < COHERENCE_NODES; i++) {
		if (!c->nodes[i].used)
			continue;
		json_out_object(out, NULL);
		json_out_u64(out, "node", i);
		json_out_u64(out, "va", c->translate.node[i].va);
		json_out_u64(out, "size", c->translate.node[i].size_bytes);
		json_out_bool(out, "lost", c->nodes[i].tx.dead);
		json_out_u64(out, "void", c->nodes[i].void_count);
		json_out_u64(out, "scrubs", c->nodes[i].scrub_count);
		json_out_close(out);
	}
	json_out_close(out);
	coh_offer_show(c, out);
	coh_move_show(c, out);
	coh_pair_show(c, out);
	show_lost(c, out);
}

/* ---- invariants
 * -------------------------------------------------------------- */

static const char *check_lane(const struct coh *c, const struct coh_lane *l)
{
	const struct coh_dir_slot *s =
		&c->dir.slots[l->machine * c->dir.lanes + l->number];
	bool waits = s->state != COH_SLOT_FREE && s->state != COH_SLOT_ORPHAN;

	if (waits && !l->is_open)
		return "the directory waits for a get that is answered";
	if (l->is_open && !waits && !l->is_refused)
		return "a get is forgotten";
	if (waits && s->serial != l->serial)
		return "the directory has another get of a lane";
	return NULL;
}

/* INVALs that the directory waits for, against those that were told. */
static const char *check_fins(const struct coh *c, const struct coh_machine *m)
{
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < c->dir.entry_count; i++)
		waiting += c->dir.entries[i].state != COH_DIR_FREE &&
			   c->dir.entries[i].waiting >> m->number & 1;
	return waiting == m->unanswered + m->inval_next - m->inval_first
		       ? NULL
		       : "FINs are waited for that nobody was asked for";
}

const char *coh_check(const struct coh *c)
{
	const char *wrong = c->has_begun ? coh_dir_check(&c->dir) : NULL;

	for (uint8_t i = 0; i < c->opt.machines && !wrong; i++) {
		const struct coh_machine *m = &c->machines[i];

		if (!m->used)
			continue;
		wrong = check_fins(c, m);
		for (uint8_t k = 0; k < c->opt.lanes && !wrong; k++)
			if (m->lanes[k].used)
				wrong = check_lane(c, &m->lanes[k]);
	}
	return wrong;
}
