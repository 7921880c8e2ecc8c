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
#include "pair/pair.h"
#include "shared_priv.h"

enum {
	OWN_QPN = 0xa00000, /* of the switch's end; the rest is random */
	OWN_QPN_MASK = 0xfffff,
	READS = 16, /* of the switch at a time */
};

/* ---- the switch's connection to the arena ---------------------------------
 */

static int make_qp(struct mem_node *node, const struct pair_end *end)
{
	struct mem_shared *s = node->shared;
	struct ibv_qp_init_attr init = {.send_cq = node->cq,
					.recv_cq = node->cq,
					.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	int err;

	s->qp = ibv_create_qp(s->pd, &init);
	if (!s->qp)
		return -errno;
	err = pair_init(ibv_modify_qp, s->qp,
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	return err ? err : pair_receive(ibv_modify_qp, s->qp, end);
}

/* The connection of a former switch ends first: nothing of a former term
 * arrives later. */
static int declare_node(struct mem_node *node)
{
	struct mem_shared *s = node->shared;
	struct pair_end end = {.mtu = node->mtu,
			       .reads_in = READS,
			       .rnr_timer = PAIR_RNR_TIMER};
	char text[ADDRESS_TEXT], own[ADDRESS_TEXT];
	union ibv_gid gid;
	uint32_t number[2];
	int err = address_first(node, &end.gid_index, &gid);

	if (s->qp)
		(void)ibv_destroy_qp(s->qp);
	s->qp = NULL;
	if (err)
		return err;
	env_random(node->env, number, sizeof(number));
	end.qpn = OWN_QPN | (number[0] & OWN_QPN_MASK);
	end.psn = number[1] & PAIR_PSN_MASK;
	end.gid = s->switch_gid[address_is_ipv4(gid.raw)];
	err = make_qp(node, &end);
	if (err)
		return error_set(err, "no queue pair for the switch: %s",
				 strerror(-err));
	return shared_tell(
		node,
		"node node=%d ip=%s qpn=%u psn=%u own_ip=%s own_qpn=%u "
		"addr=%llu size=%" PRIu64 " rkey=%u mtu=%u reads=%d",
		MEM_SHARED_NODE, address_text(gid.raw, text), s->qp->qp_num,
		end.psn, address_text(end.gid.raw, own), end.qpn,
		(unsigned long long)(uintptr_t)s->memory.addr,
		s->arena.size_bytes, s->memory.mr->rkey, 128u << end.mtu,
		READS);
}

/* ---- terms ----------------------------------------------------------------
 */

static int tell_begin(struct mem_node *node)
{
	struct mem_shared *s = node->shared;
	json_t *show = NULL;
	json_int_t there;
	int err = shared_ask(node, "tell coherence show", &show);

	if (err)
		return err;
	there = json_integer_value(json_object_get(show, "term"));
	json_decref(show);
	if (there < 0 || there >= UINT32_MAX)
		return error_set(-EBUSY, "the switch says nonsense");
	/* The first term of this node may follow one of a former run. */
	if ((uint32_t)there > s->term)
		s->term = (uint32_t)there;
	s->term++;
	return shared_tell(node, "begin term=%u by=%s unclean=%u%s", s->term,
			   node->name, member_unclean(s),
			   s->all_lost ? " lost" : "");
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

	s->is_ready = false;
	for (unsigned i = 0; i < COH_MACHINES_MAX; i++)
		s->members[i].is_connected = s->members[i].is_told = false;
	err = tell_begin(node);
	if (!err)
		err = declare_node(node);
	if (!err)
		err = declare_lost(node);
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
	s->is_ready = true;
	s->wants_term = false;
	s->seen = (struct mem_shared_seen){0};
	log_info("memnode", "shared memory: term %u of %s begins", s->term,
		 node->name);
	return 0;
}

/* Where machines and our own NIC find the switch. */
static void note_addresses(struct mem_shared *s, const json_t *hello)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff}, v6[16] = {1};
	const json_t *row;
	size_t i;

	memcpy(s->switch_gid[0].raw, ctl_switch_ip(v6), 16);
	memcpy(s->switch_gid[1].raw, ctl_switch_ip(v4), 16);
	json_array_foreach(json_object_get(hello, "addresses"), i, row)
	{
		const char *text = json_string_value(row);
		uint8_t ip[16] = {[10] = 0xff, 0xff};
		bool is_v4 = text && inet_pton(AF_INET, text, ip + 12) == 1;

		if (is_v4 || (text && inet_pton(AF_INET6, text, ip) == 1))
			memcpy(s->switch_gid[is_v4].raw, ip, 16);
	}
}

/* ---- looking after it -----------------------------------------------------
 */

static struct mem_shared_seen read_counters(const json_t *program)
{
	return (struct mem_shared_seen){
		json_integer_value(json_object_get(program, "lost")),
		json_integer_value(json_object_get(program, "expelled")),
		json_integer_value(json_object_get(program, "nodes_lost"))};
}

/* Whether there is something that only the whole report tells. */
static bool has_news(const struct mem_shared *s,
		     const struct mem_shared_seen *now)
{
	bool has = memcmp(now, &s->seen, sizeof(*now)) != 0 || s->all_lost;

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

static bool has_lost_us(const json_t *show)
{
	const json_t *row;
	size_t i;

	json_array_foreach(
		json_object_get(show, "nodes"), i,
		row) if (json_integer_value(json_object_get(row, "node")) ==
				 MEM_SHARED_NODE &&
			 json_is_true(
				 json_object_get(row, "lost"))) return true;
	return false;
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
	if (!err && has_lost_us(show)) {
		log_warn("memnode", "the switch has given our shared memory "
				    "up: the next term begins");
		s->wants_term = true;
	}
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
		s->is_ready = false;
		return error_set(-EHOSTDOWN,
				 "the switch does not run the program "
				 "'coherence'");
	}
	note_addresses(s, hello);
	shared_use_note(&s->use, program);
	if (!s->is_ready || s->wants_term || strcmp(run, s->run) != 0)
		err = begin(node, run);
	member_tick(node);
	if (!err && has_news(s, &now)) {
		err = lead_take_news(node);
		if (!err)
			s->seen = now;
	}
	return err ? err : lead_free_segments(node);
}

void lead_look(struct mem_node *node, const json_t *hello)
{
	struct mem_shared *s = node->shared;
	int err;

	if (!s)
		return;
	awake_look(&node->awake, env_now_ns(node->env),
		   MEM_PAUSE_MS * 1000000ull);
	err = look(node, hello);
	if (err && strcmp(s->why, error_last()) != 0)
		log_warn("memnode", "%s", error_last());
	snprintf(s->why, sizeof(s->why), "%s", err ? error_last() : "");
}
