/* SPDX-License-Identifier: Apache-2.0 */
/* The env of a real NIC host: clock, randomness, pages, and paths through the
 * ports; see port_ops for how a kind of port plugs in. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/lock.h"
#include "base/relax.h"
#include "cable.h"
#include "os_priv.h"
#include "pages.h"
#include "pcap.h"
#include "raw.h"
#include "udp.h"
#include "uplink.h"

/* ---- frames in ---------------------------------------------------------- */

HOT void host_input(struct os_host *h, const uint8_t *frame, size_t len_bytes,
		    uint32_t from)
{
	if (UNLIKELY(h->pcap != NULL))
		pcap_write(h->pcap, frame, len_bytes);
	nic_input(h->base.nic, frame, len_bytes, from);
}

void host_poll_add(struct os_host *h, struct env_path *path)
{
	ASSERT(h->polled_count < ARRAY_LEN(h->polled));
	h->polled[h->polled_count++] = path;
}

void host_poll_remove(struct os_host *h, struct env_path *path)
{
	unsigned i = 0;

	while (i < h->polled_count && h->polled[i] != path)
		i++;
	if (i < h->polled_count)
		h->polled[i] = h->polled[--h->polled_count];
}

HOT unsigned host_poll(struct os_host *h, unsigned budget)
{
	unsigned count = h->polled_count;
	unsigned n = 0;

	if (count == 0)
		return 0;
	/* Whoever is first finds the freest paths for its answers. */
	if (++h->polled_first >= count)
		h->polled_first = 0;
	if (count == 1)
		return h->polled[0]->port->poll(h->polled[0], budget);
	share_begin(&h->share);
	for (unsigned i = 0, at = h->polled_first; i < count; i++) {
		struct env_path *path = h->polled[at];
		bool is_greedy;
		unsigned may = share_budget(&h->share, path->domain, budget);
		unsigned got = may ? path->port->poll(path, may) : 0;

		if (got) {
			/* Those who send nothing but what is dropped share
			 * their turns, too. */
			path->domain = nic_take_domain(h->base.nic, &is_greedy);
			share_note(&h->share, path->domain, got, is_greedy);
		}
		n += got;
		if (++at == count)
			at = 0;
	}
	return n;
}

bool host_ready(struct os_host *h)
{
	for (unsigned i = 0; i < h->polled_count; i++)
		if (h->polled[i]->port->ready(h->polled[i]))
			return true;
	return false;
}

unsigned host_doze_words(struct os_host *h,
			 struct doze_word words[DOZE_WORDS_MAX])
{
	unsigned i;

	if (h->polled_count > DOZE_WORDS_MAX)
		return 0;
	for (i = 0; i < h->polled_count; i++) {
		struct env_path *path = h->polled[i];

		if (!path->port->doze || !path->port->doze(path, &words[i]))
			return 0;
	}
	return i;
}

bool host_tx_pending(const struct os_host *h)
{
	return h->udp && h->udp->tx.count;
}

HOT void host_tx_flush(struct os_host *h)
{
	if (UNLIKELY(host_tx_pending(h)))
		udp_tx_flush(h->udp);
}

void host_arm(struct os_host *h, bool on)
{
	if (h->udp)
		watch_arm(&h->udp->watch, on);
	if (h->raw)
		watch_arm(&h->raw->watch, on);
}

bool host_event(struct os_host *h, void *mark)
{
	struct watch *w = mark;

	if (!(h->udp && mark == &h->udp->watch) &&
	    !(h->raw && mark == &h->raw->watch))
		return false;
	watch_event(w);
	return true;
}

void host_nudge(struct os_host *h, uint64_t now_ns)
{
	for (unsigned i = 0; i < h->polled_count; i++)
		if (h->polled[i]->port->nudge)
			h->polled[i]->port->nudge(h->polled[i], now_ns);
}

bool host_is_beside_peer(struct os_host *h)
{
	uint32_t place = (uint32_t)sched_getcpu() + 1;

	lock_assert_held(&h->base.lock);
	bell_set_place(&h->bell, place);
	for (unsigned i = 0; i < h->polled_count; i++) {
		struct env_path *path = h->polled[i];

		if (path->port->is_at && path->port->is_at(path, place))
			return true;
	}
	return false;
}

