/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that guess keys. A wrong key costs the guesser its connection; after
 * eight of them within ten seconds nothing from that NIC is looked at for a
 * while, so that guessing 2^24 keys takes longer than any key lives.
 */
#include "nic_priv.h"

#define FORGET_NS 10000000000ull

static struct guard_source *find(struct guard *g, const uint8_t ip[16],
				 uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < g->used; i++)
		if (g->sources[i].slot == slot &&
		    memcmp(g->sources[i].ip, ip, 16) == 0)
			return &g->sources[i];
	return NULL;
}

static struct guard_source *add(struct guard *g, const uint8_t ip[16],
				uint32_t slot, uint64_t now_ns)
{
	struct guard_source *s;

	if (g->used < NIC_GUARD_SOURCES) {
		s = &g->sources[g->used++];
	} else {
		s = &g->sources[g->next];
		g->next = (g->next + 1) % NIC_GUARD_SOURCES;
	}
	*s = (struct guard_source){.slot = slot, .since_ns = now_ns};
	memcpy(s->ip, ip, 16);
	return s;
}

void guard_failure(struct nic *nic, const uint8_t ip[16], uint32_t peer_qpn)
{
	struct guard *g = &nic->guard;
	uint32_t slot = peer_qpn >> NIC_QPN_INDEX_BITS;
	uint64_t now_ns = env_now_ns(nic->env);
	struct guard_source *s = find(g, ip, slot);

	if (!s)
		s = add(g, ip, slot, now_ns);
	if (now_ns - s->since_ns > FORGET_NS) {
		s->since_ns = now_ns;
		s->failures = 0;
	}
	if (++s->failures < NIC_KEY_FAILURES || has_bug(nic, NIC_BUG_no_guard))
		return;
	s->failures = 0;
	s->since_ns = now_ns;
	s->blocked_until_ns = now_ns + NIC_BLOCK_NS;
	g->blocked_until_ns = u64_max(g->blocked_until_ns, s->blocked_until_ns);
	count(nic, NIC_C_sources_blocked);
}

bool guard_is_blocked(struct nic *nic, const uint8_t ip[16], uint32_t peer_qpn)
{
	struct guard *g = &nic->guard;
	const struct guard_source *s;
	uint64_t now_ns;

	if (LIKELY(g->blocked_until_ns == 0))
		return false;
	now_ns = env_now_ns(nic->env);
	if (now_ns >= g->blocked_until_ns) {
		g->blocked_until_ns = 0;
		return false;
	}
	s = find(g, ip, peer_qpn >> NIC_QPN_INDEX_BITS);
	return s && now_ns < s->blocked_until_ns;
}
