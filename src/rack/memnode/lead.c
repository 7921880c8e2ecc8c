/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lead: what the switch's program `coherence` is told of shared memory, and
 * told again when it was restarted. Each switch, and each time that it gives
 * our memory up, begins a term; machines that were members before connect
 * again, give back what they have and drop it, and only then anybody gets a
 * page.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "shared_priv.h"

#define WAIT_NS 2000000000ull /* as long as a switch waits for a node */

static int declare_node(struct mem_node *node)
{
	struct mem_shared_node *n = &node->shared->nodes[MEM_SHARED_NODE];
	char words[MEM_CONN_WORDS];
	int err = shared_conn_make(node, words);

	if (!err)
		err = shared_tell(node, "node node=%d va=%" PRIu64 " %s",
				  MEM_SHARED_NODE, n->va, words);
	n->is_told = n->is_here = !err;
	return err;
}

/* ---- terms ----------------------------------------------------------------
 */

static int tell_begin(struct mem_node *node)
{
	struct mem_shared *s = node->shared;
	json_t *show = NULL;
	json_int_t there;
	char known[48] = "";
	uint64_t in_vain;
	int err = shared_ask(node, "tell coherence show", &show);

	if (err)
		return err;
	there = json_integer_value(json_object_get(show, "term"));
	in_vain = shared_node_begin(node, show);
	if (in_vain)
		snprintf(known, sizeof(known), " void=%" PRIu64, in_vain);
	json_decref(show);
	if (there < 0 || there >= UINT32_MAX)
		return error_set(-EBUSY, "the switch says nonsense");
	/* The first term of this node may follow one of a former run. */
	if ((uint32_t)there > s->term)
		s->term = (uint32_t)there;
	s->term++;
	if (shared_file_save(node))
		return -ENOSPC;
	return shared_tell(node, "begin term=%u by=%s unclean=%u%s%s", s->term,
			   node->name, member_unclean(s),
			   s->all_lost ? " lost" : "", known);
}

static int declare_lost(struct mem_node *node)
{
	const struct mem_shared *s = node->shared;
	int err = 0;

	for (unsigned i = 0; !err && i < s->lost_count; i++)
		err = shared_tell(node, "lost va=%" PRIu64 " size=%" PRIu64,
				  s->lost[i].page << COHERENCE_PAGE_SHIFT,
				  (uint64_t)s->lost[i].count
					  << COHERENCE_PAGE_SHIFT);
	return err;
}

static int begin(struct mem_node *node, const char *run)
{
	struct mem_shared *s = node->shared;
	int err;

	s->has_begun = s->is_ready = false;
	for (unsigned i = 0; i < COH_MACHINES_MAX; i++)
		s->members[i].is_connected = s->members[i].is_told = false;
	err = tell_begin(node);
	if (!err)
		err = declare_node(node);
	if (!err) { /* and no connection of the former term is left here */
		shared_move_end(node);
		err = declare_lost(node);
	}
	for (unsigned i = 0; !err && i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];

		if (!g)
			continue;
		err = segment_declare(node, g);
		g->is_withdrawn = g->is_leaving;
	}
	if (err)
		return err;
	snprintf(s->run, sizeof(s->run), "%s", run);
	s->has_begun = true;
	s->wait_ns = env_now_ns(node->env) + WAIT_NS;
	s->wants_term = false;
	s->seen = (struct mem_shared_seen){0};
	log_info("memnode", "shared memory: term %u of %s begins", s->term,
		 node->name);
	return 0;
}

/* Machines connect when all memory is there that was there, or will not come:
 * what they give back goes to it. */
static int await_nodes(struct mem_node *node)
{
	struct mem_shared *s = node->shared;
	const struct mem_shared_node *away;
	json_t *show = NULL;
	int err = 0;

	if (shared_node_missing(s)) {
		err = shared_ask(node, "tell coherence show", &show);
		if (!err)
			err = shared_node_admit(node, show);
		json_decref(show);
	}
	away = shared_node_missing(s);
	if (!err && away && env_now_ns(node->env) < s->wait_ns)
		return error_set(-EHOSTDOWN,
				 "memory node %s has not come back yet",
				 away->name);
	if (!err)
		err = shared_node_tell_away(node);
	if (!err)
		err = shared_move_declare(node);
	if (!err)
		err = shared_copy_declare(node);
	s->is_ready = !err;
	return err;
}

/* ---- looking after it -----------------------------------------------------
 */