/* ---- env ---------------------------------------------------------------- */

static uint64_t env_host_now(struct env *env)
{
	return host_now(host_of_env(env));
}

static void env_host_random(struct env *env, void *buf, size_t len_bytes)
{
	entropy_get(&host_of_env(env)->entropy, buf, len_bytes);
}

static void env_host_relax(struct env *env)
{
	relax_briefly();
}

static void *env_host_pages_alloc(struct env *env, size_t len_bytes)
{
	return pages_alloc(len_bytes);
}

static void env_host_pages_free(struct env *env, void *pages, size_t len_bytes)
{
	pages_free(pages, len_bytes);
}

static bool is_own_address(const struct os_host *h, const struct env_addr *a)
{
	return memcmp(a->ip, h->gid_ip.ip, 16) == 0 ||
	       memcmp(a->ip, h->gid_link.ip, 16) == 0;
}

/* To another host, or, where cables are not wanted, to this one. */
static int path_find_udp(struct os_host *h, const struct env_addr *dst,
			 uint32_t qpn, struct env_path **out)
{
	/* Not reachable is like any network that loses everything: it was
	 * said once, when the port could not be opened. */
	if (h->raw)
		return raw_path_open(h->raw, dst->ip, out);
	if (h->cfg.port == OS_PORT_CABLE || host_udp_open(h))
		return 0;
	return udp_path_open(h->udp, dst->ip, qpn, out);
}

static int path_find(struct os_host *h, const struct env_addr *dst,
		     uint32_t qpn, struct env_path **out)
{
	uint32_t slot = qpn >> NIC_QPN_INDEX_BITS;
	bool own = is_own_address(h, dst);
	struct cable *c;
	int err;

	*out = &h->void_path;
	if (h->forgotten)
		return 0;
	if (own && slot == h->slot)
		return loop_open(h, out);
	if (h->uplink) {
		*out = &h->uplink->path;
		return 0;
	}
	if (!own || (h->cfg.port == OS_PORT_UDP &&
		     memcmp(dst->ip, h->gid_ip.ip, 16) == 0))
		return path_find_udp(h, dst, qpn, out);
	if (slot < OS_SLOT_FIRST || slot >= OS_SLOT_COUNT)
		return 0;
	err = cable_open(h, slot, &c);
	if (err == 0)
		*out = &c->path;
	/* Nobody there, or somebody we may not talk to: as on any network,
	 * the sender finds out by hearing nothing. */
	if (err == -ECONNREFUSED || err == -EACCES || err == -EPIPE)
		return 0;
	return err;
}

/* Nothing is kept here: what the kernel knows of the way is asked for anew. */
static uint32_t env_host_addr_payload(struct env *env,
				      const struct env_addr *dst)
{
	struct os_host *h = host_of_env(env);
	bool by_cable = is_own_address(h, dst) && (h->cfg.port != OS_PORT_UDP);
	union udp_addr to;
	uint32_t mtu;

	if (h->forgotten || h->uplink || by_cable ||
	    h->cfg.port == OS_PORT_CABLE ||
	    wire_is_ipv4(dst->ip) != wire_is_ipv4(h->gid_ip.ip) ||
	    (!h->raw && host_udp_open(h)))
		return 0;
	udp_addr_set(&to, dst->ip, WIRE_UDP_PORT);
	if (h->udp && to.sa.sa_family == AF_INET6)
		to.v6.sin6_scope_id = h->udp->scope_id;
	mtu = udp_socket_mtu(&to);
	return mtu ? udp_payload_of_mtu(mtu) : 0;
}

static int env_host_path_open(struct env *env, const struct env_addr *dst,
			      uint32_t qpn, struct env_path **path)
{
	struct env_path *p;
	int err = path_find(host_of_env(env), dst, qpn, &p);

	if (err)
		return err;
	p->users++;
	*path = p;
	return 0;
}

static void env_host_path_close(struct env *env, struct env_path *path)
{
	ASSERT(path->users > 0);
	if (--path->users == 0 && path->port->unused)
		path->port->unused(path);
}

HOT static uint8_t *env_host_tx_begin(struct env *env, struct env_path *path,
				      size_t max_bytes)
{
	uint8_t *frame;

	ASSERT(max_bytes > 0 && max_bytes <= OS_FRAME_MAX);
	frame = path->port->tx_begin(path, max_bytes);
	host_of_env(env)->tx_frame = frame;
	return frame;
}

