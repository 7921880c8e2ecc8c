/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper of members, outside the switch: terms, deaths, what is lost, and
 * repair. It does not die. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "mind_play_priv.h"
#include "rig/tor_net.h"
#include "wire/wire.h"

enum {
	ANSWER_MAX = 8192,
	HALF_BYTES = MP_PAGES / 2 * COHERENCE_PAGE_BYTES,
};

#define REPAIR_NS 100000000ull
#define NOTE_NS	  20000000ull

/* A number of an answer. */
static uint64_t number(const char *answer, const char *name)
{
	char key[32];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(answer, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* ---- a term
 * -------------------------------------------------------------------- */

static int connect_node(struct mp *p, unsigned i)
{
	uint32_t psn = (uint32_t)rng_u64(&p->run.rand) & WIRE_PSN_MASK;

	return rig_coh_node_connect(&p->nodes[i], p->tor, i, p->turn, psn,
				    p->mtu);
}

/* Where a half is, or with `verb` "pair", is, too. */
static int tell_place(struct mp *p, const char *verb, unsigned half,
		      unsigned node)
{
	return rig_tor_tell(p->tor,
			    "coherence %s va=%llu size=%u node=%u at=%u", verb,
			    COHERENCE_BASE + half * HALF_BYTES, HALF_BYTES,
			    node, half == node ? 0 : HALF_BYTES);
}

static int tell_copies(struct mp *p)
{
	int err = 0;

	for (unsigned half = 0; !err && half < MP_NODES; half++) {
		int alone = p->alone[half];

		if (alone < 0)
			err = tell_place(p, "pair", half, !half);
		else if ((unsigned)alone != half)
			err = tell_place(p, "outlier", half, (unsigned)alone);
	}
	return err;
}

static int begin_term(struct mp *p)
{
	int err;

	p->term++;
	p->turn++;
	err = rig_tor_tell(p->tor, "coherence begin term=%u unclean=%u%s",
			   p->term, p->members, p->all_lost ? " lost=1" : "");
	for (unsigned i = 0; !err && i < p->node_count; i++)
		err = connect_node(p, i);
	if (!err && p->node_count > 1)
		err = rig_tor_tell(p->tor,
				   "coherence outlier va=%llu size=%u node=1 "
				   "at=0",
				   COHERENCE_BASE + HALF_BYTES, HALF_BYTES);
	if (!err && p->has_moved)
		err = rig_tor_tell(
			p->tor,
			"coherence outlier va=%llu size=%u node=1 at=%u",
			COHERENCE_BASE, HALF_BYTES, HALF_BYTES);
	if (!err && p->has_copies)
		err = tell_copies(p);
	if (!err)
		err = rig_tor_tell(p->tor,
				   "coherence allow domain=1 va=%llu size=%u "
				   "right=rw",
				   COHERENCE_BASE,
				   MP_PAGES * COHERENCE_PAGE_BYTES);
	for (uint32_t i = 0; !err && i < MP_PAGES; i++)
		if (p->is_page_lost[i])
			err = rig_tor_tell(
				p->tor, "coherence lost va=%llu size=%u",
				COHERENCE_BASE +
					(uint64_t)i * COHERENCE_PAGE_BYTES,
				COHERENCE_PAGE_BYTES);
	p->has_begun = !err;
	return err;
}

int mp_keeper_start(struct mp *p)
{
	int err = begin_term(p);

	for (unsigned i = 0; !err && i < p->machine_count; i++) {
		err = mp_machine_connect(&p->machines[i], false);
		p->members |= (uint16_t)(1u << i);
	}
	return err;
}

/* Another switch: it knows nothing. The dead among its members are told again.
 */
static bool begin_again(struct mp *p)
{
	int err = 0;

	p->has_switch_died = p->is_moving = false;
	p->note_ns = 0;
	p->to_tell |= p->going;
	p->going = 0;
	for (unsigned i = 0; i < p->machine_count; i++)
		if (!p->machines[i].is_dead)
			mp_machine_cut(&p->machines[i]);
	err = begin_term(p);
	for (unsigned i = 0; !err && i < p->machine_count; i++)
		if (!p->machines[i].is_dead)
			err = mp_machine_connect(&p->machines[i], true);
	if (err)
		play_fail(&p->run, "a new term: %s", error_last());
	return !err;
}

/* ---- deaths
 * ---------------------------------------------------------------------- */

void mp_keeper_dead(struct mp *p, unsigned machine)
{
	p->to_tell |= (uint16_t)(1u << machine);
	p->tell_ns =
		play_now_ns(&p->run) + sim_rand_below(&p->run.rand, 20000000);
}

/* What the switch says to be lost. */
static void note_lost(struct mp *p, const char *answer)
{
	const char *at = strstr(answer, "\"lost\":[");

	if (strstr(answer, "\"all_lost\":true"))
		p->all_lost = true;
	while (at && (at = strstr(at, "{\"va\":"))) {
		uint64_t first = (number(at, "va") - COHERENCE_BASE) >>
				 COHERENCE_PAGE_SHIFT;
		uint64_t count = number(at, "size") >> COHERENCE_PAGE_SHIFT;

		for (uint64_t i = first; i < first + count && i < MP_PAGES;
		     i++) {
			p->n->lost_regions += !p->is_page_lost[i];
			p->is_page_lost[i] = true;
		}
		at++;
	}
}

static void look_after_the_dead(struct mp *p)
{
	char answer[ANSWER_MAX];

	for (unsigned i = 0; i < p->machine_count; i++) {
		if (!(p->to_tell & 1u << i) ||
		    play_now_ns(&p->run) < p->tell_ns)
			continue;
		/* The switch may have found out by itself. */
		(void)!rig_tor_tell(p->tor, "coherence gone machine=%u", i);
		p->to_tell &= (uint16_t) ~(1u << i);
		p->going |= (uint16_t)(1u << i);
	}
	if (!p->going)
		return;
	rig_tor_ask(p->tor, "coherence show", answer, sizeof(answer));
	if (strstr(answer, "\"going\""))
		return;
	note_lost(p, answer);
	p->members &= (uint16_t) ~(p->going & ~number(answer, "members"));
	p->going &= p->members;
	if (p->may_repair)
		p->repair_ns = play_now_ns(&p->run) + REPAIR_NS;
}

/* ---- repair
 * ------------------------------------------------------------------------ */

/* Memory's bytes count from now on: a new life of these words. */
static void renew(struct mp *p, uint32_t page)
{
	const uint64_t *words = mp_memory_of(p, page);
	struct lin_history *h = p->run.history;
	uint64_t now = play_now_ns(&p->run);

	p->gen[page]++;
	p->is_page_lost[page] = false;
	for (uint32_t w = 0; w < MP_WORDS; w++) {
		int64_t op;

		p->shadow[page][w] = words[w];
		if (!words[w])
			continue;
		op = lin_invoke(h, 1000,
				lin_int((uint64_t)p->gen[page] << 32 |
					page * MP_WORDS | w),
				LIN_WRITE, lin_int(words[w]), lin_nil(), now);
		ASSERT(op >= 0);
		lin_return_ok(h, op, now);
	}
}

/* A machine died with the switch: what it gave back last one of two nodes may
 * have, and the other one not. So one of them counts. */
static bool choose_copies(struct mp *p)
{
	for (unsigned half = 0; p->has_copies && half < MP_NODES; half++) {
		unsigned node = mp_node_of(p, half * MP_PAGES / 2);

		if (p->alone[half] >= 0)
			continue;
		if (tell_place(p, "single", half, node))
			return false;
		p->alone[half] = (int)node;
	}
	return true;
}

/* The switch may have died meanwhile, or a machine may not be clean. */
static void repair(struct mp *p)
{
	bool all = p->all_lost;

	p->repair_ns = 0;
	if (all && !choose_copies(p)) {
		p->repair_ns = play_now_ns(&p->run) + REPAIR_NS;
		return;
	}
	for (uint32_t i = 0; i < MP_PAGES; i++) {
		if (!all && !p->is_page_lost[i])
			continue;
		if (rig_tor_tell(p->tor, "coherence repair va=%llu size=4096",
				 COHERENCE_BASE +
					 (uint64_t)i * COHERENCE_PAGE_BYTES)) {
			p->repair_ns = play_now_ns(&p->run) + REPAIR_NS;
			return;
		}
		p->all_lost = false;
		p->n->repairs++;
		renew(p, i);
	}
}

/* ---- a move
 * ------------------------------------------------------------------------ */

/* Once. What the keeper has noted holds, whenever the switch dies: until it has
 * said so both nodes have all bytes. */
static void move(struct mp *p)
{
	char answer[ANSWER_MAX];

	if (p->move_ns && play_now_ns(&p->run) >= p->move_ns) {
		p->move_ns = 0;
		p->is_moving =
			rig_tor_tell(p->tor,
				     "coherence move va=%llu size=%u node=1 "
				     "at=%u",
				     COHERENCE_BASE, HALF_BYTES,
				     HALF_BYTES) == 0;
	}
	if (!p->is_moving)
		return;
	rig_tor_ask(p->tor, "coherence show", answer, sizeof(answer));
	if (strstr(answer, "\"move\":\"synced\"")) {
		p->is_moving = false;
		p->has_moved = rig_tor_tell(p->tor, "coherence moved") == 0;
		p->n->moves += p->has_moved;
		if (!p->has_moved)
			(void)!rig_tor_tell(p->tor, "coherence unmove");
	} else if (strstr(answer, "\"move\":\"failed\"")) {
		p->is_moving = false;
		(void)!rig_tor_tell(p->tor, "coherence unmove");
	}
}

/* ---- copies
 * ------------------------------------------------------------------------ */

static bool is_given_up(const char *answer, unsigned node)
{
	char key[32];
	const char *at, *lost;

	snprintf(key, sizeof(key), "{\"node\":%u,", node);
	at = strstr(answer, key);
	lost = at ? strstr(at, "\"lost\":") : NULL;
	return lost && strncmp(lost + 7, "true", 4) == 0;
}

static void note_alone(struct mp *p, unsigned gone)
{
	for (unsigned half = 0; half < MP_NODES; half++) {
		if (p->alone[half] >= 0)
			continue;
		p->alone[half] = !gone;
		if (tell_place(p, "single", half, !gone))
			play_fail(&p->run, "single: %s", error_last());
	}
	p->n->copies_left++;
}

/* A node that the switch has given up: some time later the keeper has noted
 * that the other one has it all, and says so. */
static void look_after_copies(struct mp *p)
{
	char answer[ANSWER_MAX];
	unsigned gone = 0;

	if (!p->has_copies || p->alone[0] >= 0)
		return;
	rig_tor_ask(p->tor, "coherence show", answer, sizeof(answer));
	while (gone < MP_NODES && !is_given_up(answer, gone))
		gone++;
	if (gone == MP_NODES)
		return;
	if (!p->note_ns) {
		p->note_ns = play_now_ns(&p->run) +
			     sim_rand_below(&p->run.rand, NOTE_NS);
		if (p->dies_unnoted)
			rig_tor_restart_at(
				p->tor,
				rig_tor_frames(p->tor) +
					sim_rand_range(&p->run.rand, 1, 60),
				RIG_KILL_AFTER, mp_switch_is_new, p);
		p->dies_unnoted = false;
	} else if (play_now_ns(&p->run) >= p->note_ns) {
		note_alone(p, gone);
	}
}

bool mp_keeper_run(struct mp *p)
{
	if (p->has_switch_died && !begin_again(p))
		return false;
	if (!p->has_begun)
		return true;
	look_after_the_dead(p);
	move(p);
	look_after_copies(p);
	if (p->repair_ns && play_now_ns(&p->run) >= p->repair_ns)
		repair(p);
	return true;
}
