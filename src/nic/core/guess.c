/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that guess keys. A wrong key costs the guesser its connection, and
 * after eight of them within ten seconds the connections that it has made since
 * the first are not listened to for a second; every further one adds an eighth.
 * So guesses come at eight a second in the long run, however many connections
 * were kept ready for them, and guessing 2^24 keys takes longer than any key
 * lives. Connections that were there before are the source's honest ones as far
 * as anybody knows, and go on: each can be wrong once. Keys that were valid
 * lately are no guesses.
 */
#include "nic_priv.h"

#define FORGET_NS 10000000000ull

static struct guess_source *find(struct guess *g, const uint8_t ip[16],
				 uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < g->used; i++)
		if (g->sources[i].slot == slot &&
		    memcmp(g->sources[i].ip, ip, 16) == 0)
			return &g->sources[i];
	return NULL;
}

static struct guess_source *add(struct guess *g, const uint8_t ip[16],
				uint32_t slot, uint64_t now_ns)
{
	struct guess_source *s;

	if (g->used < NIC_GUESS_SOURCES) {
		s = &g->sources[g->used++];
	} else {
		s = &g->sources[g->next];
		g->next = (g->next + 1) % NIC_GUESS_SOURCES;
	}
	*s = (struct guess_source){.slot = slot, .since_ns = now_ns};
	memcpy(s->ip, ip, 16);
	return s;
}

void guess_failure(struct nic *nic, const uint8_t ip[16], uint32_t peer_qpn)
{
	struct guess *g = &nic->guess;
	uint32_t slot = peer_qpn >> NIC_QPN_INDEX_BITS;
	uint64_t now_ns = env_now_ns(nic->env);
	struct guess_source *s = find(g, ip, slot);

	count(nic, NIC_C_keys_guessed);
	if (!s)
		s = add(g, ip, slot, now_ns);
	if (now_ns < s->blocked_until_ns) {
		s->blocked_until_ns += NIC_BLOCK_NS / NIC_KEY_FAILURES;
	} else {
		if (s->failures == 0 || now_ns - s->since_ns > FORGET_NS) {
			s->since_ns = now_ns;
			s->failures = 0;
			s->born = g->births;
		}
		if (++s->failures < NIC_KEY_FAILURES || PLANTED(no_guard))
			return;
		s->failures = 0;
		s->blocked_until_ns = now_ns + NIC_BLOCK_NS;
		count(nic, NIC_C_sources_blocked);
	}
	g->blocked_until_ns = u64_max(g->blocked_until_ns, s->blocked_until_ns);
}

static COLD const struct guess_source *blocked_source(struct nic *nic,
						      const uint8_t ip[16],
						      uint32_t peer_qpn)
{
	struct guess *g = &nic->guess;
	const struct guess_source *s;
	uint64_t now_ns = env_now_ns(nic->env);

	if (now_ns >= g->blocked_until_ns) {
		g->blocked_until_ns = 0;
		return NULL;
	}
	s = find(g, ip, peer_qpn >> NIC_QPN_INDEX_BITS);
	return s && now_ns < s->blocked_until_ns ? s : NULL;
}

bool guess_is_blocked(struct nic *nic, const uint8_t ip[16], uint32_t peer_qpn)
{
	return UNLIKELY(nic->guess.blocked_until_ns) &&
	       blocked_source(nic, ip, peer_qpn);
}

bool guess_drops(struct nic *nic, const struct nic_qp *qp,
		 const struct wire_pkt *pkt)
{
	const struct guess_source *s;

	if (LIKELY(nic->guess.blocked_until_ns == 0))
		return false;
	/* Datagrams open nothing, but new connections begin with them. */
	if (qp->type == IBV_QPT_UD)
		return (qp->qpn & (NIC_QP_MAX - 1)) == NIC_GSI_INDEX &&
		       blocked_source(nic, pkt->src_ip, pkt->src_qpn);
	s = blocked_source(nic, pkt->src_ip, qp->dest_qpn);
	return s && qp->born > s->born;
}
