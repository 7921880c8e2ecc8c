/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints: identifiers in one call, their requests, and name lookup. */
#include <netdb.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"

enum {
	RESOLVE_MS = 2000,
};

/* ---- endpoints ---------------------------------------------------------- */

static int keep_for_requests(struct cm_id *id, struct ibv_pd *pd,
			     const struct ibv_qp_init_attr *init)
{
	id->ep_pd = pd;
	if (!init)
		return 0;
	id->ep_attr = malloc(sizeof(*init));
	if (!id->ep_attr)
		return cm_fail(ENOMEM);
	*id->ep_attr = *init;
	return 0;
}

static int ep_passive(struct rdma_cm_id *id, const struct rdma_addrinfo *res,
		      struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	if (rdma_bind_addr(id, res->ai_src_addr))
		return -1;
	return keep_for_requests(to_id(id), pd, init);
}

static int ep_active(struct rdma_cm_id *id, const struct rdma_addrinfo *res,
		     struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr,
			      RESOLVE_MS) ||
	    rdma_resolve_route(id, RESOLVE_MS))
		return -1;
	if (init) {
		init->qp_type = id->qp_type;
		if (rdma_create_qp(id, pd, init))
			return -1;
	}
	if (res->ai_connect_len > sizeof(to_id(id)->ep_private))
		return cm_fail(EINVAL);
	if (res->ai_connect_len) {
		memcpy(to_id(id)->ep_private, res->ai_connect,
		       res->ai_connect_len);
		to_id(id)->ep_private_len = (uint8_t)res->ai_connect_len;
	}
	return 0;
}

CM_EXPORT int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res,
			     struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *id;
	int err;

	if (rdma_create_id(NULL, &id, NULL, res->ai_port_space))
		return -1;
	id->qp_type = res->ai_qp_type;
	if (res->ai_flags & RAI_PASSIVE)
		err = ep_passive(id, res, pd, qp_init_attr);
	else
		err = ep_active(id, res, pd, qp_init_attr);
	if (err) {
		err = errno;
		rdma_destroy_ep(id);
		return cm_fail(err);
	}
	*out = id;
	return 0;
}

CM_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	(void)rdma_destroy_id(id); /* cannot fail */
}

CM_EXPORT int rdma_get_request(struct rdma_cm_id *listen,
			       struct rdma_cm_id **out)
{
	struct cm_id *l = to_id(listen);
	struct rdma_cm_event *event;
	struct ibv_qp_init_attr attr;
	int err;

	if (!l->sync)
		return cm_fail(EINVAL);
	if (listen->event) {
		(void)rdma_ack_cm_event(listen->event); /* it is one of ours */
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		listen->event = event;
		return cm_fail(event->status ? event->status : EINVAL);
	}
	if (l->ep_attr) {
		attr = *l->ep_attr;
		attr.qp_type = event->id->qp_type;
		if (listen->srq)
			attr.srq = listen->srq;
		if (rdma_create_qp(event->id, l->ep_pd, &attr)) {
			err = errno;
			(void)rdma_reject(event->id, NULL, 0); /* best effort */
			(void)rdma_destroy_id(event->id);
			(void)rdma_ack_cm_event(event);
			return cm_fail(err);
		}
	}
	*out = event->id;
	(*out)->event = event;
	return 0;
}

/* ---- names -------------------------------------------------------------- */

static int copy_address(const struct sockaddr *from, socklen_t len,
			struct sockaddr **to, socklen_t *to_len)
{
	if (!from || !len)
		return 0;
	*to = malloc(len);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

static void fill_kind(struct rdma_addrinfo *rai,
		      const struct rdma_addrinfo *hints)
{
	if (hints) {
		rai->ai_flags = hints->ai_flags;
		rai->ai_qp_type = hints->ai_qp_type;
		rai->ai_port_space = hints->ai_port_space;
	}
	if (!rai->ai_port_space)
		rai->ai_port_space = rai->ai_qp_type == IBV_QPT_UD
					     ? RDMA_PS_UDP
					     : RDMA_PS_TCP;
	if (!rai->ai_qp_type)
		rai->ai_qp_type = rai->ai_port_space == RDMA_PS_UDP
					  ? IBV_QPT_UD
					  : IBV_QPT_RC;
}

static int fill_addresses(struct rdma_addrinfo *rai, const struct addrinfo *ai,
			  const struct rdma_addrinfo *hints)
{
	int err = 0;

	rai->ai_family = ai->ai_family;
	if (rai->ai_flags & RAI_PASSIVE)
		return copy_address(ai->ai_addr, ai->ai_addrlen,
				    &rai->ai_src_addr, &rai->ai_src_len);
	err = copy_address(ai->ai_addr, ai->ai_addrlen, &rai->ai_dst_addr,
			   &rai->ai_dst_len);
	if (!err && hints)
		err = copy_address(hints->ai_src_addr, hints->ai_src_len,
				   &rai->ai_src_addr, &rai->ai_src_len);
	return err;
}

/* Without a name the hints have the addresses already. */
static int fill_from_hints(struct rdma_addrinfo *rai,
			   const struct rdma_addrinfo *hints)
{
	int err = copy_address(hints->ai_src_addr, hints->ai_src_len,
			       &rai->ai_src_addr, &rai->ai_src_len);

	if (!err)
		err = copy_address(hints->ai_dst_addr, hints->ai_dst_len,
				   &rai->ai_dst_addr, &rai->ai_dst_len);
	rai->ai_family = rai->ai_src_addr   ? rai->ai_src_addr->sa_family
			 : rai->ai_dst_addr ? rai->ai_dst_addr->sa_family
					    : hints->ai_family;
	return err;
}

static int look_up(const char *node, const char *service,
		   const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
	struct addrinfo want = {
		.ai_socktype = rai->ai_port_space == RDMA_PS_UDP ? SOCK_DGRAM
								 : SOCK_STREAM,
	};
	struct addrinfo *found;
	int err;

	if (rai->ai_flags & RAI_PASSIVE)
		want.ai_flags |= AI_PASSIVE;
	if (rai->ai_flags & RAI_NUMERICHOST)
		want.ai_flags |= AI_NUMERICHOST;
	if (hints && (rai->ai_flags & RAI_FAMILY))
		want.ai_family = hints->ai_family;
	err = getaddrinfo(node, service, &want, &found);
	if (err)
		return err;
	err = fill_addresses(rai, found, hints) ? EAI_MEMORY : 0;
	freeaddrinfo(found);
	return err;
}

CM_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			       const struct rdma_addrinfo *hints,
			       struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *rai;
	int err;

	if (!service && !node && !hints)
		return cm_fail(EINVAL);
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return cm_fail(ENOMEM);
	fill_kind(rai, hints);
	if (node || service)
		err = look_up(node, service, hints, rai);
	else
		err = fill_from_hints(rai, hints) ? EAI_MEMORY : 0;
	if (err) {
		rdma_freeaddrinfo(rai);
		/* As the real one: the resolver's code, and errno. */
		errno = err == EAI_SYSTEM ? errno : EADDRNOTAVAIL;
		return err;
	}
	*res = rai;
	return 0;
}

CM_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res);
		res = next;
	}
}
