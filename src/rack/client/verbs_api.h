/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs this room calls, as one table per context. All calls that name a
 * function of the library go through the table; posting and polling go through
 * the context's own operations anyway.
 *
 * There are two tables: that of the soft NIC, which the library carries, and
 * one filled from the system's libibverbs, for hardware. Calls that only the
 * soft NIC supports (aqdv.h) return -EOPNOTSUPP for another context.
 */
#ifndef AQ_CLIENT_VERBS_API_H
#define AQ_CLIENT_VERBS_API_H

#include <infiniband/verbs.h>

#include "base/base.h"

struct client_verbs {
	const char *name;
	struct ibv_device **(*get_device_list)(int *count);
	void (*free_device_list)(struct ibv_device **list);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_device)(struct ibv_context *context,
			    struct ibv_device_attr *attr);
	int (*query_port)(struct ibv_context *context, uint8_t port,
			  struct ibv_port_attr *attr);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index,
			 union ibv_gid *gid);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t len,
				 int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_comp_channel *(*create_comp_channel)(
		struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	int (*get_cq_event)(struct ibv_comp_channel *channel,
			    struct ibv_cq **cq, void **user);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned count);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int entries,
				    void *user, struct ibv_comp_channel *chan,
				    int vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*destroy_qp)(struct ibv_qp *qp);
	/* As aqdv_open_device and aqdv_qp_set_auth; NULL: not supported. */
	struct ibv_context *(*open_in_rack)(struct ibv_device *device,
					    const char *rack);
	int (*set_auth)(struct ibv_qp *qp, const void *key, size_t len_bytes);
	/* Which entry of the GID table speaks RoCEv2, over IPv4 if any does. */
	int gid_index;
};

/* The largest path MTU of the port, in bytes. */
static inline int client_verbs_mtu(const struct client_verbs *v,
				   struct ibv_context *context)
{
	struct ibv_port_attr port;

	/* Every port supports the smallest. */
	if (v->query_port(context, 1, &port))
		port.active_mtu = IBV_MTU_256;
	return 128 << port.active_mtu;
}

/* The table of the soft NIC. */
const struct client_verbs *client_verbs_choose(void);

/*
 * Opens a device of the system's libibverbs and fills in the table; "" is the
 * first device. `address` is preferred among its addresses. -ENODEV with words.
 */
int client_verbs_system(const char *device, const char *address,
			struct client_verbs *v,
			struct ibv_context **context) MUST_CHECK;

#endif