HOT static uint8_t *env_host_tx_begin_exact(struct env *env,
					    struct env_path *path,
					    size_t len_bytes)
{
	uint8_t *frame;

	if (UNLIKELY(!path->port->tx_begin_exact))
		return env_host_tx_begin(env, path, len_bytes);
	frame = path->port->tx_begin_exact(path, len_bytes);
	host_of_env(env)->tx_frame = frame;
	return frame;
}

HOT static void env_host_tx_end(struct env *env, struct env_path *path,
				size_t len_bytes)
{
	struct os_host *h = host_of_env(env);

	if (UNLIKELY(len_bytes == 0))
		return;
	if (UNLIKELY(h->pcap != NULL))
		pcap_write(h->pcap, h->tx_frame, len_bytes);
	path->port->tx_end(path, len_bytes);
}

/*
 * A program that posts requests one by one and polls in between pays a system
 * call for each; those that meet others still unanswered wait until it polls.
 * Only for an application that is known to poll: see `taken` and `eager`.
 */
HOT static void env_host_tx_flush(struct env *env, bool more)
{
	struct os_host *h = host_of_env(env);
	const struct nic_thread *t = &h->nic_thread;

	if (LIKELY(!host_tx_pending(h)))
		return;
	if (more && t->taken && h->udp->tx.count < UDP_TX_DEFER &&
	    h->udp->tx.count < nic_outstanding(h->base.nic) &&
	    !atomic_load_explicit(&t->eager, memory_order_relaxed))
		return;
	udp_tx_flush(h->udp);
}

static uint32_t env_host_path_window(struct env *env, struct env_path *path)
{
	return path->port->window_bytes ? path->port->window_bytes(path) : 0;
}

static uint16_t env_host_path_src_port(struct env *env, struct env_path *path)
{
	return path->port->src_port ? path->port->src_port(path) : 0;
}

static uint32_t env_host_path_from(struct env *env, struct env_path *path)
{
	return path->port->from ? path->port->from(path) : NIC_FROM_NET;
}

static uint64_t env_host_path_turns(struct env *env, struct env_path *path)
{
	return path->port->turns ? path->port->turns(path) : 0;
}

static enum env_peer env_host_path_peer(struct env *env, struct env_path *path,
					uint64_t since_turns)
{
	return path->port->peer ? path->port->peer(path, since_turns)
				: ENV_PEER_UNKNOWN;
}

static const struct env_direct *env_host_direct_find(struct env *env,
						     struct env_path *path,
						     uint32_t local_qpn,
						     uint32_t remote_qpn,
						     uint32_t rkey)
{
	if (!path->port->direct_find)
		return NULL;
	return path->port->direct_find(path, local_qpn, remote_qpn, rkey);
}

static void env_host_direct_revoke(struct env *env, uint32_t rkey)
{
	grant_revoke(host_of_env(env), rkey);
	reach_revoke(host_of_env(env));
}

static void env_host_reach_revoke(struct env *env)
{
	reach_revoke(host_of_env(env));
}

const struct env_ops host_env_ops = {
	.now_ns = env_host_now,
	.random = env_host_random,
	.relax = env_host_relax,
	.pages_alloc = env_host_pages_alloc,
	.pages_free = env_host_pages_free,
	.path_open = env_host_path_open,
	.path_close = env_host_path_close,
	.tx_begin = env_host_tx_begin,
	.tx_end = env_host_tx_end,
	.tx_begin_exact = env_host_tx_begin_exact,
	.tx_flush = env_host_tx_flush,
	.path_window_bytes = env_host_path_window,
	.path_src_port = env_host_path_src_port,
	.addr_payload_bytes = env_host_addr_payload,
	.path_from = env_host_path_from,
	.path_turns = env_host_path_turns,
	.path_peer = env_host_path_peer,
	.direct_find = env_host_direct_find,
	.direct_copy = direct_copy,
	.direct_atomic = direct_atomic,
	.direct_revoke = env_host_direct_revoke,
	.reach_is_wanted = reach_is_wanted,
	.reach_copy = reach_copy,
	.reach_revoke = env_host_reach_revoke,
};
