/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that end in the switch itself, by their numbers. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "tor_end.h"
#include "tor_priv.h"

STATIC_ASSERT((TOR_END_BUCKETS & (TOR_END_BUCKETS - 1)) == 0, "a mask");

static bool is_at(const struct tor_end *e, uint32_t qpn,
		  const uint8_t own_ip[16], const uint8_t peer_ip[16])
{
	return e->own_qpn == qpn && memcmp(e->own_ip, own_ip, 16) == 0 &&
	       memcmp(e->peer_ip, peer_ip, 16) == 0;
}

static struct tor_end *find(const struct tor *t, uint32_t qpn,
			    const uint8_t own_ip[16], const uint8_t peer_ip[16])
{
	struct tor_end *e = t->ends[tor_end_bucket(qpn)];

	while (e && !is_at(e, qpn, own_ip, peer_ip))
		e = e->next;
	return e;
}

/* Numbers can be guessed, and addresses can be written by anybody: see
 * tor_end_is_peer_at(). */
struct tor_end *tor_end_find_in(const struct tor *t, const struct wire_pkt *w)
{
	if (wire_opcodes[w->opcode].transport != WIRE_RC)
		return NULL;
	return find(t, w->dest_qpn, w->dst_ip, w->src_ip);
}

bool tor_end_is_peer_at(struct tor_end *e, const struct tor_port *port)
{
	/* Not each time: an address that nobody has claimed is where it was
	 * seen last, also if that was a forger's doing. */
	if (UNLIKELY(!e->port))
		e->port = tor_port_of(e->self->tor, e->peer_ip, e->peer_qpn);
	return port && e->port == port;
}

void tor_ends_forget_port(struct tor *t, const struct tor_port *port)
{
	for (unsigned i = 0; t->end_count && i < TOR_END_BUCKETS; i++)
		for (struct tor_end *e = t->ends[i]; e; e = e->next)
			if (e->port == port)
				e->port = NULL;
}

int tor_end_add(struct tor_end *e)
{
	struct tor *t = e->self->tor;
	struct tor_end **bucket = &t->ends[tor_end_bucket(e->own_qpn)];
	int err = tor_own_add(t, e->own_ip);

	if (err)
		return err;
	if (find(t, e->own_qpn, e->own_ip, e->peer_ip))
		return error_set(-EEXIST,
				 "%s: number %u of the switch is in use",
				 e->self->program->name, e->own_qpn);
	e->port = tor_port_of(t, e->peer_ip, e->peer_qpn);
	e->next = *bucket;
	*bucket = e;
	e->is_added = true;
	t->end_count++;
	return 0;
}

void tor_end_remove(struct tor_end *e)
{
	struct tor_end **at;

	if (!e->is_added)
		return;
	at = &e->self->tor->ends[tor_end_bucket(e->own_qpn)];
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	e->is_added = false;
	e->self->tor->end_count--;
}
