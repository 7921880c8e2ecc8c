/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes: one, or two that have the same pages. */
#include <string.h>

#include "base/plant.h"
#include "mind_priv.h"

static bool counts(const struct mind_world *w, uint8_t node)
{
	return w->counts >> node & 1;
}

/* The node that is read. */
static uint8_t read_at(const struct mind_world *w)
{
	return w->counts == MIND_BOTH ? coh_copies_read(w->is_away)
				      : w->counts >> 1;
}

/* ---- requests ------------------------------------------------------------ */

static void request(struct mind_world *w, uint8_t node, uint8_t page,
		    const struct mind_request *r)
{
	uint8_t *len = &w->queue_len[node][page];

	ASSERT(*len < MIND_MEMORY_MAX);
	w->queue[node][page][(*len)++] = *r;
}

void mind_node_read(struct mind_world *w, uint8_t page, uint8_t machine,
		    uint8_t lane)
{
	uint8_t node = read_at(w);

	if (w->is_away[node])
		w->wrong = "a page is read where nobody answers";
	else
		request(w, node, page,
			&(struct mind_request){.machine = machine,
					       .lane = lane});
}

static bool is_under_way(const struct mind_world *w, uint8_t machine,
			 uint8_t page)
{
	for (uint8_t n = 0; n < COH_TWO; n++)
		for (uint8_t i = 0; i < w->queue_len[n][page]; i++)
			if (w->queue[n][page][i].write &&
			    w->queue[n][page][i].machine == machine)
				return true;
	return false;
}

/* All writes of the give-back are done: the shipped code says what that means.
 * A dead machine's lanes may be dropped by now. */
static void settle(struct mind_world *w, uint8_t machine, uint8_t page)
{
	struct mind_machine *m = &w->machine[machine];
	const bool *has_failed = m->has_failed[page];
	enum coh_give_fate fate =
		w->counts == MIND_BOTH
			? coh_copies_fate(has_failed, w->is_away)
			: coh_copies_fate_alone(has_failed, w->counts >> 1);

	m->is_held[page] = fate == COH_GIVE_HELD;
	if (m->is_held[page])
		return;
	memset(m->has_failed[page], 0, sizeof(m->has_failed[page]));
	if (fate == COH_GIVE_VOID)
		w->wrong = "a give-back that a node has is taken for lost";
	if (m->give[page].way == MIND_MEMORY)
		m->give[page] = (struct mind_msg){
			m->alive ? MIND_BACK : MIND_NOWHERE, false};
}

void mind_node_write(struct mind_world *w, uint8_t page, uint8_t machine,
		     bool fresh)
{
	struct mind_machine *m = &w->machine[machine];

	m->give[page] = (struct mind_msg){MIND_MEMORY, false};
	w->differs = false;
	for (uint8_t n = 0; n < mind_node_count(w->config); n++) {
		bool writes = counts(w, n) && !w->is_away[n];

		m->has_failed[page][n] = !writes;
		w->differs |= !writes;
		if (writes)
			request(w, n, page,
				&(struct mind_request){true, machine, 0,
						       fresh});
	}
}

void mind_node_executes(struct mind_world *w, uint8_t node, uint8_t page)
{
	struct coh_dir_out out;
	struct mind_request *queue = w->queue[node][page];
	struct mind_request r = queue[0];

	memmove(&queue[0], &queue[1], sizeof(r) * --w->queue_len[node][page]);
	if (r.write) {
		w->memory[node][page] = r.fresh;
		if (!is_under_way(w, r.machine, page))
			settle(w, r.machine, page);
		return;
	}
	coh_dir_read_done(&w->dir, r.machine, r.lane, &out);
	mind_dir_did(w, &out, w->memory[node][page]);
}

/* ---- a node that is away ------------------------------------------------- */

/* Its writes change memory, and nobody hears of it. */
static bool execute_unheard(struct mind_world *w, uint8_t node, uint8_t page,
			    unsigned executed)
{
	bool all = true;

	for (unsigned i = 0; i < w->queue_len[node][page]; i++) {
		const struct mind_request *r = &w->queue[node][page][i];

		if (i < executed && r->write)
			w->memory[node][page] = r->fresh;
		all &= i < executed || !r->write;
	}
	return all;
}

/* As the switch gives it up: what it has not answered fails, and what it was
 * to read the other one reads. */
void mind_node_dies(struct mind_world *w, uint8_t node, unsigned executed)
{
	struct mind_request failed[MIND_MEMORY_MAX];
	uint8_t count = w->queue_len[node][0];

	w->node_may_die = false;
	w->is_away[node] = true;
	w->differs |= !execute_unheard(w, node, 0, executed);
	memcpy(failed, w->queue[node][0], sizeof(failed));
	w->queue_len[node][0] = 0;
	for (uint8_t i = 0; i < count; i++) {
		const struct mind_request *r = &failed[i];

		if (!r->write) {
			mind_node_read(w, 0, r->machine, r->lane);
			continue;
		}
		w->machine[r->machine].has_failed[0][node] = true;
		if (!is_under_way(w, r->machine, 0))
			settle(w, r->machine, 0);
	}
}

void mind_node_single(struct mind_world *w)
{
	w->kept_counts = w->is_away[0] ? 2 : 1;
}

void mind_node_told(struct mind_world *w)
{
	w->counts = w->kept_counts;
	for (uint8_t i = 0; i < w->config->machines; i++)
		if (w->machine[i].is_held[0])
			settle(w, i, 0);
}

void mind_node_drop(struct mind_world *w)
{
	if (w->kept_counts == MIND_BOTH)
		mind_node_single(w);
	mind_node_told(w);
}

/* What was held was not acknowledged: machines give it back again. */
void mind_node_cut(struct mind_world *w, unsigned executed, bool stays_away)
{
	uint8_t nodes = mind_node_count(w->config), left[COH_TWO] = {0};

	for (uint8_t n = 0; n < nodes; n++)
		for (uint8_t p = 0; p < w->config->pages; p++) {
			unsigned done = executed >> 3 * (n + p) & 7;

			for (unsigned i = done; i < w->queue_len[n][p]; i++)
				left[n] += w->queue[n][p][i].write;
			(void)execute_unheard(w, n, p, done);
			w->queue_len[n][p] = 0;
		}
	w->differs |= left[0] != left[1] && nodes == COH_TWO;
	for (uint8_t i = 0; i < w->config->machines; i++) {
		memset(w->machine[i].is_held, 0, sizeof(w->machine[i].is_held));
		memset(w->machine[i].has_failed, 0,
		       sizeof(w->machine[i].has_failed));
	}
	/* The keeper waits for it, and then goes on with the other. */
	if (stays_away && w->kept_counts == MIND_BOTH)
		mind_node_single(w);
	w->counts = w->kept_counts;
	if (w->counts == MIND_BOTH)
		memset(w->is_away, 0, sizeof(w->is_away));
}

void mind_node_decree(struct mind_world *w, uint8_t page)
{
	bool any_away = w->is_away[0] || w->is_away[1];

	if (w->counts == MIND_BOTH && w->differs && !any_away)
		w->wrong = "what counts after a loss is not the same at both "
			   "nodes";
	for (uint8_t n = 0; n < mind_node_count(w->config); n++) {
		uint8_t i = w->queue_len[n][page];

		if (!counts(w, n) || (w->is_away[n] && w->differs))
			continue;
		while (i && !w->queue[n][page][i - 1].write)
			i--;
		if (i)
			w->queue[n][page][i - 1].fresh = true;
		else
			w->memory[n][page] = true;
	}
}
