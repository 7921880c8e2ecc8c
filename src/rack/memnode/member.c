/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines that share memory: who is a member, and until when. A machine has a
 * lease (coherence/lease.h), which its beats renew. One that is expelled is
 * told to the switch, which drops its connections and goes through all that it
 * had; until that is done it is counted here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "coherence/lease.h"
#include "pair/pair.h"
#include "shared_priv.h"

enum {
	OWN_QPN = 0x900000,	/* of the switch's ends; the rest is random */
	OWN_QPN_MASK = 0xfffe0, /* room for a talk and the lanes */
};

static unsigned number_of(const struct mem_shared *s,
			  const struct mem_member *m)
{
	return (unsigned)(m - s->members);
}

int member_find(const struct mem_shared *s, const struct mem_tenant *t,
		const char *id, struct mem_member **out)
{
	const struct mem_member *m;
	uint64_t nonce;
	uint32_t slot;
	int err = ctl_bond_parse("a member", id, &nonce, &slot);

	if (err)
		return err;
	m = slot < COH_MACHINES_MAX ? &s->members[slot] : NULL;
	if (!m || !m->used || m->is_going || m->tenant != t ||
	    m->nonce != nonce)
		return error_set(-ESTALE,
				 "there is no member %s, or no longer: nothing "
				 "that it has counts any more",
				 id);
	*out = (struct mem_member *)(uintptr_t)m;
	return 0;
}

uint32_t member_unclean(const struct mem_shared *s)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < COH_MACHINES_MAX; i++)
		if (s->members[i].used && s->members[i].was_connected)
			mask |= 1u << i;
	return mask;
}

void member_expel(struct mem_member *m, const char *why)
{
	if (m->is_going)
		return;
	log_info("memnode", "machine %s is no member any more: %s", m->name,
		 why);
	m->is_going = true;
	m->is_told = false;
}

/* ---- connections --------------------------------------------------------- */

/* Numbers of the switch's ends, and keys that nobody guesses. */
static void pick(struct mem_node *node, struct mem_member *m,
		 const struct mem_member_ends *ends)
{
	struct mem_shared *s = node->shared;
	uint32_t number[2];

	env_random(node->env, number, sizeof(number));
	m->own_qpn = OWN_QPN | (number[0] & OWN_QPN_MASK);
	m->own_psn = number[1] & PAIR_PSN_MASK;
	m->own_gid = s->switch_gid[address_is_ipv4(ends->gid.raw)];
	m->mtu_bytes = 128u << ends->mtu;
	m->lanes = ends->lanes;
	do
		env_random(node->env, m->key, sizeof(m->key));
	while (m->key[0] == m->key[1] || m->key[1] == m->key[2] ||
	       m->key[2] == m->key[0]);
}

static int declare(struct mem_node *node, struct mem_member *m,
		   const struct mem_member_ends *ends)
{
	struct mem_shared *s = node->shared;
	unsigned number = number_of(s, m);
	char ip[ADDRESS_TEXT], own[ADDRESS_TEXT];
	int err = shared_tell(
		node,
		"machine machine=%u ip=%s qpn=%u psn=%u own_ip=%s own_qpn=%u "
		"own_psn=%u mtu=%u",
		number, address_text(ends->gid.raw, ip), ends->talk.qpn,
		ends->talk.psn, address_text(m->own_gid.raw, own), m->own_qpn,
		m->own_psn, m->mtu_bytes);

	for (unsigned i = 0; !err && i < ends->lanes; i++)
		err = shared_tell(
			node,
			"lane machine=%u lane=%u qpn=%u psn=%u own_qpn=%u",
			number, i, ends->lane[i].qpn, ends->lane[i].psn,
			m->own_qpn + 1 + i);
	return err ? err
		   : shared_tell(node,
				 "key machine=%u domain=%u read=%u write=%u "
				 "give=%u",
				 number, shared_domain(s, m->tenant),
				 m->key[COH_READ], m->key[COH_WRITE],
				 m->key[COH_NONE]);
}

