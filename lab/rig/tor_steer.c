/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane of a switch that steers a version-list store. */
#include "tor_steer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

static void ip_text(struct rig_host *h, char out[INET6_ADDRSTRLEN])
{
	rig_ip_text(sim_port_addr(sim_host_port(h->sim_host))->ip, out);
}

static int declare(struct rig_steer *s)
{
	char server[INET6_ADDRSTRLEN];

	ip_text(s->server, server);
	return rig_tor_tell(s->tor,
			    "steer store server=%s rkey=%u va=%" PRIu64
			    " nodes_at=%" PRIu64 " nodes=%" PRIu64
			    " node_bytes=%u",
			    server, s->region->rkey, s->region->addr,
			    s->g.node_offset, s->g.node_count, s->g.node_bytes);
}

int rig_steer_create(struct rig_steer *s, struct sim_net *net,
		     struct rig_host *server, struct rig_region *region,
		     const struct vlist_geometry *g, const char *options)
{
	struct rig_tor_config cfg = {0};
	int err;

	s->server = server;
	s->region = region;
	s->g = *g;
	s->is_on = options != NULL;
	if (s->is_on) {
		snprintf(s->program, sizeof(s->program), "steer:%s", options);
		cfg.programs[cfg.program_count++] = s->program;
	}
	err = rig_tor_create(net, &cfg, &s->tor);
	return err || !s->is_on ? err : declare(s);
}

void rig_steer_destroy(struct rig_steer *s)
{
	rig_tor_destroy(s->tor);
	s->tor = NULL;
}

int rig_steer_restart(struct rig_steer *s)
{
	int err = rig_tor_restart(s->tor);

	return err || !s->is_on ? err : declare(s);
}

/* What is not known, or finds no room, is not steered. */
static void tell_conn(struct rig_steer *s, const char *verb,
		      struct rig_host *server, struct rig_host *client,
		      struct client_link *link, const char *more)
{
	char to[INET6_ADDRSTRLEN], from[INET6_ADDRSTRLEN];

	if (!s->is_on)
		return;
	ip_text(server, to);
	ip_text(client, from);
	(void)!rig_tor_tell(
		s->tor,
		"steer %s server=%s client=%s client_qpn=%u server_qpn=%u%s",
		verb, to, from, link->qp->qp_num, rig_link_far_qp(link)->qp_num,
		more);
}

void rig_steer_conn(struct rig_steer *s, struct rig_host *server,
		    struct rig_host *client, struct client_link *link)
{
	tell_conn(s, "conn", server, client, link, "");
}

void rig_steer_fresh(struct rig_steer *s, struct rig_host *server,
		     struct rig_host *client, struct client_link *link)
{
	tell_conn(s, "conn", server, client, link, " fresh=1");
}

void rig_steer_end(struct rig_steer *s, struct rig_host *server,
		   struct rig_host *client, struct client_link *link)
{
	tell_conn(s, "end", server, client, link, "");
}