static struct mem_shared_seen read_counters(const json_t *program)
{
	return (struct mem_shared_seen){
		json_integer_value(json_object_get(program, "lost")),
		json_integer_value(json_object_get(program, "expelled")),
		json_integer_value(json_object_get(program, "nodes_lost")),
		json_integer_value(json_object_get(program, "offers"))};
}

/* Whether there is something that only the whole report tells. */
static bool has_news(const struct mem_shared *s,
		     const struct mem_shared_seen *now)
{
	bool has = memcmp(now, &s->seen, sizeof(*now)) != 0 || s->all_lost ||
		   shared_node_is_busy(s);

	for (unsigned i = 0; i < COH_MACHINES_MAX; i++)
		has |= s->members[i].used && s->members[i].is_going;
	return has;
}

static const char *name_of_dead(const struct mem_shared *s)
{
	for (unsigned i = 0; i < COH_MACHINES_MAX; i++)
		if (s->members[i].used && s->members[i].is_going)
			return s->members[i].name;
	return NULL;
}

int lead_take_news(struct mem_node *node)
{
	struct mem_shared *s = node->shared;
	char dead[MEM_MEMBER_NAME_MAX + 1];
	json_t *show = NULL;
	const char *by;
	int err = shared_ask(node, "tell coherence show", &show);

	if (err)
		return err;
	member_note(s, show);
	by = name_of_dead(s);
	snprintf(dead, sizeof(dead), "%s", by ? by : "");
	err = lost_note(s, show, by);
	if (!err)
		member_forget(s, show);
	if (!err && s->all_lost &&
	    json_integer_value(json_object_get(show, "unclean")) == 0)
		err = lost_spread(node, by ? dead : NULL);
	shared_node_note(node, show);
	if (!err)
		err = shared_move_look(node, show);
	if (!err)
		err = shared_node_admit(node, show);
	json_decref(show);
	return err;
}

int lead_free_segments(struct mem_node *node)
{
	struct mem_shared *s = node->shared;

	segment_sweep(node);
	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];
		char line[128];
		json_t *answer = NULL;
		json_int_t left;
		int err;

		if (!g || !g->is_leaving)
			continue;
		if (!g->part.bytes) {
			segment_free(node, g);
			continue;
		}
		if (s->move.segment == g) { /* the tick sees the end of it */
			shared_move_cancel(node, "it is deleted");
			continue;
		}
		err = g->is_withdrawn ? 0 : segment_withdraw(node, g);
		snprintf(line, sizeof(line),
			 "tell coherence clear va=%" PRIu64 " size=%" PRIu64,
			 segment_va(g), g->part.bytes);
		if (!err)
			err = shared_ask(node, line, &answer);
		if (err == -EBUSY)
			continue; /* a machine is not clean yet */
		if (err)
			return err;
		left = json_integer_value(json_object_get(answer, "left"));
		json_decref(answer);
		if (left == 0)
			segment_free(node, g);
	}
	return 0;
}

static int look(struct mem_node *node, const json_t *hello)
{
	struct mem_shared *s = node->shared;
	const json_t *program = ctl_switch_program(hello, "coherence");
	const char *run = ctl_switch_run(hello);
	struct mem_shared_seen now = read_counters(program);
	int err = 0;

	if (!program || !run) {
		s->has_begun = s->is_ready = false;
		return error_set(-EHOSTDOWN,
				 "the switch does not run the program "
				 "'coherence'");
	}
	shared_conn_addresses(s, hello);
	shared_use_note(&s->use, program);
	if (!s->has_begun || s->wants_term || strcmp(run, s->run) != 0)
		err = begin(node, run);
	if (!err && !s->is_ready)
		err = await_nodes(node);
	member_tick(node);
	if (!err && has_news(s, &now)) {
		err = lead_take_news(node);
		if (!err)
			s->seen = now;
	}
	if (!err)
		err = lead_free_segments(node);
	if (!err)
		shared_copy_look(node);
	return err ? err : shared_node_scrub(node);
}

void lead_look(struct mem_node *node, const json_t *hello)
{
	struct mem_shared *s = node->shared;
	int err;

	if (!s)
		return;
	awake_look(&node->awake, env_now_ns(node->env),
		   MEM_PAUSE_MS * 1000000ull);
	err = s->lead[0] ? follow_look(node, hello) : look(node, hello);
	if (err && err != -EAGAIN && strcmp(s->why, error_last()) != 0)
		log_warn("memnode", "%s", error_last());
	snprintf(s->why, sizeof(s->why), "%s", err ? error_last() : "");
	(void)!shared_file_save(node); /* it has said what is wrong */
}