int member_connect(struct mem_node *node, struct mem_member *m,
		   const struct mem_member_ends *ends)
{
	int err = shared_check(node);

	if (err)
		return err;
	if (m->is_connected)
		return error_set(-EEXIST, "machine %s is connected in term %u",
				 m->name, node->shared->term);
	pick(node, m, ends);
	m->is_connected = m->was_connected = true;
	m->beat_ns = env_now_ns(node->env);
	err = declare(node, m, ends);
	/* A part of it may be there: the switch is told to drop it. */
	if (err)
		member_expel(m, error_last());
	return err;
}

int member_join(struct mem_node *node, struct mem_tenant *t, const char *name,
		const struct mem_member_ends *ends, struct mem_member **out)
{
	struct mem_shared *s = node->shared;
	unsigned i = 0;
	int err = shared_check(node);

	if (err)
		return err;
	while (i < COH_MACHINES_MAX && s->members[i].used)
		i++;
	if (i == COH_MACHINES_MAX)
		return error_set(-EAGAIN, "%d machines share memory at most",
				 COH_MACHINES_MAX);
	err = tenant_take(t, MEM_LIMIT_MACHINES, 1);
	if (err)
		return err;
	s->members[i] = (struct mem_member){.used = true, .tenant = t};
	/* What a former one of this number had open is not open any more. */
	for (unsigned j = 0; j < MEM_SEGMENT_MAX; j++)
		if (s->segments[j])
			s->segments[j]->users &= (uint16_t) ~(1u << i);
	snprintf(s->members[i].name, sizeof(s->members[i].name), "%s", name);
	env_random(node->env, &s->members[i].nonce,
		   sizeof(s->members[i].nonce));
	err = member_connect(node, &s->members[i], ends);
	if (err)
		return err;
	*out = &s->members[i];
	log_info("memnode", "machine %s joins as number %u with %u lanes", name,
		 i, ends->lanes);
	return 0;
}

/* ---- those that are gone ------------------------------------------------- */

void member_tick(struct mem_node *node)
{
	struct mem_shared *s = node->shared;
	uint64_t now_ns = env_now_ns(node->env);

	for (unsigned i = 0; i < COH_MACHINES_MAX; i++) {
		struct mem_member *m = &s->members[i];
		int err;

		if (!m->used)
			continue;
		/* While the node itself did not run it heard no beats. */
		if (coh_lease_is_over(
			    u64_max(m->beat_ns,
				    u64_min(node->awake.since_ns, now_ns)),
			    now_ns))
			member_expel(m, "its lease is over");
		if (!m->is_going || m->is_told || !s->is_ready)
			continue;
		err = shared_tell(node, "gone machine=%u", i);
		/* -EBUSY: the switch has found out by itself. */
		m->is_told = !err || err == -EBUSY;
	}
}

static bool is_going_there(const json_t *show, unsigned number)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(show, "machines"), i, row)
	{
		const char *state =
			json_string_value(json_object_get(row, "state"));

		if (json_integer_value(json_object_get(row, "machine")) ==
			    number &&
		    state && strcmp(state, "going") == 0)
			return true;
	}
	return false;
}

static bool is_there(const json_t *show, unsigned number)
{
	return (uint64_t)json_integer_value(json_object_get(show, "members")) >>
		       number &
	       1;
}

void member_note(struct mem_shared *s, const json_t *show)
{
	for (unsigned i = 0; i < COH_MACHINES_MAX; i++) {
		struct mem_member *m = &s->members[i];

		if (!m->used || !m->was_connected || m->is_going ||
		    is_there(show, i))
			continue;
		member_expel(m, "the switch has given it up");
		m->is_told = true;
	}
}

/* The tenant may have been deleted before. */
static void free_place(struct mem_member *m)
{
	if (m->tenant)
		tenant_give(m->tenant, MEM_LIMIT_MACHINES, 1);
	*m = (struct mem_member){0};
}

void member_forget(struct mem_shared *s, const json_t *show)
{
	for (unsigned i = 0; i < COH_MACHINES_MAX; i++) {
		struct mem_member *m = &s->members[i];

		if (m->used && m->is_going && m->is_told &&
		    !is_there(show, i) && !is_going_there(show, i))
			free_place(m);
	}
}
